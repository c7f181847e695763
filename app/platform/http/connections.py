"""Limits of a connection before anybody is known: sizes and times of what arrives, and how many.

Uvicorn closes a connection that is idle after an answer, and nothing else: a head has no limit of
size or time, a body none of time, and an answer that nobody reads waits without end. Here one timer
for each process looks at its connections, because a timer for each request would cost every one.
What still can be answered gets a problem document; then the connection is closed.
"""

import asyncio
import math
from dataclasses import dataclass
from enum import Enum, auto
from itertools import count
from typing import Any, Final, cast

import structlog
from typing_extensions import override
from uuid_utils import uuid7
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from app.platform.http import problems
from app.platform.observability.metrics import CONNECTIONS, CONNECTIONS_CLOSED

log = structlog.get_logger()

EXPIRED: Final = "kemem.expired"
"""In a scope: the request is cancelled because it took longer than it may."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a connection may send, and how long it may take.

    Args:
        connections: most that a process holds; beyond them the one that has waited longest for a
            request is closed, and if none waits, the new one.
        head_bytes: of request line and headers.
        head_count: headers.
        head_seconds: until the first head is complete, and from its first byte for any other.
        body_seconds: until a body is complete, and a second more for each `body_rate` bytes of it.
        answer_seconds: until the answer begins; then the request is cancelled.
        unread_seconds: in which the caller takes nothing of the answer; longer than an export
            waits for its reader.
        linger_seconds: in which the rest of a refused request is discarded, so that the caller
            reads the answer and not that the connection was reset; as long again while a body
            that was answered early comes at `body_rate`.
        look_seconds: between two looks at the connections.

    """

    connections: int = 800
    head_bytes: int = 64 * 1024
    head_count: int = 100
    head_seconds: float = 10
    body_seconds: float = 30
    body_rate: int = 1024
    answer_seconds: float = 300
    unread_seconds: float = 75
    linger_seconds: float = 2
    look_seconds: float = 1


class _Phase(Enum):
    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    LINGER = auto()
    CLOSED = auto()


_HOST: Final = b"host"
_REFUSED = {_Phase.LINGER, _Phase.CLOSED}


