"""What walks cost: their indexes, their bounds, the number of statements."""

from collections.abc import AsyncIterator

import pytest_asyncio

from app.identity.tenants.access import Access
from app.memory.graph.neighbourhood_repository import MOST_VISITED, GraphNeighbourhood, When
from app.platform.database.engine import Database
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime, utc_now
from app.settings import Settings
from tests.support.api import execute
from tests.support.databases import migrated_database, served
from tests.support.plans import generic_plans, nodes, sent_by
from tests.support.tenants import Caller, make_tenant

RING = 5_000

_ENTITIES = """
INSERT INTO graph_entities (tenant_id, entity_id, name, name_key, entity_type, scope, scope_id)
SELECT $1, 'e' || n, 'e' || n, 'e' || n, 'thing', 'agent', 'helper' FROM generate_series(0, $2) n
"""
_RELATIONS = """
INSERT INTO graph_relations (tenant_id, relation_id, version, source_id, relation, destination_id,
    confidence, scope, scope_id)
SELECT $1, 'r' || n || '-' || step, 1, 'e' || n, 'knows', 'e' || ((n + step) % $2), 1, 'agent',
    'helper'
FROM generate_series(0, $2 - 1) n, unnest(ARRAY[1, 7]) step
"""
_HUB = """
INSERT INTO graph_relations (tenant_id, relation_id, version, source_id, relation, destination_id,
    confidence, scope, scope_id)
SELECT $1, 'h' || n, 1, 'e' || n, 'in', 'e' || $2::int, 1, 'agent', 'helper'
FROM generate_series(0, $2::int - 1) n
"""


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def own(
    postgres: EmbeddedPostgres, settings: Settings
) -> AsyncIterator[tuple[Runtime, Caller]]:
    """A database of its own: others' rows would change the statistics."""
    dsn = await migrated_database(postgres, "graph_plans")
    async with open_runtime(settings, served(dsn)) as runtime:
        caller = await make_tenant(runtime)
        tenant_id = caller.tenant_id
        await execute(dsn, _ENTITIES, tenant_id, RING)
        await execute(dsn, _RELATIONS, tenant_id, RING)
        await execute(dsn, _HUB, tenant_id, RING)
        await execute(dsn, "ANALYZE graph_relations, graph_entities")
        yield runtime, caller


async def walked(
    database: Database, tenant_id: str, start: str, depth: int
) -> tuple[int, int, bool]:
    """Rows of relations that a walk reads, entities it finds, whether a bound was met."""
    async with database.begin(tenant_id) as db:
        near = GraphNeighbourhood(db, Access(tenant_id))
        connection = (await db.connection()).sync_connection
        with sent_by(connection) as sent:
            walk = await near.walk([start], depth=depth, limit=500, when=When(utc_now()))
        assert len(sent) == 1
        [plan] = await generic_plans(db, sent)
    scans = [node for node in nodes(plan) if node.get("Relation Name") == "graph_relations"]
    assert scans
    # Each side by an index that begins with it; of a relation with few versions either will do.
    assert {node["Index Name"] for node in scans if "Index Name" in node} <= {
        "graph_relations_idx_source_id", "graph_relations_idx_destination_id",
        "graph_relations_idx_source_past", "graph_relations_idx_destination_past",
        "graph_relations_uk_current",
    }  # fmt: skip
    assert all("Seq Scan" not in node["Node Type"] for node in scans)
    read = sum(node["Actual Rows"] * node["Actual Loops"] for node in scans)
    return int(read), len(walk.hops), walk.truncated


async def test_a_walk_reads_what_is_around_and_no_more(own: tuple[Runtime, Caller]) -> None:
    runtime, caller = own
    # From one of the ring, but for the hub: four others and the hub, which leads on to 500.
    read, found, truncated = await walked(runtime.database, caller.tenant_id, "e2500", 1)

    assert (found, truncated) == (6, False)
    assert read <= 10


async def test_a_crowd_is_cut_off_and_says_so(own: tuple[Runtime, Caller]) -> None:
    runtime, caller = own

    read, found, truncated = await walked(runtime.database, caller.tenant_id, f"e{RING}", 3)

    assert (found, truncated) == (500, True)
    assert read <= 2 * MOST_VISITED


async def test_paths_take_one_statement(own: tuple[Runtime, Caller]) -> None:
    runtime, caller = own
    async with runtime.database.begin(caller.tenant_id) as db:
        near = GraphNeighbourhood(db, Access(caller.tenant_id))
        connection = (await db.connection()).sync_connection
        with sent_by(connection) as sent:
            paths, _ = await near.paths("e0", "e15", depth=3, limit=100, when=When(utc_now()))

    assert len(sent) == 1
    ways = {path.entity_ids for path in paths}
    assert {
        ("e0", f"e{RING}", "e15"),
        ("e0", "e7", "e14", "e15"),
        ("e0", "e1", "e8", "e15"),
    } <= ways
