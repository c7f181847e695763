"""The port to whatever writes an answer, and what an adapter owes its callers.

Only answers in JSON are asked for. Adapter: `openai_chat` (any compatible endpoint).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from app.language.llm.extractor import ModelUse

JsonSchema = Mapping[str, Any]
"""As strict structured output wants it: every property required, none beside them."""

Opening = tuple[str, str]
"""What a user says first, and what the model has answered to it."""


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A JSON object, and what it cost. Whether its values fit the schema is not yet checked."""

    data: dict[str, Any]
    use: ModelUse


class ChatModel(Protocol):
    """Answers. Shared by the process; calls may overlap on one event loop and be cancelled."""

    @property
    def name(self) -> str:
        """`provider/model`."""
        ...

    @property
    def model(self) -> str:
        """As the provider names it."""
        ...

    async def answer(
        self,
        system: str,
        user: str,
        *,
        schema: JsonSchema,
        schema_name: str,
        max_output_tokens: int,
        opening: Opening | None = None,
    ) -> ChatAnswer:
        """The model's answer, with every required property but plain strings, which may be
        missing: they are remarks.

        Args:
            system: what to do.
            user: what to do it with; data, rendered so that nothing in it can pass for more.
            schema: what the answer looks like.
            schema_name: letters, digits and `_`.
            max_output_tokens: an answer that is longer is cut off, which is an error.
            opening: turns of a user and of the model itself that stand before `user`.

        Raises:
            ModelUnavailableError: there is no answer, or none that can be read to its end.

        """
        ...
