"""Workers and databases that die under a job: nothing is lost, nothing is done twice."""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import asyncpg
import pytest
import structlog

from app.platform.database.engine import open_database
from app.platform.database.migrate import upgrade
from app.platform.embedded.server import EmbeddedPostgres
from app.platform.jobs.dispatch import Listener
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.worker import Worker, WorkerLimits
from tests.jobs.jobs_support import Queue, db_now
from tests.support.databases import make_logins, served
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("worker_process.py")


@asynccontextmanager
async def process(
    dsn: str, name: str, act: str, *, lease: float = 1
) -> AsyncIterator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(
        sys.executable,
        SCRIPT,
        name,
        act,
        str(lease),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": served(dsn), "PYTHONPATH": str(ROOT)},
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


async def said(one: asyncio.subprocess.Process) -> str:
    assert one.stdout is not None
    line = await asyncio.wait_for(one.stdout.readline(), PATIENCE)
    return line.decode().strip()


async def finished(queue: Queue, job_id: str) -> asyncpg.Record:
    deadline = perf_counter() + PATIENCE
    while (row := await queue.row(job_id))["status"] != "succeeded":
        assert perf_counter() < deadline, dict(row)
        await asyncio.sleep(0.05)
    return row


@pytest.mark.parametrize("act", ["hang", "commit"])
async def test_what_a_killed_worker_held_is_done_by_another(
    queue: Queue, jobs_dsn: str, act: str
) -> None:
    """SIGKILL right after the claim, and in the middle of the transaction of the results."""
    made = await queue.order(signals=frozenset({"x"}))
    async with process(jobs_dsn, "first", act) as first:
        assert await said(first) == "begun a 1"
        if act == "commit":
            assert await said(first) == "written"
        async with process(jobs_dsn, "second", "finish"):
            first.send_signal(signal.SIGKILL)
            await first.wait()
            row = await finished(queue, made.job_id)

    assert json.loads(row["result"]) == {"by": "second"}
    assert row["attempts"] == 2
    name = "SELECT tenant_name FROM tenants WHERE tenant_id = $1"
    assert await queue.owner.fetchval(name, queue.tenant_id) != "half"


async def test_the_lane_of_a_killed_worker_goes_on_after_its_lease(
    queue: Queue, jobs_dsn: str
) -> None:
    places = {"a": datetime(2026, 5, 1, tzinfo=UTC), "b": datetime(2026, 5, 2, tzinfo=UTC)}
    made = {
        key: await queue.order(key=key, lane="ana", lane_order=place)
        for key, place in places.items()
    }
    async with process(jobs_dsn, "first", "hang") as first:
        assert await said(first) == "begun a 1"
        async with process(jobs_dsn, "second", "finish") as second:
            first.send_signal(signal.SIGKILL)
            await first.wait()
            for key, attempts in (("a", 2), ("b", 1)):
                row = await finished(queue, made[key].job_id)
                assert (row["attempts"], row["worker"]) == (attempts, "second")
            assert [await said(second), await said(second)] == ["begun a 2", "begun b 1"]


async def test_a_living_worker_loses_nothing_to_others(queue: Queue, jobs_dsn: str) -> None:
    """Two processes, and more time than the lease that the job was claimed with."""
    made = await queue.order()
    async with process(jobs_dsn, "first", "hang", lease=4) as first:
        assert await said(first) == "begun a 1"
        ends = (await queue.row(made.job_id))["lease_expires_at"]
        async with process(jobs_dsn, "second", "finish"):
            async with asyncio.timeout(PATIENCE):
                while await db_now(queue) <= ends:  # noqa: ASYNC110 (the clock of PostgreSQL)
                    await asyncio.sleep(0.05)
            # It has looked for work since then.
            await finished(queue, (await queue.order(key="b", priority=-1)).job_id)
            row = await queue.row(made.job_id)

    assert (row["status"], row["attempts"], row["worker"]) == ("running", 1, "first")


async def test_many_processes_do_everything_once(queue: Queue, jobs_dsn: str) -> None:
    for number in range(60):
        await queue.order(key=str(number))
    async with (
        process(jobs_dsn, "one", "finish"),
        process(jobs_dsn, "two", "finish"),
        process(jobs_dsn, "three", "finish"),
    ):
        for row in await queue.rows():
            await finished(queue, row["job_id"])

    assert {row["attempts"] for row in await queue.rows()} == {1}


@pytest.fixture
def own_folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="kq-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


async def test_a_worker_survives_its_database(own_folder: Path) -> None:
    """Killed under a running job, then away until the lease ran out: said once, no busy
    waiting, and the job is still in its hands.
    """
    server = EmbeddedPostgres(own_folder / "data")
    await server.start()
    try:
        await make_logins(server)
        await upgrade(server.dsn)
        async with open_database(
            served(server.dsn), pool_size=3, statement_timeout_seconds=PATIENCE
        ) as database:
            await _survive(server, database)
    finally:
        await server.stop()


async def _survive(server: EmbeddedPostgres, database: Any) -> None:
    ended: list[ClaimedJob] = []
    begun, go = asyncio.Event(), asyncio.Event()

    async def handler(job: ClaimedJob) -> dict[str, Any]:
        begun.set()
        await go.wait()
        ended.append(job)
        return {}

    worker = Worker(
        database,
        {"extract": handler},
        name="test",
        limits=WorkerLimits(lease=timedelta(seconds=3)),
        spread=lambda: 0.0,
        listener=Listener(served(server.dsn)),
    )
    with structlog.testing.capture_logs() as lines:
        running = asyncio.create_task(worker.run())
        async with Queue.open(database, server.dsn) as queue:
            before = await queue.order(key="before")
            await asyncio.wait_for(begun.wait(), PATIENCE)
            tenant_id = queue.tenant_id
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        go.set()
        await asyncio.sleep(1)
        await server.stop()
        busy = process_time()
        await asyncio.sleep(4)
        busy = process_time() - busy
        await server.start()
        connection = await asyncpg.connect(server.dsn)
        await connection.execute("SET ROLE kemem_owner")
        again = Queue(database, connection, tenant_id)
        row = await finished(again, before.job_id)
        after = await again.order(key="after")
        await finished(again, after.job_id)
        await connection.close()
        assert await worker.drain(timedelta(seconds=PATIENCE)) is True
        await running

    assert row["attempts"] == 1
    assert [job.key for job in ended] == ["before", "after"]
    events = [line["event"] for line in lines]
    assert 1 <= events.count("worker_backing_off") <= 3, events
    assert busy < 0.5
