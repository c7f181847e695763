"""One pure ASGI middleware: the request id, the log line, the metrics and the body limit.

One, because each costs; pure ASGI, because a `BaseHTTPMiddleware` halves the throughput
(measured: 1,182 requests a second against 530).
"""

import asyncio
import math
import re
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import structlog
from fastapi import Request
from prometheus_client import Counter, Histogram
from pydantic_core import from_json
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uuid_utils import uuid7

from app.errors import ConfigurationError, UnavailableError
from app.platform.http import problems
from app.platform.http.connections import EXPIRED
from app.platform.http.openapi import BodyTooLargeError, RequestExpiredError
from app.platform.http.rates import HEADERS
from app.platform.observability.metrics import DURATION, IN_FLIGHT, REQUESTS
from app.platform.observability.spans import tracing

log = structlog.get_logger()

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_COUNTED_BY_ROUTE = re.compile(r"/v1/folders/[^/]+/files/?\Z")
"""Paths of uploads: files have a limit of their own, and are not held in memory."""

IMPORT_BYTES = 1024 * 1024
"""What a part of an import may have beyond other requests: a message that was as large as a request
comes back with its vectors."""

KEYED = ("/v1/", "/mem0/", "/mem0-oss/")
"""What takes a key."""

Identify = Callable[[Request], Awaitable[object]]
ErrorBodies = Callable[[Scope], problems.ErrorBody | None]

CLIENT_GONE = 499
"""Never sent: counted and logged when the caller disconnected before the answer."""
_SAFE = (b"x-content-type-options", b"nosniff")
"""No browser takes an answer for what it does not say it is."""
_KEPT_NOWHERE = (b"cache-control", b"no-store")
"""No proxy or browser keeps what an answer says of somebody; a route may say otherwise of what is
the same for everybody."""

_QUIET = {"/livez", "/readyz", "/metrics"}


class ShuttingDownError(UnavailableError):
    code = "shutting_down"
    title = "Service is shutting down"

    def __init__(self) -> None:
        super().__init__("The service stopped before it could answer; try again.")


def _naming_configuration_errors(send: Send) -> Send:
    """Tell the server why the start failed in a sentence, as `kemem serve` does.

    Starlette's message is the traceback, which the server logs.
    """

    async def send_sentence(message: Message) -> None:
        # Starlette sends while it handles the error.
        error = sys.exception()
        if message["type"] == "lifespan.startup.failed" and isinstance(error, ConfigurationError):
            message = {**message, "message": f"kemem: {error}"}
        await send(message)

    return send_sentence


