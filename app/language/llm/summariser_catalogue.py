"""Which summarisers this deployment has, by handle: `extractive` needs no key."""

from typing import Final

from app.language.llm.catalogue import OpenAIParameters
from app.language.llm.chat_catalogue import ChatCatalogue
from app.language.llm.extractive_summariser import ExtractiveSummariser
from app.language.llm.model_summariser import ModelSummariser
from app.language.llm.summarising import Summariser

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
