"""Jobs that wait for a reason, and are due once it is gone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import repeat
from typing import Any, cast

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.schemas import TenantPatch
from app.identity.tenants.service import TenantService
from app.platform.database.engine import Database
from app.platform.database.failures import DatabaseBusyError
from app.platform.jobs.begun_jobs import hasten_begun
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import ClaimedJob, Order
from app.platform.jobs.repository import JobRepository
from app.platform.work.unit import Work
from tests.jobs.jobs_support import MINUTE, Queue, db_now
from tests.jobs.test_jobs_lanes import blocked
from tests.jobs.test_jobs_worker import eventually
from tests.support.patience import PATIENCE


async def deferred(queue: Queue, key: str, reason: str) -> str:
    """Id of a job that waits ten minutes for this reason."""
    made = await queue.order(key=key)
    job = await queue.claim_one()
    await queue.fail(job, DeferJobError(await db_now(queue) + 10 * MINUTE, reason))
    return made.job_id


async def hasten(queue: Queue, *reasons: str) -> None:
    async with queue.database.begin(queue.tenant_id) as db:
        await JobRepository(db, queue.tenant_id).hasten_deferred(reasons)


async def waits(queue: Queue, job_id: str) -> bool:
    return (await queue.row(job_id))["due_in"].total_seconds() > 0


async def test_what_waits_for_the_reason_is_due_and_nothing_else(
    queue: Queue, other_queue: Queue
) -> None:
    calls = await deferred(queue, "a", "daily_calls")
    tokens = await deferred(queue, "b", "daily_tokens")
    limited = await deferred(queue, "c", "rate_limited")
    others = await deferred(other_queue, "a", "daily_calls")

    await hasten(queue, "daily_calls", "daily_tokens")

    assert not await waits(queue, calls)
    assert not await waits(queue, tokens)
    assert await waits(queue, limited)
    assert await waits(other_queue, others)


async def test_one_that_somebody_else_changes_is_waited_for(queue: Queue) -> None:
    """Left out, it would wait until its time although nothing holds it any more."""
    job_id = await deferred(queue, "a", "daily_calls")
    transaction = queue.owner.transaction()
    await transaction.start()
    await queue.owner.execute("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", job_id)

    hastening = asyncio.create_task(hasten(queue, "daily_calls"))
    await eventually(lambda: blocked(queue))
    await transaction.commit()
    await asyncio.wait_for(hastening, PATIENCE)

    assert not await waits(queue, job_id)


async def put_off(queue: Queue, job: ClaimedJob) -> None:
    await queue.fail(job, DeferJobError(await db_now(queue) + 10 * MINUTE, "daily_calls"))


async def test_run_that_is_put_off_afterwards_is_due_again_once(queue: Queue) -> None:
    """It may have read what is gone by now."""
    made = await queue.order()
    job = await queue.claim_one()

    await hasten_begun(queue.database, queue.tenant_id, ["daily_calls"])
    await put_off(queue, job)
    assert not await waits(queue, made.job_id)

    await put_off(queue, await queue.claim_one())
    assert await waits(queue, made.job_id)


async def test_run_that_was_put_off_meanwhile_is_due(queue: Queue) -> None:
    calls = await deferred(queue, "a", "daily_calls")
    limited = await deferred(queue, "b", "rate_limited")

    await hasten_begun(queue.database, queue.tenant_id, ["daily_calls"])

    assert not await waits(queue, calls)
    assert await waits(queue, limited)


async def test_run_that_ends_otherwise_is_over(queue: Queue) -> None:
    made = await queue.order()
    job = await queue.claim_one()

    await hasten_begun(queue.database, queue.tenant_id, ["daily_calls"])
    await queue.finish(job)

    assert (await queue.row(made.job_id))["status"] == "succeeded"


RAISED = TenantPatch(config={"daily_calls": 100})


def tenants(database: Database) -> TenantService:
    unused: Any = None
    return TenantService(Work(database, enabled=True), unused, unused)


async def looks_again(queue: Queue, job_id: str) -> bool:
    return (await queue.row(job_id))["again_due_at"] is not None


async def test_run_that_begins_while_the_quota_is_raised_looks_again(queue: Queue) -> None:
    """It reads the quota before the change of it is committed."""
    held = await deferred(queue, "a", "daily_calls")
    made = await queue.order(key="b")
    transaction = queue.owner.transaction()
    await transaction.start()
    await queue.owner.execute("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", held)
    raising = asyncio.create_task(tenants(queue.database).patch(queue.tenant_id, RAISED))
    await eventually(lambda: blocked(queue))

    job = await queue.claim_one()
    await transaction.commit()
    await asyncio.wait_for(raising, PATIENCE)
    await put_off(queue, job)

    assert job.job_id == made.job_id
    assert not await waits(queue, made.job_id)


async def test_run_that_orders_a_running_job_and_ends_is_in_no_ring_with_the_change(
    queue: Queue,
) -> None:
    """It holds the job that is locked second, and then changes its own, which is locked first."""
    first = await queue.order(key="a")
    await queue.order(key="b")
    jobs = {job.job_id: job for job in await queue.claim(2)}

    async with queue.database.begin(queue.tenant_id) as db:
        repository = JobRepository(db, queue.tenant_id)
        await repository.schedule(Order("extract", "b", delay=MINUTE))
        raising = asyncio.create_task(tenants(queue.database).patch(queue.tenant_id, RAISED))

        async def met() -> bool:
            return await looks_again(queue, first.job_id) or await blocked(queue)

        await eventually(met)
        assert await looks_again(queue, first.job_id), "it waits for the other's job"
        await repository.finish(jobs[first.job_id], {})
    shown = await asyncio.wait_for(raising, PATIENCE)

    assert shown.config["daily_calls"] == 100
    assert (await queue.row(first.job_id))["status"] == "succeeded"


async def test_run_that_somebody_else_changes_is_looked_at_until_it_is_free(queue: Queue) -> None:
    free, held = await queue.order(key="a"), await queue.order(key="b")
    await queue.claim(2)
    transaction = queue.owner.transaction()
    await transaction.start()
    await queue.owner.execute("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", held.job_id)

    hastening = asyncio.create_task(
        hasten_begun(queue.database, queue.tenant_id, ["daily_calls"], repeat(0.01))
    )
    await eventually(lambda: looks_again(queue, free.job_id))
    assert not hastening.done()
    await transaction.commit()
    await asyncio.wait_for(hastening, PATIENCE)

    assert await looks_again(queue, held.job_id)


class Failing:
    """A database whose transactions fail from one to another, both counted from 1."""

    def __init__(self, database: Database, first: int, last: int) -> None:
        self._database = database
        self._failing = range(first, last + 1)
        self.begun = 0

    @asynccontextmanager
    async def begin(self, tenant_id: str, **rest: Any) -> AsyncIterator[AsyncSession]:
        self.begun += 1
        if self.begun in self._failing:
            raise DatabaseBusyError
        async with self._database.begin(tenant_id, **rest) as db:
            yield db


async def test_failure_after_the_change_is_not_its_answer(queue: Queue) -> None:
    made = await queue.order()
    await queue.claim_one()
    database = Failing(queue.database, 2, 3)

    shown = await tenants(cast("Database", database)).patch(queue.tenant_id, RAISED)

    assert shown.config["daily_calls"] == 100
    assert database.begun == 4
    assert await looks_again(queue, made.job_id)


async def test_failures_end(queue: Queue) -> None:
    database = Failing(queue.database, 1, 100)

    await hasten_begun(cast("Database", database), queue.tenant_id, ["daily_calls"], [0.0, 0.0])

    assert database.begun == 2