class RequestMiddleware:
    """Wraps every request."""

    def __init__(
        self, app: ASGIApp, *, max_bytes: int, identify: Identify, error_bodies: ErrorBodies
    ) -> None:
        """Let bodies of `max_bytes` through.

        Args:
            identify: raises if the caller's key is not valid; asked before a body is read.
            error_bodies: how errors of a request are written, if not as problem documents.

        """
        self._app = app
        self._max_bytes = max_bytes
        self._identify = identify
        self._error_bodies = error_bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, _naming_configuration_errors(send))
            return
        traces = tracing()
        if traces is None:
            await self._serve(scope, receive, send)
        else:
            await traces.request(self._serve, scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Answer a request; the status, which of one without an answer is CLIENT_GONE."""
        started = perf_counter()
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        scope[problems.ERROR_BODY] = self._error_bodies(scope)
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        status = CLIENT_GONE
        started_answer = gone = False

        async def receive_and_notice() -> Message:
            nonlocal gone
            message = await receive()
            gone |= message["type"] == "http.disconnect" and not started_answer
            return message

        send = _naming_version(scope, send)

        async def send_with_id(message: Message) -> None:
            nonlocal status, started_answer
            if message["type"] == "http.response.start":
                status = int(message["status"])
                started_answer = True
                _complete(message["headers"], status, request_id)
                message["headers"].extend(scope.get(HEADERS, ()))
            await send(message)

        IN_FLIGHT.inc()
        try:
            # Who has gone before all of the body had come gets no answer.
            with suppress(ClientDisconnect):
                await self._limited(scope, receive_and_notice, send_with_id)
        except asyncio.CancelledError:
            expired = scope.get(EXPIRED)
            # When the service is stopping, the caller may ask another replica.
            error = RequestExpiredError(expired) if expired else ShuttingDownError()
            if not started_answer:
                await problems.of(scope, error)(scope, receive, send_with_id)
            if not expired:
                raise
        except Exception as error:
            if started_answer:
                raise
            await problems.unexpected(scope, error)(scope, receive, send_with_id)
        finally:
            IN_FLIGHT.dec()
            _report(scope, CLIENT_GONE if gone else status, perf_counter() - started)
        return CLIENT_GONE if gone else status

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application with a body that is counted as it comes, for a caller whose key is
        known before it comes.
        """
        declared = _header(scope, b"content-length")
        if (declared is None and _header(scope, b"transfer-encoding") is None) or declared == b"0":
            await self._app(scope, receive, send)
            return
        most: float = self._max_bytes
        if scope["path"] == "/v1/import":
            most += IMPORT_BYTES
        elif scope["method"] == "POST" and _COUNTED_BY_ROUTE.fullmatch(scope["path"]):
            most = math.inf
        if declared is not None and declared.isdigit() and int(declared) > most:
            await problems.of(scope, BodyTooLargeError(int(most)))(scope, receive, send)
            return
        # A chunked body declares nothing.
        size = 0
        needs_key = scope["path"].startswith(KEYED)

        async def receive_counted() -> Message:
            nonlocal needs_key, size
            if needs_key:
                needs_key = False
                await self._identify(Request(scope))
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise BodyTooLargeError(int(most))
            return message

        await self._app(scope, receive_counted, send)


def _naming_version(scope: Scope, send: Send) -> Send:
    """Of a PATCH, say the `version` of the changed row as `ETag`, as `If-Match` takes it."""
    if scope["method"] != "PATCH":
        return send
    start: Message | None = None
    body = bytearray()

    async def send_with_version(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            start = message
            return
        body.extend(message.get("body", b""))
        if message.get("more_body", False) or start is None:
            return
        if start["status"] == HTTPStatus.OK:
            shown = from_json(bytes(body))
            version = shown.get("version") if isinstance(shown, dict) else None
            if isinstance(version, int):
                start["headers"].append((b"etag", f'"{version}"'.encode()))
        await send(start)
        await send({**message, "body": bytes(body)})

    return send_with_version


def _complete(headers: list[tuple[bytes, bytes]], status: int, request_id: str) -> None:
    """Add what every answer carries, and redirect to a path alone.

    Starlette takes the host of a redirect from the request, where anybody may put one.
    """
    headers.append((b"x-request-id", request_id.encode()))
    headers.append(_SAFE)
    if not any(name == _KEPT_NOWHERE[0] for name, _ in headers):
        headers.append(_KEPT_NOWHERE)
    if status != HTTPStatus.TEMPORARY_REDIRECT:
        return
    for place, (name, value) in enumerate(headers):
        if name == b"location":
            target = urlsplit(value)
            headers[place] = (name, urlunsplit((b"", b"", target.path, target.query, b"")))


def _header(scope: Scope, name: bytes) -> bytes | None:
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


def _request_id(scope: Scope) -> str:
    """The caller's own id where it is harmless, else a new one."""
    given = (_header(scope, b"x-request-id") or b"").decode("latin-1")
    return given if _REQUEST_ID.match(given) else f"req_{uuid7().hex}"


def _report(scope: Scope, status: int, seconds: float) -> None:
    # The template of the route, never the path itself: that holds ids.
    route: Any = scope.get("route")
    name = getattr(route, "path", None) or "unmatched"
    # A mounted application knows its routes without the path that it is mounted at.
    outer = scope.get("app_root_path", "")
    name = scope.get("root_path", "").removeprefix(outer) + name if route else name
    method = scope["method"] if scope["method"] in _METHODS else "OTHER"
    counted = _COUNTED.get((method, name, status))
    if counted is None:
        counted = (REQUESTS.labels(method, name, str(status)), DURATION.labels(method, name))
        _COUNTED[method, name, status] = counted
    counted[0].inc()
    counted[1].observe(seconds)
    level = log.debug if name in _QUIET else log.info
    level(
        "request_served",
        method=method,
        route=name,
        status=status,
        milliseconds=round(seconds * 1000, 2),
    )


# Looking up labels costs as much as counting.
_COUNTED: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
_METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
