"""A PostgreSQL for one benchmark: started, migrated, filled, and removed with its folder."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import psutil
from pgvector.asyncpg import register_vector

from app.builders.factory import Factory
from app.identity.tenants.schemas import TenantCreate
from app.identity.tenants.service import TenantService
from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from app.language.ranking.packing import INDEX_COLUMNS as WORDS
from app.language.text.normal_forms import content_hash
from app.memory.memories.quantisation import QuantisationService
from app.memory.memories.searchable import row_terms
from app.platform.database.base import new_id
from app.platform.database.logins import ensure_serving_login
from app.platform.database.migrate import upgrade
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import open_runtime
from app.settings import Settings
from benchmarks.corpus import sentences

TENANT = "bench"
AGENT = "agent"
CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where it listens. `owner_dsn` logs in as the superuser, whom no policy binds."""

    dsn: str
    owner_dsn: str
    key: str
    postmaster: int

    def cpu_seconds(self) -> float:
        """What the database's processes have used, those that ended apart."""
        total = 0.0
        for process in psutil.Process(self.postmaster).children():
            with suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
        return total


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="kemem-bench-", dir="/tmp"))
    # PostgreSQL does not run as root; the account it gets must reach its folder.
    folder.chmod(0o755)
    return folder


@asynccontextmanager
async def open_cluster() -> AsyncIterator[Cluster]:
    """A migrated database with one tenant, its admin key and its agent."""
    folder = _folder()
    try:
        async with EmbeddedPostgres(folder / "data") as server:
            await upgrade(server.dsn)
            await ensure_serving_login(server.urls)
            serving = server.urls.serving
            settings = Settings(_env_file=None)
            async with open_runtime(settings, serving) as runtime:
                tenants = Factory(runtime).get(TenantService)
                made = await tenants.add(TenantCreate(tenant_id=TENANT, tenant_name="Bench"))
            owner = await asyncpg.connect(server.superuser_dsn)
            try:
                await owner.execute(
                    "INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, $2, $2)",
                    TENANT,
                    AGENT,
                )
            finally:
                await owner.close()
            yield Cluster(serving, server.superuser_dsn, str(made.key.key), server.pid or 0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def add_users(owner: asyncpg.Connection, user_ids: Sequence[str]) -> None:
    await owner.execute(
        "INSERT INTO users (tenant_id, user_id, agent_id) SELECT $1, unnest($2::text[]), $3",
        TENANT,
        list(user_ids),
        AGENT,
    )


COLUMNS = (
    "tenant_id", "memory_id", "user_id", "scope", "scope_id", "content", "content_hash",
    "memory_type", "tier", "source", "confidence", "visibility", "embedding", "embedding_model",
)  # fmt: skip


@cache
def _embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder.load()


async def records(owners: Sequence[str], texts: Sequence[str], seed: int) -> list[tuple[Any, ...]]:
    """Rows of `COLUMNS`, the text at each place for the user at the same place."""
    random = Random(seed)
    embedder = _embedder()
    vectors = await embedder.embed(texts)
    return [
        (
            TENANT, new_id("mem"), owner, "user", owner, text, content_hash(text), "fact", "long",
            "user", random.choice((0.7, 0.8, 0.9, 1.0)), "members", vector, embedder.name,
        )
        for owner, text, vector in zip(owners, texts, vectors, strict=True)
    ]  # fmt: skip


async def fill(cluster: Cluster, users: dict[str, int], seed: int = 7) -> int:
    """Give each user that many memories, in an order as if all had talked at once.

    Returns:
        Bytes of the table with its indexes.

    """
    owners = [user for user, number in users.items() for _ in range(number)]
    Random(seed).shuffle(owners)
    texts = sentences(seed)[: len(owners)]
    connection = await asyncpg.connect(cluster.owner_dsn)
    try:
        await register_vector(connection)
        await add_users(connection, list(users))
        for start in range(0, len(owners), CHUNK):
            chunk = texts[start : start + CHUNK]
            rows = await records(owners[start : start + CHUNK], chunk, seed + start)
            read = [
                (*row, *row_terms(text, {}, None).values())
                for row, text in zip(rows, chunk, strict=True)
            ]
            await connection.copy_records_to_table(
                "memories", records=read, columns=(*COLUMNS, *WORDS)
            )
        await connection.execute(
            "UPDATE tenants SET embedding_models = ARRAY[$1]", WordLlamaEmbedder.name
        )
        await connection.execute("VACUUM ANALYZE")
        return int(await connection.fetchval("SELECT pg_total_relation_size('memories')"))
    finally:
        await connection.close()


async def encode(cluster: Cluster) -> None:
    """Give large buckets their codes, as housekeeping does every hour."""
    async with open_runtime(Settings(_env_file=None), cluster.dsn) as runtime:
        await QuantisationService(runtime.database).run(TENANT)
    owner = await asyncpg.connect(cluster.owner_dsn)
    await owner.execute("VACUUM ANALYZE memories")
    await owner.close()
