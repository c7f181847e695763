"""Periodic work: tasks of every worker, and jobs that every tenant gets when they are due."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

from app.platform.database.base import new_id
from app.platform.database.engine import Database
from app.platform.jobs.models import LIVE
from app.platform.observability.metrics import TICKS

log = structlog.get_logger()

BATCH = 200

MOST_PER_TICK = 60
"""Most jobs made by one tick. Tenants take turns, so a user's job waits for one of every tenant
before it: with 672 made at once that took a minute. Every minute, 60 reach 3,600 tenants in an
hour, and
as many again with every further worker."""

# A job that waits for its next time would be passed by every claim until then.
_MAKE = f"""
INSERT INTO jobs (tenant_id, job_id, kind, key, priority)
SELECT due.tenant_id, ids.job_id, $1, $1, CAST($3 AS smallint)
FROM (
    SELECT tenant_id, row_number() OVER () AS place FROM tenants
    WHERE status = 1 AND NOT EXISTS (
        SELECT FROM jobs WHERE jobs.tenant_id = tenants.tenant_id AND kind = $1 AND key = $1
            AND {LIVE}
    ) AND NOT EXISTS (
        SELECT FROM jobs WHERE jobs.tenant_id = tenants.tenant_id AND kind = $1
            AND finished_at > CAST($5 AS timestamptz) - CAST($2 AS interval)
    )
    LIMIT cardinality(CAST($4 AS text[]))
) AS due JOIN unnest(CAST($4 AS text[])) WITH ORDINALITY AS ids(job_id, place) USING (place)
ON CONFLICT (tenant_id, kind, key) WHERE {LIVE} DO NOTHING
RETURNING tenant_id
"""


class Recurring:
    """One job of `kind` per enabled tenant, due again `interval` after the last one ended."""

    def __init__(
        self, database: Database, kind: str, interval: timedelta, *, priority: int = 100
    ) -> None:
        self._database = database
        self._kind = kind
        self._interval = interval
        self._priority = priority

    async def make(self, most: int | None = None) -> int:
        """Make the jobs that are due; how many. Safe to repeat, and in several processes.

        Args:
            most: make no more than these now; None for all.

        """
        made = 0
        [clock] = await self._database.look_up("SELECT now() AS now")
        while True:
            wanted = BATCH if most is None else min(BATCH, most - made)
            ids = [new_id("job") for _ in range(wanted)]
            rows = await self._database.look_up(
                _MAKE, self._kind, self._interval, self._priority, ids, clock["now"]
            )
            made += len(rows)
            if len(rows) < wanted or made == most:
                return made

    async def tick(self) -> None:
        """`make`, as a Ticker runs it: a share of what is due."""
        await self.make(MOST_PER_TICK)


@dataclass(frozen=True, slots=True)
class Ticker:
    """Periodic work that every worker does: at its start, then at this interval.

    It may run in several processes at once. An error is logged, and it is tried again.
    """

    name: str
    interval: timedelta
    run: Callable[[], Awaitable[None]]


async def run_ticker(ticker: Ticker) -> None:
    """Run `ticker` until cancelled; nothing else ends it."""
    failing = False
    while True:
        try:
            await ticker.run()
        except Exception as error:  # noqa: BLE001 (it is tried again)
            TICKS.labels(ticker.name, "failed").inc()
            if not failing:
                log.warning("tick_failed", name=ticker.name, error=type(error).__name__)
            failing = True
        else:
            TICKS.labels(ticker.name, "done").inc()
            failing = False
        await asyncio.sleep(ticker.interval.total_seconds())
