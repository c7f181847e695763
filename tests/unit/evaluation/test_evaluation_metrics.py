"""The measures of `kemem eval`, against values worked out by hand."""

import math

import pytest

from app.evaluation.metrics import (
    estimated_tokens,
    mean_scores,
    quantile,
    recall_at,
    score,
    session_recall,
)

# The second memory holds two units; the third is of somebody else.
HITS = [{"a"}, {"b", "c"}, set(), {"d"}]


def scored(hits, gold, *, relevant=None, ks=(1, 2, 10), sessions=None):
    relevant = len(gold) if relevant is None else relevant
    return score(hits, gold, relevant=relevant, ks=ks, sessions=sessions or {})


@pytest.mark.parametrize(
    ("gold", "k", "share"),
    [
        ({"a"}, 1, 1.0),
        ({"b"}, 1, 0.0),
        ({"b"}, 2, 1.0),
        ({"b", "c"}, 2, 1.0),
        ({"b", "d"}, 3, 0.5),
        ({"b", "d"}, 4, 1.0),
        ({"b", "c", "x"}, 50, 2 / 3),
        ({"x"}, 50, 0.0),
    ],
)
def test_recall_is_the_share_of_the_answer_among_the_first_hits(gold, k, share):
    assert recall_at(HITS, gold, k) == pytest.approx(share)


def test_nothing_found_is_worth_nothing():
    worth = scored([], {"a"})
    assert worth.recall == {1: 0.0, 2: 0.0, 10: 0.0}
    assert worth.hit == {1: 0.0, 2: 0.0, 10: 0.0}
    assert (worth.ndcg, worth.mrr, worth.session_recall) == (0.0, 0.0, None)


def test_everything_first_is_worth_everything():
    worth = scored([{"a"}, {"b"}, {"c"}], {"a", "b"})
    assert worth.recall == {1: 0.5, 2: 1.0, 10: 1.0}
    assert (worth.ndcg, worth.mrr) == (1.0, 1.0)


def test_ndcg_falls_with_the_rank():
    # Ranks 2 and 4, where 1 and 2 would be best.
    expected = (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3))
    assert expected == pytest.approx(0.6509, abs=1e-4)
    assert scored(HITS, {"b", "d"}).ndcg == pytest.approx(expected)


def test_ndcg_looks_at_ten_hits_and_no_further():
    hits = [{str(rank)} for rank in range(1, 21)]
    assert scored(hits, {"10"}).ndcg == pytest.approx(1 / math.log2(11))
    assert scored(hits, {"11"}).ndcg == 0.0
    assert scored(hits, {"11"}).mrr == pytest.approx(1 / 11)
    # Twelve answers cannot all be among ten.
    assert scored(hits, {str(rank) for rank in range(1, 13)}).ndcg == pytest.approx(1.0)


def test_units_that_share_a_memory_are_found_once():
    # Two memories hold the three: one of both, at rank 2, and one that was never stored.
    worth = scored(HITS, {"b", "c", "x"}, relevant=2)
    assert worth.recall[2] == pytest.approx(2 / 3)
    assert worth.ndcg == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert worth.ndcg == pytest.approx(0.3869, abs=1e-4)
    assert worth.mrr == 0.5
    assert worth.hit == {1: 0.0, 2: 1.0, 10: 1.0}


def test_sessions_count_in_the_order_of_their_best_hit():
    sessions = {f"u{number}": f"s{number}" for number in range(1, 8)} | {"v1": "s1"}
    hits = [{"u1"}, {"v1"}, {"u2"}, {"u3"}, {"u4"}, {"u5"}, {"u6"}]
    # The second hit is of a session that was met: s5 is the fifth, s6 the sixth.
    assert session_recall(hits, {"u5"}, sessions) == 1.0
    assert session_recall(hits, {"u6"}, sessions) == 0.0
    assert session_recall(hits, {"u1", "u6"}, sessions) == 0.5
    # Another unit of a session that was found will do.
    assert session_recall([{"v1"}], {"u1"}, sessions) == 1.0


def test_without_sessions_there_is_no_session_recall():
    assert session_recall(HITS, {"a"}, {}) is None
    assert scored(HITS, {"a"}, sessions={"b": "s1"}).session_recall is None


def test_means_are_over_questions():
    sessions = {"a": "s1"}
    mean = mean_scores(
        [scored(HITS, {"a"}, sessions=sessions), scored(HITS, {"b", "x"}), scored(HITS, {"x"})]
    )
    assert mean.recall == {1: pytest.approx(1 / 3), 2: 0.5, 10: 0.5}
    assert mean.mrr == pytest.approx(0.5)
    # Over the one question whose answer has a session.
    assert mean.session_recall == 1.0


def test_quantiles_lie_between_neighbours():
    assert quantile([4.0], 0.95) == 4.0
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("我喜欢茶", 4), ("我喜欢 tea", 4)]
)
def test_tokens_are_estimated_per_character(text, tokens):
    assert estimated_tokens(text) == tokens
