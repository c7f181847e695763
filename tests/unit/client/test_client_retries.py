"""What is tried again, how long is waited, and that it has one effect."""

import asyncio
import itertools
import pickle
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from kemem import (
    ApiError,
    ConflictError,
    ConnectionFailedError,
    ForbiddenError,
    JobFailedError,
    KememError,
    Memory,
    NotFoundError,
    RateLimitedError,
    SearchResults,
    TimedOutError,
    UnauthenticatedError,
    UnavailableError,
    UnexpectedAnswerError,
    UnprocessableError,
)
from kemem.address import Service
from kemem.calls import post
from kemem.exchange import Exchange, RetryPolicy, retry_after
from tests.support.either_client import KEY, ask
from tests.support.flaky_server import (
    FlakyServer,
    cuts_off,
    hangs_up,
    refuses,
    refuses_with,
    says,
    sends,
    slowly,
)
from tests.support.patience import PATIENCE

ADDED = says({"results": [{"index": 0, "event": "ADD", "memory_id": "mem_1"}]}, 201)
ITEM = says({"memory_id": "mem_1", "content": "Tea."})
GONE = refuses(404, "memory_not_found")


@pytest.mark.parametrize(
    "failure",
    [
        hangs_up,
        cuts_off,
        refuses(502, "http_error"),
        refuses(503, "database_busy"),
        refuses(503, "outcome_unknown"),
        refuses(504, "http_error"),
        refuses(429, "rate_limited", Retry_After="0"),
        sends(b"<html>Bad Gateway</html>", 502),
    ],
)
async def test_post_is_repeated_with_the_same_key_and_bytes(server, memory, failure) -> None:
    server.script(failure, ADDED)

    added = await ask(memory.add, "She drinks tea.", user_id="ana")

    assert [memory.memory_id for memory in added] == ["mem_1"]
    assert len(server.requests) == 2
    assert same_key_and_bytes(server)


async def test_post_is_repeated_as_often_as_it_fails(server, memory) -> None:
    server.script(hangs_up, refuses(503, "outcome_unknown"), ADDED)

    added = await ask(memory.add, "She drinks tea.", user_id="ana")

    assert [memory.memory_id for memory in added] == ["mem_1"]
    assert len(server.requests) == 3
    assert same_key_and_bytes(server)


def same_key_and_bytes(server: FlakyServer) -> bool:
    keys = {request.headers["Idempotency-Key"] for request in server.requests}
    bodies = {request.body for request in server.requests}
    return [len(key) for key in keys] == [32] and len(bodies) == 1


async def test_each_call_has_its_own_idempotency_key(server, memory) -> None:
    server.otherwise = ADDED

    for _ in range(2):
        await ask(memory.add, "She drinks tea.", user_id="ana")

    assert len({one.headers["Idempotency-Key"] for one in server.requests}) == 2


@pytest.mark.parametrize(
    ("status", "family"),
    [
        (401, UnauthenticatedError), (403, ForbiddenError), (404, NotFoundError),
        (409, ConflictError), (422, UnprocessableError), (413, ApiError), (500, ApiError),
        (501, ApiError),
    ],
)  # fmt: skip
async def test_permanent_error_is_raised_at_once(server, memory, status, family) -> None:
    server.script(refuses(status, "some_code", "Because."))

    with pytest.raises(ApiError) as raised:
        await ask(memory.add, "She drinks tea.", user_id="ana")

    error = raised.value
    assert type(error) is family
    assert (error.status, error.code, error.request_id) == (status, "some_code", "req_1")
    assert error.detail.startswith("Because.")
    assert f"{status} some_code: Because." in str(error)
    assert len(server.requests) == 1


async def test_memory_disabled_is_not_retried(server, memory) -> None:
    server.script(refuses(503, "memory_disabled", Retry_After="5"))

    with pytest.raises(UnavailableError):
        await ask(memory.add, "She drinks tea.", user_id="ana")

    assert len(server.requests) == 1


async def test_last_failure_is_raised_after_the_last_retry(server, open_memory) -> None:
    server.otherwise = refuses(503, "database_busy", Retry_After="0")

    for retries in (0, 1, 2):
        server.requests.clear()
        with pytest.raises(UnavailableError) as raised:
            await ask(open_memory(max_retries=retries).get, "mem_1")
        assert raised.value.code == "database_busy"
        assert len(server.requests) == 1 + retries


async def test_retry_after_is_waited_for(server, memory) -> None:
    server.script(refuses(429, "rate_limited", Retry_After="0.2"), ITEM)

    await ask(memory.get, "mem_1")

    # Without being asked, it would wait for a hundredth.
    assert server.pauses[0] >= 0.2


