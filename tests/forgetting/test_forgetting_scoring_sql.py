"""Who goes first beyond a cap: by hand, and PostgreSQL and Python agree on any rows."""

import random

import pytest
from httpx import AsyncClient

from app.identity.agents.config import Eviction
from app.identity.tenants.access import Access
from app.memory.memories.eviction_repository import Evictable, EvictionRepository, weakest
from app.runtime import Runtime
from tests.support.api import execute, ok
from tests.support.evictable import DAY, NOW, evictable
from tests.support.tenants import Caller


async def stored(client: AsyncClient, dsn: str, caller: Caller, rows: list[Evictable]) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    await execute(dsn, "ALTER TABLE memories DISABLE TRIGGER memories_update_time")
    for row in rows:
        await execute(
            dsn,
            """INSERT INTO memories (tenant_id, memory_id, user_id, scope, scope_id, content,
            content_hash, memory_type, tier, source, confidence, visibility, embedding_model,
            create_time, reviewed_at, last_used_at, use_count, update_time)
            VALUES ($1, $2::text, 'ana', 'user', 'ana', $2::text, $2::text::bytea, $3, 'long',
            'ai', $4, 'members', 'none', $5, $6, $7, $8, $9)""",
            caller.tenant_id, row.memory_id, row.memory_type, row.confidence,
            row.confirmed_at - 400 * DAY, row.confirmed_at, row.last_used_at, row.use_count,
            row.update_time,
        )  # fmt: skip
    await execute(dsn, "ALTER TABLE memories ENABLE TRIGGER memories_update_time")


@pytest.mark.parametrize("eviction", ["confidence", "hybrid"])
async def test_postgresql_chooses_as_python_does(
    runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str, eviction: Eviction
) -> None:
    chance = random.Random(7)
    rows = [
        evictable(
            f"mem_{number:03}",
            chance.choice([0.7, 0.75, 0.8, 0.8, 0.9, 1.0]),
            confirmed=chance.choice([0, 3, 90, 400, 5000]),
            used=chance.choice([None, 0, 10, 30, 300]),
            uses=chance.choice([0, 1, 2, 40]),
            kind=chance.choice(["fact", "fact", "fact", "correction"]),
            changed=chance.randrange(1000),
        )
        for number in range(120)
    ]
    await stored(client, dsn, acme, rows)
    place = {"scope": "user", "scope_id": "ana", "user_id": "ana", "agent_id": None}

    for keep in (0, 1, 25, 50, 80, 119, 120):
        async with runtime.database.begin(acme.tenant_id) as db:
            found = await EvictionRepository(db, Access(acme.tenant_id)).weakest(
                place, keep=keep, eviction=eviction, limit=1000, now=NOW
            )
        assert list(found) == weakest(rows, keep=keep, eviction=eviction, now=NOW), keep
