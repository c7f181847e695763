"""Which memories go first where a bucket holds too many: as a function and as SQL.

The function (`weakest`) knows no clock and no database; a test compares it with the SQL, which
works on one bucket or a whole tenant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import CTE, ColumnElement, Double, and_, case, cast, func, literal, not_, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.config import Eviction
from app.identity.tenants.access import Access
from app.memory.memories.models import Memory
from app.memory.memories.repository import bucket, current
from app.memory.memories.visibility_sql import visible

W_CONFIDENCE: Final = 0.65
W_FRESHNESS: Final = 0.25
W_HEAT: Final = 0.10

FRESH_HALF_LIFE_DAYS: Final = 90
HEAT_HALF_LIFE_DAYS: Final = 30

RESERVED_SHARE: Final = 10
"""One of so many memories may be a reserved correction, at most `MOST_RESERVED`."""

MOST_RESERVED: Final = 10

CORRECTION: Final = "correction"
EXTRACTED: Final = "ai"
"""Source of what a model or the rules proposed; what a person saved never counts."""

DAY_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Evictable:
    """An extracted memory, with what its rank depends on.

    Args:
        confirmed_at: when it was last said, or found to hold still.
        last_used_at: when a query last found it; being shown in a context does not count.

    """

    memory_id: str
    memory_type: str
    confidence: float
    confirmed_at: datetime
    last_used_at: datetime | None
    use_count: int
    update_time: datetime


def hybrid_score(memory: Evictable, now: datetime) -> float:
    """From 0 to 1: how sure it is, how lately it was confirmed, how often it is looked for."""
    fresh = _halved(memory.confirmed_at, now, FRESH_HALF_LIFE_DAYS)
    heat = 0.0
    if memory.last_used_at is not None:
        often = memory.use_count / (memory.use_count + 1)
        heat = often * _halved(memory.last_used_at, now, HEAT_HALF_LIFE_DAYS)
    return W_CONFIDENCE * memory.confidence + W_FRESHNESS * fresh + W_HEAT * heat


def reserve(keep: int) -> int:
    """How many corrections stand outside a cap of `keep`: a tenth, rounded up, at most ten."""
    return min(-(-keep // RESERVED_SHARE), MOST_RESERVED)


def weakest(
    rows: Sequence[Evictable], *, keep: int, eviction: Eviction, now: datetime
) -> list[str]:
    """Ids beyond the `keep` strongest, weakest first.

    By confidence, corrections neither count nor go. By the hybrid score that
    holds for the strongest of them alone, as many as `reserve` says.
    """

    def strength(memory: Evictable) -> tuple[float, datetime, str]:
        score = memory.confidence if eviction == "confidence" else hybrid_score(memory, now)
        return score, memory.update_time, memory.memory_id

    ordered = sorted(rows, key=strength, reverse=True)
    corrections = [memory for memory in ordered if memory.memory_type == CORRECTION]
    spared = corrections if eviction == "confidence" else corrections[: reserve(keep)]
    exempt = {memory.memory_id for memory in spared}
    counted = [memory for memory in ordered if memory.memory_id not in exempt]
    return [memory.memory_id for memory in reversed(counted[keep:])]


def _halved(since: datetime, now: datetime, half_life_days: int) -> float:
    days = max((now - since).total_seconds(), 0.0) / DAY_SECONDS
    return float(0.5 ** (days / half_life_days))


OVER_CAPACITY = "over_capacity"
"""The reason in the history of a memory that was archived because its bucket was full."""


BUCKET_COLUMNS = ("scope", "scope_id", "user_id", "agent_id")
"""What names a bucket of one user and agent."""


class Over(NamedTuple):
    """How many memories are beyond their caps, and the ids of the first."""

    rows: int
    ids: Sequence[str]


class Compared(NamedTuple):
    """What two ways to choose would let go.

    Args:
        read: rows of the buckets that were compared.
        left_out: whether there are more such buckets.
        both: how many go either way.
        first: ids that go the one way alone; as many as were asked for, and one more when
            there are more.
        second: the same for the other way.

    """

    buckets: int
    read: int
    left_out: bool
    both: int
    first: Sequence[str]
    second: Sequence[str]


class Crowded(NamedTuple):
    """A bucket with more extracted memories than it may hold."""

    scope: str
    scope_id: str
    user_id: str | None
    agent_id: str | None


def confirmed() -> ColumnElement[datetime]:
    """When a memory was last said, or found to hold still."""
    return func.greatest(Memory.create_time, Memory.reviewed_at)


def hybrid(now: datetime | None = None) -> ColumnElement[float]:
    """The score of `eviction.hybrid_score` for a row of `memories`."""
    time = func.now() if now is None else literal(now)
    often = cast(Memory.use_count, Double) / (Memory.use_count + 1)
    heat = case(
        (Memory.last_used_at.is_(None), literal(0.0)),
        else_=often * _halved_sql(Memory.last_used_at, time, HEAT_HALF_LIFE_DAYS),
    )
    fresh = _halved_sql(confirmed(), time, FRESH_HALF_LIFE_DAYS)
    return W_CONFIDENCE * Memory.confidence + W_FRESHNESS * fresh + W_HEAT * heat


def _halved_sql(since: Any, time: Any, half_life_days: int) -> ColumnElement[float]:
    seconds = cast(func.extract("epoch", time - since), Double)
    # Beyond 50 half-lives PostgreSQL's power() would raise an underflow some day.
    halvings = func.least(func.greatest(seconds, 0.0) / DAY_SECONDS / half_life_days, 500.0)
    return func.power(cast(literal(0.5), Double), halvings)


class EvictionRepository:
    """Extracted memories that a caller may see. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    def _extracted(self) -> ColumnElement[bool]:
        return and_(
            Memory.tenant_id == self._access.tenant_id,
            current(),
            visible(self._access),
            Memory.source == EXTRACTED,
        )

    async def crowded(self, cap: int, among: ColumnElement[bool]) -> Sequence[Crowded]:
        """Buckets with more than `cap` extracted memories, corrections counted or not."""
        columns = [getattr(Memory, name) for name in BUCKET_COLUMNS]
        rows = await self._db.execute(
            select(*columns)
            .where(self._extracted(), among)
            .group_by(*columns)
            .having(func.count() > cap)
            .order_by(*columns)
        )
        return [Crowded(*row) for row in rows]

    async def over(
        self, cap: int, eviction: Eviction, among: ColumnElement[bool], *, sample: int
    ) -> Over:
        """What `weakest` would find in all the crowded buckets, in two statements."""
        sizes = self._sizes(cap, among)
        corrects = sizes.c.corrects
        spared = corrects if eviction == "confidence" else func.least(corrects, reserve(cap))
        beyond = func.greatest(sizes.c.rows - spared - cap, 0)
        count = await self._db.scalar(select(func.sum(beyond)))
        # Of so many buckets each has one at least.
        first = select(sizes).where(beyond > 0).order_by(sizes.c.nth).limit(sample).cte("chosen")
        goes = self._going(first, cap, [eviction])
        ids = await self._db.scalars(
            select(goes.c.memory_id)
            .where(goes.c.first)
            .order_by(goes.c.nth, goes.c.place)
            .limit(sample)
        )
        return Over(int(count or 0), ids.all())

    async def compare(
        self,
        cap: int,
        evictions: tuple[Eviction, Eviction],
        among: ColumnElement[bool],
        *,
        rows: int,
        shown: int,
    ) -> Compared:
        """What two ways to choose would let go beyond a cap, in one statement.

        Args:
            rows: buckets are compared whole, one after another, until they hold more.
            shown: how many ids there may be of each way.

        """
        sizes = self._sizes(cap, among)
        running = func.sum(sizes.c.rows).over(order_by=sizes.c.nth)
        placed = select(sizes, running.label("so_far")).cte("placed")
        chosen = select(placed).where(placed.c.so_far <= rows).cte("chosen")
        goes = self._going(chosen, cap, evictions)
        first, second = goes.c.first, goes.c.second

        def ids(which: ColumnElement[bool]) -> Any:
            named = select(goes.c.memory_id).where(which).order_by(goes.c.memory_id)
            limited = named.limit(shown + 1).subquery()
            return select(func.array_agg(limited.c.memory_id)).scalar_subquery()

        def number(what: Any, of: Any) -> Any:
            return select(func.coalesce(what, 0)).select_from(of).scalar_subquery()

        both = select(func.count()).select_from(goes).where(and_(first, second)).scalar_subquery()
        buckets = number(func.count(), chosen)
        row = (
            await self._db.execute(
                select(
                    buckets,
                    number(func.sum(chosen.c.rows), chosen),
                    number(func.count(), sizes) > buckets,
                    both,
                    ids(and_(first, not_(second))),
                    ids(and_(second, not_(first))),
                )
            )
        ).one()
        return Compared(row[0], int(row[1]), row[2], row[3], row[4] or [], row[5] or [])

    def _sizes(self, cap: int, among: ColumnElement[bool]) -> CTE:
        """Buckets with more than `cap`: how many each holds, and how many of it correct."""
        columns = [getattr(Memory, name) for name in BUCKET_COLUMNS]
        corrects = func.count().filter(Memory.memory_type == CORRECTION)
        return (
            select(
                *columns,
                func.count().label("rows"),
                corrects.label("corrects"),
                func.row_number().over(order_by=columns).label("nth"),
            )
            .where(self._extracted(), among)
            .group_by(*columns)
            .having(func.count() > cap)
            .cte("sizes")
        )

    def _going(self, buckets: CTE, cap: int, evictions: Sequence[Eviction]) -> CTE:
        """Each memory of the buckets, whether it goes (`first`, `second`: as each of the ways
        has it), and its `place` in its bucket `nth`, weakest first by the first of them.
        """
        names = ("first", "second")[: len(evictions)]
        scores = [
            (Memory.confidence if eviction == "confidence" else hybrid()).label(f"{name}_score")
            for name, eviction in zip(names, evictions, strict=True)
        ]
        scored = (
            select(
                Memory.memory_id, Memory.update_time, buckets.c.nth, *scores,
                (Memory.memory_type == CORRECTION).label("corrects"),
            )
            .join(buckets, and_(*(
                getattr(Memory, name).is_not_distinct_from(buckets.c[name])
                if name in {"user_id", "agent_id"} else getattr(Memory, name) == buckets.c[name]
                for name in BUCKET_COLUMNS
            )))
            .where(self._extracted())
            .subquery("scored")
        )  # fmt: skip

        def strongest(rows: Any, name: str) -> list[Any]:
            return [
                rows.c[f"{name}_score"].desc(),
                rows.c.update_time.desc(),
                rows.c.memory_id.desc(),
            ]

        spared = []
        for name, eviction in zip(names, evictions, strict=True):
            among = func.row_number().over(
                partition_by=(scored.c.nth, scored.c.corrects), order_by=strongest(scored, name)
            )
            keeps = literal(value=True) if eviction == "confidence" else among <= reserve(cap)
            spared.append(and_(scored.c.corrects, keeps).label(f"{name}_spared"))
        held = select(scored, *spared).subquery("held")
        goes = []
        for name in names:
            exempt = held.c[f"{name}_spared"]
            order = strongest(held, name)
            rank = func.row_number().over(partition_by=(held.c.nth, exempt), order_by=order)
            goes.append(and_(not_(exempt), rank > cap).label(name))
        last = func.row_number().over(
            partition_by=held.c.nth,
            order_by=[held.c.first_score, held.c.update_time, held.c.memory_id],
        )
        return select(held.c.memory_id, held.c.nth, *goes, last.label("place")).cte("goes")

    async def weakest(
        self,
        owner: Mapping[str, Any],
        *,
        keep: int,
        eviction: Eviction,
        limit: int,
        now: datetime | None = None,
    ) -> Sequence[str]:
        """Ids of a bucket beyond the `keep` strongest, weakest first, as `eviction.weakest`.

        Args:
            owner: names the bucket: scope, scope_id, user_id, agent_id.
            limit: most of them.
            now: instead of the beginning of the transaction.

        """
        score = Memory.confidence if eviction == "confidence" else hybrid(now)
        corrects = Memory.memory_type == CORRECTION
        scored = (
            select(
                Memory.memory_id, Memory.update_time, score.label("score"),
                corrects.label("corrects"),
            )
            .where(self._extracted(), *bucket(owner))
            .subquery("scored")
        )  # fmt: skip
        strongest = (scored.c.score.desc(), scored.c.update_time.desc(), scored.c.memory_id.desc())
        placed = select(
            scored,
            func.row_number().over(partition_by=scored.c.corrects, order_by=strongest).label("nth"),
        ).subquery("placed")
        spared: ColumnElement[bool] = placed.c.corrects
        if eviction == "hybrid":
            spared = and_(spared, placed.c.nth <= reserve(keep))
        counted = (
            select(placed.c.memory_id, placed.c.score, placed.c.update_time)
            .where(not_(spared))
            .order_by(placed.c.score.desc(), placed.c.update_time.desc(), placed.c.memory_id.desc())
            .offset(keep)
            .subquery("counted")
        )
        rows = await self._db.scalars(
            select(counted.c.memory_id)
            .order_by(counted.c.score, counted.c.update_time, counted.c.memory_id)
            .limit(limit)
        )
        return rows.all()
