"""`kemem worker` as people run it: a process that works, and stops when it is told."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.jobs.jobs_support import Queue
from tests.support.databases import served
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@asynccontextmanager
async def kemem_worker(
    folder: Path, *arguments: str, **env: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMORY_", "OPENAI_", "DATABASE_"))
    }
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli.main", "worker", *arguments),
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)} | env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


async def ready(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    return await asyncio.wait_for(process.stdout.readline(), PATIENCE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_worker_command_works_until_it_is_told_to_stop(
    queue: Queue, jobs_dsn: str, tmp_path: Path, number: signal.Signals
) -> None:
    async with kemem_worker(tmp_path, DATABASE_URL=served(jobs_dsn)) as process:
        line = await ready(process)
        assert line.startswith(b"KeMem ")
        assert line.endswith(b" worker is ready.\n")
        # Of its own accord each tenant gets its upkeep.
        async with asyncio.timeout(PATIENCE):
            while True:
                rows = await queue.rows()
                if len(rows) == 2 and all(row["status"] == "succeeded" for row in rows):
                    break
                await asyncio.sleep(0.05)
        assert {(row["kind"], row["status"]) for row in rows} == {
            ("housekeeping", "succeeded"),
            ("forget", "succeeded"),
        }
        process.send_signal(number)

        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


async def test_without_a_database_it_says_what_is_missing(tmp_path: Path) -> None:
    async with kemem_worker(tmp_path) as process:
        _, errors = await asyncio.wait_for(process.communicate(), PATIENCE)

    assert process.returncode == 2
    assert b"kemem worker needs DATABASE_URL" in errors
    assert b"Traceback" not in errors
