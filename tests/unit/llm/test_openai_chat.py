"""The chat adapter against a real server that misbehaves on request."""

import asyncio
import threading
import time
from datetime import timedelta
from email.utils import formatdate

import httpx2
import pytest
from openai import APITimeoutError, AsyncOpenAI

from app.deployment import COMMAND_WAIT
from app.language.llm.answer_schemas import extraction_schema
from app.language.llm.chat import ChatAnswer
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.openai_chat import OpenAIChat
from app.language.llm.openai_client import LONGEST_WAIT, connect, retry_bound, within_timeout
from tests.support.chat_behaviours import (
    cut_off,
    declines,
    empty,
    entry,
    filtered,
    held,
    remembers,
    says,
    slowly,
    without_json,
    without_parameter,
    without_schemas,
    writes,
)
from tests.support.openai_server import (
    Answer,
    Behaviour,
    OpenAIServer,
    a_plain_object,
    a_web_page,
    not_json,
    refusal,
)
from tests.support.patience import PATIENCE, until_asked
from tests.support.silent_server import silent_server

MODEL = "local-model"
SCHEMA = extraction_schema(("user",))
SECRETS = ("sk-secret", "hush", "my diary")
GOOD = remembers(entry("The user keeps a diary.", "t1"))


@pytest.fixture
def chat(client: AsyncOpenAI) -> OpenAIChat:
    return OpenAIChat(client, MODEL)


def refused(status: int, retry_after: float) -> httpx2.Response:
    return httpx2.Response(status, headers={"retry-after": str(retry_after)})


async def ask(chat: OpenAIChat) -> ChatAnswer:
    return await chat.answer(
        "Read it.", "my diary", schema=SCHEMA, schema_name="memories", max_output_tokens=500
    )


async def failure(chat: OpenAIChat) -> ModelUnavailableError:
    with pytest.raises(ModelUnavailableError) as caught:
        await ask(chat)
    error = caught.value
    assert error.status == 503
    assert error.code == "model_unavailable"
    assert not any(secret in f"{error} {error.members}" for secret in SECRETS)
    return error


def forms(server: OpenAIServer) -> list[str | None]:
    """The form of answer that each request asked for."""
    return [one.body.get("response_format", {}).get("type") for one in server.chat.requests]


async def test_an_answer_is_the_object_and_what_it_cost(server: OpenAIServer, chat: OpenAIChat):
    server.chat.script(slowly(0.05, GOOD))

    answer = await ask(chat)

    assert answer.data["memories"][0]["content"] == "The user keeps a diary."
    assert (answer.use.calls, answer.use.input_tokens, answer.use.output_tokens) == (1, 120, 30)
    assert 50 <= answer.use.latency_ms < 2_000


async def test_a_request_asks_for_a_strict_schema_without_a_dice(
    server: OpenAIServer, chat: OpenAIChat
):
    server.chat.script(GOOD)

    await ask(chat)

    [request] = server.chat.requests
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert request.body == {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "Read it."},
            {"role": "user", "content": "my diary"},
        ],
        "temperature": 0,
        "max_tokens": 500,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "memories", "schema": SCHEMA, "strict": True},
        },
    }


def test_the_providers_own_address_gets_the_providers_own_limit():
    official = OpenAIChat(AsyncOpenAI(api_key="k"), "gpt-4o-mini")

    assert official._dialect.limits[0] == "max_completion_tokens"


async def test_half_a_surrogate_pair_does_not_stop_a_request(
    server: OpenAIServer, chat: OpenAIChat
):
    server.chat.script(GOOD)

    await chat.answer("s", "绿\ud83c", schema=SCHEMA, schema_name="m", max_output_tokens=5)

    assert server.chat.requests[0].body["messages"][1]["content"] == "绿?"


