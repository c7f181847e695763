"""Which searches choose candidates, and which buckets a process takes for large."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from app.identity.tenants.access import Access
from app.language.ranking.query import ParsedQuery, parse_query
from app.memory.memories.candidates_sql import LEAST_UNCODED, UNCODED_SHARE, complete
from app.memory.memories.comparison_sql import LEAST_DIMENSION, MINIMUM_DIMENSION, nearest
from app.memory.memories.large_buckets import (
    AGAIN,
    DEEPEST,
    DEEPEST_BY_VECTORS,
    LARGE,
    MOST_KNOWN,
    MOST_VECTORS,
    LargeBuckets,
    may_choose,
)
from app.memory.memories.search_sql import Bucket, SearchPlan

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


class Registry:
    """What the database says of the large buckets of a tenant, and how often it was asked."""

    def __init__(self, *scope_ids: str) -> None:
        self.scope_ids = list(scope_ids)
        self.asked: list[tuple[str, tuple[object, ...]]] = []

    async def fetch(self, tenant_id: str, statement: str, *args: object) -> Sequence[Any]:
        self.asked.append((tenant_id, args))
        return [{"scope": "user", "scope_id": scope_id} for scope_id in self.scope_ids]


class TestLargeBuckets:
    async def test_one_large_bucket_of_a_plan_is_enough(self) -> None:
        registry = Registry("ana")
        buckets = LargeBuckets(registry)
        session = Bucket("session", "s", 1.0)

        assert await buckets.has(planned(buckets=[session, Bucket("user", "ana", 0.6)]))
        assert not await buckets.has(planned(buckets=[session, Bucket("user", "bo", 0.6)]))
        assert not await buckets.has(planned(buckets=[Bucket("agent", "ana", 0.4)]))
        # All of a tenant at once.
        assert registry.asked == [("t", (LARGE, MOST_KNOWN))]

    async def test_database_is_asked_again_after_a_while(self) -> None:
        registry, now = Registry(), [0.0]
        buckets = LargeBuckets(registry, lambda: now[0])
        assert not await buckets.has(planned())
        registry.scope_ids.append("ana")

        now[0] = AGAIN - 1
        assert not await buckets.has(planned())
        now[0] = AGAIN
        assert await buckets.has(planned())
        assert len(registry.asked) == 2

    async def test_forgotten_bucket_is_small_until_the_database_is_asked_again(self) -> None:
        registry, now = Registry("ana", "bo"), [0.0]
        buckets = LargeBuckets(registry, lambda: now[0])
        buckets.forget(planned())
        assert await buckets.has(planned())

        buckets.forget(planned())

        assert not await buckets.has(planned())
        assert await buckets.has(planned(buckets=[Bucket("user", "bo", 0.6)]))
        now[0] = AGAIN
        assert await buckets.has(planned())

    async def test_process_forgets_the_tenant_that_it_noted_first(self) -> None:
        registry = Registry("ana")
        buckets = LargeBuckets(registry)
        for number in range(MOST_KNOWN + 1):
            await buckets.has(planned(access=Access(f"t{number}")))
        registry.asked.clear()

        await buckets.has(planned(access=Access("t1")))
        assert not registry.asked
        await buckets.has(planned(access=Access("t0")))
        assert [tenant_id for tenant_id, _ in registry.asked] == ["t0"]


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
    assert complete({"coded": coded, "uncoded": uncoded, "chosen": 100}, 100) is stands


@pytest.mark.parametrize(("visible", "stands"), [(50, True), (49, False)])
def test_candidates_stand_for_a_bucket_where_most_may_be_seen(
    visible: int, *, stands: bool
) -> None:
    assert complete({"coded": 2_000, "uncoded": 0, "chosen": 100}, visible) is stands


@pytest.mark.parametrize(
    ("rows", "candidates"),
    [(0, 80), (1_214, 80), (1_215, 81), (5_999, 399), (6_000, 400), (50_000, 400)],
)
def test_larger_bucket_has_more_candidates(rows: int, candidates: int) -> None:
    assert nearest(rows) == candidates
