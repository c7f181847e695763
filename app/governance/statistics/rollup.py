"""Counts what is shown later: once for each day that is over, and what is remembered every hour,
or once a day in large tenants.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from app.governance.statistics.repository import (
    CLOSED,
    OF_DAYS,
    SOURCES,
    NearestMemory,
    SourceRepository,
)
from app.identity.usage.repository import DailyCountRepository, DailySum
from app.language.llm.embedder_catalogue import EmbedderCatalogue
from app.language.llm.errors import EmbeddingUnavailableError
from app.language.text.distinctions import differs
from app.language.text.offload import read_text
from app.platform.database.engine import Database, clock_of

STOCK: Final = ("memories", "never_used", "in_conflict")
"""Names of what is counted as it is at a time."""

DUPLICATES: Final = "duplicates"

DAY: Final = timedelta(days=1)

SETTLED: Final = timedelta(hours=1)
"""How long after its end a day is counted: what began on it is committed by then."""

MOST_DAYS: Final = 400
"""How far back a tenant's first run begins: as long as daily counts are kept. One run counts all
days that are over, so that no request counts them again."""

AT_ONCE: Final = 20
"""How many days one transaction counts."""

SAMPLE: Final = 100
"""How many memories are compared with the nearest of their owner, once a day."""

AMONG: Final = 2_000
"""Among how many of the newest the nearest is looked for."""

LIVE_ROWS: Final = 50_000
"""Up to how many memories are counted every hour and when somebody asks; more once a day."""


class Rollup:
    """Counts one tenant's days, in transactions of `AT_ONCE`; the service goes on answering."""

    def __init__(
        self,
        database: Database,
        catalogue: EmbedderCatalogue,
        *,
        sample: int = SAMPLE,
        among: int = AMONG,
        live_rows: int = LIVE_ROWS,
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._sample = sample
        self._among = among
        self._live_rows = live_rows

    async def run(self, tenant_id: str) -> dict[str, int]:
        """Count the days that are over and were not counted yet, and what is remembered now.

        Safe to repeat and to run twice at once: counts are replaced by the same.

        Returns:
            How many days were counted.

        """
        days = await self._due(tenant_id)
        for start in range(0, len(days), AT_ONCE):
            await self._close(tenant_id, days[start : start + AT_ONCE])
        async with self._database.begin(tenant_id) as db:
            today = (await clock_of(db)).astimezone(UTC).date()
            counts = DailyCountRepository(db, tenant_id)
            sources = SourceRepository(db, tenant_id)
            counted = await counts.last_day("memories") == today
            if counted and not await sources.is_small(self._live_rows):
                return {"days_counted": len(days)}
            now = await stock(sources, today)
            if now:
                await counts.replace(today, STOCK, now)
            sampled = await counts.last_day(DUPLICATES)
        if now and sampled != today:
            await self._count_duplicates(tenant_id, today)
        return {"days_counted": len(days)}

    async def _close(self, tenant_id: str, days: Sequence[date]) -> None:
        """Count days that follow each other."""
        first, last = days[0], days[-1]
        async with self._database.begin(tenant_id) as db:
            sources = SourceRepository(db, tenant_id)
            found = await sources.of_days(list(SOURCES), midnight(first), midnight(last) + DAY)
            found += [DailySum(day, CLOSED, "", "", 1) for day in days]
            counts = DailyCountRepository(db, tenant_id)
            await counts.replace(first, (*OF_DAYS, CLOSED), found, until=last)

    async def _due(self, tenant_id: str) -> Sequence[date]:
        """Days to count, oldest first; empty days that nothing was counted before are left out."""
        async with self._database.begin(tenant_id) as db:
            last = await DailyCountRepository(db, tenant_id).last_day(CLOSED)
            first = await SourceRepository(db, tenant_id).first_time() if last is None else None
            over = (await clock_of(db) - SETTLED).astimezone(UTC).date()
        if last is None and first is None:
            return []
        start = last + DAY if last is not None else (first or midnight(over)).astimezone(UTC).date()
        start = max(start, over - MOST_DAYS * DAY)
        return [start + number * DAY for number in range((over - start).days)]

    async def _count_duplicates(self, tenant_id: str, today: date) -> None:
        async with self._database.begin(tenant_id) as db:
            pairs = await SourceRepository(db, tenant_id).nearest(self._sample, among=self._among)
        floors: dict[str, float] = {}
        for pair in pairs:
            try:
                embedder = await self._catalogue.by_name(pair.embedding_model)
            except EmbeddingUnavailableError:
                embedder = None
            # Without its embedder nobody knows from where on two of them are compared.
            floors[pair.memory_id] = (
                2.0 if embedder is None else embedder.duplicate_threshold.for_text(pair.content)
            )
        characters = sum(len(pair.content) + len(pair.nearest or "") for pair in pairs)
        found = await read_text(characters, _same, pairs, floors)
        async with self._database.begin(tenant_id) as db:
            await DailyCountRepository(db, tenant_id).replace(
                today,
                (DUPLICATES,),
                [
                    DailySum(today, DUPLICATES, "", "sampled", len(pairs)),
                    DailySum(today, DUPLICATES, "", "found", found),
                ],
            )


def _same(pairs: Sequence[NearestMemory], floors: dict[str, float]) -> int:
    """How many memories say the same as their nearest one."""
    return sum(
        pair.nearest is not None
        and pair.similarity >= floors[pair.memory_id]
        and differs(pair.content, pair.nearest) is None
        for pair in pairs
    )


async def stock(sources: SourceRepository, day: date) -> list[DailySum]:
    """What is remembered now, as counts of `day`; nothing where nothing ever was."""
    memories = await sources.memories()
    if not memories:
        return []
    never_used: Counter[str] = Counter()
    for each in memories:
        never_used[each.agent_id] += each.never_used
    return [
        *(
            DailySum(
                day, "memories", each.agent_id, f"{each.status}/{each.memory_type}", each.number
            )
            for each in memories
        ),
        *(
            DailySum(day, "never_used", agent, "", count)
            for agent, count in never_used.items()
            if count
        ),
        *(
            DailySum(day, "in_conflict", agent, "", count)
            for agent, count in await sources.in_conflict()
        ),
    ]


def midnight(day: date) -> datetime:
    """When a day (UTC) begins."""
    return datetime.combine(day, time(), UTC)