async def test_retry_after_beyond_the_timeout_is_raised(server, open_memory) -> None:
    server.otherwise = refuses(429, "quota_exhausted", Retry_After="3600")
    begin = time.monotonic()

    with pytest.raises(RateLimitedError) as raised:
        await ask(open_memory(timeout=PATIENCE).get, "mem_1")

    assert raised.value.retry_after == 3600
    assert time.monotonic() - begin < PATIENCE
    assert len(server.requests) == 1


async def test_request_in_progress_does_not_count_as_a_retry(server, open_memory) -> None:
    busy = refuses(409, "request_in_progress", Retry_After="0")
    server.script(hangs_up, *[busy] * 5, ADDED)

    added = await ask(open_memory(max_retries=1, timeout=20).add, "She drinks tea.", user_id="ana")

    assert len(added) == 1
    assert len(server.requests) == 7


async def test_request_in_progress_beyond_the_timeout_is_raised(server, open_memory) -> None:
    server.script(*[refuses(409, "request_in_progress", Retry_After="0")] * 2)
    server.otherwise = refuses(409, "request_in_progress", Retry_After="3600")

    with pytest.raises(ConflictError):
        await ask(open_memory(timeout=PATIENCE).add, "She drinks tea.", user_id="ana")

    assert len(server.requests) == 3


async def test_other_conflicts_are_not_retried(server, memory) -> None:
    server.script(refuses(409, "id_taken", Retry_After="0"))

    with pytest.raises(ConflictError):
        await ask(memory.add, "She drinks tea.", user_id="ana")

    assert len(server.requests) == 1


async def test_deletion_whose_answer_was_lost_succeeds(server, memory) -> None:
    for lost in (hangs_up, refuses(503, "outcome_unknown", Retry_After="0"), sends(b"", 504)):
        server.script(lost, GONE)

        assert await ask(memory.delete, "mem_1") is None


async def test_deletion_of_a_missing_memory_raises(server, memory) -> None:
    server.script(GONE)
    with pytest.raises(NotFoundError):
        await ask(memory.delete, "mem_1")

    # The service was busy and said that it did nothing, so nothing was deleted before.
    server.script(refuses(503, "database_busy", Retry_After="0"), GONE)
    with pytest.raises(NotFoundError):
        await ask(memory.delete, "mem_1")

    server.script(hangs_up, GONE)
    with pytest.raises(NotFoundError):
        await ask(memory.get, "mem_1")


async def test_change_without_version_is_retried(server, memory) -> None:
    server.script(hangs_up, ITEM)

    await ask(memory.update, "mem_1", "Green tea.")

    assert len(server.requests) == 2
    assert "If-Match" not in server.requests[0].headers


async def test_change_with_version_is_retried_only_if_it_had_no_effect(server, memory) -> None:
    server.script(refuses(503, "database_busy", Retry_After="0"), ITEM)
    await ask(memory.update, "mem_1", "Green tea.", version=3)
    assert [one.headers["If-Match"] for one in server.requests] == ["3", "3"]

    for lost in (hangs_up, sends(b"", 504), refuses(503, "outcome_unknown", Retry_After="0")):
        server.requests.clear()
        server.script(lost)
        with pytest.raises(KememError):
            await ask(memory.update, "mem_1", "Green tea.", version=3)
        assert len(server.requests) == 1


async def test_restoration_with_version_is_retried_with_its_key(server, memory) -> None:
    server.script(hangs_up, says({"memory": {"memory_id": "mem_1", "content": "Tea."}}))

    restored = await ask(memory.restore, "mem_1", "his_1", version=2)

    assert restored.memory.memory_id == "mem_1"
    assert [one.headers["If-Match"] for one in server.requests] == ["2", "2"]
    assert len({one.headers["Idempotency-Key"] for one in server.requests}) == 1


async def test_timeout_ends_one_attempt(server, open_memory) -> None:
    # Whoever waited longer would get an answer.
    server.otherwise = slowly(5, ITEM)

    with pytest.raises(TimedOutError) as raised:
        await ask(open_memory(timeout=0.5).get, "mem_1")

    assert raised.value.code == "timed_out"
    assert "0.5 s" in str(raised.value)


async def test_timeout_includes_all_attempts(server, open_memory) -> None:
    server.otherwise = slowly(0.2, refuses(503, "database_busy"))
    begin = time.monotonic()

    with pytest.raises((TimedOutError, UnavailableError)):
        await ask(open_memory(timeout=1, max_retries=50).get, "mem_1")

    # All attempts would take ten seconds.
    assert time.monotonic() - begin > 0.5
    assert len(server.requests) < 51