class TestFallback:
    async def test_from_schemas_to_json_costs_one_call_once(
        self, server: OpenAIServer, chat: OpenAIChat
    ):
        server.chat.otherwise = without_schemas(GOOD)

        first, second = await ask(chat), await ask(chat)

        assert forms(server) == ["json_schema", "json_object", "json_object"]
        assert (first.use.calls, second.use.calls) == (2, 1)
        assert first.data == second.data

    @pytest.mark.parametrize("status", [400, 404, 415, 422, 501])
    async def test_from_json_to_text_is_remembered(
        self, server: OpenAIServer, chat: OpenAIChat, status: int
    ):
        server.chat.otherwise = without_json(GOOD, status)

        await ask(chat)
        await ask(chat)

        assert forms(server) == ["json_schema", "json_object", None, None]

    async def test_says_the_schema_in_words_instead(self, server: OpenAIServer, chat: OpenAIChat):
        server.chat.otherwise = without_json(GOOD)

        await ask(chat)

        told = [one.body["messages"][0]["content"] for one in server.chat.requests]
        assert told[0] == "Read it."
        # The provider takes `json_object` only where the word is in a message.
        assert all("JSON" in system and '"source_error"' in system for system in told[1:])

    @pytest.mark.parametrize("name", ["temperature", "max_tokens"])
    async def test_leaves_out_what_is_refused_and_keeps_the_schema(
        self, server: OpenAIServer, chat: OpenAIChat, name: str
    ):
        server.chat.otherwise = without_parameter(name, GOOD)

        await ask(chat)
        await ask(chat)

        assert [name in one.body for one in server.chat.requests] == [True, False, False]
        assert set(forms(server)) == {"json_schema"}

    async def test_tries_the_other_name_of_the_limit(self, server: OpenAIServer, chat: OpenAIChat):
        server.chat.otherwise = without_parameter("max_tokens", GOOD)

        await ask(chat)

        assert server.chat.requests[-1].body["max_completion_tokens"] == 500

    async def test_does_without_a_limit_at_last(self, server: OpenAIServer, chat: OpenAIChat):
        neither = without_parameter("max_completion_tokens", GOOD)
        server.chat.otherwise = without_parameter("max_tokens", neither)

        await ask(chat)

        assert len(server.chat.requests) == 3
        assert not {"max_tokens", "max_completion_tokens"} & server.chat.requests[-1].body.keys()

    async def test_is_bounded_and_not_kept_when_nothing_helps(
        self, server: OpenAIServer, chat: OpenAIChat
    ):
        server.chat.otherwise = refusal(400, code="bad", message="hush: temperature max_tokens")

        error = await failure(chat)

        assert (error.reason, error.members["provider_status"]) == ("refused", 400)
        assert error.use.calls == len(server.chat.requests) == 6
        server.chat.otherwise = GOOD
        await ask(chat)
        assert forms(server)[-1] == "json_schema"

    @pytest.mark.parametrize(
        ("status", "code"),
        [
            (400, "context_length_exceeded"),
            (400, "content_filter"),
            (404, "model_not_found"),
            (404, "not_found"),
            (401, "invalid_api_key"),
        ],
    )
    async def test_is_not_tried_for_what_it_cannot_help(
        self, server: OpenAIServer, chat: OpenAIChat, status: int, code: str
    ):
        server.chat.otherwise = refusal(status, code=code, message="no")

        error = await failure(chat)

        assert error.use.calls == 1
        assert error.members["provider_code"] == code

    async def test_takes_an_echo_of_the_request_for_what_it_is(
        self, server: OpenAIServer, chat: OpenAIChat
    ):
        async def echoing(request):
            if "response_format" in request.body:
                detail = {"message": f"Extra inputs are not permitted: {request.body}"}
                return Answer.of({"error": detail}, 422)
            return await GOOD(request)

        server.chat.otherwise = echoing

        await ask(chat)

        assert server.chat.requests[-1].body["max_tokens"] == 500
        assert server.chat.requests[-1].body["temperature"] == 0


