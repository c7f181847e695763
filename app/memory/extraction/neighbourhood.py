"""SQL for what proposals are compared with: near memories, equal ones, those of one attribute."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    literal,
    or_,
    select,
    true,
)
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.retention import Eviction
from app.identity.tenants.access import Access
from app.language.llm.embedder import Embedder
from app.language.llm.reconciler import Neighbour
from app.memory.extraction.drafts import Draft
from app.memory.memories.eviction_repository import EvictionRepository
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.repository import asked, bucket, current
from app.memory.memories.visibility_sql import visible

NEAREST = 10
"""How many memories a reconciler sees beside a proposal."""

EXPERIENCE = "experience"

_SHOWN: tuple[Any, ...] = (
    Memory.memory_id, Memory.version, Memory.content, Memory.content_hash, Memory.memory_type,
    Memory.confidence, Memory.source, Memory.attribute, Memory.valid_from, Memory.valid_to,
    Memory.create_time,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Near:
    """Neighbours of one draft, and what of them must not have changed when it is stored."""

    neighbours: tuple[Neighbour, ...]
    seen: frozenset[tuple[str, int]]
    same_text: str | None
    """Id of the memory that says exactly that."""


class Neighbourhood:
    """Finds neighbours with vectors of one embedder. Never begins or ends a transaction."""

    def __init__(
        self,
        db: AsyncSession,
        access: Access,
        embedder: Embedder,
        threshold: Callable[[str], float],
    ) -> None:
        self._db = db
        self._access = access
        self._embedder = embedder
        self._threshold = threshold

    async def of(self, place: MemoryOwner, drafts: Sequence[Draft]) -> list[Near]:
        """Per draft, nearest first: what is near, what says the same, and what gives another
        value of the same attribute however far its words are (a contradiction in other words
        may be as far as 0.48).
        """
        near = await self._nearest(place, drafts)
        others = await self._by_text_or_attribute(place, drafts)
        return [self._near(draft, rows, others) for draft, rows in zip(drafts, near, strict=True)]

    def _near(self, draft: Draft, rows: Sequence[Row[Any]], others: Sequence[Row[Any]]) -> Near:
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
            (one for one in found.values() if (one[0].memory_type == EXPERIENCE) is told),
            key=lambda one: (-one[1], one[0].memory_id),
        )
        floor = self._threshold(draft.own.text)
        return Near(
            tuple(_neighbour(row, likeness, floor) for row, likeness in ordered),
            frozenset((row.memory_id, row.version) for row, _ in ordered),
            next(
                (row.memory_id for row, _ in ordered if row.content_hash == draft.own.content_hash),
                None,
            ),
        )

    def _bucket(self, place: MemoryOwner) -> ColumnElement[bool]:
        return and_(
            Memory.tenant_id == self._access.tenant_id,
            *bucket(asdict(place)),
            current(),
            visible(self._access),
        )

    async def _nearest(self, place: MemoryOwner, drafts: Sequence[Draft]) -> list[list[Row[Any]]]:
        query = asked([one.own.vector for one in drafts])
        similarity = -Memory.embedding.max_inner_product(query.c.vector)
        candidates = (
            select(*_SHOWN, similarity.label("similarity"))
            .where(self._bucket(place), Memory.embedding_model == self._embedder.name)
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
        self, place: MemoryOwner, drafts: Sequence[Draft]
    ) -> Sequence[Row[Any]]:
        attributes = {one.proposed.attribute for one in drafts} - {None}
        wanted = [Memory.content_hash.in_([one.own.content_hash for one in drafts])]
        if attributes:
            wanted.append(Memory.attribute.in_(sorted(str(one) for one in attributes)))
        statement: Select[Any] = select(*_SHOWN, literal(0.0).label("similarity"))
        rows = await self._db.execute(statement.where(self._bucket(place), or_(*wanted)))
        return list(rows.all())

    async def weakest_derived(
        self, place: MemoryOwner, *, keep: int, eviction: Eviction, limit: int
    ) -> Sequence[Memory]:
        """Extracted memories of a bucket beyond the `keep` strongest, weakest first, locked.

        What a person saved is never among them, nor corrections that `eviction.py` spares
        .
        """
        ids = await EvictionRepository(self._db, self._access).weakest(
            asdict(place), keep=keep, eviction=eviction, limit=limit
        )
        rows = await self._db.scalars(
            select(Memory)
            .where(
                Memory.tenant_id == self._access.tenant_id,
                Memory.memory_id.in_(ids),
                Memory.status == "active",
            )
            .order_by(Memory.memory_id)
            .with_for_update()
        )
        found = {row.memory_id: row for row in rows}
        return [found[one] for one in ids if one in found]


def _neighbour(row: Row[Any], similarity: float, duplicate_from: float) -> Neighbour:
    by_person = row.source != "ai"
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
    )
