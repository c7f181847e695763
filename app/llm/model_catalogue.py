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

import openai

from app.errors import ConfigurationError
from app.llm.catalogue import OpenAIParameters
from app.llm.errors import UnknownModelError
from app.llm.extraction import Extractor
from app.llm.model_extractor import ModelExtractor
from app.llm.model_reconciler import ModelReconciler
from app.llm.openai_chat import OpenAIChat
from app.llm.openai_client import connect
from app.llm.reconciling import Reconciler

GROUP: Final = "kemem.extractors"

_RULES: Final = "rules"
_OPENAI: Final = "openai"
_HANDLE: Final = re.compile(r"(?P<kind>[a-z][a-z0-9_-]{0,63})(?:/(?P<model>[\x21-\x7e]{1,128}))?")

# The names come from callers, and some local servers answer to any.
_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class ExtractionModel:
    """What reads a conversation, and what fits it into what is remembered."""

    extractor: Extractor
    reconciler: Reconciler


ExtractorFactory = Callable[[str | None], Extractor]
"""What an entry point holds: called once per handle with what follows `/`, if anything does.

It raises ValueError for a model that it does not have.
"""


class ModelCatalogue:
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
        self._rules = rules
        self._plugins = dict(plugins or {})
        self._client = _connected(openai)
        # Oldest first.
        self._built: dict[str, ExtractionModel] = {}
        try:
            self._default = self._build(default_handle)
        except UnknownModelError as error:
            raise ConfigurationError(
                "MEMORY_EXTRACTION_MODEL names no model of this deployment: write one of "
                f"{', '.join(self.available)}. openai/<model> needs OPENAI_API_KEY, or "
                "OPENAI_BASE_URL for a local endpoint that wants none."
            ) from error
        self._default_handle = default_handle

    @property
    def default(self) -> ExtractionModel:
        """The deployment's, for whoever names no other."""
        return self._default

    @property
    def available(self) -> tuple[str, ...]:
        """The handles a caller may name."""
        remote = () if self._client is None else (f"{_OPENAI}/<model>",)
        return (_RULES, *remote, *sorted(self._plugins))

    def resolve(self, handle: str) -> ExtractionModel:
        """The model for a handle somebody wrote; the default's handle gives the default.

        Whether an endpoint really has a model shows when it is asked.

        Raises:
            UnknownModelError: this deployment has no such model.

        """
        if handle == self._default_handle:
            return self._default
        if handle not in self._built:
            built = self._build(handle)
            if len(self._built) >= _MOST:
                del self._built[next(iter(self._built))]
            self._built[handle] = built
        return self._built[handle]

    async def aclose(self) -> None:
        """Close the connections; safe to repeat."""
        if self._client is not None:
            await self._client.close()

    def _build(self, handle: str) -> ExtractionModel:
        parts = _HANDLE.fullmatch(handle)
        kind, model = (parts["kind"], parts["model"]) if parts else (None, None)
        if kind == _RULES and model is None:
            return self._rules
        if kind == _OPENAI and model is not None and self._client is not None:
            chat = OpenAIChat(self._client, model)
            return ExtractionModel(ModelExtractor(chat), ModelReconciler(chat))
        if kind in self._plugins:
            return ExtractionModel(self._plugged(kind, model), self._rules.reconciler)
        raise UnknownModelError(self.available)

    def _plugged(self, kind: str, model: str | None) -> Extractor:
        try:
            return self._plugins[kind](model)
        except ValueError as error:
            raise UnknownModelError(self.available) from error


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


def _connected(parameters: OpenAIParameters | None) -> "openai.AsyncOpenAI | None":
    if parameters is None or not (parameters.api_key or parameters.base_url):
        return None
    return connect(
        api_key=parameters.api_key,
        base_url=parameters.base_url,
        timeout=parameters.timeout,
        max_retries=parameters.max_retries,
    )
