"""Candidates of large buckets: what they find beside a search of every row, and at what price."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import asyncpg
import numpy as np
import pytest
import pytest_asyncio
from pgvector.asyncpg import register_vector

from app.identity.agents.embedders import EmbeddedQuery, QueryVectors
from app.identity.tenants.access import Access, Principal
from app.language.ranking.boosts import Boosts
from app.language.ranking.packing import INDEX_COLUMNS as WORDS
from app.language.ranking.query import parse_query
from app.memory.memories.bucket_index import LONGEST_SESSION, USUAL, BucketIndex
from app.memory.memories.bucket_repository import BucketRepository
from app.memory.memories.bucket_sql import CODED_ROWS
from app.memory.memories.candidate_search import by_all, by_vectors
from app.memory.memories.candidates_sql import (
    LEADING,
    LEAST_CORRECTIONS,
    LEAST_UNCODED,
    PER_HIT,
    candidates_statement,
    chosen_in,
    nearest_statement,
)
from app.memory.memories.comparison_sql import MINIMUM_DIMENSION, MOST_TERMS, nearest
from app.memory.memories.large_buckets import AGAIN, LARGE, PAUSE, LargeBuckets, may_choose
from app.memory.memories.quantisation import QuantisationService
from app.memory.memories.recall_service import Recall, RecallService
from app.memory.memories.search_sql import Bucket, SearchPlan
from app.memory.memories.searchable import row_terms
from app.platform.database.base import new_id
from app.platform.database.joint_reads import HotReads
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime
from app.settings import Settings
from tests.support.api import execute
from tests.support.plans import Crowd, new_crowd, nodes, plan_of, vacuumed
from tests.support.tenants import Caller, make_tenant

DIMENSION = 256
MODEL = f"test/short:{DIMENSION}"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
SUBJECTS = 25
ROWS = 700
LENGTH = 10
"""Of a session."""

COLUMNS = (
    "tenant_id", "memory_id", "user_id", "agent_id", "session_id", "scope", "scope_id", "content",
    "content_hash", "memory_type", "tier", "source", "confidence", "visibility", "embedding",
    "embedding_model", "metadata", *WORDS,
)  # fmt: skip


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def centres() -> np.ndarray:
    return unit(np.random.default_rng(5).standard_normal((SUBJECTS, DIMENSION)))


def near_to(subjects: np.ndarray, seed: int) -> np.ndarray:
    """A unit vector near the centre of each subject."""
    noise = np.random.default_rng(seed).standard_normal((len(subjects), DIMENSION))
    return unit(centres()[subjects] + noise * (0.9 / np.sqrt(DIMENSION)))


def word(number: int) -> str:
    """One term; digits would be terms of their own."""
    return "q" + "".join(chr(97 + number // place % 26) for place in (676, 26, 1)) + "k"


class Filled:
    """A bucket in which each row tells of a subject, in words that many and few others have."""

    def __init__(self, tenant: Caller, count: int, *, sessions: bool) -> None:
        random = np.random.default_rng(3)
        self.tenant = tenant
        # A session is about two of them.
        talks = random.integers(0, SUBJECTS, (count // LENGTH + 1, 2))
        self.subjects = talks[np.arange(count) // LENGTH, random.integers(0, 2, count)]
        self.vectors = near_to(self.subjects, 4)
        self.ids = [new_id("mem") for _ in range(count)]
        self.texts = [
            f"About {word(subject)} in {word(100 + random.integers(30))} there is "
            f"{word(200 + random.integers(300))}, {word(1_000 + place)}."
            for place, subject in enumerate(self.subjects)
        ]
        self.sessions = [
            f"session-{place // LENGTH}" if sessions and place % 2 else None
            for place in range(count)
        ]

    async def store(self, dsn: str, **columns: Any) -> None:
        """Store the rows.

        Args:
            dsn: of the database.
            columns: values of columns by row, in place of the usual ones.

        """
        connection = await asyncpg.connect(dsn)
        tenant_id = self.tenant.tenant_id
        try:
            await connection.execute("SET ROLE kemem_owner")
            await register_vector(connection)
            await connection.execute(
                "INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, 'home', 'H'), "
                "($1, 'other', 'O')",
                tenant_id,
            )
            await connection.execute(
                "INSERT INTO users (tenant_id, user_id, agent_id) VALUES ($1, 'ana', 'home')",
                tenant_id,
            )
            await connection.execute(
                "INSERT INTO sessions (tenant_id, session_id, user_id, agent_id) "
                "SELECT $1, unnest($2::text[]), 'ana', 'home'",
                tenant_id,
                sorted({name for name in self.sessions if name} | {"apart"}),
            )
            values = ", ".join(f"${place}" for place in range(1, len(COLUMNS) + 1))
            await connection.executemany(
                f"INSERT INTO memories ({', '.join(COLUMNS)}) VALUES ({values})",
                [self._row(place, columns) for place in range(len(self.ids))],
            )
        finally:
            await connection.close()

    def _row(self, place: int, columns: dict[str, Any]) -> tuple[Any, ...]:
        text = self.texts[place]
        row = {
            "tenant_id": self.tenant.tenant_id,
            "memory_id": self.ids[place],
            "user_id": "ana",
            "agent_id": None,
            "session_id": self.sessions[place],
            "scope": "user",
            "scope_id": "ana",
            "content": text,
            "content_hash": self.ids[place].encode(),
            "memory_type": "fact",
            "tier": "long",
            "source": "user",
            "confidence": 0.9,
            "visibility": "members",
            "embedding": self.vectors[place],
            "embedding_model": MODEL,
            "metadata": "{}",
            **row_terms(text, {}, None),
        } | {name: value(place) for name, value in columns.items()}
        return tuple(row[name] for name in COLUMNS)

    def asked(self, number: int, **fields: Any) -> SearchPlan:
        """A question about a subject, in its words and those of a row."""
        place = (number * 37) % len(self.ids)
        words = self.texts[place].split(", ")[0]
        vector = near_to(self.subjects[[place]], 100 + number)[0]
        query = replace(parse_query(f"What is {words}?", NOW), vectors={MODEL: vector})
        plan = SearchPlan(
            access=Access(self.tenant.tenant_id),
            buckets=[Bucket("user", "ana", 0.6), Bucket("agent", "home", 0.4)],
            vectors=query.vectors,
            user_id="ana",
            agent_id=None,
            weights=(0.5, 0.3, 0.2),
            limit=10,
            mode="hybrid",
            asked=query,
        )
        return replace(plan, **fields)


@pytest_asyncio.fixture
async def filled(runtime: Runtime, acme: Caller, dsn: str) -> Filled:
    bucket = Filled(acme, ROWS, sessions=True)
    await bucket.store(dsn)
    await encode(runtime, acme)
    return bucket


async def encode(runtime: Runtime, tenant: Caller) -> None:
    await QuantisationService(runtime.database, 100).run(tenant.tenant_id)


async def codes(dsn: str, tenant: Caller) -> int:
    statement = "SELECT count(code) AS codes FROM memories WHERE tenant_id = $1"
    [row] = await execute(dsn, statement, tenant.tenant_id)
    return row["codes"]


def known(
    runtime: Runtime, database: HotReads | None = None, clock: Callable[[], float] = monotonic
) -> LargeBuckets:
    """Every bucket with codes is large."""
    return LargeBuckets(database or runtime.database, clock, least=1)


async def indexes(large: LargeBuckets, plan: SearchPlan) -> Sequence[BucketIndex]:
    """What is known once everything has been read."""
    await large.indexes(plan)
    await large.settled()
    return await large.indexes(plan)


class Counted:
    """The database, and how many statements it was sent."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database
        self.statements: list[str] = []

    async def fetch(self, tenant_id: str, statement: str, *args: object) -> Any:
        self.statements.append(statement)
        return await self._database.fetch(tenant_id, statement, *args)


