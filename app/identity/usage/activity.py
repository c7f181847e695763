"""Searches and contexts, counted in the process and written every few seconds; how long they took
is counted in a few fixed buckets, from which percentiles are read.

A search writes nothing while it runs. An orderly end of the process writes everything; one that is
killed loses what it counted since it last wrote, at most some five seconds of it.

A percentile is an estimate: within its bucket the values are taken to lie evenly.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from time import monotonic
from typing import Final, Literal

import structlog

from app.identity.usage.repository import DailyCountRepository, DailyKey
from app.platform.database.engine import Database

MILLISECONDS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000)
"""Upper ends of the buckets of what a caller waits for, in ms; a last one has what is longer."""

WAITS: Final = (
    1_000, 2_000, 5_000, 10_000, 20_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000,
    21_600_000, 86_400_000,
)  # fmt: skip
"""The same of what waits in the background."""

LONGER: Final = "longer"
"""Name of the last bucket; the others are named by their upper end."""


def bucket_of(milliseconds: float, ends: Sequence[int]) -> str:
    """The name of a value's bucket; an end is in the bucket above it."""
    place = bisect_right(ends, milliseconds)
    return str(ends[place]) if place < len(ends) else LONGER


def percentile(counts: Mapping[str, int], share: float, ends: Sequence[int]) -> float | None:
    """The value that `share` of the counted ones lie below; None where nothing was counted.

    Of what is longer than the last end nothing is known but that: the end is returned.
    """
    total = sum(counts.values())
    if not total:
        return None
    wanted, below, start = share * total, 0, 0
    for end in ends:
        count = counts.get(str(end), 0)
        if count and below + count >= wanted:
            return round(start + (end - start) * (wanted - below) / count, 2)
        below, start = below + count, end
    return float(ends[-1])


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