class TestBadAnswer:
    @pytest.mark.parametrize(
        ("behaviour", "fault"),
        [
            (cut_off('{"reflection": "", "memories": [{"content": "The us'), "truncated"),
            # Some servers say `stop` all the same.
            (writes('{"reflection": "", "memories": [{"content": "The us'), "unreadable"),
            # Cut off right behind a whole object: complete by luck, perhaps.
            (cut_off('{"memories": []}'), "truncated"),
            (declines, "declined"),
            (filtered, "filtered"),
            (empty, "empty"),
            (writes(None), "empty"),
            (writes(" \n"), "empty"),
            (writes("I am sorry about my diary."), "unreadable"),
            (says({"reflection": "nothing"}), "unreadable"),
            (not_json, "unreadable"),
            (a_web_page, "unreadable"),
            (a_plain_object, "unreadable"),
        ],
    )
    async def test_is_an_error_and_never_an_empty_success(
        self, server: OpenAIServer, chat: OpenAIChat, behaviour: Behaviour, fault: str
    ):
        server.chat.otherwise = behaviour

        error = await failure(chat)

        assert error.members == {"reason": "bad_answer", "fault": fault}
        assert error.__cause__ is None

    async def test_costs_what_it_cost(self, server: OpenAIServer, chat: OpenAIChat):
        server.chat.script(cut_off("{"))

        error = await failure(chat)

        assert (error.use.calls, error.use.input_tokens, error.use.output_tokens) == (1, 120, 30)

    async def test_does_not_make_the_next_request_plainer(
        self, server: OpenAIServer, chat: OpenAIChat
    ):
        server.chat.script(empty, GOOD)

        await failure(chat)
        await ask(chat)

        assert forms(server) == ["json_schema", "json_schema"]

    async def test_of_azures_filter_is_one_too(self, server: OpenAIServer, chat: OpenAIChat):
        server.chat.script(refusal(400, code="content_filter", message="my diary"))

        error = await failure(chat)

        assert (error.reason, error.fault) == ("bad_answer", "filtered")


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({}, (0, 0)),
        ({"prompt_tokens": 7}, (7, 0)),
        ({"prompt_tokens": None, "completion_tokens": "many"}, (0, 0)),
        ({"prompt_tokens": 7.0, "completion_tokens": -1}, (7, 0)),
        ({"prompt_tokens": float("nan"), "completion_tokens": float("inf")}, (0, 0)),
        ({"prompt_tokens": 10**9, "completion_tokens": 1e30}, (10**9, 10**9)),
    ],
)
async def test_tokens_that_are_not_told_count_as_none(
    server: OpenAIServer, chat: OpenAIChat, usage: dict, tokens: tuple[int, int]
):
    server.chat.script(remembers(usage=usage))

    use = (await ask(chat)).use

    assert (use.input_tokens, use.output_tokens) == tokens


async def test_content_in_parts_is_put_together(server: OpenAIServer, chat: OpenAIChat):
    async def in_parts(_):
        parts = [{"type": "text", "text": '{"memories"'}, {"type": "text", "text": ": []}"}]
        return Answer.of({"choices": [{"message": {"content": [{"type": "thinking"}, *parts]}}]})

    server.chat.script(in_parts)

    assert (await ask(chat)).data == {"memories": []}


