"""Lets runs look again that have begun before a change was committed, and may have missed it."""

import asyncio
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

import structlog

from app.platform.database.engine import Database, clock_of, driver_of
from app.platform.jobs.ordering_sql import HASTEN_BEGUN

log = structlog.get_logger()

PAUSES: Final = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds before each try: whoever ends a run or joins it is done soon."""


async def hasten_begun(
    database: Database,
    tenant_id: str,
    reasons: Collection[str],
    pauses: Iterable[float] = PAUSES,
) -> None:
    """Have them look again at once if they are put off; to be called after the commit.

    It waits for no other transaction and never fails, since what it follows is done: what could
    not be changed is logged, and waits for its time.
    """
    since: datetime | None = None
    left: int | None = None
    for pause in pauses:
        await asyncio.sleep(pause)
        try:
            async with database.begin(tenant_id) as db:
                since = since or await clock_of(db)
                driver = await driver_of(db)
                left = await driver.fetchval(HASTEN_BEGUN, tenant_id, list(reasons), since)
        except Exception as error:  # noqa: BLE001 (the change is made, and is answered)
            left = None
            log.warning("begun_jobs_not_hastened", tenant_id=tenant_id, error=type(error).__name__)
        if left == 0:
            return
    log.error("begun_jobs_left", tenant_id=tenant_id, left=left)
