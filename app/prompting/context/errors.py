"""What can go wrong with a request for a context."""

from collections.abc import Sequence
from typing import Final

from app.conversation.messages.schemas import CONTENT_LENGTH
from app.errors import UnprocessableError

MOST_NAMED: Final = 5
LONGEST_NAMED: Final = 100
"""Limits of the names in an error: a prompt may hold thousands of any length."""


class UnknownVariableError(UnprocessableError):
    code = "unknown_variable"
    title = "Nothing has this name"

    def __init__(self, names: Sequence[str]) -> None:
        shown = [name[:LONGEST_NAMED] for name in names[:MOST_NAMED]]
        more = len(names) - len(shown)
        listed = ", ".join(shown) + (f" and {more} more" if more else "")
        super().__init__(
            f"The system prompt names {listed}, and neither the request's `context`, nor the "
            "working state, nor the session's `context` has it.",
            variables=[*shown],
            errors=[
                {"location": ["body", "system_prompt"], "detail": f"nothing is called {name}"}
                for name in shown
            ],
        )


class LongPromptError(UnprocessableError):
    code = "prompt_too_long"
    title = "System prompt too long"

    def __init__(self) -> None:
        detail = f"is longer than {CONTENT_LENGTH:,} characters once its variables are replaced"
        super().__init__(
            f"The system prompt {detail}: take out a variable that stands for much text.",
            errors=[{"location": ["body", "system_prompt"], "detail": detail}],
        )
