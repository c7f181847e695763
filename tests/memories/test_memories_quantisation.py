"""Codes of large buckets: who earns them, what they may change of a search, and what never."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import asyncpg
import numpy as np
import pytest
from pgvector.asyncpg import register_vector

from app.identity.tenants.access import Access
from app.language.ranking.boosts import Boosts
from app.language.ranking.packing import INDEX_COLUMNS as WORDS
from app.language.ranking.query import parse_query
from app.memory.memories.candidate_search import Found, by_all, by_vectors
from app.memory.memories.comparison_sql import CANDIDATES, LEAST_DIMENSION, MINIMUM_DIMENSION
from app.memory.memories.quantisation import QuantisationResult, QuantisationService
from app.memory.memories.search_sql import Bucket, SearchPlan, features_statement, search_statement
from app.memory.memories.searchable import row_terms
from app.memory.memories.timeline_sql import known_features_statement, known_statement
from app.platform.database.base import new_id
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime
from app.settings import Settings
from tests.support.api import execute
from tests.support.patience import PATIENCE
from tests.support.plans import Crowd, new_crowd, nodes, plan_of
from tests.support.tenants import Caller

MODEL = f"test/long:{MINIMUM_DIMENSION}"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
COLUMNS = (
    "tenant_id", "memory_id", "user_id", "scope", "scope_id", "content", "content_hash",
    "memory_type", "tier", "source", "confidence", "visibility", "embedding",
    "embedding_model", "metadata", *WORDS,
)  # fmt: skip


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def clustered(
    count: int, dimension: int = MINIMUM_DIMENSION, seed: int = 1, subjects: int = 5
) -> np.ndarray:
    """Unit vectors around some centres, as texts about some subjects have them."""
    random = np.random.default_rng(seed)
    centres = unit(random.standard_normal((subjects, dimension)))
    noise = random.standard_normal((count, dimension)) * (0.9 / np.sqrt(dimension))
    return unit(centres[random.integers(0, subjects, count)] + noise)


def useless(count: int) -> np.ndarray:
    """Unit vectors with signs that tell nothing: each has the same."""
    random = np.random.default_rng(2)
    return unit(random.uniform(0.1, 1.0, (count, MINIMUM_DIMENSION)))


async def fill(
    dsn: str,
    tenant: Caller | Crowd,
    vectors: np.ndarray,
    *,
    user: str = "ana",
    model: str = MODEL,
    marked: Sequence[int] = (),
    confidence: Sequence[float] = (1.0,),
) -> list[str]:
    """Store a memory per vector; `marked` ones have the metadata `mark: yes`."""
    ids = [new_id("mem") for _ in vectors]
    words = row_terms("She drinks green tea.", {}, None)
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET ROLE kemem_owner")
        await register_vector(connection)
        await connection.execute(
            "INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, 'home', 'H') "
            "ON CONFLICT DO NOTHING",
            tenant.tenant_id,
        )
        await connection.execute(
            "INSERT INTO users (tenant_id, user_id, agent_id) VALUES ($1, $2, 'home') "
            "ON CONFLICT DO NOTHING",
            tenant.tenant_id,
            user,
        )
        rows = [
            (
                tenant.tenant_id, one, user, "user", user, "She drinks green tea.", one.encode(),
                "fact", "long", "user", confidence[place % len(confidence)], "members", vector,
                model, '{"mark": "yes"}' if place in marked else "{}",
                *(words[name] for name in WORDS),
            )
            for place, (one, vector) in enumerate(zip(ids, vectors, strict=True))
        ]  # fmt: skip
        values = ", ".join(f"${place}" for place in range(1, len(COLUMNS) + 1))
        await connection.executemany(
            f"INSERT INTO memories ({', '.join(COLUMNS)}) VALUES ({values})", rows
        )
    finally:
        await connection.close()
    return ids


def plan_for(
    tenant: Caller | Crowd, vector: np.ndarray, *, model: str = MODEL, **fields: Any
) -> Any:
    return SearchPlan(
        access=Access(tenant.tenant_id),
        buckets=[Bucket("user", "ana", 0.6)],
        vectors={model: vector},
        user_id="ana",
        agent_id=None,
        weights=(0.5, 0.3, 0.2),
        **({"limit": 10} | fields),
    )


async def search(runtime: Runtime, tenant: Caller, vector: np.ndarray, **fields: Any) -> Any:
    """Hits of a search by vectors, or with `mode` by words too."""
    plan = plan_for(tenant, vector, **fields)
    if plan.mode == "semantic":
        return await by_vectors(runtime.database, plan)
    asked = parse_query("What does she drink?", NOW)
    asked = replace(asked, vectors=plan.vectors)
    plan = replace(plan, asked=asked)
    return await by_all(runtime.database, tenant.tenant_id, plan, asked, Boosts())


def ids_of(found: list[Found]) -> list[str]:
    return [one.ranked.memory_id for one in found]


async def earn(
    runtime: Runtime, tenant: Caller | Crowd, exact_rows: int, **options: Any
) -> list[QuantisationResult]:
    return await QuantisationService(runtime.database, exact_rows, **options).run(tenant.tenant_id)


async def coded(dsn: str, tenant: Caller, user: str = "ana") -> int:
    [row] = await execute(
        dsn,
        "SELECT count(code) AS codes FROM memories WHERE tenant_id = $1 AND scope_id = $2",
        tenant.tenant_id,
        user,
    )
    return row["codes"]


async def registered(dsn: str, tenant: Caller) -> list[dict[str, Any]]:
    rows = await execute(dsn, "SELECT * FROM memory_buckets WHERE tenant_id = $1", tenant.tenant_id)
    return [dict(row) for row in rows]


async def wrong_codes(dsn: str, tenant: Caller) -> int:
    """How many rows have a code that is not that of their vector."""
    [row] = await execute(
        dsn,
        "SELECT count(*) AS wrong FROM memories WHERE tenant_id = $1 AND code IS NOT NULL "
        "AND (embedding IS NULL OR code <> binary_quantize(embedding)::bit varying)",
        tenant.tenant_id,
    )
    return row["wrong"]


class TestBounds:
    @pytest.mark.parametrize(("rows", "codes"), [(99, 0), (100, 0), (101, 101)])
    async def test_bucket_is_quantised_above_the_bound(
        self, runtime: Runtime, acme: Caller, dsn: str, rows: int, codes: int
    ) -> None:
        await fill(dsn, acme, clustered(rows))

        await earn(runtime, acme, 100)

        assert await coded(dsn, acme) == codes
        assert len(await registered(dsn, acme)) == (1 if codes else 0)

    @pytest.mark.parametrize(("rows", "codes"), [(51, 51), (50, 50), (49, 0)])
    async def test_bucket_keeps_codes_down_to_half_the_bound(
        self, runtime: Runtime, acme: Caller, dsn: str, rows: int, codes: int
    ) -> None:
        await fill(dsn, acme, clustered(101))
        await earn(runtime, acme, 100)
        await execute(
            dsn,
            "UPDATE memories SET status = 'archived' WHERE tenant_id = $1 AND memory_id IN "
            "(SELECT memory_id FROM memories WHERE tenant_id = $1 LIMIT $2)",
            acme.tenant_id,
            101 - rows,
        )

        await earn(runtime, acme, 100)

        # What is archived keeps its own: a search of the past may read it.
        assert await coded(dsn, acme) == (101 if codes else 0)
        assert len(await registered(dsn, acme)) == (1 if codes else 0)

    @pytest.mark.parametrize(
        ("dimension", "codes"),
        [
            (LEAST_DIMENSION - 1, 0),
            (LEAST_DIMENSION, 101),
            (MINIMUM_DIMENSION - 1, 101),
            (MINIMUM_DIMENSION, 101),
            (MINIMUM_DIMENSION + 1, 101),
        ],
    )
    async def test_the_shortest_vectors_are_never_quantised(
        self, runtime: Runtime, acme: Caller, dsn: str, dimension: int, codes: int
    ) -> None:
        vectors, model = clustered(101, dimension), f"test/other:{dimension}"
        await fill(dsn, acme, vectors, model=model)

        await earn(runtime, acme, 100)

        assert await coded(dsn, acme) == codes
        found = await search(runtime, acme, vectors[7], model=model)
        assert found[0].ranked.similarity == pytest.approx(1.0, abs=1e-5)

    async def test_each_model_of_a_bucket_counts_for_itself(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, clustered(60))
        await fill(dsn, acme, clustered(101, 900), model="test/second:900")

        await earn(runtime, acme, 100)

        assert await coded(dsn, acme) == 101
        [row] = await registered(dsn, acme)
        assert (row["embedding_model"], row["rows"]) == ("test/second:900", 101)

    async def test_other_tenants_are_not_quantised(
        self, runtime: Runtime, acme: Caller, other: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, clustered(101))
        await fill(dsn, other, clustered(101))

        await earn(runtime, acme, 100)

        assert await coded(dsn, acme) == 101
        assert await coded(dsn, other) == 0
        assert await registered(dsn, other) == []

    async def test_a_bucket_that_is_gone_is_forgotten(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, clustered(101))
        await earn(runtime, acme, 100)
        await execute(dsn, "DELETE FROM memories WHERE tenant_id = $1", acme.tenant_id)

        await earn(runtime, acme, 100)

        assert await registered(dsn, acme) == []

    async def test_codes_are_no_change_of_a_memory(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, clustered(101))
        state = (
            "SELECT memory_id, version, update_time, embedding::text FROM memories "
            "WHERE tenant_id = $1 ORDER BY memory_id"
        )
        before = await execute(dsn, state, acme.tenant_id)

        await earn(runtime, acme, 100)

        assert await coded(dsn, acme) == 101
        assert await execute(dsn, state, acme.tenant_id) == before


class TestSearching:
    @pytest.mark.parametrize("mode", ["semantic", "hybrid"])
    async def test_codes_find_what_an_exact_search_finds(
        self, runtime: Runtime, acme: Caller, dsn: str, mode: str
    ) -> None:
        vectors = clustered(1_000)
        await fill(dsn, acme, vectors, confidence=(0.7, 0.8, 0.9, 1.0))
        queries = unit(vectors[:20] + clustered(20, seed=9) * 0.5)
        exact = [await search(runtime, acme, query, mode=mode) for query in queries]

        await earn(runtime, acme, 500)

        assert await coded(dsn, acme) == 1_000
        shares = []
        for query, before in zip(queries, exact, strict=True):
            after = await search(runtime, acme, query, mode=mode)
            shares.append(len(set(ids_of(before)) & set(ids_of(after))) / 10)
            # What is shown is the cosine itself, whatever chose the hit.
            shown = {one.ranked.memory_id: one.ranked.similarity for one in before}
            for one in after:
                if one.ranked.memory_id in shown:
                    assert one.ranked.similarity == pytest.approx(
                        shown[one.ranked.memory_id], abs=1e-5
                    )
        assert np.mean(shares) >= 0.97
        assert min(shares) >= 0.8

    async def test_a_hybrid_score_is_nearly_that_of_an_exact_search(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        vectors = clustered(1_000) + 0.08
        await fill(dsn, acme, unit(vectors))
        query = unit(vectors[3] + clustered(1, seed=9)[0] * 0.5)
        before = {
            one.ranked.memory_id: one.ranked
            for one in await search(runtime, acme, query, mode="hybrid", limit=50)
        }

        await earn(runtime, acme, 500)

        # The signs of vectors that share a direction tell cosines that are too high; what the
        # ranking is told of the rest of the bucket is put right.
        after = await search(runtime, acme, query, mode="hybrid")
        for one in after:
            assert one.ranked.relevance == pytest.approx(
                before[one.ranked.memory_id].relevance, abs=0.02
            )

    @pytest.mark.parametrize("mode", ["semantic", "hybrid", "lexical"])
    async def test_a_filter_that_leaves_few_leaves_all_of_them(
        self, runtime: Runtime, acme: Caller, dsn: str, mode: str
    ) -> None:
        vectors = clustered(3 * CANDIDATES)
        farthest = np.argsort(vectors @ vectors[0])[:7]
        ids = await fill(dsn, acme, vectors, marked=farthest.tolist())
        await earn(runtime, acme, CANDIDATES)

        found = await search(runtime, acme, vectors[0], mode=mode, filters={"metadata.mark": "yes"})

        assert await coded(dsn, acme) == 3 * CANDIDATES
        assert set(ids_of(found)) == {ids[place] for place in farthest}

    @pytest.mark.parametrize("mode", ["semantic", "hybrid"])
    @pytest.mark.parametrize("rerank", [True, False])
    async def test_a_threshold_loses_none_to_rows_that_score_higher(
        self, runtime: Runtime, acme: Caller, dsn: str, mode: str, rerank: bool
    ) -> None:
        """Thousands of sure memories of something else come before a few unsure ones."""
        vectors = clustered(1_000)
        near = np.argsort(-(vectors @ vectors[0]))
        confidence = np.ones(1_000)
        confidence[near[:8]] = 0.0
        ids = await fill(dsn, acme, vectors, confidence=confidence.tolist())
        similarities = np.sort(vectors @ vectors[0])[::-1]
        threshold = float(similarities[7] + similarities[8]) / 2
        await earn(runtime, acme, 500)

        found = await search(
            runtime, acme, vectors[0], mode=mode, threshold=threshold, rerank=rerank
        )

        assert set(ids_of(found)) == {ids[place] for place in near[:8]}

    async def test_the_threshold_is_met_by_the_cosine_itself(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        vectors = clustered(300)
        await fill(dsn, acme, vectors)
        cosines = np.sort(vectors @ vectors[0])[::-1]
        await earn(runtime, acme, 200)

        for mode in ("semantic", "hybrid"):
            for at, count in ((cosines[4] - 1e-4, 5), (cosines[4] + 1e-4, 4)):
                found = await search(runtime, acme, vectors[0], mode=mode, threshold=float(at))
                assert len(found) == count

    @pytest.mark.parametrize("mode", ["semantic", "hybrid"])
    async def test_a_hundred_hits_are_a_hundred(
        self, runtime: Runtime, acme: Caller, dsn: str, mode: str
    ) -> None:
        vectors = clustered(1_000)
        await fill(dsn, acme, vectors)
        await earn(runtime, acme, 500)

        found = await search(runtime, acme, vectors[0], mode=mode, limit=100)

        assert len(found) == len(set(ids_of(found))) == 100

    @pytest.mark.parametrize(
        "change",
        ["metadata = '{}'", "status = 'archived'", "expires_at = now()"],
        ids=["left out", "archived", "expired"],
    )
    async def test_what_went_between_the_two_statements_leaves_its_place_to_others(
        self, runtime: Runtime, acme: Caller, dsn: str, change: str
    ) -> None:
        vectors = clustered(300)
        ids = await fill(dsn, acme, vectors, marked=range(300))
        await earn(runtime, acme, 200)
        near = np.argsort(-(vectors @ vectors[0]))[:3].tolist()
        gone = [ids[place] for place in near]
        plan = plan_for(acme, vectors[0], mode="hybrid", filters={"metadata.mark": "yes"})
        asked = replace(parse_query("What does she drink?", NOW), vectors=plan.vectors)
        statements: list[str] = []

        class Between:
            """The database, with somebody else's change after the first statement."""

            async def fetch(self, tenant: str, text: str, *values: Any) -> Any:
                rows = await runtime.database.fetch(tenant, text, *values)
                if not statements:
                    await execute(
                        dsn,
                        f"UPDATE memories SET {change} "
                        "WHERE tenant_id = $1 AND memory_id = ANY ($2)",
                        tenant,
                        gone,
                    )
                statements.append(text)
                return rows

        found = await by_all(
            Between(),  # type: ignore[arg-type]  # All that a search asks of it.
            acme.tenant_id,
            replace(plan, asked=asked),
            asked,
            Boosts(),
        )

        assert len(statements) == 2
        assert len(found) == 10
        assert not set(gone) & set(ids_of(found))

    @pytest.mark.parametrize("mode", ["semantic", "hybrid"])
    async def test_what_was_saved_since_is_compared_exactly(
        self, runtime: Runtime, acme: Caller, dsn: str, mode: str
    ) -> None:
        vectors = clustered(301)
        await fill(dsn, acme, vectors[:300])
        await earn(runtime, acme, 200)
        [new] = await fill(dsn, acme, vectors[300:])

        found = await search(runtime, acme, vectors[300], mode=mode)

        assert ids_of(found)[0] == new
        assert found[0].ranked.similarity == pytest.approx(1.0, abs=1e-5)
        assert await coded(dsn, acme) == 300
        await earn(runtime, acme, 200)
        assert await coded(dsn, acme) == 301
        assert ids_of(await search(runtime, acme, vectors[300], mode=mode))[0] == new

    @pytest.mark.parametrize("mode", ["semantic", "hybrid"])
    async def test_what_has_ended_comes_behind_all_others(
        self, runtime: Runtime, acme: Caller, dsn: str, mode: str
    ) -> None:
        vectors = clustered(400)
        ids = await fill(dsn, acme, vectors)
        await earn(runtime, acme, 100)
        nearest = (vectors @ vectors[7]).argsort()[::-1][:250]
        ended = [ids[place] for place in nearest]
        await execute(
            dsn,
            "UPDATE memories SET confidence = CAST(memory_id = ANY ($2) AS int), valid_to = "
            "CASE WHEN memory_id = ANY ($2) THEN now() - interval '1 day' END "
            "WHERE tenant_id = $1",
            acme.tenant_id,
            ended,
        )

        many = ids_of(await search(runtime, acme, vectors[7], mode=mode, around=True, limit=300))
        few = ids_of(await search(runtime, acme, vectors[7], mode=mode, around=True, limit=10))

        assert len(many) == 300
        assert set(many[:150]) == set(ids) - set(ended)
        # More have ended than are compared exactly.
        assert len(ended) > CANDIDATES
        assert len(few) == 10
        assert not set(few) & set(ended)

    @pytest.mark.parametrize("mode", ["semantic", "hybrid"])
    async def test_the_past_is_found_by_codes_too(
        self, runtime: Runtime, acme: Caller, dsn: str, mode: str
    ) -> None:
        vectors = clustered(300)
        ids = await fill(dsn, acme, vectors)
        await earn(runtime, acme, 200)
        await execute(
            dsn,
            "UPDATE memories SET status = 'superseded' WHERE tenant_id = $1 AND memory_id = $2",
            acme.tenant_id,
            ids[5],
        )

        now = await search(runtime, acme, vectors[5], mode=mode)
        then = await search(runtime, acme, vectors[5], mode=mode, as_of=NOW)

        assert ids[5] not in ids_of(now)
        assert ids_of(then)[0] == ids[5]

    def test_words_that_were_replaced_have_no_codes(self, acme: Caller) -> None:
        vector = clustered(1)[0]
        plan = plan_for(acme, vector, known_at=NOW)
        asked = replace(parse_query("What does she drink?", NOW), vectors=plan.vectors)

        assert "code" not in known_statement(plan)[0]
        assert "code" not in known_features_statement(plan, asked)[0]

    def test_short_vectors_are_not_compared_by_codes(self, acme: Caller) -> None:
        plan = plan_for(acme, clustered(1, MINIMUM_DIMENSION - 1)[0])
        asked = replace(parse_query("What does she drink?", NOW), vectors=plan.vectors)

        assert "code" not in search_statement(plan)[0]
        assert "<~>" not in features_statement(plan, asked)[0]