async def test_connection_that_always_breaks_is_a_connection_error(server, open_memory) -> None:
    server.otherwise = hangs_up

    with pytest.raises(ConnectionFailedError) as raised:
        await ask(open_memory(max_retries=1).get, "mem_1")

    assert raised.value.code == "connection_failed"
    assert "2 attempts" in str(raised.value)


async def test_unreachable_service_is_an_error_that_says_what_to_do(open_memory) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        nowhere = type(open_memory())(address, KEY, max_retries=1)

        with pytest.raises(ConnectionFailedError, match="make run"):
            await ask(nowhere.get, "mem_1")
    await ask(nowhere.close)


async def test_service_that_starts_during_retries_is_reached(server, open_memory) -> None:
    """A port that is taken and closed, until a forwarder listens there while the client waits."""
    server.otherwise = ITEM
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        late = type(open_memory())(f"http://127.0.0.1:{port}", KEY, max_retries=8, timeout=30)

        def forward() -> None:
            time.sleep(0.4)
            listener.listen()
            line, _ = listener.accept()
            target = ("127.0.0.1", int(server.address.rsplit(":", 1)[1]))
            with line, socket.create_connection(target) as onward:
                onward.sendall(line.recv(65536))
                line.sendall(onward.recv(65536))

        thread = threading.Thread(target=forward)
        thread.start()
        found = await ask(late.get, "mem_1")
        await asyncio.to_thread(thread.join)
    await ask(late.close)
    assert found.content == "Tea."


@pytest.mark.parametrize(
    "answer",
    [
        sends(b"<html>Welcome</html>", Content_Type="text/html"),
        sends(b'{"memory_id": "mem_1", "cont', Content_Type="application/json"),
        says(["mem_1"]),
        says({"content": "An answer without an id."}),
        says({"memory_id": "mem_1", "content": "Tea.", "create_time": "yesterday"}),
        sends(b"", 204),
        sends(b"", 307, Location="http://127.0.0.1:1/elsewhere"),
    ],
)
async def test_answer_of_another_server_is_unexpected(server, memory, answer) -> None:
    server.script(answer)

    with pytest.raises(UnexpectedAnswerError) as raised:
        await ask(memory.get, "mem_1")

    assert raised.value.code == "unexpected_answer"
    assert len(server.requests) == 1


async def test_error_without_problem_document_has_a_code(server, memory) -> None:
    server.script(sends(b"<html>the key is kem_x</html>", 403))

    with pytest.raises(ForbiddenError) as raised:
        await ask(memory.get, "mem_1")

    assert raised.value.code == "http_error"
    assert "kem_x" not in str(raised.value)


async def test_error_has_every_invalid_field(server, memory) -> None:
    errors = [
        {"location": ["body", "messages", "0", "content"], "detail": "too long"},
        {"location": ["body", "user_id"], "detail": "not an id"},
    ]
    problem = {"status": 422, "code": "invalid_request", "detail": "See errors.", "errors": errors}
    server.script(refuses_with(problem | {"reasons": [{"code": "too_short"}]}))

    with pytest.raises(UnprocessableError) as raised:
        await ask(memory.add, "x", user_id="a b")

    places = [fault.location for fault in raised.value.errors]
    assert places == ["body.messages.0.content", "body.user_id"]
    assert "body.user_id: not an id." in str(raised.value)
    assert raised.value.problem["reasons"] == [{"code": "too_short"}]


async def test_errors_show_neither_key_nor_content(server, open_memory) -> None:
    memory = open_memory(max_retries=0)
    for failure in (refuses(401, "unknown_key"), hangs_up, sends(b"?"), refuses(500, "x")):
        server.script(failure)
        with pytest.raises(KememError) as raised:
            await ask(memory.add, "My secret words.", user_id="ana")
        error: BaseException | None = raised.value
        while error is not None:
            assert "secret" not in f"{error!s} {error!r} {error.args!r}"
            error = error.__cause__
    assert "secret" not in repr(memory)
    assert "secret" not in f"{memory._service!r} {vars(memory)!r}"


def test_refused_key_error_says_where_the_key_came_from(server) -> None:
    server.script(refuses(401, "unknown_key", "There is no such key."))

    with Memory(server.address, KEY) as memory, pytest.raises(UnauthenticatedError) as raised:
        memory.get("mem_1")

    assert "the argument api_key" in str(raised.value)


