"""Serving HTTP: the sockets, the signals, and what is opened and closed around them.

With the embedded database one process holds everything. With DATABASE_URL several may run:
uvicorn's own supervisor then starts each from `application` of `main.py`.
"""

import asyncio
import errno
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from datetime import timedelta
from functools import partial

import structlog
import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override
from uvicorn.supervisors import Multiprocess

from app.errors import ConfigurationError
from app.main import application, create_app
from app.platform.jobs.worker import Worker
from app.runtime import Runtime, warmed_up
from app.settings import Settings
from app.worker import working

log = structlog.get_logger()

_BACKLOG = 2048
_WORKER_PATIENCE_SECONDS = 60
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections from now on; port 0 takes a free one.

    Raises:
        ConfigurationError: the port is taken, or the host is none of this machine's.

    """
    listener = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # `localhost` is often both; a client that knows IPv4 alone must reach it.
        family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Listening at once: until then a second process could bind the same port.
        listener.listen(_BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(
                f"Port {port} on {host} is in use by another program. Stop that program, or "
                "choose another port with --port; --port 0 takes a free one."
            ) from None
        raise ConfigurationError(
            f"Cannot listen on {host}, port {port}: {error.strerror}."
        ) from None
    return listener


def address_of(listener: socket.socket) -> str:
    """The URL under which this machine reaches the socket."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # Asked for.
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """Uvicorn's server, which says when it is ready and leaves signals to us."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @override
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Uvicorn raises a caught signal again at its end, which would kill this process
        # before PostgreSQL is stopped.
        yield

    def cancel_requests(self) -> None:
        """Give up on what is being answered."""
        self.force_exit = True
        for task in self.server_state.tasks:
            task.cancel()


class Stopping:
    """What SIGTERM and SIGINT do: the first drains, the second gives up on requests, any
    more on everything but stopping PostgreSQL. Before there is a server each ends the start.
    """

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._server: _Server | None = None
        self._worker: Worker | None = None
        self._draining: asyncio.Task[bool] | None = None
        self._budget = timedelta(0)
        self._count = 0

    def guard(self, server: _Server, worker: Worker | None, budget: timedelta) -> None:
        """Drain `server` and `worker` side by side when a signal comes."""
        self._server = server
        self._worker = worker
        self._budget = budget

    def _stop(self, name: str) -> None:
        self._count += 1
        if self._server is not None and self._count == 1:
            self._server.should_exit = True
            if self._worker is not None:
                self._draining = asyncio.create_task(self._worker.drain(self._budget))
        elif self._server is not None and self._count == 2:
            self._server.cancel_requests()
            if self._worker is not None:
                self._worker.hurry()
        elif self._task is not None:
            self._task.cancel()
        log.info("service_stopping", signal=name, count=self._count)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals inside the block."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._stop, number.name)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)


def _config(app: ASGIApp | Callable[[], ASGIApp], settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        ws="none",
        # Logging is set up already, and the middleware writes one line per request.
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        workers=settings.workers,
        # A worker answers only once it has imported everything, which takes seconds on a
        # busy machine; killed before that, none would ever start.
        timeout_worker_healthcheck=_WORKER_PATIENCE_SECONDS,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


async def serve(
    runtime: Runtime,
    dsn: str,
    listener: socket.socket,
    stopping: Stopping,
    ready: Callable[[], None],
) -> None:
    """Answer requests and work off jobs until a signal, then drain within
    MEMORY_SHUTDOWN_SECONDS.

    Args:
        dsn: the runtime's database.
        ready: called once, when requests are answered.

    """
    settings = runtime.settings
    app = create_app(nullcontext(runtime), request_max_bytes=settings.request_max_bytes)
    server = _Server(_config(app, settings), ready)
    async with warmed_up(), working(runtime, dsn) as worker:
        stopping.guard(server, worker, timedelta(seconds=settings.shutdown_seconds))
        try:
            await server.serve(sockets=[listener])
        finally:
            # What outlasted its time still holds connections that are about to be closed.
            tasks = list(server.server_state.tasks)
            server.cancel_requests()
            await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def stoppable() -> AsyncIterator[Stopping]:
    """Handle signals for the whole life of a service, its start and its end included."""
    stopping = Stopping()
    with stopping.listening():
        yield stopping


def serve_many(settings: Settings, listener: socket.socket, *, pretty: bool) -> None:
    """Run MEMORY_WORKERS processes on one socket until a signal; each drains on its own."""
    factory = partial(application, settings, pretty=pretty)
    config = _config(factory, settings)
    config.factory = True
    Multiprocess(config, sockets=[listener]).run()
