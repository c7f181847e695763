"""How a question is put to an endpoint, what is left out of it after a refusal, and the text of
what it answers with status 200, or why there is none.

Nothing here knows a provider: the fullest request goes first, and the words of a refusal say what
the endpoint does not take.

Endpoints differ in what they send: content in parts, the answer beside the content, no usage,
numbers of another kind, no message. What cannot be an answer is told apart here: cut off,
declined, filtered, empty. Some send an error with status 200; that is no completion.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ValidationError

from app.language.llm.chat import JsonSchema, Opening
from app.language.llm.embedder import encodable
from app.language.llm.errors import AnswerFault
from app.language.llm.prompts import format_note

if TYPE_CHECKING:
    from openai.types.chat.completion_create_params import ResponseFormat

Limit = Literal["max_completion_tokens", "max_tokens"]

# Templates of some models have no place for a system's turn, and say so in many ways.
_ROLES: Final = re.compile(r"\broles?\b|\b(?:developer|system)[ _](?:instruction|message)")
_LIMITS: Final = re.compile(r"max_(?:completion_)?tokens|in the completion")
_THINKING: Final = re.compile(r"enable[ _]thinking")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What of a request an endpoint takes for a model."""

    limits: tuple[Limit, ...]
    answers: Literal["schema", "object", "text"] = "schema"
    system: bool = True
    temperature: bool = True
    thinking: bool = True
    """False: the endpoint is told that its model is not to think."""

    def without(self, words: str) -> "Dialect | None":
        """A plainer one after a refusal in these words; None when nothing is left to leave out."""
        # First, because some refusals repeat the whole request, with all of these words.
        about_format = "response_format" in words or "schema" in words
        if about_format and self.answers != "text":
            return self.plainer()
        dialect: Dialect | None = None
        if self.system and about_roles(words):
            dialect = replace(self, system=False)
        elif self.temperature and "temperature" in words:
            dialect = replace(self, temperature=False)
        elif self.limits and about_limit(words):
            dialect = replace(self, limits=self.limits[1:])
        elif self.thinking and _THINKING.search(words):
            dialect = replace(self, thinking=False)
        elif plainer := self.plainer():
            # A model that always thinks may not be told otherwise, and is not held to JSON.
            dialect = replace(plainer, thinking=True) if _THINKING.search(words) else plainer
        return dialect

    def plainer(self) -> "Dialect | None":
        """One that asks less of the form of the answer."""
        if self.answers == "text":
            return None
        return replace(self, answers="object" if self.answers == "schema" else "text")


def about_roles(words: str) -> bool:
    """Whether a refusal is about whose turns a conversation may have."""
    return _ROLES.search(words) is not None


def about_limit(words: str) -> bool:
    """Whether a refusal is about how long an answer may be."""
    return _LIMITS.search(words) is not None


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """What is asked, in whatever dialect."""

    system: str
    user: str
    schema: JsonSchema
    schema_name: str
    max_output_tokens: int
    opening: Opening | None = None

    def request(self, dialect: Dialect) -> dict[str, Any]:
        import openai

        formats: dict[str, ResponseFormat] = {
            "schema": {
                "type": "json_schema",
                "json_schema": {
                    "name": self.schema_name,
                    "schema": dict(self.schema),
                    "strict": True,
                },
            },
            "object": {"type": "json_object"},
        }
        return {
            "messages": [
                {"role": role, "content": encodable(text)} for role, text in self._turns(dialect)
            ],
            "response_format": formats.get(dialect.answers, openai.omit),
            "temperature": 0 if dialect.temperature else openai.omit,
            "extra_body": None if dialect.thinking else {"enable_thinking": False},
            **dict.fromkeys(dialect.limits[:1], self.max_output_tokens),
        }

    def _turns(self, dialect: Dialect) -> list[tuple[str, str]]:
        system = self.system
        if dialect.answers != "schema":
            system = f"{system}\n\n{format_note(self.schema)}"
        turns = [("user", self.user)]
        if self.opening is not None:
            turns = [*zip(("user", "assistant"), self.opening, strict=True), *turns]
        if dialect.system:
            return [("system", system), *turns]
        return [("user", f"{system}\n\n{turns[0][1]}"), *turns[1:]]


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