class TestPlans:
    @pytest.mark.parametrize("mode", ["semantic", "hybrid"])
    async def test_a_search_by_codes_fetches_the_vectors_of_its_candidates_alone(
        self, postgres: EmbeddedPostgres, settings: Settings, mode: str
    ) -> None:
        vectors = clustered(2_000, 1536, subjects=10)
        model = "test/large:1536"
        async with new_crowd(postgres, settings, f"codes_{mode}") as crowd:
            # Once autovacuum came by, a table of one bucket would be read whole, and rightly so.
            await execute(crowd.dsn, "ALTER TABLE memories SET (autovacuum_enabled = off)")
            await fill(crowd.dsn, crowd, vectors, model=model)
            plan = plan_for(crowd, vectors[0], model=model)
            asked = replace(parse_query("What does she drink?", NOW), vectors=plan.vectors)

            async def pages() -> int:
                statement = (
                    search_statement(plan)
                    if mode == "semantic"
                    else features_statement(plan, asked)[:2]
                )
                found = await plan_of(crowd.dsn, crowd.tenant_id, *statement, buffers=True)
                for node in nodes(found):
                    if node.get("Relation Name") == "memories":
                        assert node["Node Type"] != "Seq Scan"
                return int(found["Shared Hit Blocks"] + found["Shared Read Blocks"])

            exact = await pages()
            await earn(crowd.runtime, crowd, 1_000)
            by_code = await pages()

        # A vector outside of its row takes some four pages, two of them of an index.
        assert exact > 2_000 * 3
        assert by_code < exact / 3
        if mode == "hybrid":
            assert by_code < 2_000 * 1.5


