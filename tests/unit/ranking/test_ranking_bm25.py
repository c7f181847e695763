"""Exact BM25: what the arrays say is what the formula says."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from app.language.ranking.packing import K1, B, bm25, rarity

COUNTS = arrays.arrays(
    np.float32,
    st.tuples(st.integers(0, 5), st.integers(1, 9)),
    elements=st.integers(0, 15).map(float),
)


def by_hand(counts, lengths, holders, documents, mean):
    """The formula of the text book, one row and one term at a time."""
    scores = []
    for row, length in enumerate(lengths):
        score = 0.0
        for term, held in enumerate(holders):
            idf = math.log(1 + (documents - held + 0.5) / (held + 0.5))
            count = float(counts[term][row])
            score += idf * count * (K1 + 1) / (count + K1 * (1 - B + B * length / mean))
        scores.append(score)
    return scores


def floats(*values):
    return np.array(values, np.float32)


@given(counts=COUNTS, extra=st.integers(0, 20), padding=st.integers(1, 30))
def test_every_row_has_the_score_of_the_formula(counts, extra, padding):
    lengths = counts.sum(axis=0) + np.float32(padding)
    documents = counts.shape[1] + extra
    holders = np.count_nonzero(counts, axis=1)
    mean = float(lengths.mean())

    scores = bm25(counts, lengths, rarity(holders, documents), mean)

    expected = by_hand(counts, lengths, holders, documents, mean)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
    assert scores.dtype == np.float32


@given(counts=COUNTS, cut=st.integers(0, 5))
def test_terms_may_be_scored_in_parts_and_added(counts, cut):
    lengths = counts.sum(axis=0) + 3
    weights = rarity(np.count_nonzero(counts, axis=1), counts.shape[1])
    whole = bm25(counts, lengths, weights, 9.0)
    parts = bm25(counts[:cut], lengths, weights[:cut], 9.0)
    parts = parts + bm25(counts[cut:], lengths, weights[cut:], 9.0)
    np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-5)


def test_a_row_with_none_of_the_terms_has_nothing():
    scores = bm25(floats([0, 1]).reshape(1, 2), floats(5, 5), floats(1.0), 5.0)
    assert scores[0] == 0.0
    assert scores[1] > 0.0


def test_without_terms_every_row_has_nothing():
    scores = bm25(np.zeros((0, 3), np.float32), floats(1, 2, 3), np.zeros(0, np.float32), 2.0)
    assert scores.tolist() == [0.0, 0.0, 0.0]


def test_without_rows_there_are_no_scores():
    assert bm25(np.zeros((2, 0), np.float32), floats(), floats(1, 1), 0.0).shape == (0,)


def test_a_second_mention_counts_less_than_the_first():
    once, twice, thrice = bm25(floats(1, 2, 3).reshape(1, 3), floats(9, 9, 9), floats(1), 9.0)
    assert once < twice < thrice
    assert twice - once > thrice - twice


def test_a_longer_row_has_less():
    short, usual, long = bm25(floats(1, 1, 1).reshape(1, 3), floats(3, 9, 30), floats(1), 9.0)
    assert short > usual > long


def test_at_the_mean_length_one_mention_is_worth_the_weight():
    assert bm25(floats(1).reshape(1, 1), floats(7), floats(2.5), 7.0)[0] == pytest.approx(2.5)


@pytest.mark.parametrize("mean", [0.0, 5.0])
def test_rows_of_no_length_are_no_division_by_zero(mean):
    scores = bm25(floats(0, 1).reshape(1, 2), floats(0, 0), floats(1), mean, b=1.0)
    assert np.isfinite(scores).all()
    assert scores[0] == 0.0


@given(documents=st.integers(1, 10_000), held=st.integers(0, 10_000))
def test_rarity_is_never_negative_and_falls_with_the_holders(documents, held):
    more, less = rarity([held + 1, held], documents)
    assert 0.0 <= more <= less


def test_more_holders_than_documents_count_as_all():
    assert rarity([7], 5)[0] == rarity([5], 5)[0] > 0.0
