"""SQL for what is remembered near to what a run reads, the attributes in use there, and what a
model may look at besides: what nobody has spoken of for long, and what gathered in one category.

The latter is a snapshot, which is compared again before anything is stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from pgvector.sqlalchemy import SPARSEVEC, Vector
from sqlalchemy import (
    ColumnElement,
    Date,
    DateTime,
    Row,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    null,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.language.llm.embedder import Embedder
from app.language.llm.reconciler import Agenda, AgendaMemory
from app.memory.extraction.maintenance import VALID_DAYS, AgendaEntry, AgendaSnapshot, category
from app.memory.extraction.models import ExtractionRun
from app.memory.extraction.repository import DERIVED
from app.memory.extraction.run_state import RunState
from app.memory.extraction.shared_words import CANDIDATES, asked_vector
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.repository import bucket, current, current_or_coming
from app.memory.memories.visibility_sql import visible

NEAREST = 5
"""How many memories are near to one piece of what was said, at the most."""

_KNOWN: tuple[Any, ...] = (
    Memory.memory_id, Memory.content, Memory.attribute, Memory.valid_from, Memory.valid_to,
    Memory.said_at,
)  # fmt: skip


class KnownRepository:
    """Looks into the buckets that a run writes to. Never begins or ends a transaction."""

    def __init__(
        self,
        db: AsyncSession,
        access: Access,
        owners: Sequence[MemoryOwner],
        ignored: frozenset[str],
    ) -> None:
        """Prepare to see what `access` may see of `owners`' memories without those `ignored`."""
        self._db = db
        self._mine: ColumnElement[bool] = and_(
            Memory.tenant_id == access.tenant_id,
            or_(*(and_(*bucket(asdict(owner))) for owner in owners)),
            current_or_coming(),
            visible(access),
            Memory.memory_id != func.all(cast(sorted(ignored), ARRAY(Text))),
        )

    async def near(
        self, pieces: Sequence[str], vectors: Sequence[Any], embedder: Embedder
    ) -> Sequence[Row[Any]]:
        """Memories that are near to a piece by their vectors, and those with most terms in common
        (`similarity` is null); `place` counts the pieces from 1. One statement.
        """
        vector = [str(vector.tolist()) for vector in vectors]
        words = [asked_vector(piece).to_text() for piece in pieces]
        asked = (
            func.unnest(cast(vector, ARRAY(Text)), cast(words, ARRAY(Text)))
            .table_valued("vector", "terms", with_ordinality="place", name="asked")
            .render_derived()
        )
        # Fenced: each is read once, and not once per memory it is compared with.
        query = (
            select(
                cast(asked.c.vector, Vector()).label("vector"),
                cast(asked.c.terms, SPARSEVEC()).label("terms"),
                asked.c.place,
            )
            .offset(0)
            .cte("query")
        )
        distance = Memory.embedding.max_inner_product(query.c.vector)
        near = (
            select(*_KNOWN, (-distance).label("similarity"))
            .where(self._mine, Memory.embedding_model == embedder.name)
            .order_by(distance)
            .limit(NEAREST)
            .lateral("near")
        )
        product = Memory.terms.max_inner_product(query.c.terms)
        alike = (
            select(*_KNOWN, product.label("product"))
            .where(self._mine)
            .order_by(product, Memory.memory_id)
            .limit(CANDIDATES)
            .lateral("alike")
        )
        columns = [column.name for column in _KNOWN]
        rows = await self._db.execute(
            union_all(
                select(query.c.place, *(near.c[name] for name in columns), near.c.similarity)
                .join(near, true())
                .where(near.c.similarity >= embedder.neighbour_floor),
                select(query.c.place, *(alike.c[name] for name in columns), null())
                .join(alike, true())
                .where(alike.c.product < 0),
            )
        )
        return rows.all()

    async def attributes(self, *, most: int) -> Sequence[str]:
        """Names of attributes that these memories have, last used first."""
        rows = await self._db.scalars(
            select(Memory.attribute)
            .where(self._mine, Memory.attribute.is_not(None))
            .group_by(Memory.attribute)
            .order_by(func.max(Memory.update_time).desc(), Memory.attribute)
            .limit(most)
        )
        return [name for name in rows if name]


MOST_DUE = 20
CROWDED = 8
"""From how many memories of one type on some may be one."""

MOST_PARTS = 30
LONGEST_PART = 500
"""Of longer statements several would not fit into one."""

REST = timedelta(days=7)
"""How long a category that was looked through is left alone, whatever came of it."""

# What was thought to hold for so many days, from when it was said: it may have been read late.
_TOLD = case(
    (Memory.expected_valid_days.is_not(None), func.coalesce(Memory.said_at, Memory.update_time)),
    else_=Memory.update_time,
)
_FRESH = func.greatest(_TOLD, Memory.valid_from, Memory.reviewed_at)
_PERIOD = func.make_interval(0, 0, 0, func.coalesce(Memory.expected_valid_days, VALID_DAYS))
_DUE_AT = _FRESH + _PERIOD
_REVIEWED: tuple[Any, ...] = (
    Memory.memory_id, Memory.version, Memory.content, Memory.memory_type, Memory.confidence,
    Memory.source, Memory.scope, Memory.scope_id, Memory.expected_valid_days,
    func.coalesce(Memory.valid_from, Memory.said_at, Memory.create_time).label("since"),
)  # fmt: skip


