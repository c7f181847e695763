"""Jobs that wait for a reason, and are due once it is gone."""

import asyncio
from typing import Any

from app.identity.tenants.schemas import TenantPatch
from app.identity.tenants.service import TenantService
from app.platform.jobs.errors import DeferJobError
from app.platform.jobs.orders import ClaimedJob
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

    await hasten(queue, "daily_calls")
    await put_off(queue, job)
    assert not await waits(queue, made.job_id)

    await put_off(queue, await queue.claim_one())
    assert await waits(queue, made.job_id)


async def test_run_that_ends_otherwise_is_over(queue: Queue) -> None:
    made = await queue.order()
    job = await queue.claim_one()

    await hasten(queue, "daily_calls")
    await queue.finish(job)

    assert (await queue.row(made.job_id))["status"] == "succeeded"


async def test_run_that_begins_while_the_quota_is_raised_looks_again(queue: Queue) -> None:
    """It reads the quota before the change of it is committed."""
    held = await deferred(queue, "a", "daily_calls")
    made = await queue.order(key="b")
    transaction = queue.owner.transaction()
    await transaction.start()
    await queue.owner.execute("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", held)
    unused: Any = None
    service = TenantService(Work(queue.database, enabled=True), unused, unused)
    raised = TenantPatch(config={"daily_calls": 100})
    raising = asyncio.create_task(service.patch(queue.tenant_id, raised))
    await eventually(lambda: blocked(queue))

    job = await queue.claim_one()
    await transaction.commit()
    await asyncio.wait_for(raising, PATIENCE)
    await put_off(queue, job)

    assert job.job_id == made.job_id
    assert not await waits(queue, made.job_id)
