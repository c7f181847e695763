"""SQL for what a run decides among: the neighbours of its drafts, a snapshot that is compared again
before anything is stored.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pgvector.sqlalchemy import SPARSEVEC
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
from app.language.llm.reconciler import Neighbour
from app.memory.extraction.drafts import Draft
from app.memory.extraction.maintenance import (
    AgendaSnapshot,
)
from app.memory.extraction.run_state import RunState
from app.memory.extraction.shared_words import CANDIDATES, asked_vector, sharing_words
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.repository import bucket, current, current_or_coming, query_vectors
from app.memory.memories.visibility_sql import visible

NEAREST = 10
"""How many memories a reconciler sees beside a proposal for being near."""

SHOWN = 10
"""How many a model is shown beside a proposal: what has its attribute, shares words, is near."""

BESIDES = 60
"""How many more of a bucket a model is shown, the last ones said: a move ends a flat-share, a rent
and a search for a flat, whose words and vectors are far from its own."""

EXPERIENCE = "experience"

_NEIGHBOUR: tuple[Any, ...] = (
    Memory.memory_id, Memory.version, Memory.content, Memory.content_hash, Memory.memory_type,
    Memory.confidence, Memory.source, Memory.attribute, Memory.valid_from, Memory.valid_to,
    Memory.create_time, Memory.said_at, Memory.speaker, Memory.expected_valid_days,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DraftNeighbours:
    """Neighbours of one draft, and what of them must not have changed when it is stored."""

    neighbours: tuple[Neighbour, ...]
    versions: frozenset[tuple[str, int]]
    same_text: str | None
    """Id of the memory that says exactly that."""
    besides: Mapping[str, tuple[Neighbour, int]] = field(default_factory=dict)
    """Other memories of the bucket that a model is shown, with their versions, by id; only those
    that it names must not have changed."""


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
        self._by_model = state.model.reconciler.model is not None

    async def neighbours(self) -> Neighbours:
        """Neighbours of every open draft: what says the same, what gives another value of the same
        attribute however far its words are (a contradiction in other words may be as far as
        0.48), where a model decides also what shares telling words with it, and what is near.
        """
        found: dict[int, DraftNeighbours] = {}
        for owner, drafts in self._buckets.items():
            near = await self._nearest(owner, drafts)
            others = await self._by_text_or_attribute(owner, drafts)
            words = await self._by_words(owner, drafts) if self._by_model else [[]] * len(drafts)
            besides = await self._besides(owner) if self._by_model else {}
            for draft, rows, alike in zip(drafts, near, words, strict=True):
                own = self._neighbours_of(draft, rows, others, alike)
                found[draft.index] = replace(own, besides=besides)
        return found

    async def _besides(self, owner: MemoryOwner) -> dict[str, tuple[Neighbour, int]]:
        said = func.coalesce(Memory.said_at, Memory.create_time)
        statement: Select[Any] = select(*_NEIGHBOUR)
        rows: Sequence[Row[Any]] = (
            await self._db.execute(
                statement.where(
                    self._bucket(owner), Memory.source == "ai", Memory.memory_type != EXPERIENCE
                )
                .order_by(said.desc(), Memory.memory_id)
                .limit(BESIDES)
            )
        ).all()
        return {
            row.memory_id: (
                _neighbour(row, 0.0, 1.0, kept=row.memory_id in self._kept),
                row.version,
            )
            for row in rows
        }

    def _neighbours_of(
        self,
        draft: Draft,
        rows: Sequence[Row[Any]],
        others: Sequence[Row[Any]],
        alike: Sequence[Row[Any]],
    ) -> DraftNeighbours:
        attribute = draft.proposed.attribute
        found = {row.memory_id: (row, float(row.similarity)) for row in rows}
        for row in alike:
            found.setdefault(row.memory_id, (row, 0.0))
        by_words = {row.memory_id for row in alike}
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
        if self._by_model:
            # Whatever vectors say, the same attribute comes first, then words in common.
            ordered.sort(
                key=lambda match: (
                    match[0].content_hash != draft.own.content_hash,
                    attribute is None or match[0].attribute != attribute,
                    match[0].memory_id not in by_words,
                )
            )
            ordered = ordered[:SHOWN]
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
            # A model is told the times; rules take every value for one that holds.
            current_or_coming() if self._by_model else current(),
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

    async def _by_words(self, owner: MemoryOwner, drafts: Sequence[Draft]) -> list[list[Row[Any]]]:
        """For each draft the memories that share telling words with it."""
        asked = (
            func.unnest(
                cast([asked_vector(draft.own.text).to_text() for draft in drafts], ARRAY(Text))
            )
            .table_valued("terms", with_ordinality="place", name="asked")
            .render_derived()
        )
        query = select(cast(asked.c.terms, SPARSEVEC()).label("terms"), asked.c.place)
        words = query.offset(0).subquery("words")
        product = Memory.terms.max_inner_product(words.c.terms)
        candidates = (
            select(*_NEIGHBOUR, literal(0.0).label("similarity"), product.label("product"))
            .where(self._bucket(owner))
            .order_by(product, Memory.memory_id)
            .limit(CANDIDATES)
            .lateral("alike")
        )
        rows = await self._db.execute(
            select(words.c.place, candidates)
            .join(candidates, true())
            .where(candidates.c.product < 0)
        )
        found: list[dict[str, Row[Any]]] = [{} for _ in drafts]
        for row in rows:
            found[row.place - 1][row.memory_id] = row
        return [
            [
                alike[memory_id]
                for memory_id in sharing_words(
                    draft.own.text, {each: row.content for each, row in alike.items()}
                )
            ]
            for draft, alike in zip(drafts, found, strict=True)
        ]


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
        expected_valid_days=row.expected_valid_days,
    )
