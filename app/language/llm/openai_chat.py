"""Answers from any endpoint that speaks OpenAI's `/v1/chat/completions`.

Endpoints differ in what they take: strict schemas, JSON at all, a temperature, the name of the
limit. The fullest request goes first; what is refused is left out, once per model. They differ in
what they send, too: content in parts, no usage, numbers of another kind. What cannot be an answer
is told apart here: cut off, declined, filtered, empty.
"""

import asyncio
import math
import re
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from app.language.llm.chat import ChatAnswer, JsonSchema, Opening
from app.language.llm.embedder import encodable
from app.language.llm.errors import AnswerFault, ModelUnavailableError
from app.language.llm.extractor import ModelUse
from app.language.llm.json_answers import read_answer
from app.language.llm.openai_client import failure_of, plain_code
from app.language.llm.prompts import format_note

if TYPE_CHECKING:
    import openai
    from openai.types.chat.completion_create_params import ResponseFormat


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


_Limit = Literal["max_completion_tokens", "max_tokens"]

# The provider's own newer models refuse `max_tokens`; others often know nothing else, and
# leave out what they do not know without a word.
_OFFICIAL: Final = "api.openai.com"

# What says that it was not the way of asking.
_HOPELESS: Final = frozenset({"content_filter", "context_length_exceeded", "model_not_found"})
_REFUSALS: Final = frozenset({400, 415, 422, 501})
# A 404 may be a router's, which has the model but not with these parameters.
_UNSUPPORTED: Final = re.compile(r"format|schema|structured|json|parameter|support", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What of a request an endpoint takes for a model."""

    limits: tuple[_Limit, ...]
    answers: Literal["schema", "object", "text"] = "schema"
    temperature: bool = True

    def without(self, words: str) -> "_Dialect | None":
        """A plainer one after a refusal in these words; None when nothing is left to leave out."""
        # First, because some refusals repeat the whole request, with all of these words.
        about_format = "response_format" in words or "schema" in words
        if about_format and self.answers != "text":
            return self._in_plainer_form()
        if self.temperature and "temperature" in words:
            return replace(self, temperature=False)
        if self.limits and ("max_tokens" in words or "max_completion_tokens" in words):
            return replace(self, limits=self.limits[1:])
        return self._in_plainer_form()

    def _in_plainer_form(self) -> "_Dialect | None":
        if self.answers == "text":
            return None
        return replace(self, answers="object" if self.answers == "schema" else "text")


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked, in whatever dialect."""

    system: str
    user: str
    schema: JsonSchema
    schema_name: str
    max_output_tokens: int
    opening: Opening | None = None

    def request(self, dialect: _Dialect) -> dict[str, Any]:
        import openai

        system = self.system
        if dialect.answers != "schema":
            system = f"{system}\n\n{format_note(self.schema)}"
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
        turns = [("system", system)]
        if self.opening is not None:
            turns += zip(("user", "assistant"), self.opening, strict=True)
        turns.append(("user", self.user))
        return {
            "messages": [{"role": role, "content": encodable(text)} for role, text in turns],
            "response_format": formats.get(dialect.answers, openai.omit),
            "temperature": 0 if dialect.temperature else openai.omit,
            **dict.fromkeys(dialect.limits[:1], self.max_output_tokens),
        }


class _Meter:
    """What one question has cost so far. What the SDK repeats by itself is one call."""

    def __init__(self) -> None:
        self._started = perf_counter()
        self.calls = 0
        self.input_tokens = 0
        self.output_tokens = 0

    def use(self) -> ModelUse:
        milliseconds = round((perf_counter() - self._started) * 1000)
        return ModelUse(self.calls, self.input_tokens, self.output_tokens, milliseconds)


class OpenAIChat:
    """One model of one endpoint. Belongs to the event loop of its client, which it does not
    close; the client brings key, address, timeout and retries.
    """

    def __init__(self, client: "openai.AsyncOpenAI", model: str) -> None:
        self._client = client
        self._model = model
        official = client.base_url.host == _OFFICIAL
        limits: tuple[_Limit, _Limit] = ("max_tokens", "max_completion_tokens")
        self._dialect = _Dialect(limits[::-1] if official else limits)

    @property
    def name(self) -> str:
        return f"openai/{self._model}"

    @property
    def model(self) -> str:
        return self._model

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
        """As the port says. What a model refuses to be asked costs further calls, once.

        Raises:
            ModelUnavailableError: there is no answer, or none that can be read to its end.

        """
        question = _Question(system, user, schema, schema_name, max_output_tokens, opening)
        meter = _Meter()
        dialect, body = await self._ask(question, meter)
        completion = read_completion(body)
        if completion is None:
            raise _bad_answer("unreadable", meter)
        meter.input_tokens = completion.input_tokens
        meter.output_tokens = completion.output_tokens
        # Kept only now: the refusals may have been for another reason.
        self._dialect = dialect
        if completion.fault is not None:
            raise _bad_answer(completion.fault, meter)
        # In a thread, because mending a broken answer can take a second.
        data = await asyncio.to_thread(read_answer, completion.text, schema)
        if data is None:
            raise _bad_answer("unreadable", meter)
        return ChatAnswer(data, meter.use())

    async def _ask(self, question: _Question, meter: _Meter) -> tuple[_Dialect, bytes]:
        """The body of the answer, and the dialect in which there was one.

        Raises:
            ModelUnavailableError: the endpoint cannot be reached, or refuses every dialect.

        """
        import openai

        dialect = self._dialect
        while True:
            meter.calls += 1
            try:
                # The raw answer, because the SDK builds models from it without checking them.
                response = await self._client.chat.completions.with_raw_response.create(
                    model=self._model, **question.request(dialect)
                )
            except openai.OpenAIError as error:
                plainer = _plainer(dialect, error)
                if plainer is None:
                    raise _unavailable(error, meter) from error
                dialect = plainer
            else:
                return dialect, response.content


def _plainer(dialect: _Dialect, error: "openai.OpenAIError") -> _Dialect | None:
    """The next dialect to try, if the failure may come from this one."""
    import openai

    if not isinstance(error, openai.APIStatusError) or plain_code(error) in _HOPELESS:
        return None
    words = f"{error.param} {error.message}".lower()
    unsupported = error.status_code == 404 and _UNSUPPORTED.search(error.message)
    if error.status_code not in _REFUSALS and not unsupported:
        return None
    return dialect.without(words)


def _unavailable(error: "openai.OpenAIError", meter: _Meter) -> ModelUnavailableError:
    failure = failure_of(error)
    filtered = failure.code == "content_filter"
    return ModelUnavailableError(
        "bad_answer" if filtered else failure.reason,
        fault="filtered" if filtered else None,
        retry_after=failure.retry_after,
        use=meter.use(),
        provider_status=failure.status,
        provider_code=failure.code,
    )


def _bad_answer(fault: AnswerFault, meter: _Meter) -> ModelUnavailableError:
    return ModelUnavailableError("bad_answer", fault=fault, use=meter.use())
