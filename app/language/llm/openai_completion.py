"""What an endpoint answered with status 200: the text of the first choice, or why there is none.

Endpoints differ in what they send: content in parts, the answer beside the content, no usage,
numbers of another kind, no message. What cannot be an answer is told apart here: cut off,
declined, filtered, empty. Some send an error with status 200; that is no completion.
"""

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ValidationError

from app.language.llm.errors import AnswerFault

_CUT_OFF: Final = frozenset({"length", "max_tokens", "model_length"})
_FILTERED: Final = frozenset(
    {"blocklist", "content_filter", "prohibited_content", "recitation", "safety", "spii"}
)
_FAILED: Final = frozenset({"error", "insufficient_system_resource"})

# A model that is held to JSON and has nothing more to say writes white space until the limit.
_RUN_OF_SPACE: Final = re.compile(r"\s{100}\Z")


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote; `fault` says why it is no answer. Tokens not told count as 0."""

    text: str
    fault: AnswerFault | None
    input_tokens: int
    output_tokens: int


# More than any window holds; the ledger adds up what providers say, and has bounds.
_MOST_TOKENS: Final = 1_000_000_000


def _count(value: Any) -> int:
    if not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return min(max(int(value), 0), _MOST_TOKENS)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_Count = Annotated[int, BeforeValidator(_count)]
_Text = Annotated[str, BeforeValidator(_text)]


class _Part(BaseModel):
    text: _Text = ""


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    # The two names of what a model thought; some servers put the whole answer there.
    reasoning_content: _Text = ""
    reasoning: _Text = ""

    def text(self) -> str:
        content = self.content
        if isinstance(content, list):
            content = "".join(part.text for part in content)
        if content:
            return content
        thoughts = self.reasoning_content or self.reasoning
        return thoughts if thoughts.lstrip().startswith("{") else ""


class _Choice(BaseModel):
    # Left out by an endpoint whose model has thought until the limit.
    message: _Message | None = None
    finish_reason: _Text = ""
    error: Any = None


class _Usage(BaseModel):
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0


class _Completion(BaseModel):
    choices: list[_Choice] | None
    usage: _Usage | None = None


class _Failure(BaseModel):
    choices: list[_Choice] | None = None
    error: Any = None


def read_completion(body: bytes) -> Completion | None:
    """The first choice in the answer's body; None when it is no completion at all."""
    try:
        answer = _Completion.model_validate_json(body)
    except ValidationError:
        return None
    usage = answer.usage or _Usage()
    choice = answer.choices[0] if answer.choices else _Choice()
    text = "" if choice.message is None else choice.message.text()
    return Completion(text, _fault(choice, text), usage.prompt_tokens, usage.completion_tokens)


def error_in(body: bytes) -> Any:
    """The error that an endpoint sends in place of an answer or in its first choice; None without
    one. It may hold anything.
    """
    try:
        answer = _Failure.model_validate_json(body)
    except ValidationError:
        return None
    if not answer.choices:
        return answer.error
    choice = answer.choices[0]
    failed = choice.finish_reason in _FAILED
    return choice.error or (choice.finish_reason if failed else None)


def _fault(choice: _Choice, text: str) -> AnswerFault | None:
    # Some pass on the name of another API, in capitals.
    reason = choice.finish_reason.lower()
    if reason in _FILTERED:
        return "filtered"
    if choice.message is not None and choice.message.refusal:
        return "declined"
    if reason in _CUT_OFF:
        return None if _RUN_OF_SPACE.search(text) else "truncated"
    return None if text.strip() else "empty"
