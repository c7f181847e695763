"""One pure ASGI middleware: the request id, the log line, the metrics and the body limit.

One, because each costs; pure ASGI, because a `BaseHTTPMiddleware` halves the throughput
(measured: 1,182 requests a second against 530).
"""

import asyncio
import re
import sys
from http import HTTPStatus
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import structlog
from pydantic_core import from_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uuid_utils import uuid7

from app.errors import ConfigurationError, UnavailableError
from app.platform.http import problems
from app.platform.observability.metrics import DURATION, IN_FLIGHT, REQUESTS

log = structlog.get_logger()

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_COUNTED_BY_ROUTE = re.compile(r"/v1/folders/[^/]+/files/?\Z")
"""Paths of uploads: files have a limit of their own, and are not held in memory."""

IMPORT_BYTES = 1024 * 1024
"""What a part of an import may have beyond other requests: a message that was as large as a request
comes back with its vectors."""

CLIENT_GONE = 499
"""Never sent: counted and logged when the caller disconnected before the answer."""
_SAFE = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
"""No proxy or browser keeps what an answer says of somebody, or takes it for a page."""

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
    """Wraps every request; `max_bytes` is the largest body it lets through."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, _naming_configuration_errors(send))
            return
        started = perf_counter()
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        status = CLIENT_GONE
        started_answer = gone = False

        async def receive_and_notice() -> Message:
            nonlocal gone
            message = await receive()
            if message["type"] == "http.disconnect" and not started_answer:
                gone = True
            return message

        send = _naming_version(scope, send)

        async def send_with_id(message: Message) -> None:
            nonlocal status, started_answer
            if message["type"] == "http.response.start":
                status = message["status"]
                started_answer = True
                _complete(message["headers"], status, request_id)
            await send(message)

        IN_FLIGHT.inc()
        try:
            await self._limited(scope, receive_and_notice, send_with_id)
        except asyncio.CancelledError:
            # The service is stopping; the caller may ask another replica.
            if not started_answer:
                await problems.of(scope, ShuttingDownError())(scope, receive, send_with_id)
            raise
        except Exception as error:
            if started_answer:
                raise
            await problems.unexpected(scope, error)(scope, receive, send_with_id)
        finally:
            IN_FLIGHT.dec()
            _report(scope, CLIENT_GONE if gone else status, perf_counter() - started)

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST" and _COUNTED_BY_ROUTE.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        most = self._max_bytes + (IMPORT_BYTES if scope["path"] == "/v1/import" else 0)
        declared = _header(scope, b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > most:
            await self._too_large(scope, most)(scope, receive, send)
            return
        # A chunked body declares nothing, so it is counted as it comes.
        chunked = declared is None and _header(scope, b"transfer-encoding") is not None
        if not chunked:
            await self._app(scope, receive, send)
            return
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > most:
                await self._too_large(scope, most)(scope, receive, send)
                return
        await self._app(scope, _replay(bytes(body), receive), send)

    def _too_large(self, scope: Scope, most: int) -> ASGIApp:
        limit = f"at most {most} bytes"
        return problems.answer(
            scope,
            status=413,
            code="body_too_large",
            title="Body too large",
            detail=f"A request body has {limit}. Send it in several requests.",
            members={
                "limit": most,
                "errors": [{"location": ["body"], "detail": limit}],
            },
            headers={"Connection": "close"},
        )


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
    headers.extend(_SAFE)
    if status != HTTPStatus.TEMPORARY_REDIRECT:
        return
    for place, (name, value) in enumerate(headers):
        if name == b"location":
            target = urlsplit(value)
            headers[place] = (name, urlunsplit((b"", b"", target.path, target.query, b"")))


def _replay(body: bytes, receive: Receive) -> Receive:
    pending = [body]

    async def replayed() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return replayed


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
    method = scope["method"] if scope["method"] in _METHODS else "OTHER"
    REQUESTS.labels(method, name, str(status)).inc()
    DURATION.labels(method, name).observe(seconds)
    level = log.debug if name in _QUIET else log.info
    level(
        "request_served",
        method=method,
        route=name,
        status=status,
        milliseconds=round(seconds * 1000, 2),
    )


_METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