def in_mode(plan: SearchPlan, mode: str) -> SearchPlan:
    """The same question, compared by its vector alone or its words alone."""
    assert plan.asked is not None
    if mode == "semantic":
        return replace(plan, mode=mode, asked=None)
    if mode == "lexical":
        return replace(plan, mode=mode, vectors={}, asked=replace(plan.asked, vectors={}))
    return plan


async def found(runtime: Runtime, plan: SearchPlan, large: LargeBuckets | None) -> list[str]:
    if large is not None:
        await indexes(large, plan)
    if plan.asked is None:
        hits = await by_vectors(runtime.database, plan, large)
    else:
        tenant_id = plan.access.tenant_id
        hits = await by_all(runtime.database, tenant_id, plan, plan.asked, Boosts(), large)
    return [hit.ranked.memory_id for hit in hits]


class TestWhatIsFound:
    @pytest.mark.parametrize(
        ("sessions", "share"), [(False, 0.95), (True, 0.75)], ids=["alone", "in sessions"]
    )
    async def test_hits_are_those_of_a_search_of_every_row(
        self, runtime: Runtime, acme: Caller, dsn: str, *, sessions: bool, share: float
    ) -> None:
        """Where this was written 0.99 of ten alone, and 0.81 where sessions count, too."""
        bucket = Filled(acme, ROWS, sessions=sessions)
        await bucket.store(dsn)
        await encode(runtime, acme)
        shares = []
        for number in range(40):
            plan = bucket.asked(number)
            exact = await found(runtime, plan, None)
            chosen = await found(runtime, plan, known(runtime))
            assert len(chosen) == 10
            shares.append(len(set(exact) & set(chosen)) / len(exact))

        assert sum(shares) / len(shares) >= share

    async def test_explained_scores_are_those_of_a_search_of_every_row(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        """Words are as rare and cosines as usual as they are in the whole bucket."""
        bucket = Filled(acme, ROWS, sessions=False)
        await bucket.store(dsn)
        await encode(runtime, acme)
        for number in range(10):
            plan = bucket.asked(number, explain=True)
            assert plan.asked is not None
            large = known(runtime)
            await indexes(large, plan)
            ways = [
                await by_all(runtime.database, acme.tenant_id, plan, plan.asked, Boosts(), way)
                for way in (None, large)
            ]
            exact, chosen = ({hit.ranked.memory_id: hit.ranked for hit in way} for way in ways)
            assert exact.keys() & chosen.keys()
            for memory_id in exact.keys() & chosen.keys():
                one, other = exact[memory_id], chosen[memory_id]
                assert other.similarity == pytest.approx(one.similarity, abs=1e-5)
                assert other.lexical == pytest.approx(one.lexical, abs=1e-5)
                assert other.score == pytest.approx(one.score, abs=0.02)

    @pytest.mark.parametrize(
        ("columns", "fields"),
        [
            ({"memory_type": ("goal", "fact")}, {"memory_type": "goal"}),
            ({"memory_type": ("goal", "fact")}, {"memory_types": ("goal", "event")}),
            ({"tier": ("short", "long")}, {"tier": "short"}),
            ({"metadata": ('{"mark": "yes"}', "{}")}, {"filters": {"metadata.mark": "yes"}}),
            ({"session_id": ("apart", None)}, {"run_id": "apart"}),
            ({"agent_id": ("home", "other")}, {"agent_id": "home"}),
        ],
        ids=["type", "types", "tier", "metadata", "run", "agent"],
    )
    async def test_a_filter_that_leaves_five_rows_finds_all_five(
        self, runtime: Runtime, acme: Caller, dsn: str, columns: dict, fields: dict
    ) -> None:
        bucket = Filled(acme, ROWS, sessions=False)
        places = [11, 207, 333, 480, 699]
        ((name, (marked, usual)),) = columns.items()
        await bucket.store(dsn, **{name: lambda place: marked if place in places else usual})
        await encode(runtime, acme)

        for number in range(3):
            plan = bucket.asked(number, **fields)
            hits = await found(runtime, plan, known(runtime))
            assert sorted(hits) == sorted(bucket.ids[place] for place in places)

    async def test_what_is_hidden_or_over_is_no_hit(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        bucket = Filled(acme, ROWS, sessions=False)
        await bucket.store(dsn)
        await encode(runtime, acme)
        plan = bucket.asked(1)
        gone, ended, later, *kept = await found(runtime, plan, known(runtime))
        for memory_id, change in (
            (gone, "status = 'deleted'"),
            (ended, "valid_to = now()"),
            (later, "valid_from = now() + interval '1 day'"),
        ):
            await execute(dsn, f"UPDATE memories SET {change} WHERE memory_id = $1", memory_id)

        hits = await found(runtime, plan, known(runtime))

        assert len(hits) == 10
        assert not {gone, ended, later} & set(hits)
        assert set(kept) <= set(hits)

    async def test_a_memory_without_a_code_is_found_at_once(
        self, runtime: Runtime, dsn: str, filled: Filled
    ) -> None:
        """A new one, and one whose vector has changed: neither waits for housekeeping."""
        plan = filled.asked(1)
        place = (37) % ROWS
        await execute(
            dsn,
            "UPDATE memories SET code = NULL, confidence = 1.0 WHERE memory_id = $1",
            filled.ids[place],
        )

        assert (await found(runtime, plan, known(runtime)))[0] == filled.ids[place]

    @pytest.mark.parametrize(
        ("uncoded", "statements"), [(LEAST_UNCODED, 2), (LEAST_UNCODED + 1, 3)]
    )
    async def test_with_many_rows_without_a_code_every_row_is_ranked(
        self, runtime: Runtime, dsn: str, filled: Filled, uncoded: int, statements: int
    ) -> None:
        await execute(
            dsn,
            "UPDATE memories SET code = NULL WHERE memory_id = ANY ($1)",
            filled.ids[:uncoded],
        )
        plan = filled.asked(2)
        large, database = known(runtime), Counted(runtime)
        await indexes(large, plan)
        assert plan.asked is not None

        await by_all(database, plan.access.tenant_id, plan, plan.asked, Boosts(), large)

        assert len(database.statements) == statements

    async def test_a_bucket_is_large_once_housekeeping_has_given_it_codes(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        bucket = Filled(acme, LARGE, sessions=False)
        await bucket.store(dsn)
        plan, now = bucket.asked(1), [0.0]
        large = LargeBuckets(runtime.database, lambda: now[0])
        assert not await indexes(large, plan)

        await encode(runtime, acme)
        now[0] = AGAIN

        assert await indexes(large, plan)
        exact = await found(runtime, plan, None)
        chosen = await found(runtime, plan, large)
        assert len(set(exact) & set(chosen)) >= 9

    @pytest.mark.parametrize(
        "change", ["rows = $2 - 1", "coded_at = NULL, rows = $2"], ids=["small", "refused"]
    )
    async def test_a_bucket_without_enough_codes_is_not_large(
        self, runtime: Runtime, dsn: str, filled: Filled, change: str
    ) -> None:
        plan, tenant_id = filled.asked(1), filled.tenant.tenant_id
        statement = "UPDATE memory_buckets SET {} WHERE tenant_id = $1"
        await execute(dsn, statement.format("rows = $2"), tenant_id, LARGE)
        assert await indexes(LargeBuckets(runtime.database), plan)

        await execute(dsn, statement.format(change), tenant_id, LARGE)

        assert not await indexes(LargeBuckets(runtime.database), plan)

    @pytest.mark.parametrize(
        ("mode", "limit", "share"),
        [
            ("hybrid", 101, 0.7),
            ("semantic", 10, 0.95),
            ("lexical", 10, 0.95),
            ("lexical", 101, 0.95),
        ],
    )
    async def test_every_mode_and_depth_finds_what_a_search_of_every_row_does(
        self, runtime: Runtime, filled: Filled, mode: str, limit: int, share: float
    ) -> None:
        shares = []
        for number in range(20):
            plan = in_mode(filled.asked(number, limit=limit), mode)
            exact = await found(runtime, plan, None)
            chosen = await found(runtime, plan, known(runtime))
            assert len(chosen) == len(exact)
            shares.append(len(set(exact) & set(chosen)) / len(exact))

        assert sum(shares) / len(shares) >= share

    @pytest.mark.parametrize(("one_of", "share"), [(10, 0.95), (2, 0.85)], ids=["few", "many"])
    async def test_corrections_of_a_context_are_those_of_a_search_of_every_row(
        self, runtime: Runtime, acme: Caller, dsn: str, *, one_of: int, share: float
    ) -> None:
        """Few enough are all candidates, and differ where scores hardly do: the usual cosine is an
        estimate. Of many those are candidates that are near or have the words.
        """
        bucket = Filled(acme, ROWS, sessions=False)
        types = ["fact" if place % one_of else "correction" for place in range(ROWS)]
        assert (types.count("correction") <= LEAST_CORRECTIONS) is (one_of == 10)
        await bucket.store(dsn, memory_type=types.__getitem__)
        await encode(runtime, acme)
        shares = []
        for number in range(10):
            plan = bucket.asked(number, limit=3, corrections=5)
            exact, chosen = [
                {each for each in hits if types[bucket.ids.index(each)] == "correction"}
                for hits in [await found(runtime, plan, large) for large in (None, known(runtime))]
            ]
            assert len(exact) >= 5
            shares.append(len(exact & chosen) / len(exact))

        assert sum(shares) / len(shares) >= share

    async def test_a_context_ranks_candidates(
        self, runtime: Runtime, dsn: str, filled: Filled
    ) -> None:
        """With the buckets that the process knows, and in as many statements as ever."""
        await execute(
            dsn, "UPDATE memory_buckets SET rows = $2 WHERE tenant_id = $1",
            filled.tenant.tenant_id, LARGE,
        )  # fmt: skip
        database, large = Counted(runtime), LargeBuckets(runtime.database)
        recalling = RecallService(
            runtime.database, runtime.search_ranks, None, runtime.embedding_ledger,
            runtime.processing, large,
        )  # fmt: skip
        plan = filled.asked(1)
        await indexes(large, plan)
        assert plan.asked is not None
        wanted = Recall(
            asked=EmbeddedQuery(
                "tea", plan.asked, QueryVectors({MODEL: plan.vectors[MODEL][None]})
            ),
            scopes={"user": "ana"},
            user_id="ana",
            agent_id="home",
            limit=166,
            corrections=34,
        )

        recalled = await recalling.recall(
            Principal(plan.access, "", frozenset(), {}), wanted, database
        )

        assert len(recalled.found) == 166
        ranking, _ = database.statements
        assert "chosen AS MATERIALIZED" in ranking


class TestWhatChanges:
    """Rows that get codes are no longer rows without one, and what was read does not know them."""

    async def test_a_memory_that_gets_a_code_is_found_as_before(
        self, runtime: Runtime, dsn: str, filled: Filled
    ) -> None:
        plan, place = filled.asked(1), 37
        database, now = Counted(runtime), [0.0]
        large, reads = known(runtime, database, lambda: now[0]), []
        await execute(
            dsn,
            "UPDATE memories SET code = NULL, confidence = 1.0 WHERE memory_id = $1",
            filled.ids[place],
        )
        for then, tenant in ((0.0, None), (1.0, filled.tenant), (2.0, None), (1.0 + PAUSE, None)):
            now[0] = then
            if tenant is not None:
                await encode(runtime, tenant)
            assert (await found(runtime, plan, large))[0] == filled.ids[place]
            reads.append(database.statements.count(CODED_ROWS))

        # Every row is ranked until what was read is read again, after a pause.
        assert reads == [1, 1, 1, 2]

    async def test_a_search_while_a_code_is_made_finds_the_memory(
        self, runtime: Runtime, dsn: str, filled: Filled
    ) -> None:
        plan, place = filled.asked(1), 37
        large, tenant_id = known(runtime), filled.tenant.tenant_id
        await execute(
            dsn,
            "UPDATE memories SET code = NULL, confidence = 1.0 WHERE memory_id = $1",
            filled.ids[place],
        )
        await found(runtime, plan, large)
        async with runtime.database.begin(tenant_id) as db:
            repository = BucketRepository(db, tenant_id)
            [bucket] = await repository.all(100)
            assert await repository.write(bucket, [filled.ids[place]]) == 1
            assert (await found(runtime, plan, large))[0] == filled.ids[place]

        for _ in range(2):
            assert (await found(runtime, plan, large))[0] == filled.ids[place]

    @pytest.mark.parametrize(
        ("away", "back"),
        [
            ("status = 'archived'", "status = 'active'"),
            (
                "scope = 'agent', scope_id = 'other', agent_id = 'other'",
                "scope = 'user', scope_id = 'ana', agent_id = NULL",
            ),
        ],
        ids=["restored", "moved"],
    )
    async def test_a_memory_that_comes_back_is_found(
        self, runtime: Runtime, dsn: str, filled: Filled, away: str, back: str
    ) -> None:
        plan, large = filled.asked(1), known(runtime)
        best, *_ = await found(runtime, plan, None)
        change = "UPDATE memories SET {} WHERE memory_id = $1"
        await execute(dsn, change.format(away), best)
        assert best not in await found(runtime, plan, large)

        await execute(dsn, change.format(back), best)

        assert best in await found(runtime, plan, large)


class TestCodes:
    async def test_long_rows_get_no_short_code(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        bucket = Filled(acme, 101, sessions=False)
        bucket.texts[:3] = [
            " ".join(word(number) for number in range(count))
            for count in (MOST_TERMS, MOST_TERMS + 1, 4_000)
        ]
        await bucket.store(dsn)

        await encode(runtime, acme)

        assert await codes(dsn, acme) == 99
        without = await execute(
            dsn,
            "SELECT memory_id FROM memories WHERE tenant_id = $1 AND code IS NULL",
            acme.tenant_id,
        )
        assert {row["memory_id"] for row in without} == set(bucket.ids[1:3])

    @pytest.mark.parametrize(
        ("count", "codes_left"), [(MOST_TERMS, 101), (MOST_TERMS + 1, 100), (4_000, 100)]
    )
    async def test_a_row_that_grows_too_long_loses_its_code(
        self, runtime: Runtime, acme: Caller, dsn: str, count: int, codes_left: int
    ) -> None:
        bucket = Filled(acme, 101, sessions=False)
        await bucket.store(dsn)
        await encode(runtime, acme)
        terms = row_terms(" ".join(word(number) for number in range(count)), {}, None)

        await execute(
            dsn,
            "UPDATE memories SET terms = CAST($2::text AS sparsevec), term_count = $3 "
            "WHERE memory_id = $1",
            bucket.ids[0],
            terms["terms"].to_text(),
            terms["term_count"],
        )

        assert await codes(dsn, acme) == codes_left

    async def test_useless_codes_are_refused(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        bucket = Filled(acme, ROWS, sessions=False)
        bucket.vectors = unit(np.random.default_rng(2).uniform(0.1, 1.0, (ROWS, DIMENSION)))
        await bucket.store(dsn)

        await encode(runtime, acme)

        assert await codes(dsn, acme) == 0


def rows_of(reads: list[dict[str, Any]]) -> float:
    return sum(node["Actual Rows"] * node["Actual Loops"] for node in reads)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowd(postgres: EmbeddedPostgres, settings: Settings) -> AsyncIterator[Crowd]:
    async with new_crowd(postgres, settings, "memories_candidates_plan") as opened:
        yield opened


async def bucket_of(crowd: Crowd, **columns: Any) -> Filled:
    """A bucket of a tenant of its own, with codes, all of it visible."""
    bucket = Filled(await make_tenant(crowd.runtime), ROWS, sessions=not columns)
    await bucket.store(crowd.dsn, **columns)
    await encode(crowd.runtime, bucket.tenant)
    await vacuumed(crowd.dsn, "memories")
    return bucket


class TestPlan:
    @pytest.mark.parametrize(
        ("mode", "limit"),
        [("hybrid", 10), ("hybrid", 101), ("semantic", 10), ("lexical", 10), ("lexical", 101)],
    )
    async def test_a_search_reads_the_rows_chosen(
        self, crowd: Crowd, mode: str, limit: int
    ) -> None:
        filled = await bucket_of(crowd)
        plan = in_mode(filled.asked(3, limit=limit), mode)
        assert may_choose(plan)
        chosen = chosen_in(await indexes(known(crowd.runtime), plan), plan)
        text, values = (
            nearest_statement(plan, chosen)
            if plan.asked is None
            else candidates_statement(plan, plan.asked, chosen)[:2]
        )

        found_plan = nodes(await plan_of(crowd.dsn, filled.tenant.tenant_id, text, values))

        reads = [node for node in found_plan if node.get("Relation Name") == "memories"]
        assert "Seq Scan" not in {node["Node Type"] for node in found_plan}
        wanted = max(nearest(ROWS), PER_HIT * limit)
        most = 2 * wanted + USUAL + 2 * LEADING * LONGEST_SESSION
        if plan.asked is None:
            # Each chosen row, and each hit again.
            most = wanted + limit
        assert rows_of(reads) <= most

    async def test_the_index_is_read_out_of_one_of_the_database(self, crowd: Crowd) -> None:
        filled = await bucket_of(crowd)

        found_plan = nodes(
            await plan_of(crowd.dsn, filled.tenant.tenant_id, CODED_ROWS, ["user", "ana"])
        )

        reads = [node for node in found_plan if node.get("Relation Name") == "memories"]
        assert {node["Node Type"] for node in reads} == {"Index Only Scan"}
        assert {node["Index Name"] for node in reads} == {"memories_idx_coded"}
        assert rows_of(reads) == pytest.approx(ROWS, abs=1)

    async def test_corrections_have_an_index(self, crowd: Crowd) -> None:
        types = ["correction" if place % 100 == 3 else "fact" for place in range(ROWS)]
        bucket = await bucket_of(crowd, memory_type=types.__getitem__)
        plan = bucket.asked(3, corrections=5)
        assert plan.asked is not None
        chosen = chosen_in(await indexes(known(crowd.runtime), plan), plan)
        text, values, _ = candidates_statement(plan, plan.asked, chosen)

        found_plan = nodes(await plan_of(crowd.dsn, bucket.tenant.tenant_id, text, values))

        reads = [
            node for node in found_plan if node.get("Index Name") == "memories_idx_corrections"
        ]
        assert rows_of(reads) == types.count("correction")

    @pytest.mark.parametrize("dimension", [MINIMUM_DIMENSION])
    async def test_long_codes_are_in_the_other_index(
        self, runtime: Runtime, acme: Caller, dsn: str, dimension: int
    ) -> None:
        """Of up to 64,000 bits: no index would take them beside the terms."""
        bucket = Filled(acme, 101, sessions=False)
        noise = np.random.default_rng(1).standard_normal((101, 16_000))
        bucket.vectors = unit(noise)
        await bucket.store(dsn)

        await execute(
            dsn,
            "UPDATE memories SET code = binary_quantize(embedding)::bit varying "
            "WHERE tenant_id = $1",
            acme.tenant_id,
        )

        assert await codes(dsn, acme) == 101
