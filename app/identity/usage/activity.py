"""Searches and contexts, counted in the process and written every few seconds.

A search writes nothing while it runs. An orderly end of the process writes everything; one that is
killed loses what it counted since it last wrote, at most some five seconds of it.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from time import monotonic
from typing import Final, Literal

import structlog

from app.identity.usage.count_repository import DailyCountRepository, DailyKey
from app.identity.usage.histogram import MILLISECONDS, bucket_of
from app.platform.database.engine import Database

log = structlog.get_logger()

PAUSE: Final = 5.0
"""Seconds between two writes: a transaction of 1 to 2 ms for each tenant that searched."""

TENANTS_PER_FLUSH: Final = 100

WAITING: Final = 10_000
"""Most different counts that wait to be written, some 3 MB: reached only while the database is
unavailable. What comes on top goes uncounted, which is better than unbounded growth."""

OF_ONE_TENANT: Final = 500
"""Most different counts under agents that wait of one tenant, so that none takes the places of all.
What comes on top is counted under no agent, of which there are at most 34 counts a day."""

Lookup = Literal["search", "context"]


class Activity:
    """Counts look-ups by tenant, day, agent and kind. Belongs to one event loop."""

    def __init__(
        self,
        database: Database,
        *,
        waiting: int = WAITING,
        of_one_tenant: int = OF_ONE_TENANT,
        tenants: int = TENANTS_PER_FLUSH,
        pause: float = PAUSE,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Write to `database` every `pause` seconds, so many tenants at once; let so many counts
        wait, and so many under agents of one tenant.
        """
        self._database = database
        self._most_waiting = waiting
        self._of_one_tenant = of_one_tenant
        self._tenants_per_flush = tenants
        self._pause = pause
        self._clock = clock
        self._written = clock()
        self._counts: dict[str, dict[DailyKey, int]] = {}
        self._waiting = 0
        self._uncounted = 0

    def note(
        self,
        tenant_id: str,
        agent_id: str | None,
        what: Lookup,
        at: datetime,
        seconds: float,
        *,
        hit: bool | None,
    ) -> None:
        """Count one look-up that took so long; waits for nothing.

        Args:
            tenant_id: whose.
            agent_id: of the agent it was for, if it was for one; whether there is one is looked
                up when the count is written.
            what: a search, or a context.
            at: when.
            seconds: from its beginning to its answer.
            hit: whether something fitting was found; None where there was no query.

        """
        day, agent = at.astimezone(UTC).date(), agent_id or ""
        self._add(tenant_id, (day, what, agent, bucket_of(seconds * 1000, MILLISECONDS)))
        if hit is not None:
            self._add(tenant_id, (day, f"{what}_query", agent, "hit" if hit else "miss"))

    async def flush(self, *, everything: bool = False) -> None:
        """Write what was counted, if the last write is `pause` seconds ago.

        Args:
            everything: write now, and all of it; for the end of the process.

        Raises:
            DatabaseUnavailableError, DatabaseBusyError: what is unwritten is kept.
            OutcomeUnknownError: kept too, so one write may count twice.

        """
        if not self._counts or not (everything or self._clock() - self._written >= self._pause):
            return
        self._written = self._clock()
        if self._uncounted:
            log.warning("activity_not_counted", calls=self._uncounted)
            self._uncounted = 0
        for tenant_id in list(
            islice(self._counts, None if everything else self._tenants_per_flush)
        ):
            # Taken out before it is written: what is noted meanwhile counts the next time.
            counts = self._counts.pop(tenant_id)
            self._waiting -= len(counts)
            try:
                async with self._database.begin(tenant_id) as db:
                    await DailyCountRepository(db, tenant_id).add(counts)
            except BaseException:
                # It goes behind the others, so that none of them waits for what fails.
                for key, count in counts.items():
                    self._add(tenant_id, key, count)
                raise

    def _add(self, tenant_id: str, key: DailyKey, count: int = 1) -> None:
        counts = self._counts.get(tenant_id, {})
        day, name, _, label = key
        if key not in counts and len(counts) >= self._of_one_tenant:
            key = (day, name, "", label)
        if key in counts:
            counts[key] += count
        elif self._waiting >= self._most_waiting:
            self._uncounted += count
        else:
            self._counts.setdefault(tenant_id, {})[key] = count
            self._waiting += 1
