"""Other products as services: `python -m benchmarks.others langgraph|mem0`.

Both run as their own documentation shows them, in an environment of their own (`products.py` makes
it), with the embedder that KeMem has, their pools at eight connections, and no model. The routes
are those of the minimal service in `references.py`. mem0 has no conversations: `/append` and
`/context` are 404 there.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from uuid import uuid4

from fastapi import FastAPI
from pydantic import BaseModel

from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from benchmarks.processes import DSN
from benchmarks.serving import serve

DIMENSION = 256


class Texts(BaseModel):
    user_id: str
    texts: list[str]


class Query(BaseModel):
    user_id: str
    query: str
    session_id: str = ""


class Said(BaseModel):
    session_id: str
    user_id: str
    roles: list[str]
    contents: list[str]


Opening = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def _langgraph_store(dsn: str) -> Opening:
    """What opens `AsyncPostgresStore` as `app.state.store`."""
    from langgraph.store.postgres import AsyncPostgresStore

    embedder = WordLlamaEmbedder.load()

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [one.tolist() for one in await embedder.embed(list(texts))]

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncPostgresStore.from_conn_string(
            dsn,
            pool_config={"min_size": 8, "max_size": 8},
            index={"dims": DIMENSION, "embed": embed, "fields": ["content"]},
        ) as store:
            await store.setup()
            app.state.store = store
            yield

    return lifespan


def langgraph_app(dsn: str) -> FastAPI:
    """`AsyncPostgresStore` with its default index: an item per memory and per message."""
    from langgraph.store.base import PutOp

    app = FastAPI(lifespan=_langgraph_store(dsn))

    @app.post("/save")
    async def save(body: Texts) -> list[str]:
        keys = [str(uuid4()) for _ in body.texts]
        await app.state.store.abatch(
            [
                PutOp(("memories", body.user_id), key, {"content": text})
                for key, text in zip(keys, body.texts, strict=True)
            ]
        )
        return keys

    @app.post("/append")
    async def append(body: Said) -> int:
        await app.state.store.abatch(
            [
                PutOp(
                    ("messages", body.session_id),
                    str(uuid4()),
                    {"role": role, "content": content},
                    index=False,
                )
                for role, content in zip(body.roles, body.contents, strict=True)
            ]
        )
        return len(body.roles)

    @app.post("/search")
    async def search(body: Query) -> list[dict[str, Any]]:
        found = await app.state.store.asearch(
            ("memories", body.user_id), query=body.query, limit=10
        )
        return [one.dict() for one in found]

    @app.post("/context")
    async def context(body: Query) -> list[dict[str, Any]]:
        store = app.state.store
        said, found = await asyncio.gather(
            store.asearch(("messages", body.session_id), limit=50),
            store.asearch(("memories", body.user_id), query=body.query, limit=10),
        )
        return [one.dict() for one in (*said, *found)]

    return app


class _SameEmbedder:
    """mem0's protocol of an embedder around ours."""

    def __init__(self, embedder: WordLlamaEmbedder) -> None:
        self._embedder = embedder
        self.config = type("Config", (), {"embedding_dims": DIMENSION})()

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.embed_batch([text], memory_action)[0]

    def embed_batch(self, texts: list[str], _action: str | None = None) -> list[list[float]]:
        # mem0 calls it in a thread of its own.
        return [one.tolist() for one in self._embedder._embed_now(texts)]  # noqa: SLF001


def mem0_app(dsn: str) -> FastAPI:
    """`AsyncMemory` on pgvector with `infer=False`."""
    os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none"}
    from mem0 import AsyncMemory

    memory = AsyncMemory.from_config(
        {
            "vector_store": {
                "provider": "pgvector",
                "config": {
                    "connection_string": dsn,
                    "embedding_model_dims": DIMENSION,
                    "collection_name": "mem0",
                    "minconn": 8,
                    "maxconn": 8,
                },
            },
            "history_db_path": ":memory:",
        }
    )
    memory.embedding_model = _SameEmbedder(WordLlamaEmbedder.load())
    app = FastAPI()

    @app.post("/save")
    async def save(body: Texts) -> Any:
        said = [{"role": "user", "content": text} for text in body.texts]
        return await memory.add(said, user_id=body.user_id, infer=False)

    @app.post("/search")
    async def search(body: Query) -> Any:
        return await memory.search(body.query, filters={"user_id": body.user_id}, top_k=10)

    return app


if __name__ == "__main__":
    serve({"langgraph": langgraph_app, "mem0": mem0_app}[sys.argv[1]](os.environ[DSN]))