class Connections:
    """Makes the connections of one server, for uvicorn's `http`, and watches them."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.numbers = count()
        self._looking = False

    def __call__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> "LimitedProtocol":
        """A connection, as uvicorn asks for one."""
        return LimitedProtocol(self, config, server_state, app_state, _loop)

    def admit(self, new: "LimitedProtocol", all_: "set[LimitedProtocol]") -> bool:
        """Whether there is room for a connection; perhaps another was closed for it."""
        if not self._looking:
            self._looking = True
            new.loop.call_later(self.limits.look_seconds, self._look, new.loop, all_)
        if len(all_) <= self.limits.connections:
            return True
        waiting = (
            connection for connection in all_ if connection is not new and connection.is_waiting
        )
        longest = min(
            waiting, key=lambda connection: (connection.since, connection.number), default=None
        )
        if longest is not None:
            longest.end("replaced")
        return longest is not None

    def _look(self, loop: asyncio.AbstractEventLoop, all_: set["LimitedProtocol"]) -> None:
        now = loop.time()
        for connection in list(all_):
            connection.look(now)
        self._looking = bool(all_)
        if self._looking:
            loop.call_later(self.limits.look_seconds, self._look, loop, all_)


class LimitedProtocol(HttpToolsProtocol):
    """Uvicorn's connection, which counts what arrives and knows until when it may wait."""

    def __init__(
        self,
        watcher: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        super().__init__(config, server_state, app_state, loop)
        self._watcher = watcher
        self._all = cast("set[LimitedProtocol]", server_state.connections)
        self._limits = watcher.limits
        self._phase = _Phase.IDLE
        self.since = 0.0
        # The loop's clock stands still while it answers what has come together.
        self.number = next(watcher.numbers)
        self._deadline = math.inf
        self._head_bytes = 0
        self._head_chunks = 0
        self._body_bytes = 0
        self._is_head_too_large = False
        self._hosts = 0
        # What is answered now; `cycle` is what came last.
        self._running: RequestResponseCycle | None = None
        self._task: asyncio.Task[Any] | None = None
        self._answer_deadline = math.inf
        self._unread = (0, 0.0)

    @override
    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        async def noted(*call: Any) -> None:
            self._task = asyncio.current_task()
            await app(*call)

        self._running, self._task = cycle, None
        self._answer_deadline = math.inf if cycle.more_body else self._answer_by()
        if self._phase is _Phase.BODY and cycle is self.cycle:
            # It was not read while another request was answered.
            self._enter(_Phase.BODY, self._limits.body_seconds)
        super()._start_asgi_task(cycle, noted)

    def _answer_by(self) -> float:
        return self.loop.time() + self._limits.answer_seconds

    def _enter(self, phase: _Phase, seconds: float) -> None:
        self._phase = phase
        self.since = self.loop.time()
        self._deadline = self.since + seconds

    @property
    def is_waiting(self) -> bool:
        """Whether nothing would be lost with it: no request waits for its answer."""
        return self._phase is not _Phase.CLOSED and not self._is_answering

    @property
    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        CONNECTIONS.inc()
        self._enter(_Phase.IDLE, self._limits.head_seconds)
        if not self._watcher.admit(self, self._all):
            self._refuse(503, "too_many_connections", "The service has no connection left.")
            self.transport.close()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        CONNECTIONS.dec()
        self._phase = _Phase.CLOSED
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        if self._phase in _REFUSED:
            return
        was_head = self._phase is _Phase.HEAD
        super().data_received(data)
        if self._phase is _Phase.HEAD:
            # A header that never ends is not told of by the parser.
            self._head_chunks += len(data) if was_head else 0
            if self._is_head_too_large or self._head_chunks > self._limits.head_bytes:
                self._refuse_head()

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._phase in _REFUSED:
            return
        self._head_bytes = self._head_chunks = self._body_bytes = 0
        self._is_head_too_large = False
        self._hosts = 0
        self._enter(_Phase.HEAD, self._limits.head_seconds)

    @override
    def on_url(self, url: bytes) -> None:
        if self._fits(len(url)):
            super().on_url(url)

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        # As they are sent: `name: value` and the end of the line.
        if self._fits(len(name) + len(value) + 4) and len(self.headers) < self._limits.head_count:
            self._hosts += len(name) == len(_HOST) and name.lower() == _HOST
            super().on_header(name, value)
        else:
            self._is_head_too_large = True

    def _fits(self, size: int) -> bool:
        self._head_bytes += size
        self._is_head_too_large |= self._head_bytes > self._limits.head_bytes
        return not self._is_head_too_large

    @override
    def on_headers_complete(self) -> None:
        if self._is_head_too_large:
            self._refuse_head()
        elif self._hosts != 1 and (self._hosts or self.parser.get_http_version() == "1.1"):
            # RFC 9112, 3.2: a proxy before it may have taken another host for the right one.
            self._refuse(400, "invalid_host", "An HTTP/1.1 request has one Host header.")
        if self._phase is not _Phase.HEAD:
            return
        super().on_headers_complete()
        self._enter(_Phase.BODY, self._limits.body_seconds)

    @override
    def on_body(self, body: bytes) -> None:
        if self._phase is not _Phase.BODY:
            return
        super().on_body(body)
        self._body_bytes += len(body)

    @override
    def on_message_complete(self) -> None:
        if self._phase is not _Phase.BODY:
            return
        super().on_message_complete()
        if self._is_answering:
            self._enter(_Phase.ANSWER, math.inf)
            if self._running is self.cycle:
                self._answer_deadline = self._answer_by()
        else:
            self._enter(_Phase.IDLE, self.timeout_keep_alive)

    @override
    def resume_writing(self) -> None:
        self._unread = (0, 0.0)
        super().resume_writing()

    @override
    def on_response_complete(self) -> None:
        self._answer_deadline = math.inf
        super().on_response_complete()
        if self._is_answering:
            # Another request came behind this one.
            return
        if self._phase is _Phase.ANSWER:
            self._enter(_Phase.IDLE, self.timeout_keep_alive)
        elif self._phase is _Phase.BODY:
            # Answered without its body, of which the rest may come; it is discarded.
            self.cycle.body.clear()
            self._body_bytes = 0
            self._enter(_Phase.BODY, self._limits.linger_seconds)

    def look(self, now: float) -> None:
        """Whether what it waits for is overdue at `now`, on the loop's clock."""
        unread = self.transport.get_write_buffer_size()
        if unread != self._unread[0]:
            self._unread = (unread, now)
        elif unread and now - self._unread[1] >= self._limits.unread_seconds:
            self.end("answer_unread")
        if unread:
            return
        if now >= self._answer_deadline:
            self._expire()
        if now < self._deadline:
            return
        match self._phase:
            case _Phase.HEAD if not self._is_answering:
                self._refuse(408, "request_timeout", "The headers did not arrive in time.")
            case _Phase.BODY:
                self._look_at_body(now)
            case _Phase.IDLE | _Phase.LINGER if not self._is_answering:
                self.end("idle" if self._phase is _Phase.IDLE else "refused")

    def _look_at_body(self, now: float) -> None:
        if not self._is_answering:
            if self._body_bytes < self._limits.body_rate * self._limits.linger_seconds:
                self.end("refused")
            # A caller that sends its whole body first must not be reset before it reads.
            self._body_bytes = 0
            self._deadline = now + self._limits.linger_seconds
        elif self.flow.read_paused:
            # It is the service that reads slowly.
            self._deadline = now + self._limits.body_seconds
        elif now >= self._deadline + self._body_bytes / self._limits.body_rate:
            self._refuse(408, "request_timeout", "The body did not arrive in time.")

    def _expire(self) -> None:
        self._answer_deadline = math.inf
        if self._running is None or self._task is None or self._running.response_started:
            return
        self._running.scope[EXPIRED] = self._limits.answer_seconds  # type: ignore[typeddict-unknown-key]
        CONNECTIONS_CLOSED.labels("answer_timeout").inc()
        self._task.cancel()

    def end(self, reason: str) -> None:
        """Close it at once; what was not sent yet is lost."""
        CONNECTIONS_CLOSED.labels(reason).inc()
        self._phase = _Phase.CLOSED
        self.transport.abort()

    def _refuse_head(self) -> None:
        most = f"{self._limits.head_count} headers and {self._limits.head_bytes} bytes"
        self._refuse(431, "headers_too_large", f"A request has at most {most} of headers.")

    @override
    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "invalid_http", "This is not an HTTP request.")

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Answer in place of the application, if nothing else is being answered, and close."""
        if self._phase in _REFUSED:
            return
        is_body = self._phase is _Phase.BODY and not self.pipeline
        if self._is_answering and not (is_body and not self.cycle.response_started):
            self.end(code)
            return
        if self._is_answering:
            # To the application its caller has gone, and to this connection it has answered.
            self.cycle.disconnected = self.cycle.response_complete = True
            self.cycle.message_event.set()
            self.flow.resume_reading()
        CONNECTIONS_CLOSED.labels(code).inc()
        request_id = f"req_{uuid7().hex}"
        log.info("connection_refused", status=status, code=code, request_id=request_id)
        scope = {"path": "", "state": {"request_id": request_id}}
        title = STATUS_LINE[status][13:-2].decode()
        answer = problems.answer(
            scope,
            status=status,
            code=code,
            title=title,
            detail=detail,
            headers={"Connection": "close"} | ({"Retry-After": "1"} if status == 503 else {}),
        )
        head = [b"%b: %b\r\n" % header for header in answer.raw_headers]
        self.transport.write(b"".join([STATUS_LINE[status], *head, b"\r\n", bytes(answer.body)]))
        self._enter(_Phase.LINGER, self._limits.linger_seconds)
        if self.transport.can_write_eof():
            self.transport.write_eof()
