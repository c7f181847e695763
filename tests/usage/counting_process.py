"""A process that counts two searches, writes the first, and then hangs, for a test that kills it.

Argument: the tenant. The database is in DATABASE_URL.
"""

import asyncio
import os
import sys
from datetime import UTC, datetime

from app.identity.usage.activity import Activity
from app.platform.database.engine import open_database


async def main(tenant_id: str) -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    async with open_database(os.environ["DATABASE_URL"], pool_size=2) as database:
        activity = Activity(database)
        activity.note(tenant_id, "written", "search", at, 0.1, hit=True)
        await activity.flush(everything=True)
        activity.note(tenant_id, "lost", "search", at, 0.1, hit=True)
        await activity.flush()
        print("counted", flush=True)  # noqa: T201
        await asyncio.sleep(600)


asyncio.run(main(sys.argv[1]))
