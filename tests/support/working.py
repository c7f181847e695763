"""A worker inside a test, and how to wait for what it does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from httpx import AsyncClient

from app.governance.webhooks.delivery import KIND as DELIVER
from app.memory.memories.refreshes import PROFILE
from app.platform.jobs.orders import CHANNEL
from app.platform.jobs.worker import Worker, WorkerLimits
from app.runtime import Runtime
from app.worker import worker_of
from tests.support.api import execute, ok
from tests.support.patience import PATIENCE
from tests.support.tenants import left_behind

_databases: list[str] = []
"""Where a worker of `working` runs."""

_FORGET = "DELETE FROM jobs WHERE status = 'pending' AND tenant_id = ANY($1::text[])"
_OVER = ("succeeded", "dead", "cancelled")


@asynccontextmanager
async def working(
    runtime: Runtime, dsn: str, *, profiles: bool = True, **limits: Any
) -> AsyncIterator[Worker]:
    """A worker that runs while the block does, and drains at its end.

    It orders no upkeep: of the tenants that other tests left there are many. The jobs of these
    are forgotten, lest a test wait behind hundreds of them. It delivers to no webhook: those that
    tests made up answer after seconds, or never.

    Args:
        profiles: whether it derives them, which asks a scripted model more than a test wrote.

    """
    await execute(dsn, _FORGET, left_behind())
    chosen = WorkerLimits(**limits) if limits else None
    without = {DELIVER} if profiles else {DELIVER, PROFILE}
    worker = worker_of(runtime, dsn, limits=chosen, tickers=[], without=without)
    running = asyncio.create_task(worker.run())
    _databases.append(dsn)
    try:
        yield worker
    finally:
        _databases.remove(dsn)
        await worker.drain(timedelta(seconds=10))
        await running


async def make_due(dsn: str, condition: str, *values: Any) -> None:
    """Make pending jobs due now and wake the workers, which would look again after a second.

    Args:
        condition: which of them, in SQL.

    """
    await execute(
        dsn,
        "WITH due AS (UPDATE jobs SET due_at = now() "
        f"WHERE status = 'pending' AND {condition} RETURNING 1) "
        f"SELECT pg_notify('{CHANNEL}', '') FROM due LIMIT 1",
        *values,
    )


async def ended_work(*workers: Worker) -> None:
    """Return when all that these workers have begun is over; they begin nothing more."""
    for worker in workers:
        assert await worker.drain(timedelta(seconds=PATIENCE))


async def extracted(client: AsyncClient, session_id: str, **body: Any) -> dict[str, Any]:
    """Have a session read, and wait until it is: longer than a request waits, on a slow machine."""
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await client.post(
                f"/sessions/{session_id}/extract", json={"wait": True} | body
            )
            if answer.status_code != 202:
                return ok(answer)
            await asyncio.sleep(0.1)


async def over(client: AsyncClient, job_id: str) -> dict[str, Any]:
    """A job, once it is neither owed nor running."""
    async with asyncio.timeout(PATIENCE):
        while True:
            await _until_in_row(f"status IN {_OVER}", job_id)
            job = ok(await client.get(f"/jobs/{job_id}"))
            if job["status"] in _OVER:
                return job
            await asyncio.sleep(0.02)


async def waiting(client: AsyncClient, job_id: str) -> dict[str, Any]:
    """A job, once it waits for something else than its time: after a failure, or for a quota."""
    async with asyncio.timeout(PATIENCE):
        while True:
            await _until_in_row("deferred_reason IS NOT NULL", job_id)
            job = ok(await client.get(f"/jobs/{job_id}"))
            if job["deferred_reason"] is not None:
                return job
            await asyncio.sleep(0.02)


async def _until_in_row(condition: str, job_id: str) -> None:
    """Wait while the row of a job says otherwise: to look there costs a tenth of a request.

    Returns at once where no worker of this process has the job.
    """
    if not _databases:
        return
    look = f"SELECT {condition} FROM jobs WHERE job_id = $1"
    for dsn in set(_databases):
        while (rows := await execute(dsn, look, job_id)) and not rows[0][0]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def until(condition: Callable[[], object]) -> None:
    """Wait for what only looking can tell."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 (another thread brings it about)
            await asyncio.sleep(0.02)
