"""The port to whatever writes a summary, and what every adapter owes its callers.

Adapters: `extractive_summariser` (keyless, quotes) and `model_summariser` (any endpoint that can
be chatted with). How long the result may be is checked by the caller, who trusts neither.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from app.language.llm.extractor import ModelUse

Speaker = Literal["user", "assistant", "system", "tool"]


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """One message as a summariser sees it: never its metadata.

    Args:
        event_type: what kind of event it is, when nobody said it, such as `login`.
        name: the speaker's own, or the tool's.
        calls: the tools it calls, each a name, perhaps with short arguments in brackets.
        number: its place in the conversation.

    """

    speaker: Speaker
    text: str
    event_type: str | None = None
    name: str | None = None
    calls: tuple[str, ...] = ()
    number: int | None = None


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What to put into few words.

    Args:
        words: how many, at most; two characters of Chinese count as one word.
        lines: messages in their order. Without any, the earlier summaries are to become one.
        earlier: summaries of what was said before, oldest first. Beside lines they
            are there to be understood, and stay as they are.
        instructions: the caller's own wishes about the contents.

    """

    words: int
    lines: Sequence[SummaryLine] = ()
    earlier: Sequence[str] = ()
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """What was written, and what it cost. Perhaps longer than asked for."""

    text: str
    use: ModelUse = field(default_factory=ModelUse)


class Summariser(Protocol):
    """Writes summaries. One instance is shared by the whole process.

    Calls may overlap on one event loop, never block it for more than some milliseconds, and
    may be cancelled at any time.
    """

    @property
    def name(self) -> str:
        """What stands beside each summary: `extractive/1`, `openai/gpt-4o-mini`."""
        ...

    @property
    def model(self) -> str | None:
        """The provider's name of the model; None without one."""
        ...

    async def summarise(self, request: SummaryRequest) -> Summary:
        """A summary with words in it; the same request may be sent again.

        Raises:
            ModelUnavailableError: nothing was written.

        """
        ...
