"""A worker inside a test, and how to wait for what it does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from httpx import AsyncClient

from app.jobs.worker import Worker, WorkerLimits
from app.runtime import Runtime
from app.worker import worker_of
from tests.support.api import ok

PATIENCE = 20.0


@asynccontextmanager
async def working(runtime: Runtime, dsn: str, **limits: Any) -> AsyncIterator[Worker]:
    """A worker that runs while the block does, and drains at its end."""
    worker = worker_of(runtime, dsn, limits=WorkerLimits(**limits) if limits else None)
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        await worker.drain(timedelta(seconds=10))
        await running


async def extracted(client: AsyncClient, session_id: str, **body: Any) -> dict[str, Any]:
    """Have a session read, and wait until it is."""
    answer = await client.post(f"/sessions/{session_id}/extract", json={"wait": True} | body)
    return ok(answer)


async def over(client: AsyncClient, job_id: str) -> dict[str, Any]:
    """A job, once it is neither owed nor running."""
    async with asyncio.timeout(PATIENCE):
        while True:
            job = ok(await client.get(f"/jobs/{job_id}"))
            if job["status"] in {"succeeded", "dead", "cancelled"}:
                return job
            await asyncio.sleep(0.02)
