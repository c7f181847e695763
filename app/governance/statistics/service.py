"""Use cases of statistics: figures by day or agent, from daily counts and the rows since then."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date
from typing import Any, Final, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

from app.governance.statistics.repository import CLOSED, OF_DAYS, SourceRepository
from app.governance.statistics.rollup import DAY, DUPLICATES, LIVE_ROWS, STOCK, midnight, stock
from app.governance.statistics.schemas import (
    DuplicateFigures,
    EffectAnswer,
    EffectFigures,
    EffectItem,
    ExtractionAnswer,
    ExtractionFigures,
    ExtractionItem,
    ItemFigures,
    MemoryFigures,
    MemoryFiguresNow,
    MemoryStatisticsAnswer,
    MemoryStatisticsQuery,
    RefusalAnswer,
    RefusalFigures,
    RefusalItem,
    SearchFigures,
    StatisticsQuery,
)
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.usage.activity import MILLISECONDS, WAITS, percentile
from app.identity.usage.repository import DailyCountRepository, DailySum
from app.identity.usage.service import shown_days
from app.platform.database.engine import clock_of
from app.platform.work.unit import Work

MOST_AGENTS: Final = 100

_LOOKUPS: Final = ("search", "search_query", "context", "context_query")
_ITEMS: Final = ("injected", "used", "used_estimated")
_RUNS: Final = ("run", "run_messages", "run_proposals", "run_time", "run_lag")

Figures = TypeVar("Figures", EffectFigures, RefusalFigures, ExtractionFigures)
Counts = Mapping[str, Mapping[str, int]]
"""By name, then by label."""


class StatisticsService:
    """Shows what is counted of a tenant. Keys that are bound to a user or an agent see nothing."""

    def __init__(self, work: Work, *, live_rows: int = LIVE_ROWS) -> None:
        self._work = work
        self._live_rows = live_rows

    async def effect(self, principal: Principal, query: StatisticsQuery) -> EffectAnswer:
        """How often something fitting was found, how long it took, and what was used of it.

        Raises:
            KeyRestrictedError: the figures belong to the tenant, and the key is restricted.
            InvalidDaysError: `until` is before `since`, or there are too many days.

        """
        days, counted = await self._counted(principal, query, (*_LOOKUPS, *_ITEMS), ["items"])
        items, totals = _grouped(query, counted, _effect)
        shown = [EffectItem(**place, **dict(figures)) for place, figures in items]
        return EffectAnswer(**days, items=shown, totals=totals)

    async def refusals(self, principal: Principal, query: StatisticsQuery) -> RefusalAnswer:
        """What the gate accepted and refused, by the rule. Raises as `effect` does."""
        days, counted = await self._counted(principal, query, ("verdict", "refusal"), ["decisions"])
        items, totals = _grouped(query, counted, _refusals)
        shown = [RefusalItem(**place, **dict(figures)) for place, figures in items]
        return RefusalAnswer(**days, items=shown, totals=totals)

    async def extraction(self, principal: Principal, query: StatisticsQuery) -> ExtractionAnswer:
        """How much was read, and how far it lagged behind. Raises as `effect` does."""
        days, counted = await self._counted(principal, query, _RUNS, ["runs"])
        items, totals = _grouped(query, counted, _extraction)
        shown = [ExtractionItem(**place, **dict(figures)) for place, figures in items]
        return ExtractionAnswer(**days, items=shown, totals=totals)

    async def memories(
        self, principal: Principal, query: MemoryStatisticsQuery
    ) -> MemoryStatisticsAnswer:
        """What is remembered, now and at the end of each day. Raises as `effect` does.

        Rows of a large tenant are counted by maintenance alone: until then nothing is known now.
        """
        async with self._reading(principal) as db:
            now = await clock_of(db)
            since, until = shown_days(query, now.astimezone(UTC).date())
            counts = DailyCountRepository(db, principal.tenant_id)
            counted = await counts.list_counts(STOCK, since, until, query.agent_id)
            last = await counts.last_day("memories")
            sources = SourceRepository(db, principal.tenant_id)
            today = now.astimezone(UTC).date()
            live = await sources.is_small(self._live_rows)
            shown_day = today if live else last
            newest: Sequence[DailySum] = []
            if live:
                newest = await stock(sources, today)
            elif last is not None:
                newest = await counts.list_counts(STOCK, last, last)
            newest = [each for each in newest if query.agent_id in {None, each.agent_id}]
            sampled_on = await counts.last_day(DUPLICATES)
            sampled = (
                []
                if sampled_on is None
                else await counts.list_counts((DUPLICATES,), sampled_on, sampled_on)
            )
        by_day = defaultdict(list)
        for each in counted:
            by_day[each.day].append(each)
        return MemoryStatisticsAnswer(
            since=since,
            until=until,
            now=None
            if shown_day is None
            else MemoryFiguresNow(
                **_stock(shown_day, newest), live=live, duplicates=_duplicates(sampled)
            ),
            items=[MemoryFigures(**_stock(day, by_day[day])) for day in sorted(by_day)],
        )

    def _reading(self, principal: Principal) -> Any:
        """Raises KeyRestrictedError."""
        if principal.access.restricted:
            raise KeyRestrictedError
        return self._work.read(principal)

    async def _counted(
        self,
        principal: Principal,
        query: StatisticsQuery,
        names: Sequence[str],
        sources: Sequence[str],
    ) -> tuple[dict[str, date], list[DailySum]]:
        """The days, and what was counted on them: closed days from the counts, later ones anew."""
        async with self._reading(principal) as db:
            today = (await clock_of(db)).astimezone(UTC).date()
            since, until = shown_days(query, today)
            found = await _of_days(db, principal.tenant_id, names, sources, since, until)
        days = {"since": since, "until": until}
        return days, [each for each in found if query.agent_id in {None, each.agent_id}]


async def _of_days(
    db: AsyncSession,
    tenant_id: str,
    names: Sequence[str],
    sources: Sequence[str],
    since: date,
    until: date,
) -> list[DailySum]:
    counts = DailyCountRepository(db, tenant_id)
    closed = await counts.last_day(CLOSED)
    found = [
        each
        for each in await counts.list_counts(names, since, until)
        # A day that was closed since then is counted anew below.
        if each.name not in OF_DAYS or (closed is not None and each.day <= closed)
    ]
    start = since if closed is None else max(since, closed + DAY)
    if start <= until:
        rows = SourceRepository(db, tenant_id)
        found += await rows.of_days(
            sources, midnight(start), midnight(min(until, date.max - DAY)) + DAY
        )
    return found


def _grouped(
    query: StatisticsQuery,
    counted: Sequence[DailySum],
    show: Callable[[Counts], Figures],
) -> tuple[list[tuple[dict[str, Any], Figures]], Figures]:
    """Figures by day, oldest first, or by agent, the busiest first; and of all together."""
    by_agent = query.group_by == "agent"
    groups: dict[Any, list[DailySum]] = defaultdict(list)
    for each in counted:
        groups[each.agent_id if by_agent else each.day].append(each)
    keys = sorted(groups)
    if by_agent:
        keys.sort(key=lambda key: -sum(each.number for each in groups[key]))
        keys = keys[:MOST_AGENTS]
    items = [
        (
            {"day": None if by_agent else key, "agent_id": key if by_agent else None},
            show(_by_name(groups[key])),
        )
        for key in keys
    ]
    return items, show(_by_name(counted))


def _by_name(counted: Sequence[DailySum]) -> Counts:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for each in counted:
        found[each.name][each.label] += each.number
    return found


def _labels(counts: Counts, name: str) -> Mapping[str, int]:
    return counts.get(name, {})


def _total(counts: Counts, name: str) -> int:
    return sum(_labels(counts, name).values())


def _rate(part: int, whole: int) -> float | None:
    return round(min(part / whole, 1.0), 4) if whole else None


def _effect(counts: Counts) -> EffectFigures:
    injected = _total(counts, "injected")
    used, estimated = _total(counts, "used"), _total(counts, "used_estimated")
    return EffectFigures(
        searches=_lookups(counts, "search"),
        contexts=_lookups(counts, "context"),
        items=ItemFigures(
            injected=injected,
            used=used,
            used_estimated=estimated,
            use_rate=_rate(used, injected),
            use_rate_estimated=_rate(estimated, injected),
        ),
    )


def _lookups(counts: Counts, name: str) -> SearchFigures:
    times, queries = _labels(counts, name), _labels(counts, f"{name}_query")
    hits, asked = queries.get("hit", 0), sum(queries.values())
    return SearchFigures(
        count=sum(times.values()),
        queries=asked,
        hits=hits,
        hit_rate=_rate(hits, asked),
        p50_ms=percentile(times, 0.5, MILLISECONDS),
        p95_ms=percentile(times, 0.95, MILLISECONDS),
    )


def _refusals(counts: Counts) -> RefusalFigures:
    verdicts = _labels(counts, "verdict")
    return RefusalFigures(
        accepted=verdicts.get("accepted", 0),
        rejected=verdicts.get("rejected", 0),
        by_code=dict(sorted(_labels(counts, "refusal").items())),
    )


def _extraction(counts: Counts) -> ExtractionFigures:
    lags, times = _labels(counts, "run_lag"), _labels(counts, "run_time")
    return ExtractionFigures(
        runs=_total(counts, "run"),
        failed=_labels(counts, "run").get("failed", 0),
        messages=_total(counts, "run_messages"),
        proposals=_total(counts, "run_proposals"),
        lag_p50_ms=percentile(lags, 0.5, WAITS),
        lag_p95_ms=percentile(lags, 0.95, WAITS),
        duration_p50_ms=percentile(times, 0.5, MILLISECONDS),
        duration_p95_ms=percentile(times, 0.95, MILLISECONDS),
    )


def _stock(day: date, counted: Sequence[DailySum]) -> dict[str, Any]:
    counts = _by_name(counted)
    by_status: Counter[str] = Counter()
    by_memory_type: Counter[str] = Counter()
    for label, count in _labels(counts, "memories").items():
        status, memory_type = label.split("/")
        by_status[status] += count
        if status == "active":
            by_memory_type[memory_type] += count
    return {
        "day": day,
        "total": by_status["active"],
        "by_status": dict(sorted(by_status.items())),
        "by_memory_type": dict(sorted(by_memory_type.items())),
        "never_used": _total(counts, "never_used"),
        "in_conflict": _total(counts, "in_conflict"),
    }


def _duplicates(sampled: Sequence[DailySum]) -> DuplicateFigures | None:
    by_label = {each.label: each.number for each in sampled}
    if not sampled:
        return None
    return DuplicateFigures(
        day=sampled[0].day, sampled=by_label["sampled"], found=by_label.get("found", 0)
    )