class TestStaleCodes:
    async def test_a_vector_that_changes_loses_its_code(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        """As a release that knows nothing of codes changes it."""
        vectors = clustered(300)
        ids = await fill(dsn, acme, vectors)
        await earn(runtime, acme, 200)
        moved = -vectors[0]
        await execute(
            dsn,
            "UPDATE memories SET embedding = CAST($3 AS text)::vector "
            "WHERE tenant_id = $1 AND memory_id = $2",
            acme.tenant_id,
            ids[0],
            str(moved.tolist()),
        )

        assert await coded(dsn, acme) == 299
        for mode in ("semantic", "hybrid"):
            found = await search(runtime, acme, moved, mode=mode)
            assert ids_of(found)[0] == ids[0]
            assert ids[0] not in ids_of(await search(runtime, acme, vectors[0], mode=mode))
        await earn(runtime, acme, 200)
        assert await coded(dsn, acme) == 300
        assert await wrong_codes(dsn, acme) == 0

    async def test_a_change_of_something_else_keeps_it(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        ids = await fill(dsn, acme, clustered(300))
        await earn(runtime, acme, 200)

        await execute(
            dsn,
            "UPDATE memories SET confidence = 0.5, use_count = 7, version = version + 1 "
            "WHERE tenant_id = $1 AND memory_id = $2",
            acme.tenant_id,
            ids[0],
        )

        assert await coded(dsn, acme) == 300

    async def test_a_row_that_changes_while_codes_are_made_gets_that_of_its_new_vector(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        vectors = clustered(300)
        ids = await fill(dsn, acme, vectors)
        writer = await asyncpg.connect(dsn)
        try:
            await writer.execute("SET ROLE kemem_owner; BEGIN")
            await writer.execute(
                "UPDATE memories SET embedding = $1::text::vector "
                "WHERE tenant_id = $2 AND memory_id = $3",
                str((-vectors[0]).tolist()),
                acme.tenant_id,
                ids[0],
            )

            # Not waited for: it is somebody's.
            async with asyncio.timeout(PATIENCE):
                await earn(runtime, acme, 200)

            assert await coded(dsn, acme) == 299
            await writer.execute("COMMIT")
        finally:
            await writer.close()
        assert await coded(dsn, acme) == 299
        await earn(runtime, acme, 200)
        assert await coded(dsn, acme) == 300
        assert await wrong_codes(dsn, acme) == 0


class StopError(Exception):
    """The process is gone."""


class TestResuming:
    @pytest.mark.parametrize("mode", ["semantic", "hybrid"])
    async def test_what_was_interrupted_is_finished_by_the_next_run(
        self, runtime: Runtime, acme: Caller, dsn: str, mode: str
    ) -> None:
        vectors = clustered(300)
        ids = await fill(dsn, acme, vectors)

        def stop(_rows: int) -> None:
            raise StopError

        service = QuantisationService(runtime.database, 200, batch=100)
        with pytest.raises(StopError):
            await service.run(acme.tenant_id, moved=stop)

        assert await coded(dsn, acme) == 100
        [row] = await registered(dsn, acme)
        assert row["coded_at"] is None
        for place in (0, 150, 299):
            found = await search(runtime, acme, vectors[place], mode=mode)
            assert ids_of(found)[0] == ids[place]
        seen: list[int] = []
        await service.run(acme.tenant_id, moved=seen.append)
        assert seen == [100, 100]
        assert await coded(dsn, acme) == 300
        [row] = await registered(dsn, acme)
        assert row["coded_at"] is not None

    async def test_interrupted_clearing_is_finished_by_the_next_run(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, clustered(300))
        await earn(runtime, acme, 200)

        def stop(_rows: int) -> None:
            raise StopError

        service = QuantisationService(runtime.database, 1_000, batch=100)
        with pytest.raises(StopError):
            await service.run(acme.tenant_id, moved=stop)

        assert await coded(dsn, acme) == 200
        assert len(await registered(dsn, acme)) == 1
        await service.run(acme.tenant_id)
        assert await coded(dsn, acme) == 0
        assert await registered(dsn, acme) == []

    async def test_two_runs_at_once_make_each_code_once(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, clustered(1_000))

        outcomes = await asyncio.gather(*(earn(runtime, acme, 500, batch=50) for _ in range(2)))

        assert await coded(dsn, acme) == 1_000
        assert await wrong_codes(dsn, acme) == 0
        assert sum(one.rows for run in outcomes for one in run) == 1_000

    async def test_a_second_run_has_nothing_to_do(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, clustered(300))
        await earn(runtime, acme, 200)
        before = await registered(dsn, acme)

        [again] = await earn(runtime, acme, 200)

        assert (again.task, again.rows, again.recall) == ("encode", 0, None)
        assert await registered(dsn, acme) == before


class TestSampling:
    async def test_recall_of_codes_is_measured(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, clustered(500))

        [outcome] = await earn(runtime, acme, 200)

        [row] = await registered(dsn, acme)
        assert outcome.recall == row["sampled_recall"]
        assert row["sampled_recall"] >= 0.95
        assert row["sampled_at"] is not None

    async def test_recall_is_measured_again_after_a_day(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, clustered(300))
        await earn(runtime, acme, 200)

        async def later(age: str) -> float | None:
            await execute(
                dsn,
                "UPDATE memory_buckets SET sampled_at = now() - CAST($2 AS text)::interval "
                "WHERE tenant_id = $1",
                acme.tenant_id,
                age,
            )
            [outcome] = await earn(runtime, acme, 200)
            return outcome.recall

        assert await later("23 hours 59 minutes") is None
        assert await later("24 hours") == 1.0
        assert await later("1 minute") is None

    async def test_codes_with_low_recall_are_cleared(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        vectors = useless(3 * CANDIDATES)
        ids = await fill(dsn, acme, vectors)

        [outcome] = await earn(runtime, acme, CANDIDATES)

        assert outcome.task == "clear"
        assert outcome.recall is not None
        assert outcome.recall < 0.95
        assert await coded(dsn, acme) == 0
        [row] = await registered(dsn, acme)
        assert row["coded_at"] is None
        found = await search(runtime, acme, vectors[500])
        assert ids_of(found)[0] == ids[500]

    async def test_codes_with_low_recall_at_hundred_are_cleared(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        # Of twenty about a subject all are found; the next eighty are near by chance alone.
        await fill(dsn, acme, clustered(1_000, subjects=50))

        [outcome] = await earn(runtime, acme, 500)

        assert outcome.task == "clear"
        assert outcome.recall is not None
        assert 0.5 < outcome.recall < 0.95
        assert await coded(dsn, acme) == 0

    async def test_refused_codes_are_not_retried_for_a_week(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, useless(3 * CANDIDATES))
        await earn(runtime, acme, CANDIDATES)

        async def later(age: str) -> QuantisationResult:
            await execute(
                dsn,
                "UPDATE memory_buckets SET sampled_at = now() - CAST($2 AS text)::interval "
                "WHERE tenant_id = $1",
                acme.tenant_id,
                age,
            )
            [outcome] = await earn(runtime, acme, CANDIDATES)
            return outcome

        assert (await later("6 days 23 hours")).task == "nothing"
        again = await later("7 days")
        assert (again.task, again.rows) == ("clear", 3 * CANDIDATES)
        assert (await later("1 hour")).task == "nothing"

    async def test_a_refusal_that_was_interrupted_is_finished(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, clustered(300))
        await earn(runtime, acme, 200)
        await execute(
            dsn,
            "UPDATE memory_buckets SET sampled_recall = 0.5, coded_at = NULL WHERE tenant_id = $1",
            acme.tenant_id,
        )

        await earn(runtime, acme, 200)

        assert await coded(dsn, acme) == 0
        [row] = await registered(dsn, acme)
        assert row["sampled_recall"] == 0.5

    async def test_a_refused_bucket_that_has_shrunk_is_forgotten(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await fill(dsn, acme, useless(3 * CANDIDATES))
        await earn(runtime, acme, CANDIDATES)
        await execute(
            dsn,
            "UPDATE memories SET status = 'archived' WHERE tenant_id = $1",
            acme.tenant_id,
        )

        await earn(runtime, acme, CANDIDATES)

        assert await registered(dsn, acme) == []
