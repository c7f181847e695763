"""The queue in the hands of a test: orders, claims, the clock, and rows as they are."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from app.platform.database.base import new_id
from app.platform.database.engine import Database
from app.platform.database.roles import OWNER
from app.platform.jobs.dispatch import Dispatch, Round
from app.platform.jobs.failures import judge
from app.platform.jobs.orders import ClaimedJob, Order, Scheduled
from app.platform.jobs.repository import JobRepository

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
KINDS = ("extract", "deliver")


async def new_tenant(owner: asyncpg.Connection, tenant_id: str | None = None) -> str:
    tenant_id = tenant_id or new_id("tnt")
    await owner.execute("INSERT INTO tenants (tenant_id, tenant_name) VALUES ($1, $1)", tenant_id)
    return tenant_id


def new_dispatch(
    database: Database,
    worker: str = "one",
    *,
    lease: timedelta = MINUTE,
    per_tenant: int = 100,
    kinds: tuple[str, ...] = KINDS,
) -> Dispatch:
    return Dispatch(database, kinds=kinds, worker=worker, lease=lease, per_tenant=per_tenant)


@dataclass(frozen=True)
class Queue:
    """One tenant's view. `owner` sees and changes every row, the clock of one among them."""

    database: Database
    owner: asyncpg.Connection
    tenant_id: str

    @staticmethod
    @asynccontextmanager
    async def open(database: Database, dsn: str) -> AsyncIterator["Queue"]:
        owner = await asyncpg.connect(dsn)
        try:
            await owner.execute(f"SET ROLE {OWNER}")
            await owner.execute("DELETE FROM jobs")
            yield Queue(database, owner, await new_tenant(owner))
        finally:
            await owner.close()

    def of(self, tenant_id: str) -> "Queue":
        return replace(self, tenant_id=tenant_id)

    async def order(self, kind: str = "extract", key: str = "a", **rest: Any) -> Scheduled:
        scheduled = await self.try_order(kind, key, **rest)
        assert scheduled is not None
        return scheduled

    async def try_order(self, kind: str = "extract", key: str = "a", **rest: Any):
        async with self.database.begin(self.tenant_id) as db:
            return await JobRepository(db, self.tenant_id).schedule(Order(kind, key, **rest))

    async def claim(self, free: int = 1, dispatch: Dispatch | None = None) -> list[ClaimedJob]:
        dispatch = dispatch or new_dispatch(self.database)
        return await dispatch.read((await dispatch.claim(free, {})).claims)

    async def claim_one(self, dispatch: Dispatch | None = None) -> ClaimedJob:
        [job] = await self.claim(1, dispatch)
        return job

    async def finish(self, job: ClaimedJob, result: Mapping[str, Any] | None = None) -> None:
        async with self.database.begin(self.tenant_id) as db:
            await JobRepository(db, self.tenant_id).finish(job, dict(result or {}))

    async def fail(self, job: ClaimedJob, error: BaseException, *, spread: float = 0) -> None:
        verdict = judge(error, attempts=job.attempts, max_attempts=job.max_attempts, spread=spread)
        async with self.database.begin(self.tenant_id) as db:
            await JobRepository(db, self.tenant_id).record(job, verdict)

    async def row(self, job_id: str) -> asyncpg.Record:
        row = await self.owner.fetchrow(
            "SELECT *, due_at - now() AS due_in, again_due_at - now() AS again_in FROM jobs "
            "WHERE tenant_id = $1 AND job_id = $2",
            self.tenant_id,
            job_id,
        )
        assert row is not None
        return row

    async def rows(self) -> list[asyncpg.Record]:
        return await self.owner.fetch(
            "SELECT * FROM jobs WHERE tenant_id = $1 ORDER BY create_time, job_id", self.tenant_id
        )

    async def set(self, job_id: str, **columns: Any) -> None:
        """Put a row into a state that takes long to reach."""
        names = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, 3))
        done = await self.owner.execute(
            f"UPDATE jobs SET {names} WHERE tenant_id = $1 AND job_id = $2",
            self.tenant_id,
            job_id,
            *columns.values(),
        )
        assert done == "UPDATE 1"

    async def pass_time(self, by: timedelta) -> None:
        """Everything in the queue becomes so much older."""
        await self.owner.execute(
            "UPDATE jobs SET due_at = due_at - $1::interval, "
            "waiting_since = waiting_since - $1::interval, "
            "again_due_at = again_due_at - $1::interval, "
            "again_since = again_since - $1::interval, "
            "lease_expires_at = lease_expires_at - $1::interval, "
            "finished_at = finished_at - $1::interval, "
            "create_time = create_time - $1::interval",
            by,
        )


def near(moment: timedelta, expected: timedelta) -> bool:
    """Whether a wait is what was asked for, but for the time the test took."""
    return expected - timedelta(seconds=20) < moment <= expected


async def round_of(dispatch: Dispatch, free: int, running: Mapping[str, int]) -> Round:
    return await dispatch.claim(free, running)


async def db_now(queue: Queue) -> datetime:
    return await queue.owner.fetchval("SELECT now()")
