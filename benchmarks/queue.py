"""The queue alone: `python -m benchmarks.queue [--quick] [--out F]`.

How many empty jobs one, two and four worker processes do in a second, how long an order takes to
reach its handler, and what ordering adds to a transaction that writes one row.
"""

import argparse
import asyncio
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import uvloop
from sqlalchemy import text

from app.platform.database.base import new_id
from app.platform.database.engine import Database, open_database
from app.platform.database.logins import ensure_serving_login
from app.platform.database.migrate import upgrade
from app.platform.embedded.server import EmbeddedPostgres
from app.platform.jobs.dispatch import Listener
from app.platform.jobs.orders import ClaimedJob, Order
from app.platform.jobs.repository import JobRepository
from app.platform.jobs.worker import Worker, WorkerLimits

TENANTS = 20
KIND = "extract"
HERE = Path(__file__).parent

_FILL = f"""
INSERT INTO jobs (tenant_id, job_id, kind, key)
SELECT 't' || lpad((n % {TENANTS})::text, 3, '0'),
    'job_' || replace(gen_random_uuid()::text, '-', ''), '{KIND}', n::text
FROM generate_series(1, $1) AS n
"""
_WRITE = text("UPDATE tenants SET version = version + 1 WHERE tenant_id = :tenant_id")


@dataclass(frozen=True, slots=True)
class Effort:
    jobs: int = 10_000
    rounds: int = 3
    orders: int = 300


QUICK = Effort(jobs=2_000, rounds=1, orders=100)


def _worker(database: Database, dsn: str, slots: int) -> Worker:
    async def handler(_job: ClaimedJob) -> dict[str, Any]:
        return {"begun": time.time()}

    return Worker(
        database,
        {KIND: handler},
        name=f"bench:{os.getpid()}",
        limits=WorkerLimits(slots=slots),
        spread=random.random,
        listener=Listener(dsn),
    )


async def work(dsn: str, slots: int) -> None:
    """A worker process; killed by whoever started it."""
    async with open_database(dsn, pool_size=4, statement_timeout_seconds=15) as database:
        await _worker(database, dsn, slots).run()


@asynccontextmanager
async def workers(dsn: str, number: int, slots: int) -> AsyncIterator[None]:
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.queue", "--work", str(slots),
            env=os.environ | {"DATABASE_URL": dsn},
        )
        for _ in range(number)
    ]  # fmt: skip
    try:
        # Until each listens, and has looked once.
        admin = await asyncpg.connect(dsn)
        listening = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
        while await admin.fetchval(listening, "kemem-listener") < number:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await admin.close()
        await asyncio.sleep(0.5)
        yield
    finally:
        for child in children:
            child.kill()
            await child.wait()


async def throughput(
    owner: asyncpg.Connection, dsn: str, number: int, slots: int, jobs: int
) -> float:
    """Jobs per second from the first start to the last end."""
    await owner.execute("TRUNCATE jobs")
    async with workers(dsn, number, slots):
        await owner.execute(_FILL, jobs)
        await owner.execute("NOTIFY kemem_jobs")
        left = "SELECT count(*) FROM jobs WHERE status IN ('pending', 'running')"
        while await owner.fetchval(left):  # noqa: ASYNC110 (another process does it)
            await asyncio.sleep(0.1)
    row = await owner.fetchrow(
        "SELECT count(*) AS jobs, extract(epoch FROM max(finished_at) - min(started_at)) AS s, "
        "max(attempts) AS attempts FROM jobs WHERE status = 'succeeded'"
    )
    assert (row["jobs"], row["attempts"]) == (jobs, 1), dict(row)
    return jobs / float(row["s"])


async def pick_up(
    owner: asyncpg.Connection, dsn: str, database: Database, orders: int
) -> list[float]:
    """Milliseconds from the commit of an urgent order to its handler, sorted."""
    await owner.execute("TRUNCATE jobs")
    committed = {}
    async with workers(dsn, 1, 4):
        for number in range(orders):
            order = Order(KIND, str(number))
            async with database.begin("t000") as db:
                made = await JobRepository(db, "t000").schedule(order)
            assert made is not None
            committed[made.job_id] = time.time()
            await asyncio.sleep(0.02)
        await asyncio.sleep(1)
    rows = await owner.fetch("SELECT job_id, (result->>'begun')::float8 AS begun FROM jobs")
    return sorted(max(row["begun"] - committed[row["job_id"]], 0) * 1000 for row in rows)


