"""`kemem worker` as processes of their own, to be killed in the middle of things."""

import asyncio
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from functools import cache
from pathlib import Path

from tests.support.api import execute
from tests.support.databases import served
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
LEASE_SECONDS = 5


class WorkerProcess:
    """A running `kemem worker`."""

    def __init__(self, pid: int, life: asyncio.StreamReader) -> None:
        """`life` ends with the process."""
        self._pid = pid
        self._life = life

    async def kill(self) -> None:
        """Without a chance to say goodbye."""
        self._signal(signal.SIGKILL)
        await self._life.read()

    def freeze(self) -> None:
        """Alive, and silent: its heartbeat stops."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            if self.running:
                os.kill(self._pid, number)

    @property
    def running(self) -> bool:
        return not self._life.at_eof()


@asynccontextmanager
async def worker_process(dsn: str, **settings: object) -> AsyncIterator[WorkerProcess]:
    """A worker on the database at `dsn`, ready; killed at the end of the block.

    Args:
        settings: in lower case, without the prefix; those of OpenAI with theirs.

    """
    async with _reading() as (life, held), _reading() as (output, written):
        pid = await asyncio.to_thread(_fork, _environment(dsn, settings), (written, held))
        for file in (written, held):
            os.close(file)
        worker = WorkerProcess(pid, life)
        try:
            async with asyncio.timeout(PATIENCE):
                assert await output.readline(), "the worker did not start"
            yield worker
        finally:
            await worker.kill()


@asynccontextmanager
async def _reading() -> AsyncIterator[tuple[asyncio.StreamReader, int]]:
    """What comes through a new pipe, and its other end, which the caller closes."""
    end, other = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(end, "rb")
    )
    with closing(transport):
        yield reader, other


@cache
def _nursery() -> socket.socket:
    """Where workers are ordered; whoever answers ends with this process."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.worker_nursery", str(theirs.fileno())],
            cwd=ROOT,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _fork(environment: Mapping[str, str], files: tuple[int, int]) -> int:
    """Order a worker; its process."""
    nursery = _nursery()
    socket.send_fds(nursery, [json.dumps(environment).encode() + b"\n"], files)
    with nursery.makefile("rb") as answers:
        return int(answers.readline())


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