class AgendaRepository:
    """Looks for one run. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, state: RunState) -> None:
        self._db = db
        self._access = state.request.principal.access
        self._owners = list(state.buckets)
        said = [turn.said_at for turn in state.request.reading.turns]
        # What is read late is looked at as of when it was said: what was ahead then is not over.
        latest = literal(max(said, default=None), DateTime(timezone=True))
        self._today = func.least(func.now(), latest)
        days = func.date_part("day", self._today - _FRESH).label("days")
        self._reviewed: tuple[Any, ...] = (*_REVIEWED, days)

    async def agenda(self) -> AgendaSnapshot:
        """What is stale in the run's buckets, and the largest category that has not been looked
        through lately, where there is enough of it.
        """
        owners = self._owners
        if not owners:
            return AgendaSnapshot()
        due = await self._due(owners)
        parts = await self._parts(owners)
        today = (await self._db.scalars(select(cast(self._today, Date)))).one()
        return AgendaSnapshot(
            Agenda(
                today,
                tuple(entry.memory for entry in due.values()),
                tuple(entry.memory for entry in parts.values()),
            ),
            due,
            parts,
        )

    def _derived(self, owners: Sequence[MemoryOwner]) -> ColumnElement[bool]:
        return and_(
            Memory.tenant_id == self._access.tenant_id,
            or_(*(and_(*bucket(asdict(owner))) for owner in owners)),
            current(),
            visible(self._access),
            DERIVED,
        )

    async def _due(self, owners: Sequence[MemoryOwner]) -> dict[str, AgendaEntry]:
        """The stalest: what was neither said nor changed nor reviewed for as long as it was
        thought to hold, 90 days unless it was told otherwise.
        """
        rows = await self._db.execute(
            select(*self._reviewed)
            .where(self._derived(owners), self._today > _DUE_AT)
            .order_by(_DUE_AT, Memory.memory_id)
            .limit(MOST_DUE)
        )
        return _agenda_entries(rows, owners)

    def _mergeable(self, owners: Sequence[MemoryOwner]) -> ColumnElement[bool]:
        """What a merge would not take from anybody: the value of an attribute must stay one to
        be replaced by the next; what ends, is long, is found by the caller's own id, or is kept
        otherwise than the rest of its bucket stays apart.
        """
        usual = or_(
            and_(Memory.scope == "session", Memory.tier == "short"),
            and_(Memory.scope != "session", Memory.tier == "long"),
        )
        return and_(
            self._derived(owners),
            usual,
            Memory.visibility == "members",
            func.char_length(Memory.content) <= LONGEST_PART,
            Memory.attribute.is_(None),
            Memory.external_id.is_(None),
            Memory.valid_to.is_(None),
            Memory.expires_at.is_(None),
        )

    async def _parts(self, owners: Sequence[MemoryOwner]) -> dict[str, AgendaEntry]:
        """The newest memories of the largest category; old ones are reviewed instead."""
        keys = (Memory.scope, Memory.scope_id, Memory.memory_type)
        count = func.count()
        crowded = await self._db.execute(
            select(*keys)
            .where(self._mergeable(owners))
            .group_by(*keys)
            .having(count >= CROWDED)
            .order_by(count.desc(), *keys)
        )
        resting = await self._resting(owners[0].user_id)
        for scope, scope_id, memory_type in crowded.all():
            owner = _owner_of(owners, scope, scope_id)
            if category(owner, memory_type) in resting:
                continue
            rows = await self._db.execute(
                select(*self._reviewed)
                .where(self._mergeable([owner]), Memory.memory_type == memory_type)
                .order_by(Memory.create_time.desc(), Memory.memory_id.desc())
                .limit(MOST_PARTS)
            )
            return _agenda_entries(rows, owners)
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
        return [{name: counted[name] for name in counted if name != "shown"} for counted in rows]


def _agenda_entries(
    rows: Iterable[Row[Any]], owners: Sequence[MemoryOwner]
) -> dict[str, AgendaEntry]:
    return {
        row.memory_id: AgendaEntry(
            AgendaMemory(
                memory_id=row.memory_id,
                content=row.content,
                memory_type=row.memory_type,
                confidence=row.confidence,
                days=int(row.days),
                expected_valid_days=row.expected_valid_days,
                since=row.since,
            ),
            _owner_of(owners, row.scope, row.scope_id),
            row.version,
            protected=row.source != "ai" or row.memory_type == "correction",
        )
        for row in rows
    }


def _owner_of(owners: Sequence[MemoryOwner], scope: str, scope_id: str) -> MemoryOwner:
    return next(owner for owner in owners if (owner.scope, owner.scope_id) == (scope, scope_id))
