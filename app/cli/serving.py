"""Serving HTTP: the sockets, the signals, the processes, and what is opened and closed around them.

The first process holds the embedded database and answers requests. Others, which a fork server
keeps running, answer requests too or work off jobs. MEMORY_WORKERS=0 leaves all to the first.
"""

import asyncio
import errno
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from datetime import timedelta
from typing import Any, Final

import structlog
import uvicorn
import uvloop
from starlette.types import ASGIApp
from typing_extensions import override

from app.errors import ConfigurationError
from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from app.language.text.offload import load_tables
from app.main import create_app
from app.platform.http.connections import ConnectionLimits, Connections
from app.platform.jobs.worker import Worker
from app.platform.processes.fork_server import STOP, Child, ForkServer
from app.runtime import Runtime, open_runtime, warmed_up
from app.settings import Settings
from app.worker import working

log = structlog.get_logger()

_BACKLOG = 2048
_CHILD_GRACE_SECONDS: Final = 15
"""Beyond MEMORY_SHUTDOWN_SECONDS, for what a process closes after it has drained."""
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
        family, _, _, _, address = min(
            found, key=lambda found_address: found_address[0] != socket.AF_INET
        )
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
    """What SIGTERM and SIGINT do, in other processes STOP: the first drains, the second gives up
    on requests, any more on everything but stopping PostgreSQL. Before there is something to
    drain each ends the start.
    """

    def __init__(self, signals: Sequence[signal.Signals]) -> None:
        self.asked = asyncio.Event()
        self._signals = signals
        self._task = asyncio.current_task()
        self._server: _Server | None = None
        self._worker: Worker | None = None
        self._children: ForkServer | None = None
        self._draining: asyncio.Task[bool] | None = None
        self._budget = timedelta(0)
        self._guarding = False
        self._count = 0

    def guard(
        self,
        budget: timedelta,
        *,
        server: _Server | None = None,
        worker: Worker | None = None,
        children: ForkServer | None = None,
    ) -> None:
        """Drain all of them side by side when a signal comes; what was given before stays."""
        self._guarding = True
        self._budget = budget
        self._server = server or self._server
        self._worker = worker or self._worker
        self._children = children or self._children

    def _stop(self, name: str) -> None:
        self._count += 1
        if self._children is not None:
            self._children.stop()
        if not self._guarding or self._count > 2:
            if self._task is not None:
                self._task.cancel()
        elif self._count == 1:
            self._drain()
        else:
            self._give_up()
        log.info("service_stopping", signal=name, count=self._count)

    def _drain(self) -> None:
        self.asked.set()
        if self._server is not None:
            self._server.should_exit = True
        if self._worker is not None:
            self._draining = asyncio.create_task(self._worker.drain(self._budget))

    def _give_up(self) -> None:
        if self._server is not None:
            self._server.cancel_requests()
        if self._worker is not None:
            self._worker.hurry()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals inside the block."""
        loop = asyncio.get_running_loop()
        for number in self._signals:
            loop.add_signal_handler(number, self._stop, number.name)
        # Those of a forked process were held back until now.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._signals)
        try:
            yield
        finally:
            for number in self._signals:
                loop.remove_signal_handler(number)


def _config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    limits = ConnectionLimits(
        connections=settings.max_connections, answer_seconds=settings.request_seconds
    )
    return uvicorn.Config(
        app,
        loop="uvloop",
        http=Connections(limits),  # type: ignore[arg-type] # uvicorn calls it as it does a class
        ws="none",
        # Logging is set up already, and the middleware writes one line per request.
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


async def serve(
    runtime: Runtime,
    dsn: str,
    listener: socket.socket,
    stopping: Stopping,
    ready: Callable[[], None],
    children: ForkServer | None = None,
) -> None:
    """Answer requests, and have jobs worked off, until a signal; then drain within
    MEMORY_SHUTDOWN_SECONDS.

    Args:
        dsn: the runtime's database.
        ready: called once, when requests are answered.
        children: the other processes of the service. Without them jobs are worked off here.

    """
    settings = runtime.settings
    app = create_app(nullcontext(runtime), request_max_bytes=settings.request_max_bytes)
    server = _Server(_config(app, settings), ready)
    beside = (
        working(runtime, dsn) if children is None else _running(children, runtime, dsn, stopping)
    )
    async with warmed_up(), beside as worker:
        budget = timedelta(seconds=settings.shutdown_seconds)
        stopping.guard(budget, server=server, worker=worker, children=children)
        try:
            await server.serve(sockets=[listener])
        finally:
            # What outlasted its time still holds connections that are about to be closed.
            tasks = list(server.server_state.tasks)
            server.cancel_requests()
            await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _running(
    children: ForkServer, runtime: Runtime, dsn: str, stopping: Stopping
) -> AsyncIterator[None]:
    """The other processes, for the time of the block; at its end they have drained."""
    children.start(dsn)
    watching = asyncio.create_task(_watch(children, runtime, dsn, stopping))
    try:
        yield
    finally:
        if not stopping.asked.is_set():
            children.stop()
        # A second STOP would give up on what still runs.
        stopping.asked.set()
        patience = runtime.settings.shutdown_seconds + _CHILD_GRACE_SECONDS
        await asyncio.wait([watching], timeout=patience)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def _watch(children: ForkServer, runtime: Runtime, dsn: str, stopping: Stopping) -> None:
    """Until the other processes have ended. Jobs are worked off here when nobody can start them
    again.
    """
    await children.ended()
    if stopping.asked.is_set():
        return
    log.error("fork_server_died", remedy="restart the service: it runs in one process now")
    async with working(runtime, dsn) as worker:
        stopping.guard(timedelta(seconds=runtime.settings.shutdown_seconds), worker=worker)
        await stopping.asked.wait()


@asynccontextmanager
async def stoppable(signals: Sequence[signal.Signals] = _SIGNALS) -> AsyncIterator[Stopping]:
    """Handle signals for the whole life of a service, its start and its end included."""
    stopping = Stopping(signals)
    with stopping.listening():
        yield stopping


def run_until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run a process of the service on an event loop of its own."""
    with (
        # Cancelled means: stopped by a signal, in good order.
        suppress(asyncio.CancelledError),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(work)


def begin_children(
    settings: Settings, opened: Callable[[Settings], Settings], listener: socket.socket
) -> ForkServer | None:
    """The processes beside the first, or None when there are none. They begin with the start of
    the fork server, which hands the URL of the database on.

    Args:
        opened: the settings that hold once the first process is open.

    Raises:
        ConfigurationError: the local embedder cannot be loaded.

    """
    if not settings.several_processes:
        return None
    if settings.embedding_model == WordLlamaEmbedder.handle:
        WordLlamaEmbedder.load()

    def answer(dsn: str) -> int:
        alone = opened(settings).model_copy(update={"worker_enabled": False})
        run_until_stopped(_answer(alone, dsn, listener))
        return 0

    def work(dsn: str) -> int:
        run_until_stopped(_work(opened(settings), dsn))
        return 0

    children = [
        Child(f"api-{number}", answer, listens=True) for number in range(2, settings.workers + 1)
    ]
    if settings.worker_enabled:
        children.append(Child("worker", work))
    return ForkServer.begin(children, sockets=[listener], prepare=load_tables)


async def _answer(settings: Settings, dsn: str, listener: socket.socket) -> None:
    async with stoppable([STOP]) as stopping, open_runtime(settings, dsn) as runtime:
        await serve(runtime, dsn, listener, stopping, lambda: log.info("process_ready"))


async def _work(settings: Settings, dsn: str) -> None:
    async with (
        stoppable([STOP]) as stopping,
        open_runtime(settings, dsn) as runtime,
        warmed_up(),
        working(runtime, dsn) as worker,
    ):
        log.info("process_ready")
        stopping.guard(timedelta(seconds=settings.shutdown_seconds), worker=worker)
        await stopping.asked.wait()
