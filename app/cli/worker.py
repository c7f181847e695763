"""kemem worker"""

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from app.cli.opening import open_urls
from app.cli.options import settings_with
from app.errors import ConfigurationError
from app.platform.jobs.worker import Worker
from app.platform.observability.logging import configure_logging
from app.platform.version import VERSION
from app.runtime import open_runtime, warmed_up
from app.settings import Settings
from app.worker import worker_of

SIGNALS = (signal.SIGINT, signal.SIGTERM)


ALIVE_SECONDS = 10.0
"""How often the file of `--alive-file` is touched."""


def worker_command(
    alive_file: Annotated[
        Path | None,
        typer.Option(
            help="Touch this file every 10 seconds while the worker runs, for a health check.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Do the background work alone, beside any number of services and other workers.

    It needs DATABASE_URL: the embedded PostgreSQL belongs to `kemem serve`, which has a worker
    of its own.

    Stop with Ctrl-C or SIGTERM: what runs may end within MEMORY_SHUTDOWN_SECONDS, and what
    does not is given back. A second signal gives it back at once.

    Raises ConfigurationError.
    """
    settings = settings_with()
    configure_logging(settings.log_level, pretty=sys.stderr.isatty())
    if settings.database_url is None:
        raise ConfigurationError(
            "kemem worker needs DATABASE_URL: the embedded PostgreSQL belongs to `kemem serve`, "
            "which works off jobs on its own (MEMORY_WORKER_CONCURRENCY at a time)."
        )
    if alive_file is not None:
        _touch(alive_file)
    with (
        # Cancelled means: stopped by a signal before there was anything to drain.
        suppress(asyncio.CancelledError),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(_work(settings, alive_file))


async def _work(settings: Settings, alive_file: Path | None) -> None:
    stopping = _Stopping()
    with stopping.listening():
        async with (
            open_urls(settings) as urls,
            open_runtime(settings, urls.serving) as runtime,
            warmed_up(),
        ):
            worker = worker_of(runtime, urls.serving)
            working = asyncio.create_task(worker.run())
            print(f"KeMem {VERSION} worker is ready.", flush=True)
            alive = asyncio.create_task(_keep_touching(alive_file)) if alive_file else None
            try:
                await stopping.wait(worker)
                await worker.drain(timedelta(seconds=settings.shutdown_seconds))
            finally:
                for task in filter(None, (working, alive)):
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task


async def _keep_touching(path: Path) -> None:
    while True:
        await asyncio.sleep(ALIVE_SECONDS)
        # A check that finds the file too old says more than a worker that ends.
        with suppress(OSError):
            path.touch()  # noqa: ASYNC240 (one small call)


def _touch(path: Path) -> None:
    """Raises ConfigurationError."""
    try:
        path.touch()
    except OSError as error:
        raise ConfigurationError(
            f"--alive-file: {path} cannot be written: {error.strerror}."
        ) from error


class _Stopping:
    """What signals do: the first drains, the second gives the jobs back, a third leaves them.

    Before there is a worker the first ends the start.
    """

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._worker: Worker | None = None
        self._asked = asyncio.Event()
        self._count = 0

    async def wait(self, worker: Worker) -> None:
        """Until the first signal."""
        self._worker = worker
        await self._asked.wait()

    def _stop(self) -> None:
        self._count += 1
        if self._worker is not None and self._count == 1:
            self._asked.set()
        elif self._worker is not None and self._count == 2:
            self._worker.hurry()
        elif self._task is not None:
            self._task.cancel()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals inside the block."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)
