"""What a search by words costs PostgreSQL, and what may happen between its two statements."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import asyncpg
import numpy as np
import pytest
import pytest_asyncio
from httpx import AsyncClient

from app.identity.tenants.access import Access
from app.language.ranking.fusion import Boosts
from app.language.ranking.packing import DIMENSION, stored_terms
from app.language.ranking.query import ParsedQuery, parse_query
from app.language.ranking.records import read_records
from app.memory.memories.candidate_search import by_all
from app.memory.memories.search_sql import Bucket, SearchPlan, features_statement, hits_statement
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime
from app.settings import Settings
from tests.support.api import execute, ok
from tests.support.hits import save_all, texts
from tests.support.patience import PATIENCE
from tests.support.plans import Crowd, new_crowd, nodes, plan_of
from tests.support.tenants import Caller, make_tenant

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
    memory_type, tier, source, confidence, visibility, embedding, embedding_model, terms,
    term_count, word_count, is_question, has_time)
SELECT $1, user_id || '/' || n, user_id, 'user', user_id, 'x', convert_to(n::text, 'UTF8'),
    'fact', 'long', 'user', 0.7 + (n % 30) / 100.0, 'members',
    array_fill(0.0625::float4, ARRAY[256])::vector, $3, CAST($2::text AS sparsevec),
    3, 3, false, false
FROM crowd, generate_series(1, 40) AS n
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowded(postgres: EmbeddedPostgres, settings: Settings) -> AsyncIterator[Crowd]:
    """Two tenants with 8,000 memories of 200 users each, under the same ids; one of them."""
    async with new_crowd(postgres, settings, "memories_hybrid_plan") as crowd:
        terms = stored_terms(["green", "tea", "tea"]).vector.to_text()
        other = await make_tenant(crowd.runtime)
        for tenant_id in (crowd.tenant_id, other.tenant_id):
            await execute(crowd.dsn, CROWD, tenant_id, terms, MODEL)
        await execute(crowd.dsn, "ANALYZE memories")
        yield crowd


def planned(tenant_id: str, access: dict[str, str] | None = None, **rest: Any) -> SearchPlan:
    return SearchPlan(
        access=Access(tenant_id, **(access or {})),
        buckets=[
            Bucket("session", "none", 1.0),
            Bucket("user", "user1", 0.6),
            Bucket("agent", "default", 0.4),
        ],
        vectors={MODEL: np.ones(256, np.float32) / 16},
        user_id="user1",
        agent_id=(access or {}).get("agent_id"),
        weights=(0.5, 0.3, 0.2),
        limit=10,
        mode="hybrid",
        **rest,
    )


def asked_for(query: str) -> ParsedQuery:
    asked = parse_query(query, datetime.now(UTC))
    return ParsedQuery(
        asked.packed,
        asked.marks,
        asked.traits,
        asked.ranked_texts,
        {MODEL: np.ones(256, np.float32) / 16},
    )


def reads_of(plan: list[dict[str, Any]], table: str = "memories") -> list[dict[str, Any]]:
    reads = [node for node in plan if node.get("Relation Name") == table]
    for node in reads:
        assert node["Node Type"] != "Seq Scan", node
    return reads


class TestPlan:
    @pytest.mark.parametrize(
        "access", [{}, {"user_id": "user1"}, {"agent_id": "default"}], ids=["all", "user", "agent"]
    )
    @pytest.mark.parametrize(
        "narrowed",
        [{}, {"memory_type": "goal"}, {"filters": {"metadata.k": {"gt": 5}}}, {"around": True}],
        ids=["plain", "type", "filter", "around"],
    )
    @pytest.mark.parametrize(
        "query", ["green tea", " ".join(f"word{n}" for n in range(200))], ids=["short", "long"]
    )
    async def test_what_is_known_of_rows_is_read_from_the_bucket_alone(
        self, crowded: Crowd, access: dict, narrowed: dict, query: str
    ) -> None:
        text, values, _ = features_statement(
            planned(crowded.tenant_id, access, **narrowed), asked_for(query)
        )

        found_plan = nodes(await plan_of(crowded.dsn, crowded.tenant_id, text, values))

        reads = reads_of(found_plan)
        indexes = {node["Index Name"] for node in found_plan if "Index Name" in node}
        assert "memories_idx_bucket" in indexes
        rows = sum(node["Actual Rows"] * node["Actual Loops"] for node in reads)
        # The user's 40, filtered or not; of the same ids in another tenant none. Rows are told
        # as a rounded mean per bucket.
        assert rows == pytest.approx(40, abs=0.1)
        assert not [node for node in reads if node.get("Rows Removed by Filter", 0) > 0], (
            "rows of others were read and thrown away"
        )

    @pytest.mark.parametrize("access", [{}, {"agent_id": "default"}], ids=["all", "agent"])
    async def test_the_hits_are_read_by_their_ids(self, crowded: Crowd, access: dict) -> None:
        chosen = [f"user1/{n}" for n in range(1, 11)]
        text, values = hits_statement(planned(crowded.tenant_id, access), chosen)

        found_plan = nodes(await plan_of(crowded.dsn, crowded.tenant_id, text, values))

        indexes = {node["Index Name"] for node in found_plan if "Index Name" in node}
        # Both have the id among their columns; which is cheaper, a table this small cannot say.
        assert indexes & {"memories_pkey", "memories_idx_user_id"}, indexes
        assert found_plan[0]["Actual Rows"] == 10
        rows = sum(node["Actual Rows"] * node["Actual Loops"] for node in reads_of(found_plan))
        assert rows <= 30

    async def test_a_bucket_comes_as_one_row_of_ids_and_records(self, crowded: Crowd) -> None:
        plan = planned(crowded.tenant_id, filters={"metadata.k": {"gt": 5}})
        text, values, columns = features_statement(plan, asked_for("green tea"))

        [row] = await crowded.runtime.database.fetch(crowded.tenant_id, text, *values)

        records = read_records(row["records"], columns)
        assert sorted(row["ids"]) == sorted(f"user1/{n}" for n in range(1, 41))
        assert len(records) == 40
        assert not records["eligible"].any()
        assert set(records["similarity"].tolist()) == {1.0}
        assert set(records["length"].tolist()) == {3}

    async def test_each_record_stands_where_its_id_does(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        """Whatever is missing of a row, and wherever changes have put it."""
        ids = await save_all(client, *(f"Locker {n}: {'red ' * n}door." for n in range(40)))
        await save_all(client, "Of a session.", session_id="s1")
        for place, gone in enumerate(
            ("terms = NULL, term_count = NULL", "embedding = NULL", "is_question = NULL")
        ):
            await execute(
                dsn,
                f"UPDATE memories SET {gone} WHERE tenant_id = $1 AND memory_id = ANY ($2)",
                acme.tenant_id,
                ids[place::7],
            )
        await execute(
            dsn,
            "UPDATE memories SET confidence = 0.7 + length(content) / 1000.0 WHERE tenant_id = $1",
            acme.tenant_id,
        )
        plan = planned(acme.tenant_id)
        plan = replace(plan, buckets=[Bucket("user", "ana", 0.6)], user_id="ana")
        text, values, columns = features_statement(plan, asked_for("red door"))

        [row] = await runtime.database.fetch(acme.tenant_id, text, *values)

        records = read_records(row["records"], columns)
        told = zip(
            row["ids"],
            records["confidence"].tolist(),
            records["length"].tolist(),
            np.isnan(records["similarity"]).tolist(),
            strict=True,
        )
        stored = await execute(
            dsn,
            "SELECT memory_id, confidence, coalesce(term_count, 0) AS length, embedding IS NULL "
            "AS bare FROM memories WHERE tenant_id = $1",
            acme.tenant_id,
        )
        assert len(stored) == 41
        assert sorted(told) == sorted(tuple(one) for one in stored)

    async def test_an_empty_bucket_comes_as_nothing(self, runtime: Runtime, acme: Caller) -> None:
        text, values, columns = features_statement(planned(acme.tenant_id), asked_for("green tea"))

        [row] = await runtime.database.fetch(acme.tenant_id, text, *values)

        assert (row["ids"], len(read_records(row["records"], columns))) == (None, 0)

    def test_keys_fit_what_pgvector_allows(self) -> None:
        assert DIMENSION <= 1_000_000_000


class TestBetween:
    """The hits are asked for again, with everything they are judged by."""

    @pytest.fixture
    async def ids(self, client: AsyncClient) -> list[str]:
        return await save_all(client, "She drinks green tea.", "She likes green apples.")

    async def chosen_then(
        self, runtime: Runtime, tenant_id: str, between: str, *values: Any, dsn: str
    ) -> list[str]:
        """What a search finds when a change commits between its two statements."""
        plan = SearchPlan(
            access=Access(tenant_id),
            buckets=[Bucket("user", "ana", 0.6)],
            vectors={},
            user_id="ana",
            agent_id=None,
            weights=(0.5, 0.3, 0.2),
            limit=10,
            mode="hybrid",
        )
        statements: list[str] = []
        fetch = runtime.database.fetch

        class Between:
            """The database, with somebody else's change after the first statement."""

            async def fetch(self, tenant: str, text: str, *arguments: Any) -> Any:
                rows = await fetch(tenant, text, *arguments)
                if not statements:
                    await execute(dsn, between, tenant_id, *values)
                statements.append(text)
                return rows

        found = await by_all(
            Between(),  # type: ignore[arg-type]  # All that a search asks of it.
            tenant_id,
            plan,
            parse_query("green", datetime.now(UTC)),
            Boosts(),
        )
        assert len(statements) == 2
        return [one.row["content"] for one in found]

    @pytest.mark.parametrize(
        "change",
        [
            "DELETE FROM memories WHERE tenant_id = $1 AND memory_id = $2",
            "UPDATE memories SET status = 'deleted' WHERE tenant_id = $1 AND memory_id = $2",
            "UPDATE memories SET status = 'archived' WHERE tenant_id = $1 AND memory_id = $2",
            "UPDATE memories SET expires_at = now() WHERE tenant_id = $1 AND memory_id = $2",
            "UPDATE memories SET valid_to = now() WHERE tenant_id = $1 AND memory_id = $2",
        ],
        ids=["gone", "deleted", "archived", "expired", "ended"],
    )
    async def test_what_went_in_between_is_simply_missing(
        self, runtime: Runtime, acme: Caller, dsn: str, ids: list[str], change: str
    ) -> None:
        found = await self.chosen_then(runtime, acme.tenant_id, change, ids[0], dsn=dsn)

        assert found == ["She likes green apples."]

    async def test_nothing_happened_and_both_are_there(
        self, runtime: Runtime, acme: Caller, dsn: str, ids: list[str]
    ) -> None:
        found = await self.chosen_then(runtime, acme.tenant_id, "SELECT $1::text", dsn=dsn)

        assert len(found) == 2

    async def test_a_search_does_not_wait_for_a_delete_and_never_fails_beside_one(
        self, client: AsyncClient, acme: Caller, dsn: str, ids: list[str]
    ) -> None:
        holder = await asyncpg.connect(dsn)
        try:
            await holder.execute("SET ROLE kemem_owner")
            transaction = holder.transaction()
            await transaction.start()
            await holder.execute(
                "DELETE FROM memories WHERE tenant_id = $1 AND memory_id = $2",
                acme.tenant_id,
                ids[0],
            )
            during = await asyncio.wait_for(texts(client, "green tea"), PATIENCE)
            await transaction.commit()
        finally:
            await holder.close()

        assert len(during) == 2
        assert await texts(client, "green tea") == ["She likes green apples."]

    async def test_searches_beside_deletes_show_whole_hits_or_none(
        self, client: AsyncClient
    ) -> None:
        ids = await save_all(client, *(f"Green locker number {n}." for n in range(30)))
        known = {f"Green locker number {n}." for n in range(30)}

        async def delete() -> None:
            for memory_id in ids:
                ok(await client.delete(f"/memories/{memory_id}"), 204)

        deleting = asyncio.create_task(delete())
        left = []
        while not deleting.done():
            left.append(set(await texts(client, "green locker")))
        await deleting

        assert all(found <= known for found in left)
        assert all(later <= earlier for earlier, later in pairwise(left))
        assert await texts(client, "green locker") == []
