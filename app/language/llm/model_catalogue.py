"""Which extraction models this deployment has, by handle.

`rules` needs no key; `openai/<model>` is any model of the deployment's endpoint; other handles
are those of installed packages that offer an extractor by the entry point group
`kemem.extractors`. Each is built once and shared. Whose agent names which is the room's.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from typing_extensions import override

from app.errors import ConfigurationError
from app.language.llm.catalogue import OpenAIParameters
from app.language.llm.chat_catalogue import ChatCatalogue
from app.language.llm.errors import UnknownModelError
from app.language.llm.extraction import Extractor
from app.language.llm.model_extractor import ModelExtractor
from app.language.llm.model_reconciler import ModelReconciler
from app.language.llm.openai_chat import OpenAIChat
from app.language.llm.reconciling import Reconciler

GROUP: Final = "kemem.extractors"

_RULES: Final = "rules"
_OPENAI: Final = "openai"
_HANDLE: Final = re.compile(r"(?P<kind>[a-z][a-z0-9_-]{0,63})(?:/(?P<model>[\x21-\x7e]{1,128}))?")


@dataclass(frozen=True, slots=True)
class ExtractionModel:
    """What reads a conversation, and what fits it into what is remembered."""

    extractor: Extractor
    reconciler: Reconciler


ExtractorFactory = Callable[[str | None], Extractor]
"""What an entry point holds: called once per handle with what follows `/`, if anything does.

It raises ValueError for a model that it does not have.
"""


class ModelCatalogue(ChatCatalogue[ExtractionModel]):
    """Resolves handles to shared extraction models. Belongs to one event loop."""

    def __init__(
        self,
        default_handle: str,
        *,
        rules: ExtractionModel,
        openai: OpenAIParameters | None = None,
        plugins: Mapping[str, ExtractorFactory] | None = None,
    ) -> None:
        """Make the catalogue; nothing is sent.

        Args:
            default_handle: what MEMORY_EXTRACTION_MODEL says.
            rules: the keyless one; it also reconciles what a plugin has found.
            openai: the deployment's endpoint, if it has one.
            plugins: by the first part of their handles; see `installed_extractors`.

        Raises:
            ConfigurationError: there is no such model here; the message says what to mend.

        """
        self._plugins = dict(plugins or {})
        super().__init__(
            default_handle,
            setting="MEMORY_EXTRACTION_MODEL",
            keyless_handle=_RULES,
            keyless=rules,
            make=_reading,
            openai=openai,
        )

    @property
    @override
    def available(self) -> tuple[str, ...]:
        """The handles a caller may name."""
        return (*super().available, *sorted(self._plugins))

    @override
    def _build(self, handle: str) -> ExtractionModel:
        parts = _HANDLE.fullmatch(handle)
        kind = parts["kind"] if parts else None
        if parts is None or kind not in self._plugins:
            return super()._build(handle)
        return ExtractionModel(self._plugged(kind, parts["model"]), self.keyless.reconciler)

    def _plugged(self, kind: str, model: str | None) -> Extractor:
        try:
            return self._plugins[kind](model)
        except ValueError as error:
            raise UnknownModelError(self.available) from error


def _reading(chat: OpenAIChat) -> ExtractionModel:
    return ExtractionModel(ModelExtractor(chat), ModelReconciler(chat))


def installed_extractors() -> dict[str, ExtractorFactory]:
    """What installed packages offer, by name.

    Raises:
        ConfigurationError: one cannot be loaded, or has a name that is ours or another's.

    """
    found: dict[str, ExtractorFactory] = {}
    for point in entry_points(group=GROUP):
        parts = _HANDLE.fullmatch(point.name)
        if not parts or parts["model"] or point.name in {_RULES, _OPENAI, *found}:
            raise ConfigurationError(
                f"The installed extractor {point.name!r} ({point.value}) cannot have this name: "
                "it is taken, or is not made of small letters, digits, _ and -."
            )
        found[point.name] = _loaded(point)
    return found


def _loaded(point: EntryPoint) -> ExtractorFactory:
    try:
        factory: ExtractorFactory = point.load()
    except Exception as error:
        raise ConfigurationError(
            f"The installed extractor {point.name!r} ({point.value}) cannot be loaded: "
            f"{type(error).__name__}. Mend or uninstall its package."
        ) from error
    return factory
