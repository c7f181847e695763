"""SQL for what a run decides among: the neighbours of its drafts, and old memories that a model
may look at besides. Both are a snapshot, which is compared again before anything is stored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Text,
    and_,
    cast,
    func,
    literal,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.language.llm.embedder import Embedder
from app.language.llm.reconciler import Agenda, AgendaMemory, Neighbour
from app.memory.extraction.drafts import Draft
from app.memory.extraction.maintenance import (
    VALID_DAYS,
    AgendaEntry,
    AgendaSnapshot,
    category,
)
from app.memory.extraction.models import ExtractionRun
from app.memory.extraction.repository import DERIVED
from app.memory.extraction.run_state import RunState
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.repository import bucket, current, query_vectors
from app.memory.memories.visibility_sql import visible

NEAREST = 10
"""How many memories a reconciler sees beside a proposal."""

EXPERIENCE = "experience"

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

_NEIGHBOUR: tuple[Any, ...] = (
    Memory.memory_id, Memory.version, Memory.content, Memory.content_hash, Memory.memory_type,
    Memory.confidence, Memory.source, Memory.attribute, Memory.valid_from, Memory.valid_to,
    Memory.create_time, Memory.said_at, Memory.speaker,
)  # fmt: skip

_FRESH = func.greatest(Memory.update_time, Memory.valid_from, Memory.reviewed_at)
_PERIOD = func.make_interval(0, 0, 0, func.coalesce(Memory.expected_valid_days, VALID_DAYS))
_DUE_AT = _FRESH + _PERIOD
_REVIEWED: tuple[Any, ...] = (
    Memory.memory_id, Memory.version, Memory.content, Memory.memory_type, Memory.confidence,
    Memory.source, Memory.scope, Memory.scope_id, Memory.expected_valid_days,
    func.coalesce(Memory.valid_from, Memory.said_at, Memory.create_time).label("since"),
    func.date_part("day", func.now() - _FRESH).label("days"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DraftNeighbours:
    """Neighbours of one draft, and what of them must not have changed when it is stored."""

    neighbours: tuple[Neighbour, ...]
    versions: frozenset[tuple[str, int]]
    same_text: str | None
    """Id of the memory that says exactly that."""


Neighbours = Mapping[int, DraftNeighbours]
"""Of every open draft, by its index."""


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """What a run decides among; `agenda` is None where no model looks at old memories."""

    neighbours: Neighbours
    agenda: AgendaSnapshot | None = None


class SnapshotRepository:
    """Looks for one run, with vectors of one embedder. Never begins or ends a transaction."""

    def __init__(
        self, db: AsyncSession, state: RunState, threshold: Callable[[str], float]
    ) -> None:
        """Prepare to call a duplicate what is as near to a text as `threshold` says of it."""
        self._db = db
        self._access = state.request.principal.access
        self._embedder: Embedder = state.embedder
        self._buckets = state.buckets
        self._ignored = state.request.ignored
        self._kept = state.request.kept
        self._threshold = threshold

    async def neighbours(self) -> Neighbours:
        """Neighbours of every open draft, nearest first: what is near, what says the same, and
        what gives another value of the same attribute however far its words are (a
        contradiction in other words may be as far as 0.48).
        """
        found: dict[int, DraftNeighbours] = {}
        for owner, drafts in self._buckets.items():
            near = await self._nearest(owner, drafts)
            others = await self._by_text_or_attribute(owner, drafts)
            for draft, rows in zip(drafts, near, strict=True):
                found[draft.index] = self._neighbours_of(draft, rows, others)
        return found

    async def agenda(self) -> AgendaSnapshot:
        """What is stale in the run's buckets, and the largest category that has not been looked
        through lately; nothing where there is too little of it.
        """
        owners = list(self._buckets)
        if not owners:
            return AgendaSnapshot()
        due = await self._due(owners)
        parts = await self._parts(owners)
        today = (await self._db.scalars(select(func.current_date()))).one()
        return AgendaSnapshot(
            Agenda(
                today,
                tuple(entry.memory for entry in due.values()),
                tuple(entry.memory for entry in parts.values()),
            ),
            due,
            parts,
        )

    def _neighbours_of(
        self, draft: Draft, rows: Sequence[Row[Any]], others: Sequence[Row[Any]]
    ) -> DraftNeighbours:
        attribute = draft.proposed.attribute
        found = {row.memory_id: (row, float(row.similarity)) for row in rows}
        for row in others:
            same_text = row.content_hash == draft.own.content_hash
            if same_text or (attribute is not None and row.attribute == attribute):
                known = found.get(row.memory_id, (row, 0.0))[1]
                found[row.memory_id] = (row, 1.0 if same_text else known)
        # What a session taught tells again what it is drawn from, and takes nobody's place.
        told = draft.proposed.memory_type == EXPERIENCE
        ordered = sorted(
            (match for match in found.values() if (match[0].memory_type == EXPERIENCE) is told),
            key=lambda match: (-match[1], match[0].memory_id),
        )
        floor = self._threshold(draft.own.text)
        return DraftNeighbours(
            tuple(
                _neighbour(row, likeness, floor, kept=row.memory_id in self._kept)
                for row, likeness in ordered
            ),
            frozenset((row.memory_id, row.version) for row, _ in ordered),
            next(
                (row.memory_id for row, _ in ordered if row.content_hash == draft.own.content_hash),
                None,
            ),
        )

    def _bucket(self, owner: MemoryOwner) -> ColumnElement[bool]:
        left = Memory.memory_id != func.all(cast(sorted(self._ignored), ARRAY(Text)))
        return and_(
            Memory.tenant_id == self._access.tenant_id,
            *bucket(asdict(owner)),
            current(),
            visible(self._access),
            left if self._ignored else true(),
        )

    async def _nearest(self, owner: MemoryOwner, drafts: Sequence[Draft]) -> list[list[Row[Any]]]:
        query = query_vectors([draft.own.vector for draft in drafts])
        similarity = -Memory.embedding.max_inner_product(query.c.vector)
        candidates = (
            select(*_NEIGHBOUR, similarity.label("similarity"))
            .where(self._bucket(owner), Memory.embedding_model == self._embedder.name)
            .order_by(similarity.desc())
            .limit(NEAREST)
            .lateral("near")
        )
        rows = await self._db.execute(
            select(query.c.place, candidates)
            .join(candidates, true())
            .where(candidates.c.similarity >= self._embedder.neighbour_floor)
            .order_by(query.c.place, candidates.c.similarity.desc())
        )
        found: list[list[Row[Any]]] = [[] for _ in drafts]
        for row in rows:
            found[row.place - 1].append(row)
        return found

    async def _by_text_or_attribute(
        self, owner: MemoryOwner, drafts: Sequence[Draft]
    ) -> Sequence[Row[Any]]:
        attributes = {draft.proposed.attribute for draft in drafts} - {None}
        wanted = [Memory.content_hash.in_([draft.own.content_hash for draft in drafts])]
        if attributes:
            wanted.append(Memory.attribute.in_(sorted(str(name) for name in attributes)))
        statement: Select[Any] = select(*_NEIGHBOUR, literal(0.0).label("similarity"))
        rows = await self._db.execute(statement.where(self._bucket(owner), or_(*wanted)))
        return list(rows.all())

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
            select(*_REVIEWED)
            .where(self._derived(owners), func.now() > _DUE_AT)
            .order_by(_DUE_AT, Memory.memory_id)
            .limit(MOST_DUE)
        )
        found = _agenda_entries(rows, owners)
        return found if len(found) >= FEWEST_DUE else {}

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
                select(*_REVIEWED)
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


def _neighbour(row: Row[Any], similarity: float, duplicate_from: float, *, kept: bool) -> Neighbour:
    by_person = kept or row.source != "ai"
    return Neighbour(
        memory_id=row.memory_id,
        content=row.content,
        memory_type=row.memory_type,
        confidence=row.confidence,
        similarity=min(max(similarity, 0.0), 1.0),
        possible_duplicate=similarity >= duplicate_from,
        protected=by_person or row.memory_type == "correction",
        saved_by_person=by_person,
        attribute=row.attribute,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        create_time=row.create_time,
        said_at=row.said_at,
        speaker=row.speaker,
    )


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
