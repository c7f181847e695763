"""Reading an answer of `/v1/chat/completions`, with the distrust it deserves.

Compatible servers send content in parts, no usage, numbers of another kind. What cannot be
an answer is told apart here: cut off, declined, filtered, empty.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from app.language.llm.errors import AnswerFault

_CUT_OFF: Final = frozenset({"length", "max_tokens"})


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


_Count = Annotated[int, BeforeValidator(_count)]


class _Part(BaseModel):
    text: str | None = None


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0


class _Completion(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _Usage | None = None


def read_completion(body: bytes) -> Completion | None:
    """The first choice in the answer's body; None when it is no completion at all."""
    try:
        answer = _Completion.model_validate_json(body)
    except ValidationError:
        return None
    choice = answer.choices[0]
    content = choice.message.content
    if isinstance(content, list):
        content = "".join(part.text or "" for part in content)
    usage = answer.usage or _Usage()
    return Completion(
        text=content or "",
        fault=_fault(choice, content or ""),
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
    )


def _fault(choice: _Choice, text: str) -> AnswerFault | None:
    if choice.finish_reason in _CUT_OFF:
        return "truncated"
    if choice.finish_reason == "content_filter":
        return "filtered"
    if choice.message.refusal:
        return "declined"
    return None if text.strip() else "empty"
