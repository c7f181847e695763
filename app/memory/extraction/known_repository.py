"""SQL for what is remembered near to what a run reads, and the attributes in use there."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pgvector.sqlalchemy import SPARSEVEC, Vector
from sqlalchemy import (
    ColumnElement,
    Row,
    Text,
    and_,
    cast,
    func,
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
from app.memory.extraction.shared_words import CANDIDATES, asked_vector
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.repository import bucket, current_or_coming
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