async def costs(database: Database, orders: int) -> dict[str, float]:
    """Median milliseconds of a transaction that writes one row, without and with an order."""
    key = "joined"

    async def transaction(order: Order | None) -> None:
        async with database.begin("t001") as db:
            await db.execute(_WRITE, {"tenant_id": "t001"})
            if order is not None:
                await JobRepository(db, "t001").schedule(order)

    wait = timedelta(minutes=5)
    subjects: dict[str, Callable[[], Awaitable[None]]] = {
        "bare": lambda: transaction(None),
        "an order that joins": lambda: transaction(Order(KIND, key, delay=wait, longest=wait)),
        "an order that makes a job": lambda: transaction(Order(KIND, new_id("key"), delay=wait)),
        "an urgent order": lambda: transaction(Order(KIND, new_id("key"))),
    }
    taken: dict[str, list[float]] = {name: [] for name in subjects}
    for turn in range(orders + 20):
        for name, act in subjects.items():
            started = time.perf_counter()
            await act()
            if turn >= 20:
                taken[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(values) for name, values in taken.items()}


def new_folder() -> Path:
    """One that the account which PostgreSQL gets from root can reach."""
    folder = Path(tempfile.mkdtemp(prefix="kemem-bench-", dir="/tmp"))
    folder.chmod(0o755)
    return folder


@asynccontextmanager
async def cluster() -> AsyncIterator[tuple[str, asyncpg.Connection]]:
    """A migrated database with some tenants, and its superuser."""
    folder = new_folder()
    try:
        async with EmbeddedPostgres(folder / "data") as server:
            await upgrade(server.dsn)
            await ensure_serving_login(server.urls)
            owner = await asyncpg.connect(server.superuser_dsn)
            await owner.execute(
                "INSERT INTO tenants (tenant_id, tenant_name) "
                "SELECT 't' || lpad(n::text, 3, '0'), 'x' FROM generate_series(0, $1 - 1) AS n",
                TENANTS,
            )
            yield server.urls.serving, owner
            await owner.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def at(values: Sequence[float], share: float) -> float:
    return values[min(int(len(values) * share), len(values) - 1)]


async def measure(effort: Effort) -> str:
    lines = [
        "# The queue",
        "",
        f"{os.cpu_count()} cores shared by the workers, the database and this client; "
        f"`synchronous_commit=on`; {TENANTS} tenants; the handler returns at once. Load of the "
        f"machine before: {os.getloadavg()[0]:.1f}.",
        "",
        "| worker processes | slots each | jobs/s |",
        "|--:|--:|--:|",
    ]
    async with cluster() as (dsn, owner):
        for number, slots in ((1, 4), (1, 16), (2, 16), (4, 16)):
            rates = [
                await throughput(owner, dsn, number, slots, effort.jobs)
                for _ in range(effort.rounds)
            ]
            lines.append(f"| {number} | {slots} | {statistics.median(rates):,.0f} |")
            print(lines[-1], flush=True)
        async with open_database(dsn, pool_size=2, statement_timeout_seconds=15) as database:
            delays = await pick_up(owner, dsn, database, effort.orders)
            lines += [
                "",
                "| from the commit of an urgent order to its handler | ms |",
                "|---|--:|",
                f"| p50 | {at(delays, 0.5):.1f} |",
                f"| p95 | {at(delays, 0.95):.1f} |",
                f"| longest of {len(delays)} | {delays[-1]:.1f} |",
            ]
            await owner.execute("TRUNCATE jobs")
            spent = await costs(database, effort.orders)
    lines += ["", "| a transaction that writes one row | p50 ms | more |", "|---|--:|--:|"]
    lines += [
        f"| {name} | {value:.2f} | {value - spent['bare']:.2f} |" for name, value in spent.items()
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "queue.md")
    parser.add_argument("--work", type=int)
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if options.work is not None:
            runner.run(work(os.environ["DATABASE_URL"], options.work))
            return
        report = runner.run(measure(QUICK if options.quick else Effort()))
    print(report)
    options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