class TestFailure:
    @pytest.mark.parametrize(
        ("status", "code", "reason"),
        [
            (401, "invalid_api_key", "authentication"),
            (403, "forbidden", "authentication"),
            (404, "model_not_found", "model_not_found"),
            (429, "rate_limit_exceeded", "rate_limited"),
            (429, "insufficient_quota", "quota_exhausted"),
            (500, "oops", "provider_error"),
            (503, "overloaded", "provider_error"),
        ],
    )
    async def test_says_its_reason_and_keeps_secrets(
        self, server: OpenAIServer, chat: OpenAIChat, status: int, code: str, reason: str
    ):
        server.chat.script(refusal(status, code=code, message="hush: sk-secret said 'my diary'"))

        error = await failure(chat)

        assert error.members == {
            "reason": reason,
            "provider_status": status,
            "provider_code": code,
        }
        assert error.headers == {"Retry-After": "5"}

    async def test_with_a_number_for_a_code_is_understood(
        self, server: OpenAIServer, chat: OpenAIChat
    ):
        async def numbered(_):
            return Answer.of({"error": {"message": "no", "code": 429}}, 429)

        server.chat.script(numbered)

        assert (await failure(chat)).reason == "rate_limited"

    @pytest.mark.parametrize(
        ("header", "seconds"),
        [
            ("7", 7),
            ("0.25", 0.25),
            ("3600", 3600),
            ("9999999999", 86_400),
            ("1e999", 86_400),
            ("0", None),
            ("-3", None),
            ("nan", None),
            ("soon", None),
            ("", None),
            (None, None),
        ],
    )
    async def test_passes_on_how_long_to_wait(
        self, server: OpenAIServer, chat: OpenAIChat, header: str | None, seconds: float | None
    ):
        server.chat.script(refusal(429, retry_after=header))

        error = await failure(chat)

        assert error.retry_after == (None if seconds is None else timedelta(seconds=seconds))

    async def test_tells_its_own_caller_in_whole_seconds(
        self, server: OpenAIServer, chat: OpenAIChat
    ):
        server.chat.script(refusal(429, retry_after="90.2"))

        error = await failure(chat)

        assert error.members["retry_after"] == 91
        assert error.headers == {"Retry-After": "91"}

    async def test_understands_a_date(self, server: OpenAIServer, chat: OpenAIChat):
        until = formatdate(time.time() + 300, usegmt=True)
        server.chat.script(refusal(429, retry_after=until))

        error = await failure(chat)

        # From the date of the answer, which a server that is busy writes late.
        assert error.retry_after is not None
        assert timedelta(0) < error.retry_after <= timedelta(seconds=300 + PATIENCE)

    async def test_of_time_is_a_timeout(self, server: OpenAIServer):
        server.chat.script(slowly(1.0, GOOD))
        async with server.client(timeout=0.1) as client:
            error = await failure(OpenAIChat(client, MODEL))

        assert error.reason == "timeout"
        assert error.use.latency_ms >= 100

    async def test_of_a_provider_that_is_not_there_is_one_of_connection(self):
        # Port 9 (discard) of this machine, where nothing listens.
        address = "http://127.0.0.1:9/v1"
        async with AsyncOpenAI(api_key="k", base_url=address, max_retries=0) as client:
            error = await failure(OpenAIChat(client, MODEL))

        assert error.reason == "connection"


class TestConnection:
    @staticmethod
    def connected(server: OpenAIServer, timeout: float = PATIENCE) -> AsyncOpenAI:
        return connect(
            api_key="sk-secret",
            base_url=server.base_url,
            timeout=timedelta(seconds=timeout),
            max_retries=2,
        )

    async def test_repeats_what_may_pass(self, server: OpenAIServer):
        server.chat.script(refusal(429, retry_after="1"), refusal(500, retry_after="0.01"), GOOD)
        started = time.perf_counter()
        async with self.connected(server) as client:
            answer = await ask(OpenAIChat(client, MODEL))

        assert answer.use.calls == 1
        assert len(server.chat.requests) == 3
        assert time.perf_counter() - started > 1.0

    @pytest.mark.parametrize("status", [429, 503])
    @pytest.mark.parametrize("seconds", [5.001, 6, 60])
    async def test_reports_a_wait_of_more_than_some_seconds_at_once(
        self, server: OpenAIServer, status: int, seconds: float
    ):
        server.chat.script(refusal(status, retry_after=str(seconds)), GOOD)
        async with self.connected(server) as client:
            error = await asyncio.wait_for(failure(OpenAIChat(client, MODEL)), PATIENCE)

        assert error.retry_after == timedelta(seconds=seconds)
        assert len(server.chat.requests) == 1

    async def test_waits_for_less_itself(self, server: OpenAIServer):
        server.chat.script(refusal(429, retry_after="0.2"), GOOD)
        async with self.connected(server) as client:
            answer = await ask(OpenAIChat(client, MODEL))

        assert answer.data["memories"]
        assert len(server.chat.requests) == 2

    @pytest.mark.parametrize("status", [429, 503])
    @pytest.mark.parametrize(
        ("longest", "seconds", "reported"),
        [
            (LONGEST_WAIT, 4.999, False),
            (LONGEST_WAIT, 5, False),
            (LONGEST_WAIT, 5.001, True),
            (COMMAND_WAIT, 59.999, False),
            (COMMAND_WAIT, 60, False),
            (COMMAND_WAIT, 60.001, True),
        ],
    )
    async def test_waits_no_longer_than_it_was_opened_for(
        self, longest: timedelta, seconds: float, status: int, *, reported: bool
    ):
        response = refused(status, seconds)

        await retry_bound(longest)(response)

        assert response.headers.get("x-should-retry") == ("false" if reported else None)

    async def test_of_a_command_has_the_waits_on_top_of_the_timeout(self, server: OpenAIServer):
        async def waiting() -> str:
            await retry_bound(COMMAND_WAIT)(refused(429, 60))
            # Longer than the timeout alone.
            await asyncio.sleep(0.3)
            return "answered"

        async with self.connected(server, timeout=0.1) as client:
            assert await within_timeout(client, waiting()) == "answered"

    @pytest.mark.parametrize(("longest", "seconds"), [(LONGEST_WAIT, 5), (COMMAND_WAIT, 60.001)])
    async def test_has_no_other_wait_on_top(
        self, server: OpenAIServer, longest: timedelta, seconds: float
    ):
        async def waiting() -> None:
            await retry_bound(longest)(refused(429, seconds))
            await asyncio.Event().wait()

        async with self.connected(server, timeout=0.1) as client:
            with pytest.raises(APITimeoutError):
                await asyncio.wait_for(within_timeout(client, waiting()), 4)

    async def test_of_an_endpoint_that_hangs_costs_one_timeout(
        self, server: OpenAIServer, release: threading.Event
    ):
        server.chat.otherwise = held(release, GOOD)
        async with self.connected(server, timeout=0.5) as client:
            error = await failure(OpenAIChat(client, MODEL))

        assert error.reason == "timeout"
        assert error.use.calls == 1
        assert len(server.chat.requests) <= 1

    async def test_has_one_timeout_for_all_its_retries(
        self, server: OpenAIServer, release: threading.Event
    ):
        # A retry that had a timeout of its own would be followed by another.
        server.chat.script(refusal(500, retry_after="0.01"))
        server.chat.otherwise = held(release, GOOD)
        async with self.connected(server, timeout=0.5) as client:
            error = await failure(OpenAIChat(client, MODEL))

        assert error.reason == "timeout"
        assert len(server.chat.requests) <= 2

    async def test_does_not_repeat_what_only_paying_helps(self, server: OpenAIServer):
        server.chat.script(refusal(429, code="insufficient_quota"), GOOD)
        async with self.connected(server) as client:
            error = await failure(OpenAIChat(client, MODEL))

        assert error.reason == "quota_exhausted"
        assert len(server.chat.requests) == 1


