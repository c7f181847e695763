"""Weights of a ranking are shares of one."""

import math

import pytest

from app.memory.memories.hybrid import (
    InvalidWeightsError,
    RankWeights,
    ScopeWeights,
)


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
