"""What the tests of the embedded PostgreSQL share: rows, copies, services to kill."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from app.platform.embedded.postmaster import processes_on
from app.platform.embedded.programs import Account, account_for
from tests.support.patience import PATIENCE

REPOSITORY = Path(__file__).parents[2]
SERVICE = Path(__file__).with_name("serve_embedded.py")


def copy_of(made: Path, target: Path) -> Path:
    """Copy a stopped data folder, with owners and modes."""
    # `cp` takes 0.1 s; copytree and a chown for each of 1,500 files take 1.2 s.
    subprocess.run(["cp", "-a", "--", made, target], check=True)
    return target


async def write(dsn: str, text: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("CREATE TABLE IF NOT EXISTS notes (text text PRIMARY KEY)")
        await connection.execute("INSERT INTO notes VALUES ($1)", text)
    finally:
        await connection.close()


async def notes(dsn: str) -> list[str]:
    return [row["text"] for row in await query(dsn, "SELECT text FROM notes ORDER BY 1")]


async def query(dsn: str, statement: str) -> list[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetch(statement)
    finally:
        await connection.close()


def servers_on(data_dir: Path) -> list[int]:
    """Pids of every PostgreSQL process on the folder's cluster."""
    cluster = data_dir / "postgres-18"
    found = processes_on(cluster, account=account_for(cluster), title="")
    return [process.pid for process in found]


def is_running(pid: int) -> bool:
    """Whether the process runs; one that its new parent has not waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def eventually(condition: Callable[[], object], *, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.05)


@dataclass
class Service:
    """A Python process of its own that runs the embedded PostgreSQL."""

    process: asyncio.subprocess.Process
    dsn: str
    postmaster: int

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def service_on(
    data_dir: Path,
    *,
    account: Account | None = None,
    groups: Sequence[int] = (),
    python: str = sys.executable,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Service]:
    identity: dict[str, Any] = {}
    if account is not None:
        identity = {"user": account.uid, "group": account.gid, "extra_groups": list(groups)}
    process = await asyncio.create_subprocess_exec(
        python,
        str(SERVICE),
        str(data_dir),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **(environment or {})},
        **identity,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
        assert line, "the service did not start; its reason is above"
    except BaseException:
        process.kill()
        raise
    try:
        yield Service(process, **json.loads(line))
    finally:
        # The end of its input asks it to stop in good order.
        process.stdin.close()
        await process.wait()
