"""Which searches choose candidates, and which buckets a process takes for large."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from app.identity.tenants.access import Access
from app.language.ranking.query import ParsedQuery, parse_query
from app.memory.memories.comparison_sql import LEAST_DIMENSION, MINIMUM_DIMENSION, nearest
from app.memory.memories.large_buckets import (
    DEEPEST,
    LARGE,
    MOST_KNOWN,
    MOST_UNCODED,
    MOST_VECTORS,
    LargeBuckets,
    may_choose,
)
from app.memory.memories.search_sql import Bucket, SearchPlan

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def asked_for(query: str = "Which tea does she like?", dimension: int = 256) -> ParsedQuery:
    vector = np.ones(dimension, np.float32) / np.float32(np.sqrt(dimension))
    return replace(parse_query(query, NOW), vectors={"m": vector})


def planned(**fields: Any) -> SearchPlan:
    plan = SearchPlan(
        access=Access("t"),
        buckets=[Bucket("user", "ana", 0.6)],
        vectors={},
        user_id="ana",
        agent_id=None,
        weights=(0.5, 0.3, 0.2),
        limit=10,
        mode="hybrid",
    )
    return replace(plan, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"filters": {"metadata.k": 1}}, {"run_id": "s"}, {"memory_type": "fact"},
        {"memory_types": ("fact",)}, {"tier": "long"}, {"as_of": NOW}, {"known_at": NOW},
        {"newest": NOW}, {"names": ("ana",)}, {"corrections": 1}, {"threshold": 0.0},
        {"rerank": False}, {"mode": "lexical"}, {"limit": DEEPEST + 1},
    ],
    ids=str,
)  # fmt: skip
def test_search_that_asks_for_more_than_what_is_near_ranks_every_row(
    fields: dict[str, Any],
) -> None:
    assert may_choose(planned(limit=DEEPEST), asked_for())
    assert not may_choose(planned(**fields), asked_for())


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
    assert may_choose(planned(), asked_for(dimension=dimension)) is chooses


def test_vectors_of_several_models_or_of_nothing_choose_no_candidates() -> None:
    asked = asked_for()
    assert not may_choose(planned(), replace(asked, vectors={}))
    assert not may_choose(planned(), replace(asked, vectors=dict.fromkeys("ab", np.ones(256))))
    assert not may_choose(planned(), replace(asked, vectors={"m": np.zeros(256, np.float32)}))


def test_query_that_names_a_date_or_is_long_or_has_no_words_ranks_every_row() -> None:
    assert not may_choose(planned(), asked_for("Which tea did she like on 3 May 2026?"))
    assert not may_choose(planned(), asked_for("?!"))
    for count, chooses in ((6 * MOST_VECTORS, True), (6 * MOST_VECTORS + 1, False)):
        words = " ".join(f"q{chr(97 + number)}k" for number in range(count))
        assert may_choose(planned(), asked_for(words)) is chooses


@pytest.mark.parametrize(
    ("rows", "coded", "large"),
    [
        (LARGE, LARGE, True),
        (LARGE, LARGE - 1, False),
        (LARGE + MOST_UNCODED, LARGE, True),
        (LARGE + MOST_UNCODED + 1, LARGE, False),
    ],
)
def test_bucket_is_large_where_most_of_many_rows_have_codes(
    rows: int, coded: int, *, large: bool
) -> None:
    buckets = LargeBuckets()
    buckets.note("t", planned(), rows=rows, coded=coded)
    assert buckets.has("t", planned()) is large
    assert not buckets.has("other", planned())
    assert not buckets.has("t", planned(buckets=[Bucket("user", "bo", 0.6)]))

    buckets.note("t", planned(), rows=3, coded=0)
    assert not buckets.has("t", planned())


def test_process_forgets_the_bucket_that_it_noted_first() -> None:
    buckets = LargeBuckets()
    for number in range(MOST_KNOWN + 1):
        buckets.note(f"t{number}", planned(), rows=LARGE, coded=LARGE)

    assert not buckets.has("t0", planned())
    assert buckets.has("t1", planned())
    assert buckets.has(f"t{MOST_KNOWN}", planned())


@pytest.mark.parametrize(
    ("rows", "candidates"),
    [(0, 80), (2_429, 80), (2_430, 81), (5_999, 199), (6_000, 200), (50_000, 200)],
)
def test_larger_bucket_has_more_candidates(rows: int, candidates: int) -> None:
    assert nearest(rows) == candidates
