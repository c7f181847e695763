"""Answers from any endpoint that speaks OpenAI's `/v1/chat/completions`.

Endpoints differ in what they take: strict schemas, JSON at all, a system's turn, a temperature,
the name of the limit. The fullest request goes first; what is refused is left out, once per model.
An endpoint that takes a schema and does not keep to it is told the form in words from then on.
"""

import asyncio
import re
from datetime import timedelta
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from app.language.llm.chat import ChatAnswer, JsonSchema, Opening
from app.language.llm.errors import AnswerFault, FailureReason, ModelUnavailableError
from app.language.llm.extractor import ModelUse
from app.language.llm.json_answers import read_answer
from app.language.llm.openai_client import failure_of, refusal_in, within_timeout, words_of
from app.language.llm.openai_dialect import (
    ChatQuestion,
    Completion,
    Dialect,
    Limit,
    about_limit,
    about_roles,
    read_completion,
)
from app.platform.observability.spans import model_call

if TYPE_CHECKING:
    import openai


# The provider's own newer models refuse `max_tokens`; others often know nothing else, and
# leave out what they do not know without a word.
_OFFICIAL: Final = "api.openai.com"

_REFUSALS: Final = frozenset({400, 415, 422, 501})
# A 404 may be a router's, which has the model but not with these parameters.
_UNSUPPORTED: Final = re.compile(r"format|schema|structured|json|parameter|support")


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
        limits: tuple[Limit, Limit] = ("max_tokens", "max_completion_tokens")
        self._dialect = Dialect(limits[::-1] if official else limits)

    @property
    def name(self) -> str:
        return f"openai/{self._model}"

    @property
    def model(self) -> str:
        return self._model

    async def silence(self, within: timedelta) -> FailureReason | None:
        """Why the endpoint answers nothing in that time; None when it does, if only with an error.

        It is asked for its models, which costs nothing and does not wait behind other answers.
        """
        import openai

        client = self._client.with_options(max_retries=0)
        try:
            async with asyncio.timeout(within.total_seconds()):
                await client.models.with_raw_response.list()
        except TimeoutError:
            return "timeout"
        except openai.APIConnectionError as error:
            return failure_of(error).reason
        except openai.OpenAIError:
            return None
        return None

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
        """As the port says. What a model refuses to be asked costs further calls, once; so does
        an answer without the form that was asked for.

        Raises:
            ModelUnavailableError: there is no answer, or none that can be read to its end.

        """
        question = ChatQuestion(system, user, schema, schema_name, max_output_tokens, opening)
        meter = _Meter()
        begun = self._dialect
        dialect, completion = await self._ask(question, begun, meter)
        # Kept only now: the refusals may have been for another reason.
        self._learn(begun, dialect)
        data = await _read(completion, schema, meter)
        if data is None and (plainer := dialect.plainer()) is not None:
            # The endpoint takes a form and does not keep to it.
            dialect, completion = await self._ask(question, plainer, meter)
            data = await _read(completion, schema, meter)
        if data is None:
            raise _bad_answer("unreadable", meter)
        self._learn(begun, dialect)
        return ChatAnswer(data, meter.use())

    def _learn(self, begun: Dialect, dialect: Dialect) -> None:
        # What another call has learned meanwhile stays.
        if dialect != begun:
            self._dialect = dialect

    async def _ask(
        self, question: ChatQuestion, dialect: Dialect, meter: _Meter
    ) -> tuple[Dialect, Completion]:
        """What the model wrote, and the dialect in which it did.

        Raises:
            ModelUnavailableError: the endpoint cannot be reached, refuses every dialect, or sends
                something else.

        """
        import openai

        while True:
            meter.calls += 1
            with model_call("chat", self._model) as span:
                try:
                    # The raw answer, because the SDK builds models from it without checking them.
                    create = self._client.chat.completions.with_raw_response.create
                    response = await within_timeout(
                        self._client, create(model=self._model, **question.request(dialect))
                    )
                except openai.OpenAIError as error:
                    refusal: openai.OpenAIError = error
                else:
                    inside = refusal_in(response.http_response)
                    if inside is None:
                        completion = read_completion(response.content)
                        if completion is None:
                            raise _bad_answer("unreadable", meter)
                        span.used(completion.input_tokens, completion.output_tokens)
                        return dialect, completion
                    refusal = inside
                span.failed(refusal)
            plainer = _plainer(dialect, refusal)
            if plainer is None:
                raise _unavailable(refusal, meter) from refusal
            dialect = plainer


async def _read(completion: Completion, schema: JsonSchema, meter: _Meter) -> dict[str, Any] | None:
    """The answer, if it can be read; what it cost is counted.

    Raises:
        ModelUnavailableError: there is none to read.

    """
    meter.input_tokens += completion.input_tokens
    meter.output_tokens += completion.output_tokens
    if completion.fault is not None:
        raise _bad_answer(completion.fault, meter)
    # In a thread, because mending a broken answer can take a second.
    return await asyncio.to_thread(read_answer, completion.text, schema)


def _plainer(dialect: Dialect, error: "openai.OpenAIError") -> Dialect | None:
    """The next dialect to try, if the failure may come from this one."""
    import openai

    if not isinstance(error, openai.APIStatusError):
        return None
    failure, words = failure_of(error), words_of(error)
    hopeless = failure.filtered or failure.reason == "quota_exhausted"
    if hopeless or failure.code == "model_not_found":
        return None
    if failure.reason == "too_long":
        # The answer's limit may be what is too long.
        return dialect.without(words) if dialect.limits and about_limit(words) else None
    # A template that breaks is a failure of the server for some.
    broken = error.status_code == 500 and about_roles(words)
    unsupported = error.status_code == 404 and _UNSUPPORTED.search(words)
    if error.status_code in _REFUSALS or broken or unsupported:
        return dialect.without(words)
    return None


def _unavailable(error: "openai.OpenAIError", meter: _Meter) -> ModelUnavailableError:
    failure = failure_of(error)
    return ModelUnavailableError(
        "bad_answer" if failure.filtered else failure.reason,
        fault="filtered" if failure.filtered else None,
        retry_after=failure.retry_after,
        use=meter.use(),
        provider_status=failure.status,
        provider_code=failure.code,
    )


def _bad_answer(fault: AnswerFault, meter: _Meter) -> ModelUnavailableError:
    return ModelUnavailableError("bad_answer", fault=fault, use=meter.use())
