"""SQL for the codes of one tenant's buckets: which are quantised, and how well codes find."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import randbelow
from typing import Any, Final

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from app.memory.memories.comparison_sql import MINIMUM_DIMENSION, MOST_TERMS, code_of
from app.platform.database.engine import clock_of

_OF_BUCKET = """
m.tenant_id = CAST(:tenant_id AS text) AND m.status = 'active'
AND m.scope_id = CAST(:scope_id AS text) AND m.scope = CAST(:scope AS text)
AND m.embedding_model = CAST(:model AS text) AND m.embedding IS NOT NULL
"""

# `memories_idx_coded` holds the terms beside a short code, and an entry of it has an end.
_CODABLE = f"""(
    vector_dims(m.embedding) >= {MINIMUM_DIMENSION} OR coalesce(m.term_count, 0) <= {MOST_TERMS}
)"""

# What is too small is left out by its index alone.
_ALL = """
WITH known AS (
    SELECT * FROM memory_buckets WHERE tenant_id = CAST(:tenant_id AS text)
), large AS (
    SELECT scope_id, scope FROM memories
    WHERE tenant_id = CAST(:tenant_id AS text) AND status = 'active'
    GROUP BY scope_id, scope HAVING count(*) >= CAST(:least AS bigint)
    UNION SELECT scope_id, scope FROM known
), counted AS (
    SELECT m.scope, m.scope_id, m.embedding_model, count(*) AS rows, count(m.code) AS coded
    FROM large JOIN memories m ON m.scope_id = large.scope_id AND m.scope = large.scope
    WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.status = 'active'
        AND m.embedding IS NOT NULL
    GROUP BY m.scope, m.scope_id, m.embedding_model
)
SELECT scope, scope_id, embedding_model AS model, coalesce(counted.rows, 0) AS rows,
    coalesce(counted.coded, 0) AS coded, known.tenant_id IS NOT NULL AS registered,
    known.coded_at, known.sampled_recall, now() - known.sampled_at AS sampled_ago,
    coalesce((
        SELECT vector_dims(m.embedding) FROM memories m
        WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.status = 'active'
            AND m.scope_id = found.scope_id AND m.scope = found.scope
            AND m.embedding_model = found.embedding_model AND m.embedding IS NOT NULL LIMIT 1
    ), 0) AS dimension
FROM (
    SELECT scope, scope_id, embedding_model FROM counted
    UNION SELECT scope, scope_id, embedding_model FROM known
) AS found
LEFT JOIN counted USING (scope, scope_id, embedding_model)
LEFT JOIN known USING (scope, scope_id, embedding_model)
WHERE counted.rows >= CAST(:least AS bigint) OR known.tenant_id IS NOT NULL
ORDER BY scope, scope_id, embedding_model
"""

_REGISTER = """
INSERT INTO memory_buckets (tenant_id, scope, scope_id, embedding_model, rows, version)
VALUES (:tenant_id, :scope, :scope_id, :model, :rows, :version)
ON CONFLICT (tenant_id, scope, scope_id, embedding_model) DO UPDATE SET rows = excluded.rows
"""

_REGISTERED = """
tenant_id = CAST(:tenant_id AS text) AND scope = CAST(:scope AS text)
AND scope_id = CAST(:scope_id AS text) AND embedding_model = CAST(:model AS text)
"""

_FINISH = f"""
UPDATE memory_buckets SET coded_at = coalesce(coded_at, CAST(:now AS timestamptz))
WHERE {_REGISTERED}
"""

_SAMPLED = f"""
UPDATE memory_buckets SET sampled_recall = :recall, sampled_at = :now,
    coded_at = CASE WHEN :refused THEN NULL ELSE coded_at END
WHERE {_REGISTERED}
"""

_CHANGED = f"UPDATE memory_buckets SET version = version + 1 WHERE {_REGISTERED}"

# In one order, so that two who change them never wait for each other.
_ALL_CHANGED = """
UPDATE memory_buckets AS changed SET version = changed.version + 1
FROM (
    SELECT scope, scope_id, embedding_model FROM memory_buckets
    WHERE tenant_id = CAST(:tenant_id AS text)
    ORDER BY scope, scope_id, embedding_model FOR UPDATE
) AS held
WHERE changed.tenant_id = CAST(:tenant_id AS text) AND changed.scope = held.scope
    AND changed.scope_id = held.scope_id AND changed.embedding_model = held.embedding_model