async def test_calls_overlap_and_learn_alone(server: OpenAIServer, chat: OpenAIChat):
    server.chat.otherwise = without_schemas(slowly(0.05, GOOD))

    answers = await asyncio.gather(*(ask(chat) for _ in range(8)))

    assert server.chat.most_at_once > 1
    assert len({str(answer.data) for answer in answers}) == 1
    assert (await ask(chat)).use.calls == 1


async def test_what_another_call_learned_meanwhile_stays(server: OpenAIServer, chat: OpenAIChat):
    release = threading.Event()
    server.chat.script(held(release, GOOD), writes("I found nothing."), GOOD)
    slow = asyncio.create_task(ask(chat))
    await until_asked(server.chat)

    await ask(chat)
    release.set()
    await slow
    server.chat.script(GOOD)
    await ask(chat)

    assert forms(server) == ["json_schema", "json_schema", "json_object", "json_object"]


async def test_a_call_that_is_given_up_leaves_nothing(server: OpenAIServer, chat: OpenAIChat):
    server.chat.script(slowly(30, GOOD), GOOD)
    given_up = asyncio.create_task(ask(chat))
    await until_asked(server.chat)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up

    assert (await ask(chat)).use.calls == 1


class TestSilence:
    async def test_error_is_an_answer_too(self, chat: OpenAIChat):
        """The scripted server knows no list of models."""
        assert await chat.silence(timedelta(seconds=PATIENCE)) is None

    async def test_no_answer_in_time(self):
        async with (
            silent_server() as base_url,
            AsyncOpenAI(api_key="none", base_url=base_url, timeout=PATIENCE) as client,
        ):
            reason = await OpenAIChat(client, MODEL).silence(timedelta(milliseconds=50))
        assert reason == "timeout"

    async def test_refused_connection(self):
        async with silent_server() as base_url:
            pass
        async with AsyncOpenAI(api_key="none", base_url=base_url, timeout=PATIENCE) as client:
            reason = await OpenAIChat(client, MODEL).silence(timedelta(seconds=PATIENCE))
        assert reason == "connection"