def test_errors_survive_pickling() -> None:
    for error in (
        RateLimitedError(429, "rate_limited", "Wait.", (), "req_1", 3.0, {"code": "rate_limited"}),
        JobFailedError("job_1", "dead", "model_failed", "It did."),
        TimedOutError("late"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.code == error.code


def exchange(chance: float, *, timeout: float = 1000, retries: int = 20) -> Exchange[object]:
    service = Service("http://127.0.0.1:1", "kem_x", "nowhere")
    ticks = itertools.repeat(0.0)
    return Exchange(
        post(SearchResults, "memories", "search", body={"query": "tea"}),
        service,
        RetryPolicy(timeout, retries),
        clock=lambda: next(ticks),
        jitter=lambda: chance,
    )


def test_pauses_double_up_to_a_limit_with_jitter() -> None:
    busy = httpx.Response(503, json={"code": "database_busy"})
    longest, shortest = exchange(1.0), exchange(0.0)

    assert [longest.pause(busy) for _ in range(8)] == [0.25, 0.5, 1, 2, 4, 8, 8, 8]
    assert [shortest.pause(busy) for _ in range(8)] == [0.125, 0.25, 0.5, 1, 2, 4, 4, 4]


@pytest.mark.parametrize(("asked", "waits"), [(9, True), (10, False), (11, False)])
def test_pause_must_end_before_the_timeout(asked, waits) -> None:
    answer = httpx.Response(429, headers={"Retry-After": str(asked)})

    assert (exchange(0.0, timeout=10).pause(answer) is not None) == waits


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("7", 7), ("1.5", 1.5), (" 3 ", 3), ("", None), ("-1", None), ("inf", None),
        ("nan", None), ("soon", None), ("1" * 400, None), ("٣", None),
    ],
)  # fmt: skip
def test_retry_after_in_seconds(text, seconds) -> None:
    headers = [(b"Retry-After", text.encode())]
    assert retry_after(httpx.Response(503, headers=headers)) == seconds


def test_retry_after_as_a_date() -> None:
    moment = datetime.now(UTC) + timedelta(seconds=60)
    later = httpx.Response(503, headers={"Retry-After": format_datetime(moment, usegmt=True)})
    assert 55 < retry_after(later) <= 60

    past = httpx.Response(503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})
    assert retry_after(past) == 0


@pytest.mark.parametrize(
    "arguments",
    [{"timeout": 0}, {"timeout": -1}, {"timeout": float("inf")}, {"max_retries": -1}],
)
def test_retry_policy_is_validated(arguments) -> None:
    with pytest.raises(ValueError, match=r"timeout|max_retries"):
        Memory("http://127.0.0.1:1", KEY, **arguments)


async def test_wait_polls_a_job_until_it_is_over(server, memory) -> None:
    def job(status, **fields):
        return says({"job_id": "job_1", "status": status, **fields})

    server.script(job("pending"), job("running"), job("succeeded", result={"memories": 2}))
    done = await ask(memory.wait, "job_1")
    assert done.result == {"memories": 2}
    assert [one.path for one in server.requests] == ["/v1/jobs/job_1"] * 3

    for status, code in (("dead", "model_failed"), ("cancelled", None)):
        server.script(job(status, error_code=code))
        with pytest.raises(JobFailedError) as raised:
            await ask(memory.wait, done)
        assert raised.value.status == status
        assert raised.value.code == (code or status)

    server.otherwise = job("pending", deferred_reason="quota_exhausted")
    with pytest.raises(TimedOutError, match="quota_exhausted"):
        await ask(memory.wait, "job_1", timeout=0.3)


async def test_waiting_without_a_job_is_refused(server, memory) -> None:
    server.script(says({"session_id": "s1", "scheduled": False, "done": True}))
    extraction = await ask(memory.extract, "s1")

    with pytest.raises(ValueError, match="nothing was scheduled"):
        await ask(memory.wait, extraction)


def test_threads_share_one_client(server) -> None:
    server.otherwise = ITEM
    failures: list[Exception] = []
    with Memory(server.address, KEY) as memory:

        def work() -> None:
            try:
                for _ in range(25):
                    assert memory.get("mem_1").content == "Tea."
            except Exception as error:  # noqa: BLE001 (told to the main thread)
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert failures == []
    assert len(server.requests) == 200


async def test_close_is_repeatable_and_leaves_a_given_client_open(server) -> None:
    server.otherwise = ITEM
    memory = Memory(server.address, KEY)
    memory.close()
    memory.close()
    with httpx.Client() as given:
        with Memory(server.address, KEY, http_client=given) as other:
            other.get("mem_1")
        assert not given.is_closed


def test_credentials_and_redirects_of_a_given_client_are_not_used(server) -> None:
    server.script(sends(b"", 307, Location=f"{server.address}/elsewhere"))
    with (
        httpx.Client(auth=("user", "password"), follow_redirects=True) as given,
        pytest.raises(UnexpectedAnswerError),
    ):
        Memory(server.address, KEY, http_client=given).get("mem_1")

    [request] = server.requests
    assert request.headers["Authorization"] == f"Bearer {KEY}"
