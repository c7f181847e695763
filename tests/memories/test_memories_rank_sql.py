"""What is always true of ranking, of candidates and of pairs, whatever the input."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.identity.tenants.access import Access
from app.memory.memories.hybrid import RankWeights, ScopeWeights
from app.memory.memories.search_sql import Bucket, SearchPlan, search_statement
from app.runtime import Runtime
from tests.support.api import execute
from tests.support.tenants import make_tenant

MODEL = "test/plane:2"

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

shares = st.floats(0, 1).map(lambda number: round(number, 3))

weights = st.tuples(st.integers(0, 10), st.integers(0, 10), st.integers(0, 10)).filter(any)


@dataclass(frozen=True)
class Row:
    """A memory at an angle from the query, so that its similarity is known."""

    degrees: int
    confidence: float
    scope: str
    minute: int


rows = st.builds(
    Row,
    degrees=st.sampled_from([0, 10, 45, 60, 90, 135, 180]),
    confidence=shares,
    scope=st.sampled_from(["session", "project", "user", "agent"]),
    minute=st.integers(0, 3),
)

INSERT = """
INSERT INTO memories (tenant_id, memory_id, user_id, agent_id, project_id, scope, scope_id,
    content, content_hash, memory_type, tier, source, confidence, visibility, embedding,
    embedding_model, update_time)
SELECT $1, row.id, 'ana', CASE row.scope WHEN 'agent' THEN 'a1' END,
    CASE row.scope WHEN 'project' THEN 'p1' END, row.scope,
    CASE row.scope WHEN 'agent' THEN 'a1' WHEN 'project' THEN 'p1' WHEN 'user' THEN 'ana'
        ELSE 's1' END,
    'x', convert_to(row.id, 'UTF8'), 'fact', 'long', 'user', row.confidence, 'members',
    ARRAY[cosd(row.degrees), sind(row.degrees)]::float4[]::vector, 'test/plane:2', row.at
FROM unnest($2::text[], $3::text[], $4::float8[], $5::float8[], $6::timestamptz[])
    AS row(id, scope, confidence, degrees, at)
"""


async def store(dsn: str, tenant_id: str, table: list[Row]) -> None:
    await execute(
        dsn,
        f"""
        WITH agent AS (INSERT INTO agents (tenant_id, agent_id, agent_name)
            VALUES ('{tenant_id}', 'a1', 'A') ON CONFLICT DO NOTHING),
        owner AS (INSERT INTO users (tenant_id, user_id, agent_id)
            VALUES ('{tenant_id}', 'ana', 'a1') ON CONFLICT DO NOTHING),
        project AS (INSERT INTO projects (tenant_id, project_id, project_name)
            VALUES ('{tenant_id}', 'p1', 'P') ON CONFLICT DO NOTHING)
        DELETE FROM memories WHERE tenant_id = $1
        """,
        tenant_id,
    )
    await execute(
        dsn,
        INSERT,
        tenant_id,
        [f"mem{index:02}" for index in range(len(table))],
        [row.scope for row in table],
        [row.confidence for row in table],
        [float(row.degrees) for row in table],
        [NOON + timedelta(minutes=row.minute) for row in table],
    )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tenant(runtime: Runtime) -> str:
    """One tenant for all examples; each begins by emptying it."""
    return (await make_tenant(runtime)).tenant_id


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    table=st.lists(rows, min_size=1, max_size=12),
    weighed=weights,
    limit=st.integers(1, 12),
    threshold=st.none() | shares,
    rerank=st.booleans(),
)
async def test_postgres_ranks_as_the_formula_says(
    runtime: Runtime, dsn: str, tenant: str, table, weighed, limit, threshold, rerank
) -> None:
    await store(dsn, tenant, table)
    total = sum(weighed)
    parts = RankWeights(*(one / total for one in weighed))
    scopes = ScopeWeights().by_scope
    ids = {"session": "s1", "project": "p1", "user": "ana", "agent": "a1"}
    plan = SearchPlan(
        access=Access(tenant),
        buckets=[Bucket(scope, ids[scope], scopes[scope]) for scope in ids],
        vectors={MODEL: np.array([1, 0], np.float32)},
        user_id="ana",
        agent_id=None,
        weights=(parts.similarity, parts.confidence, parts.scope),
        limit=limit,
        threshold=threshold,
        rerank=rerank,
    )

    text, values = search_statement(plan)
    hits = await runtime.database.fetch(tenant, text, *values)

    # Similarity is what PostgreSQL stored of the angle; all the rest is recomputed.
    cosines = np.cos(np.radians([row.degrees for row in table])).astype(np.float32)
    similarity = np.clip(cosines.astype(float), 0, 1)
    expected = []
    for index, row in enumerate(table):
        weighed = (
            similarity[index] * parts.similarity
            + row.confidence * parts.confidence
            + scopes[row.scope] * parts.scope
        )
        # The weights may sum to a hair over 1.
        score = min(weighed, 1.0)
        if threshold is None or similarity[index] >= threshold:
            first = score if rerank else similarity[index]
            expected.append((-round(first, 6), -row.minute, f"mem{index:02}", score))
    expected.sort()
    assert len(hits) == min(limit, len(expected))
    for hit, (first, minute, _, score) in zip(hits, expected, strict=False):
        assert abs(min(hit["score"], 1.0) - score) < 1e-6
        shown = hit["score"] if rerank else hit["similarity"]
        assert abs(shown + first) < 2e-6
        assert hit["update_time"] == NOON + timedelta(minutes=-minute)
    assert len({hit["memory_id"] for hit in hits}) == len(hits)
