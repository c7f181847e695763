"""A real HTTP server that fails as networks do: late, half-way, or without a word.

A behaviour takes the open connection of one request; `script` queues behaviours for the next
requests, `otherwise` is used when the queue is empty. Every request is kept as it arrived.
"""

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

Behaviour = Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


# Behaviours, to be queued with `script` or set as `otherwise`.


def says(body: Any, status: int = 200, **headers: str) -> Behaviour:
    """Answers with this value as JSON; a header's name has `_` for `-`."""
    return sends(
        json.dumps(body).encode(), status, **{"Content_Type": "application/json"} | headers
    )


def sends(body: bytes, status: int = 200, **headers: str) -> Behaviour:
    """Answers with these bytes."""

    def behave(to: BaseHTTPRequestHandler) -> None:
        to.send_response(status)
        to.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            to.send_header(name.replace("_", "-"), value)
        to.end_headers()
        to.wfile.write(body)

    return behave


def refuses(status: int, code: str, detail: str = "No.", /, **headers: str) -> Behaviour:
    """Answers with a problem document."""
    return refuses_with({"status": status, "code": code, "detail": detail}, **headers)


def refuses_with(problem: Mapping[str, Any], **headers: str) -> Behaviour:
    """Answers with this problem document."""
    document = {"request_id": "req_1", **problem}
    return says(document, problem["status"], Content_Type="application/problem+json", **headers)


def hangs_up(to: BaseHTTPRequestHandler) -> None:
    """Reads the request and closes the line without a word."""
    to.close_connection = True
    to.connection.shutdown(socket.SHUT_RDWR)


def cuts_off(to: BaseHTTPRequestHandler) -> None:
    """Promises more than it sends, and closes the line."""
    to.send_response(200)
    to.send_header("Content-Type", "application/json")
    to.send_header("Content-Length", "1000")
    to.end_headers()
    to.wfile.write(b'{"results": [{"eve')
    to.wfile.flush()
    hangs_up(to)


def slowly(seconds: float, then: Behaviour) -> Behaviour:
    def behave(to: BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)
        then(to)

    return behave


class FlakyServer:
    """What a test sees of the server."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.requests: list[Seen] = []
        self.otherwise: Behaviour = refuses(500, "nothing_scripted")
        self._script: deque[Behaviour] = deque()

    def script(self, *behaviours: Behaviour) -> None:
        """Use these for the next requests, one each."""
        self._script.extend(behaviours)

    @property
    def pauses(self) -> list[float]:
        """Seconds between the requests."""
        times = [one.at for one in self.requests]
        return [later - earlier for earlier, later in pairwise(times)]

    def meet(self, to: BaseHTTPRequestHandler) -> None:
        length = int(to.headers.get("Content-Length", 0))
        self.requests.append(
            Seen(to.command, to.path, dict(to.headers), to.rfile.read(length), time.monotonic())
        )
        behave = self._script.popleft() if self._script else self.otherwise
        try:
            behave(to)
        except OSError:
            # Whoever asked has gone, as some of these tests are about.
            to.close_connection = True


def _handler(server: FlakyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body leave together.
        wbufsize = -1

        def do_GET(self) -> None:
            server.meet(self)

        do_POST = do_PATCH = do_DELETE = do_CONNECT = do_GET  # noqa: N815 (names of the base)
        do_PUT = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Say nothing on standard error."""

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    # A client that goes away in the middle is no news here.
    def handle_error(self, *_: Any) -> None: ...


@contextmanager
def flaky_server() -> Iterator[FlakyServer]:
    """A server on a free port of this machine, in threads of its own."""
    listener = _Server(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server = FlakyServer(f"http://127.0.0.1:{listener.server_address[1]}")
    listener.RequestHandlerClass = _handler(server)
    thread = threading.Thread(target=listener.serve_forever, args=(0.002,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join(timeout=10)
