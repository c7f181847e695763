"""Which models this deployment has for each kind of work, by handle.

A keyless one (`rules`, `extractive`) needs no model; `openai/<model>` is any model of the
deployment's endpoint; other handles of an extractor are those of installed packages that offer one
by the entry point group `kemem.extractors`. Each is built once and shared. Which agent names which
is not decided here.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Generic, TypeVar

from typing_extensions import override

from app.errors import ConfigurationError
from app.language.llm.embedder_catalogue import OpenAIParameters
from app.language.llm.errors import UnknownModelError
from app.language.llm.extractive_summariser import ExtractiveSummariser
from app.language.llm.extractor import Extractor
from app.language.llm.model_extractor import ModelExtractor
from app.language.llm.model_profiler import ModelProfiler
from app.language.llm.model_reconciler import ModelReconciler
from app.language.llm.model_summariser import ModelSummariser
from app.language.llm.openai_chat import OpenAIChat
from app.language.llm.openai_client import connect
from app.language.llm.profiler import Profiler
from app.language.llm.reconciler import Reconciler
from app.language.llm.summariser import Summariser

_OPENAI: Final = re.compile(r"openai/(?P<model>[\x21-\x7e]{1,128})")

# The names come from callers, and some local servers answer to any.
_MOST: Final = 64

Made = TypeVar("Made")


class ChatCatalogue(Generic[Made]):
    """Resolves handles to what does the work. Belongs to one event loop."""

    def __init__(
        self,
        default_handle: str,
        *,
        setting: str,
        keyless_handle: str,
        keyless: Made,
        make: Callable[[OpenAIChat], Made],
        openai: OpenAIParameters | None = None,
    ) -> None:
        """Make the catalogue; nothing is sent.

        Args:
            default_handle: what `setting` says.
            setting: its environment variable, for the error.
            keyless_handle: names the one that needs no model.
            keyless: that one.
            make: what does the work by asking a model.
            openai: the deployment's endpoint, if it has one.

        Raises:
            ConfigurationError: `default_handle` names nothing here; says what to mend.

        """
        self._keyless_handle = keyless_handle
        self._keyless = keyless
        self._make = make
        reachable = openai is not None and bool(openai.api_key or openai.base_url)
        self._client = (
            connect(
                api_key=openai.api_key,
                base_url=openai.base_url,
                timeout=openai.timeout,
                max_retries=openai.max_retries,
                longest_wait=openai.longest_wait,
            )
            if openai is not None and reachable
            else None
        )
        # Oldest first.
        self._built: dict[str, Made] = {}
        try:
            self._default = self._build(default_handle)
        except UnknownModelError as error:
            raise ConfigurationError(
                f"{setting} names no model of this deployment: write one of "
                f"{', '.join(self.available)}. openai/<model> needs OPENAI_API_KEY, or "
                "OPENAI_BASE_URL for a local endpoint that wants none."
            ) from error
        self._default_handle = default_handle

    @property
    def default(self) -> Made:
        """The deployment's, for whoever names no other."""
        return self._default

    @property
    def keyless(self) -> Made:
        """The one that always answers."""
        return self._keyless

    @property
    def available(self) -> tuple[str, ...]:
        """The handles a caller may name."""
        keyless = self._keyless_handle
        return (keyless,) if self._client is None else (keyless, "openai/<model>")

    def resolve(self, handle: str) -> Made:
        """What does the work for a handle somebody wrote; the default's gives the default.

        Whether an endpoint really has a model shows when it is asked.

        Raises:
            UnknownModelError: this deployment has none of that name.

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

    def _build(self, handle: str) -> Made:
        """What does the work for a handle, made anew.

        Raises:
            UnknownModelError: the handle names nothing here.

        """
        if handle == self._keyless_handle:
            return self._keyless
        named = _OPENAI.fullmatch(handle)
        if named is None or self._client is None:
            raise UnknownModelError(self.available)
        return self._make(OpenAIChat(self._client, named["model"]))


EXTRACTIVE: Final = "extractive"


class SummariserCatalogue(ChatCatalogue[Summariser]):
    """Resolves handles to shared summarisers. Belongs to one event loop."""

    def __init__(self, default_handle: str, *, openai: OpenAIParameters | None = None) -> None:
        """Make the catalogue with what MEMORY_SUMMARY_MODEL says. Raises ConfigurationError."""
        super().__init__(
            default_handle,
            setting="MEMORY_SUMMARY_MODEL",
            keyless_handle=EXTRACTIVE,
            keyless=ExtractiveSummariser(),
            make=ModelSummariser,
            openai=openai,
        )


RULES: Final = "rules"


class ProfilerCatalogue(ChatCatalogue[Profiler]):
    """Resolves handles to shared profilers. Belongs to one event loop."""

    def __init__(
        self, default_handle: str, *, rules: Profiler, openai: OpenAIParameters | None = None
    ) -> None:
        """Make the catalogue; `default_handle` follows MEMORY_EXTRACTION_MODEL."""
        super().__init__(
            default_handle,
            setting="MEMORY_EXTRACTION_MODEL",
            keyless_handle=RULES,
            keyless=rules,
            make=ModelProfiler,
            openai=openai,
        )


GROUP: Final = "kemem.extractors"

_OPENAI_KIND: Final = "openai"
_HANDLE: Final = re.compile(r"(?P<kind>[a-z][a-z0-9_-]{0,63})(?:/(?P<model>[\x21-\x7e]{1,128}))?")


@dataclass(frozen=True, slots=True)
class ExtractionModel:
    """What reads a conversation, and what fits it into what is remembered.

    Args:
        chat: the model that both ask; None for those that ask none, or one of their own.

    """

    extractor: Extractor
    reconciler: Reconciler
    chat: OpenAIChat | None = None


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
            keyless_handle=RULES,
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
        """The extractor of an installed package.

        Raises:
            UnknownModelError: the package has no such model.

        """
        try:
            return self._plugins[kind](model)
        except ValueError as error:
            raise UnknownModelError(self.available) from error


def _reading(chat: OpenAIChat) -> ExtractionModel:
    return ExtractionModel(ModelExtractor(chat), ModelReconciler(chat), chat)


def installed_extractors() -> dict[str, ExtractorFactory]:
    """What installed packages offer, by name.

    Raises:
        ConfigurationError: one cannot be loaded, or has a name that is ours or another's.

    """
    found: dict[str, ExtractorFactory] = {}
    for point in entry_points(group=GROUP):
        parts = _HANDLE.fullmatch(point.name)
        if not parts or parts["model"] or point.name in {RULES, _OPENAI_KIND, *found}:
            raise ConfigurationError(
                f"The installed extractor {point.name!r} ({point.value}) cannot have this name: "
                "it is taken, or is not made of small letters, digits, _ and -."
            )
        found[point.name] = _loaded(point)
    return found


def _loaded(point: EntryPoint) -> ExtractorFactory:
    """What an entry point holds.

    Raises:
        ConfigurationError: it cannot be loaded.

    """
    try:
        factory: ExtractorFactory = point.load()
    except Exception as error:
        raise ConfigurationError(
            f"The installed extractor {point.name!r} ({point.value}) cannot be loaded: "
            f"{type(error).__name__}. Mend or uninstall its package."
        ) from error
    return factory
