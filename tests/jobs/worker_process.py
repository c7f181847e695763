"""A worker as a process of its own, for tests that kill it: says what it begins and ends.

Arguments: a name, what its handler does: `hang`, `finish`, or `commit` (write, and hang in the
middle of the transaction), and the seconds of its lease. The database is in DATABASE_URL.
"""

import asyncio
import os
import random
import sys
from datetime import timedelta

from sqlalchemy import text

from app.platform.database.engine import open_database
from app.platform.jobs.dispatch import Listener
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository
from app.platform.jobs.worker import Worker, WorkerLimits


async def main(name: str, act: str, lease: float) -> None:
    dsn = os.environ["DATABASE_URL"]
    async with open_database(dsn, pool_size=2, statement_timeout_seconds=10) as database:

        async def handler(job: ClaimedJob) -> dict[str, str]:
            print(f"begun {job.key} {job.attempts}", flush=True)  # noqa: T201
            if act == "hang":
                await asyncio.sleep(600)
            if act == "commit":
                async with database.begin(job.tenant_id) as db:
                    await db.execute(text("UPDATE tenants SET tenant_name = 'half'"))
                    await JobRepository(db, job.tenant_id).finish(job, {"by": name})
                    print("written", flush=True)  # noqa: T201
                    await asyncio.sleep(600)
            return {"by": name}

        worker = Worker(
            database,
            {"extract": handler},
            name=name,
            limits=WorkerLimits(slots=2, lease=timedelta(seconds=lease)),
            spread=random.random,
            listener=Listener(dsn),
        )
        await worker.run()


asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