"""

_FORGET = f"DELETE FROM memory_buckets WHERE {_REGISTERED}"

_WITHOUT_CODE = f"""
SELECT memory_id FROM memories m
WHERE {_OF_BUCKET} AND m.code IS NULL AND {_CODABLE} LIMIT :most
"""

# Superseded and archived ones too: a search `as_of` reads them.
_WITH_CODE = " UNION ALL ".join(
    f"""
    (SELECT memory_id FROM memories m WHERE {of_bucket} AND m.code IS NOT NULL LIMIT :most)
    """
    for of_bucket in (
        _OF_BUCKET,
        _OF_BUCKET.replace("= 'active'", "IN ('archived', 'superseded')"),
    )
)

# Rows that are being changed are left out: their vector may change.
_CHOSEN = """
FROM (
    SELECT memory_id FROM memories
    WHERE tenant_id = CAST(:tenant_id AS text) AND memory_id = ANY (CAST(:ids AS text[]))
    ORDER BY memory_id FOR UPDATE SKIP LOCKED
) AS chosen
WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.memory_id = chosen.memory_id
"""

_WRITE = f"""
UPDATE memories m SET code = CAST(binary_quantize(m.embedding) AS bit varying) {_CHOSEN}
AND m.code IS NULL AND m.embedding IS NOT NULL AND {_CODABLE}
"""

_CLEAR = f"UPDATE memories m SET code = NULL {_CHOSEN} AND m.code IS NOT NULL"

_SAMPLE = f"""
SELECT m.memory_id, CAST(m.embedding AS text) AS vector FROM memories m
WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.memory_id IN (
    SELECT m.memory_id FROM memories m WHERE {_OF_BUCKET} AND m.code IS NOT NULL
    ORDER BY random() LIMIT :number
)
"""

_NEAREST = f"""
SELECT -(m.embedding <#> CAST(:vector AS vector)) AS similarity FROM memories m
WHERE {_OF_BUCKET} AND m.code IS NOT NULL AND m.memory_id <> CAST(:memory_id AS text)
ORDER BY m.embedding <#> CAST(:vector AS vector) LIMIT :limit
"""

_NEAREST_BY_CODE = f"""
SELECT -(few.embedding <#> CAST(:vector AS vector)) AS similarity FROM (
    SELECT m.embedding FROM memories m
    WHERE {_OF_BUCKET} AND m.code IS NOT NULL AND m.memory_id <> CAST(:memory_id AS text)
    ORDER BY m.code <~> CAST(:code AS bit varying), m.memory_id LIMIT :candidates
) AS few
ORDER BY few.embedding <#> CAST(:vector AS vector) LIMIT :limit
"""

IDS_AT_ONCE: Final = 50_000


@dataclass(frozen=True, slots=True)
class VectorBucket:
    """Active memories of one scope whose vectors one model made.

    Args:
        coded: how many of its `rows` have codes.
        registered: it is quantised, or was refused codes.
        coded_at: when it had them first; None while they are made, and after they were refused.
        sampled_recall: what its codes found, `sampled_ago` that long ago.

    """

    scope: str
    scope_id: str
    model: str
    rows: int
    dimension: int
    coded: int = 0
    registered: bool = False
    coded_at: datetime | None = None
    sampled_recall: float | None = None
    sampled_ago: timedelta | None = None

    def key(self) -> dict[str, Any]:
        return {"scope": self.scope, "scope_id": self.scope_id, "model": self.model}


class BucketRepository:
    """Codes of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def all(self, least: int) -> list[VectorBucket]:
        """Buckets of at least so many rows, and whatever is registered."""
        rows = await self._run(_ALL, least=least)
        return [VectorBucket(**row) for row in rows.mappings()]

    async def register(self, bucket: VectorBucket) -> None:
        """Note that it is quantised, or how many rows it has by now."""
        # One that was forgotten and comes back begins with another version than it had.
        version = randbelow(2**48)
        await self._run(_REGISTER, **bucket.key(), rows=bucket.rows, version=version)

    async def finish(self, bucket: VectorBucket) -> None:
        """Note that all its rows have codes."""
        await self._run(_FINISH, **bucket.key(), now=await clock_of(self._db))

    async def note_sample(self, bucket: VectorBucket, recall: float, *, refused: bool) -> None:
        """Note what its codes found, and whether that is too little."""
        now = await clock_of(self._db)
        await self._run(_SAMPLED, **bucket.key(), recall=recall, refused=refused, now=now)

    async def forget(self, bucket: VectorBucket) -> None:
        """Register it no longer."""
        await self._run(_FORGET, **bucket.key())

    async def ids(self, bucket: VectorBucket, *, coded: bool) -> list[str]:
        """Some rows with codes, or without, in no order."""
        found = await self._run(
            _WITH_CODE if coded else _WITHOUT_CODE, **bucket.key(), most=IDS_AT_ONCE
        )
        return list(found.scalars())

    async def write(self, bucket: VectorBucket, memory_ids: Sequence[str]) -> int:
        """Give rows the codes of the vectors they have now; how many, without those in use.

        They are no longer read as rows without a code, so the bucket has another version then.
        """
        result = await self._run(_WRITE, ids=list(memory_ids))
        if result.rowcount:
            await self._run(_CHANGED, **bucket.key())
        return int(result.rowcount)

    async def note_codes(self) -> None:
        """Note that rows were stored with codes, in whichever buckets."""
        await self._run(_ALL_CHANGED)

    async def clear(self, _bucket: VectorBucket, memory_ids: Sequence[str]) -> int:
        """Clear their codes; how many, without rows in use."""
        result = await self._run(_CLEAR, ids=list(memory_ids))
        return int(result.rowcount)

    async def sample(self, bucket: VectorBucket, number: int) -> list[tuple[str, Any]]:
        """Some rows with codes: ids and vectors."""
        rows = await self._run(_SAMPLE, **bucket.key(), number=number)
        return [
            (memory_id, np.array(vector[1:-1].split(","), np.float32)) for memory_id, vector in rows
        ]

    async def nearest(
        self, bucket: VectorBucket, memory_id: str, vector: Any, *, limit: int
    ) -> list[float]:
        """Similarities of the rows nearest to a row, nearest first."""
        rows = await self._run(
            _NEAREST,
            **bucket.key(),
            memory_id=memory_id,
            vector=str(vector.tolist()),
            limit=limit,
        )
        return [float(similarity) for similarity in rows.scalars()]

    async def nearest_by_code(
        self, bucket: VectorBucket, memory_id: str, vector: Any, *, limit: int, candidates: int
    ) -> list[float]:
        """As `nearest`, among those that are nearest by code."""
        rows = await self._run(
            _NEAREST_BY_CODE,
            **bucket.key(),
            memory_id=memory_id,
            vector=str(vector.tolist()),
            code=code_of(vector),
            candidates=candidates,
            limit=limit,
        )
        return [float(similarity) for similarity in rows.scalars()]

    async def _run(self, statement: str, **values: Any) -> Any:
        return await self._db.execute(text(statement), {"tenant_id": self._tenant_id, **values})
