"""Which profilers this deployment has, by handle: `rules` needs no key."""

from typing import Final

from app.language.llm.catalogue import OpenAIParameters
from app.language.llm.chat_catalogue import ChatCatalogue
from app.language.llm.model_profiler import ModelProfiler
from app.language.llm.profiling import Profiler

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
