"""`kemem worker` as processes of their own, to be killed in the middle of things."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.support.api import execute
from tests.support.databases import served
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
LEASE_SECONDS = 5


class WorkerProcess:
    """A running `kemem worker`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def kill(self) -> None:
        """Without a chance to say goodbye."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    def freeze(self) -> None:
        """Alive, and silent: its heartbeat stops."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    @property
    def running(self) -> bool:
        return self._process.returncode is None


@asynccontextmanager
async def worker_process(dsn: str, **settings: object) -> AsyncIterator[WorkerProcess]:
    """A worker on the database at `dsn`, ready; killed at the end of the block.

    Args:
        settings: in lower case, without the prefix; those of OpenAI with theirs.

    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "app.cli.main", "worker",
        cwd=ROOT,
        env=_environment(dsn, settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    worker = WorkerProcess(process)
    try:
        async with asyncio.timeout(PATIENCE):
            assert await process.stdout.readline(), "the worker did not start"
        yield worker
    finally:
        await worker.kill()


async def expire_leases(dsn: str) -> None:
    """Let what a killed worker held be due at once; waiting for it takes `LEASE_SECONDS`."""
    await execute(dsn, "UPDATE jobs SET lease_expires_at = now() WHERE status = 'running'")


def _environment(dsn: str, settings: Mapping[str, object]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMORY_", "OPENAI_", "DATABASE_"))
    }
    given = {"lease_seconds": LEASE_SECONDS, "model_retries": 0, **settings}
    named = {
        (name.upper() if name.startswith("openai_") else f"MEMORY_{name.upper()}"): str(value)
        for name, value in given.items()
    }
    return kept | {"DATABASE_URL": served(dsn)} | named
