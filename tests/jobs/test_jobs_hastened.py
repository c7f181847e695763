"""Jobs that wait for a reason, and are due once it is gone."""

import asyncio

from app.platform.jobs.errors import DeferJobError
from app.platform.jobs.repository import JobRepository
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
