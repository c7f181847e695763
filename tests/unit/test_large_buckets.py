"""Which searches choose candidates, and which buckets a process takes for large."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import asyncpg
import numpy as np
import pytest

from app.identity.tenants.access import Access
from app.language.ranking.features import BucketStatistics
from app.language.ranking.query import ParsedQuery, parse_query
from app.memory.memories.bucket_index import BucketIndex, ChosenCandidates
from app.memory.memories.bucket_sql import CODED_ROWS
from app.memory.memories.candidates_sql import (
    LEAST_UNCODED,
    UNCODED_SHARE,
    is_complete,
    is_current,
)
from app.memory.memories.comparison_sql import LEAST_DIMENSION, MINIMUM_DIMENSION, nearest
from app.memory.memories.large_buckets import (
    AGAIN,
    DEEPEST,
    DEEPEST_BY_VECTORS,
    LARGE,
    MOST_KNOWN,
    MOST_ROWS,
    MOST_VECTORS,
    PAUSE,
    LargeBuckets,
    may_choose,
)
from app.memory.memories.search_sql import Bucket, SearchPlan
from app.platform.database.failures import DatabaseBusyError

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def asked_for(query: str = "Which tea does she like?", dimension: int = 256) -> ParsedQuery:
    vector = np.ones(dimension, np.float32) / np.float32(np.sqrt(dimension))
    return replace(parse_query(query, NOW), vectors={"m": vector})


def planned(asked: ParsedQuery | None = None, **fields: Any) -> SearchPlan:
    asked = asked or asked_for()
    plan = SearchPlan(
        access=Access("t"),
        buckets=[Bucket("user", "ana", 0.6)],
        vectors=asked.vectors,
        user_id="ana",
        agent_id=None,
        weights=(0.5, 0.3, 0.2),
        limit=10,
        mode="hybrid",
        asked=asked,
    )
    return replace(plan, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"filters": {"metadata.k": 1}}, {"run_id": "s"}, {"memory_type": "fact"},
        {"memory_types": ("fact",)}, {"tier": "long"}, {"as_of": NOW}, {"known_at": NOW},
        {"newest": NOW}, {"names": ("ana",)}, {"threshold": 0.0}, {"limit": DEEPEST + 1},
    ],
    ids=str,
)  # fmt: skip
def test_search_that_asks_for_more_than_what_is_near_ranks_every_row(
    fields: dict[str, Any],
) -> None:
    assert may_choose(planned(limit=DEEPEST))
    assert not may_choose(planned(**fields))


@pytest.mark.parametrize(
    ("dimension", "chooses"),
    [
        (LEAST_DIMENSION - 1, False),
        (LEAST_DIMENSION, True),
        (MINIMUM_DIMENSION - 1, True),
        (MINIMUM_DIMENSION, False),
    ],
)
def test_candidates_are_chosen_by_short_codes_alone(dimension: int, chooses: bool) -> None:
    assert may_choose(planned(asked_for(dimension=dimension))) is chooses


def test_vectors_of_several_models_or_of_nothing_choose_no_candidates() -> None:
    asked = asked_for()
    two = dict.fromkeys("ab", np.ones(256))
    assert not may_choose(planned(replace(asked, vectors={})))
    assert not may_choose(planned(replace(asked, vectors=two)))
    assert not may_choose(planned(replace(asked, vectors={"m": np.zeros(256, np.float32)})))


def test_search_by_vectors_alone_needs_no_words_and_one_by_words_no_vector() -> None:
    vectors = asked_for().vectors
    by_vectors = replace(planned(), asked=None, mode="semantic")
    assert may_choose(replace(by_vectors, limit=DEEPEST_BY_VECTORS))
    assert not may_choose(replace(by_vectors, limit=DEEPEST_BY_VECTORS + 1))
    assert not may_choose(replace(by_vectors, vectors=dict.fromkeys("ab", vectors["m"])))
    without = replace(asked_for(), vectors={})
    assert may_choose(planned(without, mode="lexical"))
    assert not may_choose(planned(replace(asked_for("?!"), vectors={}), mode="lexical"))


def test_query_that_names_a_date_or_is_long_or_has_no_words_ranks_every_row() -> None:
    assert not may_choose(planned(asked_for("Which tea did she like on 3 May 2026?")))
    assert not may_choose(planned(asked_for("?!")))
    for count, chooses in ((6 * MOST_VECTORS, True), (6 * MOST_VECTORS + 1, False)):
        words = " ".join(f"q{chr(97 + number)}k" for number in range(count))
        assert may_choose(planned(asked_for(words))) is chooses


def row_of(count: int, state: str = "user ana m 1") -> dict[str, Any]:
    """What the database says of a bucket of so many rows without words."""
    sizes, empty = (np.full(count, size, ">i4").tobytes() for size in (36, 12))
    return {
        "states": [state],
        "names": ["m"],
        "ids": b"".join(b"mem_%04d" % place for place in range(count)),
        "id_sizes": np.full(count, 8, ">i4").tobytes(),
        "models": np.full(count, 1, ">i4").tobytes(),
        "codes": (np.array(256, ">i4").tobytes() + bytes(32)) * count,
        "code_sizes": sizes,
        "terms": bytes(12 * count),
        "term_sizes": empty,
        "sessions": bytes(8 * count),
        "lengths": bytes(4 * count),
    }


class Registry:
    """What the database says of the buckets of a tenant, and what it was asked."""

    def __init__(self, *scope_ids: str, rows: int = LARGE, coded: bool = True) -> None:
        self.buckets = {("user", scope_id): (rows, coded) for scope_id in scope_ids}
        self.asked: list[tuple[str, tuple[object, ...]]] = []
        self.read: list[str] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.error: Exception | None = None

    async def fetch(self, tenant_id: str, statement: str, *args: object) -> Sequence[Any]:
        if statement == CODED_ROWS:
            scope, scope_id = map(str, args)
            self.read.append(scope_id)
            await self.answers.wait()
            if self.error is not None:
                raise self.error
            return [row_of(9, f"{scope} {scope_id} m 1")]
        self.asked.append((tenant_id, args))
        return [
            {"scope": scope, "scope_id": scope_id, "rows": rows, "coded": coded}
            for (scope, scope_id), (rows, coded) in self.buckets.items()
        ]


async def indexes(buckets: LargeBuckets, plan: SearchPlan) -> Sequence[BucketIndex]:
    """What is known once everything has been read."""
    await buckets.indexes(plan)
    await buckets.settled()
    return await buckets.indexes(plan)


class TestLargeBuckets:
    async def test_one_large_bucket_of_a_plan_is_enough(self) -> None:
        registry = Registry("ana")
        buckets = LargeBuckets(registry)
        session = Bucket("session", "s", 1.0)

        plan = planned(buckets=[session, Bucket("user", "ana", 0.6)])
        [index] = await indexes(buckets, plan)
        assert index.states == {"user ana m 1"}
        assert not await indexes(buckets, planned(buckets=[session, Bucket("user", "bo", 0.6)]))
        assert not await indexes(buckets, planned(buckets=[Bucket("agent", "ana", 0.4)]))
        # All of a tenant at once, and of its buckets those that are searched.
        assert registry.asked == [("t", (MOST_KNOWN,))]
        assert registry.read == ["ana"]

    @pytest.mark.parametrize(
        ("rows", "coded", "large"),
        [
            (LARGE - 1, True, False), (LARGE, True, True), (LARGE, False, False),
            (MOST_ROWS, True, True), (MOST_ROWS + 1, True, False),
        ],
    )  # fmt: skip
    async def test_bucket_is_large_between_two_numbers_of_rows_with_codes(
        self, rows: int, *, coded: bool, large: bool
    ) -> None:
        buckets = LargeBuckets(Registry("ana", rows=rows, coded=coded))

        assert bool(await indexes(buckets, planned())) is large

    async def test_registered_bucket_beside_a_large_one_is_read_too(self) -> None:
        """It may have rows with codes, which are no rows without one."""
        registry = Registry("ana")
        registry.buckets["session", "s"] = (800, True)
        registry.buckets["agent", "home"] = (2_000, False)
        places = [("user", "ana"), ("session", "s"), ("agent", "home"), ("project", "p")]
        plan = planned(buckets=[Bucket(scope, name, 0.5) for scope, name in places])

        assert len(await indexes(LargeBuckets(registry), plan)) == 3
        assert registry.read == ["ana", "s", "home"]

    async def test_nobody_waits_for_a_reading_and_there_is_one(self) -> None:
        registry = Registry("ana", "bo")
        buckets, other = LargeBuckets(registry), planned(buckets=[Bucket("user", "bo", 0.6)])
        assert await indexes(buckets, other)
        registry.answers.clear()

        assert not any([await buckets.indexes(planned()) for _ in range(3)])
        assert await buckets.indexes(other)

        registry.answers.set()
        assert await indexes(buckets, planned())
        assert registry.read == ["bo", "ana"]

    @pytest.mark.parametrize(
        "error", [DatabaseBusyError(), asyncpg.QueryCanceledError()], ids=["busy", "too long"]
    )
    async def test_bucket_that_cannot_be_read_is_small_for_a_while(self, error: Exception) -> None:
        registry, now = Registry("ana"), [0.0]
        buckets = LargeBuckets(registry, lambda: now[0])
        registry.error = error
        assert not await indexes(buckets, planned())
        registry.error = None

        now[0] = AGAIN - 1
        assert not await indexes(buckets, planned())
        assert len(registry.read) == 1
        now[0] = AGAIN
        assert await indexes(buckets, planned())

    async def test_end_does_not_wait_for_a_reading(self) -> None:
        registry = Registry("ana")
        buckets = LargeBuckets(registry)
        registry.answers.clear()
        await buckets.indexes(planned())

        await buckets.aclose()

        assert not await buckets.indexes(planned())

    async def test_database_is_asked_again_after_a_while(self) -> None:
        registry, now = Registry(), [0.0]
        buckets = LargeBuckets(registry, lambda: now[0])
        assert not await indexes(buckets, planned())
        registry.buckets["user", "ana"] = (LARGE, True)

        now[0] = AGAIN - 1
        assert not await indexes(buckets, planned())
        now[0] = AGAIN
        assert await indexes(buckets, planned())
        assert len(registry.asked) == 2
        now[0] = 2 * AGAIN - 1
        assert await indexes(buckets, planned())
        assert len(registry.read) == 1
        now[0] = 2 * AGAIN
        assert await indexes(buckets, planned())
        assert len(registry.read) == 2

    async def test_outdated_bucket_is_read_again_after_a_pause(self) -> None:
        registry, now = Registry("ana", "bo"), [0.0]
        buckets, other = (
            LargeBuckets(registry, lambda: now[0]),
            planned(buckets=[Bucket("user", "bo", 0.6)]),
        )
        await indexes(buckets, planned())
        await indexes(buckets, other)

        buckets.outdated(planned(), {"user ana m 1"})

        assert not await indexes(buckets, planned())
        now[0] = PAUSE
        assert await indexes(buckets, planned())
        assert await indexes(buckets, other)
        assert registry.read == ["ana", "bo", "ana"]
        assert len(registry.asked) == 2

    async def test_what_was_read_after_an_outdated_index_is_kept(self) -> None:
        """Of many searches under way, one hears of the change first."""
        registry = Registry("ana")
        buckets = LargeBuckets(registry)
        await indexes(buckets, planned())

        buckets.outdated(planned(), {"user ana m 0"})

        assert await indexes(buckets, planned())
        assert registry.read == ["ana"]

    async def test_forgotten_bucket_is_small_for_a_while(self) -> None:
        registry, now = Registry("ana", "bo"), [0.0]
        buckets = LargeBuckets(registry, lambda: now[0])
        assert await indexes(buckets, planned())

        buckets.forget(planned())

        places = [Bucket("user", "ana", 0.6), Bucket("user", "bo", 0.6)]
        assert not await indexes(buckets, planned())
        # Nor is it left out of others: its rows with codes would be missed.
        assert not await indexes(buckets, planned(buckets=places))
        assert await indexes(buckets, planned(buckets=places[1:]))
        now[0] = AGAIN
        assert await indexes(buckets, planned())

    async def test_process_keeps_so_many_bytes_and_what_was_used_last(self) -> None:
        registry = Registry("ana", "bo", "cem")
        [index] = await indexes(LargeBuckets(registry), planned())
        buckets = LargeBuckets(registry, most_bytes=2 * index.size)
        plans = {
            name: planned(buckets=[Bucket("user", name, 0.6)]) for name in ("ana", "bo", "cem")
        }
        for name in ("ana", "bo", "ana", "cem"):
            await indexes(buckets, plans[name])
        registry.read.clear()

        for name in ("ana", "cem", "bo"):
            await indexes(buckets, plans[name])

        assert registry.read == ["bo"]
        assert not await indexes(LargeBuckets(registry, most_bytes=index.size - 1), planned())

    async def test_process_forgets_the_tenant_that_it_noted_first(self) -> None:
        registry = Registry()
        buckets = LargeBuckets(registry)
        asked = asked_for()
        for number in range(MOST_KNOWN + 1):
            await buckets.indexes(planned(asked, access=Access(f"t{number}")))
        registry.asked.clear()

        await buckets.indexes(planned(access=Access("t1")))
        assert not registry.asked
        await buckets.indexes(planned(access=Access("t0")))
        assert [tenant_id for tenant_id, _ in registry.asked] == ["t0"]


def chosen_of(rows: int) -> ChosenCandidates:
    statistics = BucketStatistics(np.zeros(0, np.int64), rows, 0.0)
    return ChosenCandidates((), frozenset(), (), rows, frozenset({"user ana m 1"}), statistics)


@pytest.mark.parametrize(
    ("states", "current"),
    [
        (["user ana m 1"], True),
        (["user ana m 2"], False),
        (["user ana m 1", "user ana n 1"], False),
        (None, False),
    ],
)
def test_rows_are_read_again_where_any_has_got_a_code(
    states: list[str] | None, *, current: bool
) -> None:
    assert is_current({"states": states}, chosen_of(2_000)) is current


@pytest.mark.parametrize(
    ("coded", "uncoded", "stands"),
    [
        (1_500, LEAST_UNCODED, True),
        (1_500, LEAST_UNCODED + 1, False),
        (10_000, 10_000 // UNCODED_SHARE, True),
        (10_000, 10_000 // UNCODED_SHARE + 1, False),
    ],
)
def test_candidates_stand_for_a_bucket_where_few_rows_have_no_code(
    coded: int, uncoded: int, *, stands: bool
) -> None:
    assert is_complete({"uncoded": uncoded, "chosen": 100}, chosen_of(coded), 100) is stands


@pytest.mark.parametrize(("visible", "stands"), [(50, True), (49, False)])
def test_candidates_stand_for_a_bucket_where_most_may_be_seen(
    visible: int, *, stands: bool
) -> None:
    assert is_complete({"uncoded": 0, "chosen": 100}, chosen_of(2_000), visible) is stands


@pytest.mark.parametrize(
    ("rows", "candidates"),
    [(0, 80), (1_214, 80), (1_215, 81), (5_999, 399), (6_000, 400), (50_000, 400)],
)
def test_larger_bucket_has_more_candidates(rows: int, candidates: int) -> None:
    assert nearest(rows) == candidates
