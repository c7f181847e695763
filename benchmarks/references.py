"""What KeMem is compared with: `python -m benchmarks.references asyncpg|orm|minimal`.

The smallest possible FastAPI service: one route, one pool, one statement over the rows that KeMem
searches; no key, no tenant setting, no policies. Each search comes in three forms: `/vector` takes
the vector from the client, `/text` embeds in the process, both answering what KeMem answers;
`/lean` embeds and answers six fields. `/tuned` is `/text` on a pool of KeMem's size that saves the
round trip after every use.

`minimal` has tables of its own and every call that an agent makes: what a service costs that does
nothing but store and find. Its routes are without response models, its pool has eight connections,
each call is one prepared statement, and JSON is written by pydantic-core, which KeMem writes with
too; orjson would be another dependency for the same.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import numpy as np
from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse
from pgvector import Vector
from pgvector.asyncpg import register_vector
from pydantic import BaseModel
from pydantic_core import to_json
from sqlalchemy import ColumnElement, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from app.memory.memories.models import Memory
from app.memory.memories.search_sql import COLUMNS
from benchmarks.database import TENANT
from benchmarks.processes import DSN
from benchmarks.serving import serve

# The shape of KeMem's own statement: narrow rows are sorted, the best are fetched by place.
SQL = """
SELECT {columns}, best.similarity, best.score
FROM (
    SELECT candidate.*, 0.5 * similarity + 0.3 * confidence + 0.2 * 0.6 AS score
    FROM (
        SELECT ctid AS place, memory_id, update_time, confidence,
            greatest(0, least(1, -(embedding <#> $3))) AS similarity
        FROM memories
        WHERE tenant_id = $1 AND scope = 'user' AND scope_id = $2 AND status = 'active'
            AND (expires_at IS NULL OR expires_at > now())
            AND (valid_from IS NULL OR valid_from <= now())
            AND (valid_to IS NULL OR valid_to > now())
        OFFSET 0
    ) AS candidate
    ORDER BY score DESC, update_time DESC, memory_id LIMIT 10
) AS best
CROSS JOIN LATERAL (SELECT * FROM memories WHERE ctid = best.place OFFSET 0) AS memories
ORDER BY best.score DESC, best.update_time DESC, best.memory_id
"""
WHOLE = SQL.format(columns=", ".join(f"memories.{name}" for name in COLUMNS))
LEAN = SQL.format(columns="memories.memory_id, content, memory_type, create_time")


class TextQuery(BaseModel):
    """A search by text."""

    user_id: str
    query: str


class VectorQuery(BaseModel):
    """A search by vector."""

    user_id: str
    vector: list[float]


async def _keep(_connection: asyncpg.Connection) -> None:
    """Nothing to reset."""


def asyncpg_app(dsn: str) -> FastAPI:
    """Subject b: FastAPI on an asyncpg pool with its default size."""
    embedder = WordLlamaEmbedder.load()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with (
            asyncpg.create_pool(dsn, init=register_vector) as pool,
            asyncpg.create_pool(
                dsn, min_size=1, max_size=6, init=register_vector, reset=_keep
            ) as tuned,
        ):
            app.state.pool, app.state.tuned = pool, tuned
            yield

    app = FastAPI(lifespan=lifespan)

    async def answer(user_id: str, vector: Any, pool: asyncpg.Pool | None = None) -> Response:
        rows = await (pool or app.state.pool).fetch(WHOLE, TENANT, user_id, vector)
        body = to_json({"results": [dict(row) for row in rows]})
        return Response(body, media_type="application/json")

    @app.post("/text")
    async def by_text(body: TextQuery) -> Response:
        return await answer(body.user_id, (await embedder.embed([body.query]))[0])

    @app.post("/vector")
    async def by_vector(body: VectorQuery) -> Response:
        return await answer(body.user_id, np.asarray(body.vector, np.float32))

    @app.post("/tuned")
    async def tuned(body: TextQuery) -> Response:
        vector = (await embedder.embed([body.query]))[0]
        return await answer(body.user_id, vector, app.state.tuned)

    @app.post("/lean")
    async def lean(body: TextQuery) -> Response:
        vector = (await embedder.embed([body.query]))[0]
        rows = await app.state.pool.fetch(LEAN, TENANT, body.user_id, vector)
        return JSONResponse(
            [dict(row) | {"create_time": row["create_time"].isoformat()} for row in rows]
        )

    return app


async def orm_search(db: AsyncSession, user_id: str, vector: Any) -> list[dict[str, Any]]:
    """The same search, as SQLAlchemy's ORM says it."""
    similarity: ColumnElement[float] = func.greatest(
        0, func.least(1, -Memory.embedding.max_inner_product(vector))
    )
    score = 0.5 * similarity + 0.3 * Memory.confidence + literal(0.2 * 0.6)
    rows = await db.execute(
        select(Memory, similarity.label("similarity"), score.label("score"))
        .where(
            Memory.tenant_id == TENANT,
            Memory.scope == "user",
            Memory.scope_id == user_id,
            Memory.status == "active",
            or_(Memory.expires_at.is_(None), Memory.expires_at > func.now()),
            or_(Memory.valid_from.is_(None), Memory.valid_from <= func.now()),
            or_(Memory.valid_to.is_(None), Memory.valid_to > func.now()),
        )
        .order_by(score.desc(), Memory.update_time.desc(), Memory.memory_id)
        .limit(10)
    )
    names = [(name, "metadata_" if name == "metadata" else name) for name in COLUMNS]
    return [
        {name: getattr(memory, attribute) for name, attribute in names}
        | {"similarity": similarity, "score": score}
        for memory, similarity, score in rows
    ]


def orm_app(dsn: str) -> FastAPI:
    """Subject c: FastAPI on the ORM, with the engine's default pool."""
    embedder = WordLlamaEmbedder.load()
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(dsn)
    )
    sessions = async_sessionmaker(engine, expire_on_commit=False)
    app = FastAPI()

    async def answer(user_id: str, vector: Any) -> Response:
        async with sessions() as db:
            found = await orm_search(db, user_id, vector)
        return Response(to_json({"results": found}), media_type="application/json")

    @app.post("/text")
    async def by_text(body: TextQuery) -> Response:
        return await answer(body.user_id, (await embedder.embed([body.query]))[0])

    @app.post("/vector")
    async def by_vector(body: VectorQuery) -> Response:
        return await answer(body.user_id, np.asarray(body.vector, np.float32))

    return app


TABLES = """
CREATE TABLE memories (
    memory_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id text NOT NULL,
    content text NOT NULL,
    embedding vector(256) NOT NULL,
    create_time timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON memories (user_id);
CREATE TABLE sessions (session_id text PRIMARY KEY, user_id text NOT NULL, last_no int NOT NULL);
CREATE TABLE messages (
    session_id text NOT NULL,
    sequence_no int NOT NULL,
    role text NOT NULL,
    content text NOT NULL,
    create_time timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_id, sequence_no)
);
"""
SAVE = """
INSERT INTO memories (user_id, content, embedding)
SELECT $1, * FROM unnest($2::text[], $3::vector[]) RETURNING memory_id
"""
APPEND = """
WITH session AS (
    INSERT INTO sessions VALUES ($1, $2, cardinality($3::text[]))
    ON CONFLICT (session_id) DO UPDATE SET last_no = sessions.last_no + excluded.last_no
    RETURNING last_no
)
INSERT INTO messages (session_id, sequence_no, role, content)
SELECT $1, last_no - cardinality($3::text[]) + place, role, content
FROM session, unnest($3::text[], $4::text[]) WITH ORDINALITY AS said (role, content, place)
RETURNING sequence_no
"""
SEARCH = """
SELECT memory_id, content, create_time, 1 - (embedding <=> $2) AS similarity
FROM memories WHERE user_id = $1 ORDER BY embedding <=> $2 LIMIT 10
"""
CONTEXT = """
(
    SELECT role, content, sequence_no AS place FROM messages
    WHERE session_id = $3 ORDER BY sequence_no DESC LIMIT 50
) UNION ALL (
    SELECT 'memory', content, memory_id FROM memories
    WHERE user_id = $1 ORDER BY embedding <=> $2 LIMIT 10
)
"""


class Texts(BaseModel):
    """What to remember of a user."""

    user_id: str
    texts: list[str]


class Said(BaseModel):
    """Messages of a session, by their roles and contents."""

    session_id: str
    user_id: str
    roles: list[str]
    contents: list[str]


class ContextQuery(TextQuery):
    """A search in a session."""

    session_id: str


def minimal_app(dsn: str) -> FastAPI:
    """Save, append, search and context, on tables that it makes when it starts."""
    embedder = WordLlamaEmbedder.load()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        connection = await asyncpg.connect(dsn)
        await connection.execute(TABLES)
        await connection.close()
        async with asyncpg.create_pool(
            dsn, min_size=8, max_size=8, init=register_vector, reset=_keep
        ) as pool:
            app.state.pool = pool
            yield

    app = FastAPI(lifespan=lifespan)

    async def answer(statement: str, *values: Any) -> Response:
        rows = await app.state.pool.fetch(statement, *values)
        body = to_json({"results": [dict(row) for row in rows]})
        return Response(body, media_type="application/json")

    @app.post("/save")
    async def save(body: Texts) -> Response:
        # As arrays of numbers the driver would take them for a second dimension.
        vectors = [Vector(one) for one in await embedder.embed(body.texts)]
        return await answer(SAVE, body.user_id, body.texts, vectors)

    @app.post("/append")
    async def append(body: Said) -> Response:
        return await answer(APPEND, body.session_id, body.user_id, body.roles, body.contents)

    @app.post("/search")
    async def search(body: TextQuery) -> Response:
        return await answer(SEARCH, body.user_id, (await embedder.embed([body.query]))[0])

    @app.post("/context")
    async def context(body: ContextQuery) -> Response:
        vector = (await embedder.embed([body.query]))[0]
        return await answer(CONTEXT, body.user_id, vector, body.session_id)

    return app


if __name__ == "__main__":
    apps = {"asyncpg": asyncpg_app, "orm": orm_app, "minimal": minimal_app}
    serve(apps[sys.argv[1]](os.environ[DSN]))
