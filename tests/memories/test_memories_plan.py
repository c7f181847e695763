"""What searching and saving cost PostgreSQL: the plan, and how often it is asked."""

from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from app.identity.tenants.access import Access
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.search_sql import (
    COLUMNS,
    Bucket,
    SearchPlan,
    hits_statement,
    search_statement,
)
from app.platform.embedded.server import EmbeddedPostgres
from app.settings import Settings
from tests.support.api import append, execute, found, ok, save
from tests.support.plans import (
    Crowd,
    generic_plans,
    new_crowd,
    nodes,
    plan_of,
    sent_by,
)
from tests.support.service import tapped
from tests.support.tenants import Caller

MODEL = "wordllama/l2_supercat:256"

CROWD = """
WITH home AS (
    INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, 'default', 'A')
    RETURNING agent_id
), crowd AS (
    INSERT INTO users (tenant_id, user_id, agent_id)
    SELECT $1, 'user' || n, agent_id FROM home, generate_series(1, 200) AS n RETURNING user_id
)
INSERT INTO memories (tenant_id, memory_id, user_id, scope, scope_id, content, content_hash,
    memory_type, tier, source, confidence, visibility, embedding, embedding_model)
SELECT $1, user_id || '/' || n, user_id, 'user', user_id, 'x', convert_to(n::text, 'UTF8'),
    'fact', 'long', 'user', 0.7 + (n % 30) / 100.0, 'members',
    array_fill(0.0625::float4, ARRAY[256])::vector, 'wordllama/l2_supercat:256'
FROM crowd, generate_series(1, 40) AS n
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowded(postgres: EmbeddedPostgres, settings: Settings) -> AsyncIterator[Crowd]:
    """A tenant with 8,000 memories of 200 users."""
    async with new_crowd(postgres, settings, "memories_plan") as crowd:
        # Whenever autovacuum came by, a table of 200 users would be read whole, and rightly so.
        await execute(crowd.dsn, "ALTER TABLE users SET (autovacuum_enabled = off)")
        await execute(crowd.dsn, CROWD, crowd.tenant_id)
        await execute(crowd.dsn, "ANALYZE memories")
        yield crowd


@pytest.mark.parametrize(
    "access", [{}, {"user_id": "user1"}, {"agent_id": "default"}], ids=["all", "user", "agent"]
)
@pytest.mark.parametrize(
    "narrowed",
    [
        {},
        {"threshold": 0.2},
        {"filters": {"metadata.k": {"exists": False}}, "rerank": False},
        {"around": True, "columns": (*COLUMNS, "validity")},
    ],
    ids=["plain", "threshold", "filter", "around"],
)
async def test_a_search_reads_its_buckets_and_nothing_else(
    crowded: Crowd, access: dict, narrowed: dict
) -> None:
    query = np.ones(256, np.float32) / 16
    plan = SearchPlan(
        access=Access(crowded.tenant_id, **access),
        buckets=[
            Bucket("session", "none", 1.0),
            Bucket("user", "user1", 0.6),
            Bucket("agent", "default", 0.4),
        ],
        vectors={MODEL: query, "test/small:16": np.ones(16, np.float32) / 4},
        user_id="user1",
        agent_id=access.get("agent_id"),
        weights=(0.5, 0.3, 0.2),
        limit=10,
        **narrowed,
    )

    found_plan = nodes(await plan_of(crowded.dsn, crowded.tenant_id, *search_statement(plan)))

    reads = [node for node in found_plan if node.get("Relation Name") == "memories"]
    assert reads
    for node in reads:
        assert node["Node Type"] != "Seq Scan", node
    indexes = {node["Index Name"] for node in found_plan if "Index Name" in node}
    assert "memories_idx_bucket" in indexes
    rows = sum(node["Actual Rows"] * node["Actual Loops"] for node in reads)
    # The user's 40, and the 10 best of them once more, by their place.
    assert rows <= 50
    assert found_plan[0]["Actual Rows"] == 10
    assert not [node for node in found_plan if node["Node Type"] == "Seq Scan"
                and node.get("Relation Name") == "users"]  # fmt: skip


@pytest.mark.parametrize(("mode", "round_trips"), [("semantic", 2), ("lexical", 3), ("hybrid", 3)])
async def test_a_search_asks_the_database_no_oftener_than_it_must(
    acme: Caller, dsn: str, mode: str, round_trips: int
) -> None:
    async with tapped(dsn, acme.key) as (wire, client):
        await save(client, "She drinks green tea.")
        # Statements are prepared once per connection.
        for _ in range(3):
            await found(client, user_id="ana", mode=mode)

        before = wire.round_trips
        for _ in range(10):
            assert len(await found(client, user_id="ana", mode=mode)) == 1
        assert wire.round_trips - before == 10 * round_trips

        # Who is calling, and what is remembered; ranked outside of SQL, the hits once more.
        for nothing in ({"user_id": "nobody"}, {"user_id": "ana", "filters": {"tier": "short"}}):
            await found(client, mode=mode, **nothing)
            before = wire.round_trips
            assert await found(client, mode=mode, **nothing) == []
            assert wire.round_trips - before == 2


async def test_a_batch_asks_no_oftener_than_one_message(acme: Caller, dsn: str) -> None:
    async with tapped(dsn, acme.key) as (wire, client):

        async def append_many(count: int) -> None:
            await append(client, "s1", *(f"Turn {number}." for number in range(count)))

        async def save_many(count: int) -> None:
            batch = [{"content": f"Locker {count} has the number {n}."} for n in range(count)]
            body = {"messages": batch, "user_id": "ana", "infer": False, "on_duplicate": "allow"}
            ok(await client.post("/memories", json=body))

        # Both appends are followed by a checkpoint, which is made every six messages.
        for write, fewest, most in ((append_many, 6, 18), (save_many, 1, 18)):
            await write(2)
            costs = []
            for count in (fewest, 40):
                before = wire.round_trips
                await write(count)
                costs.append(wire.round_trips - before)
            # A shape of a statement that is new is prepared on the way, which costs one more.
            assert costs[1] - costs[0] <= 4, costs
            assert max(costs) <= most, costs


LINK = """
UPDATE memories SET conflict_ids = ARRAY[user_id || '/' || $2::text]
WHERE tenant_id = $1 AND memory_id = user_id || '/' || $3::text AND user_id <= 'user10'
"""


async def test_conflicts_are_looked_up_by_their_ids(crowded: Crowd) -> None:
    """Where each has one, and where nobody has any: then nothing is looked up."""
    query = np.ones(256, np.float32) / 16
    plan = SearchPlan(
        access=Access(crowded.tenant_id),
        buckets=[Bucket("user", "user1", 0.6)],
        vectors={MODEL: query},
        user_id="user1",
        agent_id=None,
        weights=(0.5, 0.3, 0.2),
        limit=40,
    )
    hits = [f"user1/{number}" for number in range(1, 41)]
    for links in (0, 2):
        if links:
            for number in (1, 2):
                await execute(crowded.dsn, LINK, crowded.tenant_id, str(3 - number), str(number))
        for text, values in (search_statement(plan), hits_statement(plan, hits)):
            found_plan = nodes(await plan_of(crowded.dsn, crowded.tenant_id, text, values))
            looked_up = [
                node
                for node in found_plan
                if node.get("Alias", "").startswith("other") and node["Actual Loops"]
            ]
            read = sum(node["Actual Rows"] * node["Actual Loops"] for node in looked_up)
            # All of them, and of these the newer one.
            assert read == (links and links + 1)
            assert not [node for node in found_plan if node["Node Type"] == "Seq Scan"
                        and node.get("Relation Name") == "memories"]  # fmt: skip


async def test_list_of_conflicts_reads_what_names_another(crowded: Crowd) -> None:
    for number in (1, 2):
        await execute(crowded.dsn, LINK, crowded.tenant_id, str(3 - number), str(number))
    async with crowded.runtime.database.begin(crowded.tenant_id) as db:
        repository = MemoryRepository(db, Access(crowded.tenant_id))
        with sent_by((await db.connection()).sync_connection) as sent:
            rows = await repository.list_memories(
                equal={"status": "active"},
                filters=None,
                start=None,
                descending=True,
                limit=50,
                in_conflict=True,
            )
        [found_plan] = await generic_plans(db, sent)

    # Of user1 and user10.
    assert len(rows) == 4
    reads = [node for node in nodes(found_plan) if node.get("Relation Name") == "memories"]
    assert {node["Node Type"] for node in reads} <= {"Index Scan", "Index Only Scan"}
    names = {node.get("Index Name") for node in reads}
    assert names == {"memories_idx_conflict_ids", "memories_pkey"}
