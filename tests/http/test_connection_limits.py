"""What a connection may send before anybody is known, over real sockets and with short limits."""

import asyncio
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
import uvicorn
from prometheus_client import REGISTRY

from app.platform.http.connections import EXPIRED, ConnectionLimits, Connections
from tests.support.patience import PATIENCE

LIMITS = ConnectionLimits(
    connections=10,
    head_bytes=1000,
    head_count=5,
    head_seconds=0.4,
    body_seconds=0.4,
    body_rate=10,
    answer_seconds=0.4,
    unread_seconds=1,
    linger_seconds=0.4,
    look_seconds=0.05,
)
PATIENT = replace(
    LIMITS, head_seconds=PATIENCE, body_seconds=PATIENCE, answer_seconds=PATIENCE,
    unread_seconds=PATIENCE, linger_seconds=PATIENCE,
)  # fmt: skip
"""For what must not be cut short by a slow machine."""
GET = b"GET / HTTP/1.1\r\nHost: a\r\n"


class Service:
    """A server with `LIMITS`, and what its application saw."""

    def __init__(
        self, limits: ConnectionLimits, *, grace: float = 1, keep_alive: float = 1
    ) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.bodies: list[bytes] = []
        self.gone = 0
        self.expired = 0
        config = uvicorn.Config(
            self._answer, interface="asgi3", loop="uvloop", ws="none", lifespan="off",
            http=Connections(limits), log_config=None, timeout_keep_alive=keep_alive,
            timeout_graceful_shutdown=grace,
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.listener],))
        self.thread.start()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        status, content = 200, b"yes"
        if scope["path"] == "/early":
            status = 401
        elif scope["path"] == "/sleep":
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                self.expired += EXPIRED in scope
                status = 504
        elif scope["path"] == "/large":
            content = b"x" * 20_000_000
        else:
            body, more = b"", True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    self.gone += 1
                    return
                body += message["body"]
                more = message["more_body"]
            self.bodies.append(body)
        headers = [(b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    @property
    def held(self) -> int:
        return len(self.server.server_state.connections)

    def connect(self, sent: bytes = b"") -> socket.socket:
        connection = socket.create_connection(self.listener.getsockname(), timeout=PATIENCE)
        connection.sendall(sent)
        return connection

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        self.listener.close()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    running = Service(LIMITS)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def patient() -> Iterator[Service]:
    running = Service(PATIENT, keep_alive=PATIENCE)
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def _left_empty(service: Service, patient: Service) -> Iterator[None]:
    yield
    eventually(lambda: service.held == patient.held == 0)


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def closed_by(reason: str) -> float:
    sample = {"reason": reason}
    return REGISTRY.get_sample_value("kemem_connections_closed_total", sample) or 0.0


def read_all(connection: socket.socket) -> bytes:
    """What arrives until the other side closes."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def refusal(connection: socket.socket) -> tuple[int, str]:
    """Status and code of a problem document, after which the connection must be closed."""
    with connection:
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head.lower()
    problem = json.loads(body)
    assert problem["status"] == status_of(head)
    assert problem["request_id"]
    return problem["status"], problem["code"]


def answer(connection: socket.socket) -> int:
    """Status of an answer that leaves the connection open."""
    data = b""
    while b"yes" not in data:
        part = connection.recv(65536)
        assert part, data
        data += part
    return status_of(data)


def answers(connection: socket.socket, count: int) -> list[int]:
    """Status of each of several answers."""
    data = b""
    while data.count(b"yes") < count:
        part = connection.recv(65536)
        assert part, data
        data += part
    return [status_of(one) for one in data.split(b"yes")[:count]]


def head_of(size: int) -> bytes:
    """A request whose target and headers have `size` bytes as they are counted."""
    # The target, and `host: a` with the end of its line.
    padding = size - len("/") - len("host: a\r\n") - len("x: \r\n")
    return GET + b"X: " + b"a" * padding + b"\r\n\r\n"


class TestHead:
    @pytest.mark.parametrize("size", [LIMITS.head_bytes - 1, LIMITS.head_bytes])
    def test_a_head_up_to_the_limit_is_answered(self, patient: Service, size: int) -> None:
        with patient.connect(head_of(size)) as connection:
            assert answer(connection) == 200

    def test_a_byte_more_is_refused(self, patient: Service) -> None:
        connection = patient.connect(head_of(LIMITS.head_bytes + 1))

        assert refusal(connection) == (431, "headers_too_large")

    @pytest.mark.parametrize("count", [LIMITS.head_count - 1, LIMITS.head_count])
    def test_headers_up_to_the_limit_are_answered(self, patient: Service, count: int) -> None:
        with patient.connect(GET + b"X: a\r\n" * (count - 1) + b"\r\n") as connection:
            assert answer(connection) == 200

    def test_a_header_more_is_refused(self, patient: Service) -> None:
        connection = patient.connect(GET + b"X: a\r\n" * LIMITS.head_count + b"\r\n")

        assert refusal(connection) == (431, "headers_too_large")

    @pytest.mark.parametrize(
        "head",
        [b"GET / HTTP/1.1\r\n", GET + b"HOST: b\r\n", b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n"],
        ids=["none", "two", "two of 1.0"],
    )
    def test_a_request_without_one_host_is_refused(self, patient: Service, head: bytes) -> None:
        connection = patient.connect(head + b"\r\n")

        assert refusal(connection) == (400, "invalid_host")

    @pytest.mark.parametrize(
        "head",
        [b"GET / HTTP/1.0\r\n", b"GET / HTTP/1.1\r\nhOST: a\r\nX: a\r\n"],
        ids=["1.0", "1.1"],
    )
    def test_one_host_is_enough_and_none_for_http_1_0(self, patient: Service, head: bytes) -> None:
        with patient.connect(head + b"\r\n") as connection:
            assert answer(connection) == 200

    def test_each_request_of_a_connection_has_a_host_of_its_own(self, patient: Service) -> None:
        with patient.connect(GET + b"\r\n") as connection:
            assert answer(connection) == 200
            connection.sendall(GET + b"\r\n")
            assert answer(connection) == 200
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert refusal(connection) == (400, "invalid_host")

    @pytest.mark.parametrize("start", [b"GET /", GET + b"X: ", GET + b"X"], ids=str)
    def test_a_line_that_never_ends_is_refused(self, patient: Service, start: bytes) -> None:
        connection = patient.connect(start)
        for _ in range(20):
            time.sleep(0.001)
            connection.sendall(b"a" * 100)

        assert refusal(connection) == (431, "headers_too_large")

    def test_headers_that_never_end_are_refused(self, patient: Service) -> None:
        connection = patient.connect(GET)
        while not closed(connection):
            connection.sendall(b"X: a\r\n")

        assert refusal(connection)[0] == 431

    def test_a_slow_head_is_refused(self, service: Service) -> None:
        before = closed_by("request_timeout")
        connection = service.connect(GET)

        assert refusal(connection) == (408, "request_timeout")
        assert closed_by("request_timeout") == before + 1

    def test_a_head_that_comes_byte_by_byte_is_not_given_more_time(self, service: Service) -> None:
        connection = service.connect(b"GET /")
        started = time.monotonic()
        while not closed(connection):
            connection.sendall(b"a")
            time.sleep(0.02)

        assert time.monotonic() - started < PATIENCE
        assert refusal(connection) == (408, "request_timeout")

    def test_a_connection_that_says_nothing_is_closed(self, service: Service) -> None:
        with service.connect() as connection:
            assert read_all(connection) == b""

    def test_what_is_no_request_is_refused(self, patient: Service) -> None:
        assert refusal(patient.connect(b"\x16\x03\x01\r\n\r\n")) == (400, "invalid_http")

    def test_the_next_request_of_a_connection_has_limits_of_its_own(self, patient: Service) -> None:
        with patient.connect(head_of(900)) as connection:
            assert answer(connection) == 200
            connection.sendall(head_of(900))
            assert answer(connection) == 200

    def test_the_next_head_of_a_connection_may_be_slow_no_longer(self, service: Service) -> None:
        connection = service.connect(GET + b"\r\n")
        assert answer(connection) == 200
        connection.sendall(b"GET /")

        assert refusal(connection) == (408, "request_timeout")


def closed(connection: socket.socket) -> bool:
    """Whether something can be read: an answer, or the end."""
    return bool(select.select([connection], [], [], 0)[0])


def post(length: int, path: bytes = b"/") -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (path, length)


class TestBody:
    def test_a_body_that_stops_is_refused(self, service: Service) -> None:
        before = service.gone
        # A tenth of a second for each byte that came.
        connection = service.connect(post(4) + b"x" * 3)

        assert refusal(connection) == (408, "request_timeout")
        eventually(lambda: service.gone == before + 1)

    def test_a_body_at_the_rate_has_time_and_a_slower_one_has_not(self, service: Service) -> None:
        size = int(LIMITS.body_rate * PATIENCE) + 1
        with service.connect(post(size)) as connection:
            connection.sendall(b"x" * (size - 1))
            time.sleep(2 * LIMITS.body_seconds)
            connection.sendall(b"x")
            assert answer(connection) == 200
        assert len(service.bodies[-1]) == size
        slow = service.connect(post(size))
        while not closed(slow):
            slow.sendall(b"x")
            time.sleep(2 / LIMITS.body_rate)

        assert refusal(slow) == (408, "request_timeout")

    def test_after_an_early_answer_the_body_is_discarded(self, patient: Service) -> None:
        with patient.connect(post(3, b"/early")) as connection:
            assert answer(connection) == 401
            connection.sendall(b"abc" + GET + b"\r\n")
            assert answer(connection) == 200

    def test_after_an_early_answer_a_slow_body_ends_the_connection(self, service: Service) -> None:
        with service.connect(post(1_000_000, b"/early")) as connection:
            assert answer(connection) == 401
            while not closed(connection):
                connection.sendall(b"x")
                time.sleep(2 / LIMITS.body_rate)

    def test_after_an_early_answer_a_body_at_the_rate_is_taken_to_its_end(self) -> None:
        # In pieces, over twice the time of lingering, and a hundred times as fast as it must be.
        limits = replace(PATIENT, body_rate=1, linger_seconds=1)
        running = Service(limits, keep_alive=PATIENCE)
        try:
            with running.connect(post(200, b"/early")) as connection:
                for _ in range(200):
                    connection.sendall(b"x")
                    time.sleep(0.01)
                connection.sendall(GET + b"\r\n")
                assert answers(connection, 2) == [401, 200]
        finally:
            running.stop()

    def test_callers_with_an_early_answer_make_room(self) -> None:
        full = Service(replace(PATIENT, connections=1))
        try:
            with full.connect(post(2, b"/early")) as early:
                assert answer(early) == 401
                with full.connect(GET + b"\r\n") as connection:
                    assert answer(connection) == 200
                assert read_all(early) == b""
        finally:
            full.stop()

    @pytest.mark.parametrize(
        "sent",
        [
            pytest.param(post(2) + b"x", id="stops"),
            pytest.param(
                b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
                id="is no body",
            ),
        ],
    )
    def test_a_caller_who_stays_after_a_refusal_is_closed(
        self, service: Service, sent: bytes
    ) -> None:
        before = service.gone
        with service.connect(sent) as connection:
            assert status_of(read_all(connection)) in {400, 408}
            eventually(lambda: service.held == 0)
        assert service.gone == before + 1

    def test_callers_who_stay_after_a_refusal_make_room(self) -> None:
        full = Service(replace(PATIENT, connections=2, body_seconds=LIMITS.body_seconds))
        try:
            with ExitStack() as stack:
                for _ in range(2):
                    refused = stack.enter_context(full.connect(post(2) + b"x"))
                    assert status_of(read_all(refused)) == 408
                assert full.held == 2
                with full.connect(GET + b"\r\n") as connection:
                    assert answer(connection) == 200
        finally:
            full.stop()

    def test_the_service_stops_beside_callers_who_stay_after_a_refusal(self) -> None:
        stopped = Service(replace(PATIENT, body_seconds=LIMITS.body_seconds), grace=PATIENCE)
        with stopped.connect(post(2) + b"x") as connection:
            assert status_of(read_all(connection)) == 408
            started = time.monotonic()
            stopped.stop()
            assert time.monotonic() - started < PATIENCE


class TestAnswer:
    def test_a_request_that_takes_too_long_is_cancelled(self, service: Service) -> None:
        with service.connect(b"GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n") as connection:
            assert answer(connection) == 504
        assert service.expired == 1

    def test_of_requests_that_came_together_the_one_that_runs_is_cancelled(
        self, service: Service
    ) -> None:
        before = service.expired
        sleep = b"GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n"
        with service.connect(sleep * 2 + GET + b"\r\n") as connection:
            assert answers(connection, 3) == [504, 504, 200]
        assert service.expired == before + 2

    def test_the_head_of_the_next_request_gives_no_more_time(self, service: Service) -> None:
        before = service.expired
        sleep = b"GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n"
        with service.connect(sleep + b"GET /") as connection:
            assert answer(connection) == 504
        assert service.expired == before + 1

    def test_a_body_that_begins_behind_another_request_is_whole(self) -> None:
        running = Service(replace(LIMITS, body_seconds=PATIENCE, linger_seconds=0.1))
        sleep = b"GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n"
        try:
            with running.connect(sleep + post(6) + b"abc") as connection:
                assert answer(connection) == 504
                time.sleep(0.2)
                connection.sendall(b"def")
                assert answer(connection) == 200
            assert running.bodies == [b"abcdef"]
        finally:
            running.stop()

    def test_an_answer_that_nobody_reads_is_given_up(self, service: Service) -> None:
        before = closed_by("answer_unread")
        with service.connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n"):
            eventually(lambda: closed_by("answer_unread") == before + 1)

    def test_an_answer_that_is_read_slowly_is_sent_to_its_end(self, service: Service) -> None:
        before, size = closed_by("answer_unread"), 0
        with service.connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n") as one:
            # Longer than an idle connection is kept.
            while part := one.recv(1_000_000):
                size += len(part)
                time.sleep(0.1)
        assert size > 20_000_000
        assert closed_by("answer_unread") == before

    def test_an_idle_connection_is_closed(self, service: Service) -> None:
        with service.connect(GET + b"\r\n") as connection:
            assert answer(connection) == 200
            assert read_all(connection) == b""

    def test_requests_that_come_together_are_all_answered(self, patient: Service) -> None:
        with patient.connect((GET + b"\r\n") * 3 + post(3) + b"abc") as connection:
            assert answers(connection, 4) == [200] * 4


class TestCount:
    def test_the_one_that_waits_longest_makes_room_for_a_new_one(self, patient: Service) -> None:
        with ExitStack() as stack:
            first = stack.enter_context(patient.connect())
            eventually(lambda: patient.held == 1)
            others = [
                stack.enter_context(patient.connect(b"GET /"))
                for _ in range(LIMITS.connections - 1)
            ]
            eventually(lambda: patient.held == LIMITS.connections)
            with patient.connect(GET + b"\r\n") as connection:
                assert answer(connection) == 200
            assert read_all(first) == b""
            assert not any(closed(one) for one in others)

    def test_without_one_that_waits_the_new_one_is_refused(self) -> None:
        full = Service(
            replace(LIMITS, connections=2, answer_seconds=PATIENCE, head_seconds=PATIENCE)
        )
        try:
            busy = [full.connect(b"GET /sleep HTTP/1.1\r\nHost: a\r\n\r\n") for _ in range(2)]
            eventually(lambda: len(full.server.server_state.tasks) == 2)

            assert refusal(full.connect()) == (503, "too_many_connections")
            busy.pop().close()
            eventually(lambda: full.held == 1)
            with full.connect(GET + b"\r\n") as connection:
                assert answer(connection) == 200
            busy.pop().close()
        finally:
            full.stop()
