"""The seed's formula holds, its parts add up, and more of anything never ranks lower."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.memory.memories.hybrid import (
    InvalidWeightsError,
    RankWeights,
    ScopeWeights,
    score_parts,
)

shares = st.floats(min_value=0.0, max_value=1.0)
cosines = st.floats(min_value=-1.1, max_value=1.1)


@st.composite
def weights(draw):
    first, second = sorted((draw(shares), draw(shares)))
    # The largest sum that is allowed, so that the bound is tried where it is tightest.
    slack = draw(st.sampled_from([0.0, 9e-7]))
    return RankWeights(first, second - first, min(1.0 - second + slack, 1.0))


@pytest.mark.parametrize(
    ("similarity", "confidence", "scope", "expected"),
    [
        (1.0, 1.0, "session", 1.0),
        (0.8, 0.9, "session", 0.4 + 0.27 + 0.2),
        (0.8, 0.9, "project", 0.4 + 0.27 + 0.16),
        (0.8, 0.9, "user", 0.4 + 0.27 + 0.12),
        (0.8, 0.9, "agent", 0.4 + 0.27 + 0.08),
        (-0.4, 0.7, "user", 0.21 + 0.12),
        (1.0000001, 1.0, "session", 1.0),
        (1.1, 0.0, "agent", 0.5 + 0.08),
        (math.nan, 1.0, "session", 0.5),
    ],
    ids=[
        "everything",
        "session",
        "project",
        "user",
        "agent",
        "opposite direction",
        "rounded over one",
        "over one beside less",
        "a vector of zeros",
    ],
)
def test_the_seed_formula(similarity, confidence, scope, expected):
    place = ScopeWeights().by_scope[scope]
    assert score_parts(similarity, confidence, place, RankWeights()).total == pytest.approx(
        expected
    )


@given(similarity=cosines, confidence=shares, scope=shares, weights=weights())
def test_a_score_is_between_zero_and_one_and_is_the_sum_of_its_parts(
    similarity, confidence, scope, weights
):
    score = score_parts(similarity, confidence, scope, weights).total
    parts = score_parts(similarity, confidence, scope, weights)
    assert 0.0 <= score <= 1.0
    assert min(parts.similarity, parts.confidence, parts.scope) >= 0.0
    assert score == pytest.approx(parts.similarity + parts.confidence + parts.scope, abs=1e-6)


@given(
    low=st.tuples(cosines, shares, shares),
    high=st.tuples(cosines, shares, shares),
    weights=weights(),
)
def test_more_of_any_part_never_ranks_lower(low, high, weights):
    better = tuple(max(pair) for pair in zip(low, high, strict=True))
    assert score_parts(*better, weights).total >= score_parts(*low, weights).total


@given(part=st.sampled_from([0, 1, 2]), base=st.tuples(shares, shares, shares), other=shares)
def test_each_part_counts_alone(part, base, other):
    """With the seed's weights a visible step in one part is a visible step in the score."""
    assume(abs(base[part] - other) > 1e-6)
    moved = (*base[:part], other, *base[part + 1 :])
    difference = score_parts(*moved, RankWeights()).total - score_parts(*base, RankWeights()).total
    assert math.copysign(1, difference) == math.copysign(1, other - base[part])


@pytest.mark.parametrize(
    "parts",
    [(0.5, 0.3, 0.3), (0.5, 0.3, 0.1), (1.2, -0.1, -0.1), (math.nan, 0.5, 0.5), (0.5, 0.5, 2e-6)],
    ids=["too much", "too little", "negative", "not a number", "just over the tolerance"],
)
def test_weights_that_are_no_shares_of_one_are_refused(parts):
    with pytest.raises(InvalidWeightsError):
        RankWeights(*parts)


@pytest.mark.parametrize("parts", [(0.5, 0.3, 0.2), (1.0, 0.0, 0.0), (0.1, 0.2, 0.7000005)])
def test_weights_that_sum_to_one_within_a_millionth_are_taken(parts):
    RankWeights(*parts)


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan, math.inf])
def test_a_scope_weight_outside_of_zero_to_one_is_refused(weight):
    with pytest.raises(InvalidWeightsError):
        ScopeWeights(project=weight)


def test_scope_weights_are_known_by_the_name_of_the_scope():
    assert dict(ScopeWeights(agent=0.1).by_scope) == {
        "session": 1.0,
        "project": 0.8,
        "user": 0.6,
        "agent": 0.1,
    }


def test_weights_a_hair_over_one_do_not_lift_a_score_over_one():
    assert score_parts(1.0, 1.0, 1.0, RankWeights(0.5, 0.3, 0.2000009)).total == 1.0
