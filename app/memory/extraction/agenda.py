"""SQL for what a model looks at besides new statements: what is stale, and what has piled up."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, Text, and_, cast, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.language.llm.reconciler import Agenda, AgendaMemory
from app.memory.extraction.models import ExtractionRun
from app.memory.extraction.upkeep import VALID_DAYS, Seen, Shown, category
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.repository import bucket, current
from app.memory.memories.visibility_sql import visible

FEWEST_DUE = 3
"""So few old memories are not worth a model's attention."""

MOST_DUE = 20
CROWDED = 8
"""From how many memories of one type on some may be one."""

MOST_PARTS = 30
LONGEST_PART = 500
"""Of longer statements several would not fit into one."""

REST = timedelta(days=7)
"""How long a category that was looked through is left alone, whatever came of it."""

DERIVED = and_(Memory.source == "ai", Memory.memory_type != "correction")
"""What a person saved is a person's to end, and so is what mends a mistake."""

_FRESH = func.greatest(Memory.update_time, Memory.valid_from, Memory.reviewed_at)
_PERIOD = func.make_interval(0, 0, 0, func.coalesce(Memory.expected_valid_days, VALID_DAYS))
_DUE_AT = _FRESH + _PERIOD
_SHOWN: tuple[Any, ...] = (
    Memory.memory_id, Memory.version, Memory.content, Memory.memory_type, Memory.confidence,
    Memory.source, Memory.scope, Memory.scope_id, Memory.expected_valid_days,
    func.coalesce(Memory.valid_from, Memory.create_time).label("since"),
    func.date_part("day", func.now() - _FRESH).label("days"),
)  # fmt: skip


class AgendaRepository:
    """Looks through buckets. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    async def of(self, places: Sequence[MemoryOwner]) -> Shown:
        """What is stale in these buckets, and the largest category that has not been looked
        through lately; nothing where there is too little of it.
        """
        if not places:
            return Shown()
        due = await self._due(places)
        parts = await self._parts(places)
        today = (await self._db.scalars(select(func.current_date()))).one()
        return Shown(
            Agenda(
                today,
                tuple(one.standing for one in due.values()),
                tuple(one.standing for one in parts.values()),
            ),
            due,
            parts,
        )

    def _derived(self, places: Sequence[MemoryOwner]) -> ColumnElement[bool]:
        return and_(
            Memory.tenant_id == self._access.tenant_id,
            or_(*(and_(*bucket(asdict(place))) for place in places)),
            current(),
            visible(self._access),
            DERIVED,
        )

    async def _due(self, places: Sequence[MemoryOwner]) -> dict[str, Seen]:
        """The stalest: what was neither said nor changed nor reviewed for as long as it was
        thought to hold, 90 days unless it was told otherwise.
        """
        rows = await self._db.execute(
            select(*_SHOWN)
            .where(self._derived(places), func.now() > _DUE_AT)
            .order_by(_DUE_AT, Memory.memory_id)
            .limit(MOST_DUE)
        )
        found = _seen(rows, places)
        return found if len(found) >= FEWEST_DUE else {}

    def _mergeable(self, places: Sequence[MemoryOwner]) -> ColumnElement[bool]:
        """What a merge would not take from anybody: the value of an attribute must stay one to
        be replaced by the next; what ends, is long, is found by the caller's own id, or is kept
        otherwise than the rest of its bucket stays apart.
        """
        usual = or_(
            and_(Memory.scope == "session", Memory.tier == "short"),
            and_(Memory.scope != "session", Memory.tier == "long"),
        )
        return and_(
            self._derived(places),
            usual,
            Memory.visibility == "members",
            func.char_length(Memory.content) <= LONGEST_PART,
            Memory.attribute.is_(None),
            Memory.external_id.is_(None),
            Memory.valid_to.is_(None),
            Memory.expires_at.is_(None),
        )

    async def _parts(self, places: Sequence[MemoryOwner]) -> dict[str, Seen]:
        """The newest memories of the largest category; old ones are reviewed instead."""
        keys = (Memory.scope, Memory.scope_id, Memory.memory_type)
        count = func.count()
        crowded = await self._db.execute(
            select(*keys)
            .where(self._mergeable(places))
            .group_by(*keys)
            .having(count >= CROWDED)
            .order_by(count.desc(), *keys)
        )
        resting = await self._resting(places[0].user_id)
        for scope, scope_id, memory_type in crowded.all():
            place = _place_of(places, scope, scope_id)
            if category(place, memory_type) in resting:
                continue
            rows = await self._db.execute(
                select(*_SHOWN)
                .where(self._mergeable([place]), Memory.memory_type == memory_type)
                .order_by(Memory.create_time.desc(), Memory.memory_id.desc())
                .limit(MOST_PARTS)
            )
            return _seen(rows, places)
        return {}

    async def _resting(self, user_id: str | None) -> list[Mapping[str, Any]]:
        """Categories that a run of this user has looked through lately."""
        looked = ExtractionRun.upkeep["category"]
        rows = await self._db.scalars(
            select(looked).where(
                ExtractionRun.tenant_id == self._access.tenant_id,
                ExtractionRun.user_id.is_not_distinct_from(user_id),
                ExtractionRun.finish_time > func.now() - REST,
                looked.is_not(None),
            )
        )
        return [{name: one[name] for name in one if name != "shown"} for one in rows]

    async def lock(self, memory_ids: Iterable[str]) -> dict[str, Memory]:
        """Those of these memories that count still, locked and up to date."""
        rows = await self._db.scalars(
            select(Memory)
            .where(
                Memory.tenant_id == self._access.tenant_id,
                Memory.memory_id == func.any(cast(sorted(memory_ids), ARRAY(Text))),
                current(),
                visible(self._access),
                DERIVED,
            )
            .order_by(Memory.memory_id)
            .with_for_update()
            .execution_options(populate_existing=True)
        )
        return {row.memory_id: row for row in rows}


def _seen(rows: Iterable[Row[Any]], places: Sequence[MemoryOwner]) -> dict[str, Seen]:
    return {
        row.memory_id: Seen(
            AgendaMemory(
                memory_id=row.memory_id,
                content=row.content,
                memory_type=row.memory_type,
                confidence=row.confidence,
                days=int(row.days),
                expected_valid_days=row.expected_valid_days,
                since=row.since,
            ),
            _place_of(places, row.scope, row.scope_id),
            row.version,
            protected=row.source != "ai" or row.memory_type == "correction",
        )
        for row in rows
    }


def _place_of(places: Sequence[MemoryOwner], scope: str, scope_id: str) -> MemoryOwner:
    return next(one for one in places if (one.scope, one.scope_id) == (scope, scope_id))
