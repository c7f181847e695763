"""Fusion: every signal does what it says, and a plain loop comes to the same relevance."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.ranking.boosts import BOOSTS, Boosts, InvalidWeightsError, parsed_weights
from app.language.ranking.features import BucketStatistics, Features
from app.language.ranking.fusion import (
    CLEAR_LEAD,
    DAY,
    FAINT_LEAD,
    RRF_RANK,
    SHORT_QUESTION_WORDS,
    SIGNALS,
    WEEK,
    fuse,
)
from app.language.ranking.packing import K1, B, bm25, rarity
from app.language.ranking.query import LONG_QUERY, QueryTraits

QUIET = Boosts(**dict.fromkeys(BOOSTS, 0.0))
ARMS = replace(QUIET, dense_latin=0.5, dense_cjk=0.2)
USUAL = Boosts().with_dense(latin=0.5, cjk=0.2)
ROW = {
    "lengths": 5.0,
    "cosine": 0.0,
    "named": False,
    "session": 0,
    "order": 0,
    "time": math.nan,
    "question": False,
    "words": 10,
    "timed": False,
}


def rows(*, counts, **columns):
    """Features of as many rows as there are counts, all alike where nothing is said."""
    number = len(counts)
    types = {"session": np.int64, "order": np.int64, "words": np.int64, "time": np.float64}
    types |= dict.fromkeys(("named", "question", "timed"), np.bool_)
    filled = {
        name: np.array(columns.get(name, [value] * number), types.get(name, np.float32))
        for name, value in ROW.items()
    }
    if columns.get("cosine", ...) is None:
        filled["cosine"] = None
    return Features(counts=np.array(counts, np.uint8), **filled)


def bucket_of(features):
    mean = float(features.lengths.mean()) if len(features.lengths) else 0.0
    return BucketStatistics(np.count_nonzero(features.counts, axis=0), len(features.lengths), mean)


def asked(features, **traits):
    return QueryTraits(np.ones(features.counts.shape[1], np.float32), **traits)


def fused(features, boosts=ARMS, **traits):
    return fuse(features, bucket_of(features), asked(features, **traits), boosts)


# A plain loop, written from the description.


def loop_bm25(counts, lengths, weights, mean):
    norm = [K1 * (1 - B + B * (length / mean if mean > 0 else 1.0)) for length in lengths]
    return [
        sum(w * c * (K1 + 1) / (c + norm[i]) for w, c in zip(weights, row, strict=True) if c)
        for i, row in enumerate(counts)
    ]


def loop_scaled(values):
    best = max(values, default=0.0)
    return [value / best if best > 0 else 0.0 for value in values]


def loop_idf(held, documents):
    held = min(held, documents)
    return math.log(1 + (documents - held + 0.5) / (held + 0.5))


def loop_around(features, positions, values, row, near, far):
    """What stands one and two places from a row in its session, weighed."""
    position, session = positions[row], features.session[row]
    total = 0.0
    for other, value in enumerate(values):
        if session and features.session[other] == session:
            away = abs(positions[other] - position)
            total += value * {1: near, 2: far}.get(away, 0.0)
    return total


def loop_sessions(features, emphasis):
    sessions = sorted({int(s) for s in features.session if s})
    members = [[i for i, s in enumerate(features.session) if s == number] for number in sessions]
    counts = [[sum(int(features.counts[i][t]) for i in each) for t in range(len(emphasis))]
              for each in members]  # fmt: skip
    lengths = [sum(float(features.lengths[i]) for i in each) for each in members]
    held = [sum(1 for row in counts if row[t]) for t in range(len(emphasis))]
    weights = [loop_idf(h, len(sessions)) * e for h, e in zip(held, emphasis, strict=True)]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    scores = loop_scaled(loop_bm25(counts, lengths, weights, mean))
    return dict(zip(sessions, scores, strict=True))


def loop_dense(features, words):
    known = [float(c) for c in features.cosine if math.isfinite(c)]
    usual = float(np.median(known)) * len(known) / (len(known) + 2) if known else 0.0
    best = max([c - usual for c in known], default=0.0)
    return best, [
        (max(float(c) - usual, 0.0) / best if best > 0 else 0.0) if math.isfinite(c) else word
        for c, word in zip(features.cosine, words, strict=True)
    ]


def loop_share(features, traits, boosts, best):
    if features.cosine is None or not np.isfinite(features.cosine).any():
        return 0.0
    if not features.counts.shape[1]:
        return 1.0
    clear = min(max((best - FAINT_LEAD) / (CLEAR_LEAD - FAINT_LEAD), 0.0), 1.0)
    if not features.counts.any():
        return clear
    return clear * (boosts.dense_latin * (1 - traits.cjk) + boosts.dense_cjk * traits.cjk)


def loop_base(features, traits, boosts, words):
    if features.cosine is None:
        return words
    best, dense = loop_dense(features, words)
    share = loop_share(features, traits, boosts, best)
    return [w * (1 - share) + d * share for w, d in zip(words, dense, strict=True)]


def loop_total(features, bucket, traits, boosts):
    number = range(len(features.lengths))
    sorted_rows = sorted(number, key=lambda i: (features.session[i], features.order[i]))
    positions = {row: position for position, row in enumerate(sorted_rows)}
    emphasis = [math.sqrt(c) for c in traits.term_counts]
    weights = [loop_idf(int(h), bucket.rows) * e
               for h, e in zip(bucket.holders, emphasis, strict=True)]  # fmt: skip

    def around(values, row, near=boosts.near, far=boosts.far):
        return loop_around(features, positions, values, row, near, far)

    counts = [[float(c[i]) + around(c, i) for c in features.counts.T] for i in number]
    lengths = [float(features.lengths[i]) + around(features.lengths, i) for i in number]
    usual = float(features.lengths.mean()) if len(features.lengths) else 0.0
    mean = bucket.mean_length * (sum(lengths) / len(lengths)) / (usual or 1.0)
    wide = loop_scaled(loop_bm25(counts, lengths, weights, mean))
    base = loop_base(features, traits, boosts, wide)
    sessions = loop_sessions(features, emphasis)
    asks = [bool(features.question[i]) and features.words[i] <= SHORT_QUESTION_WORDS
            for i in number]  # fmt: skip
    totals = []
    for i in number:
        total = base[i] + around(base, i, boosts.adjacent, 0.0)
        before = sorted_rows[positions[i] - 1] if positions[i] else None
        if before is not None and features.session[i]:
            same = features.session[before] == features.session[i]
            total += boosts.answer * base[before] * (same and asks[before])
        total += boosts.session * sessions.get(int(features.session[i]), 0.0)
        total += boosts.speaker * bool(features.named[i])
        gaps = [(max(start - features.time[i], features.time[i] - end, 0.0), end - start)
                for start, end in traits.dates if math.isfinite(features.time[i])]  # fmt: skip
        total += boosts.date * max((math.exp(-g / max(w, WEEK)) for g, w in gaps), default=0.0)
        total += boosts.when * (traits.when and bool(features.timed[i]))
        totals.append(total - boosts.question * asks[i])
    return totals


@st.composite
def searches(draw):
    number, terms = draw(st.integers(1, 9)), draw(st.integers(0, 4))

    def column(values):
        return draw(st.lists(values, min_size=number, max_size=number))

    cosines = st.one_of(st.just(math.nan), st.integers(-100, 100).map(lambda c: c / 100))
    features = rows(
        counts=[
            draw(st.lists(st.integers(0, 3), min_size=terms, max_size=terms)) for _ in range(number)
        ],
        lengths=column(st.integers(0, 20)),
        cosine=draw(st.one_of(st.none(), st.just(column(cosines)))),
        named=column(st.booleans()),
        session=column(st.integers(-1, 2)),
        order=draw(st.permutations(range(number))),
        time=column(st.one_of(st.just(math.nan), st.integers(0, 40).map(lambda d: d * DAY))),
        question=column(st.booleans()),
        words=column(st.integers(28, 33)),
        timed=column(st.booleans()),
    )
    traits = QueryTraits(
        np.array(draw(st.lists(st.integers(1, 4), min_size=terms, max_size=terms)), np.float32),
        draw(st.sampled_from([0.0, 0.3, 1.0])),
        draw(st.booleans()),
        draw(st.sampled_from([(), ((3 * DAY, 4 * DAY),), ((0.0, 30 * DAY), (9 * DAY, 10 * DAY))])),
    )
    return features, traits


@given(
    search=searches(), boosts=st.sampled_from([USUAL, QUIET, ARMS, replace(USUAL, near=0, far=1)])
)
def test_a_plain_loop_comes_to_the_same_relevance(search, boosts):
    features, traits = search
    bucket = bucket_of(features)
    result = fuse(features, bucket, traits, boosts)
    totals = loop_total(features, bucket, traits, boosts)
    highest = max(1.0, *totals)
    expected = [max(total, 0.0) / highest for total in totals]
    np.testing.assert_allclose(result.relevance, expected, atol=2e-4)


@given(search=searches(), rrf=st.sampled_from([0.0, 0.5, 1.0]))
def test_relevance_is_0_to_1_and_is_the_sum_of_its_parts(search, rrf):
    features, traits = search
    result = fuse(features, bucket_of(features), traits, Boosts(rrf=rrf))
    share = result.dense_share
    total = result.lexical * (1 - share) + result.dense * share
    for row in range(len(total)):
        assert list(result.boosts(row)) == list(SIGNALS)
        total[row] += sum(result.boosts(row).values())
    expected = np.clip(total, 0, None) / max(1.0, float(total.max()))
    np.testing.assert_allclose(result.relevance, expected, atol=1e-4)
    for each in fields(result):
        assert np.isfinite(getattr(result, each.name)).all()
    assert result.relevance.min() >= 0.0
    assert result.relevance.max() <= 1.0
    assert result.relevance.dtype == np.float32


@given(search=searches(), data=st.data())
def test_the_order_in_which_rows_come_does_not_matter(search, data):
    features, traits = search
    # Rows that tie in session and order keep the order in which they come.
    shuffle = data.draw(st.permutations(range(len(features.lengths))))
    shuffled = Features(**{
        each.name: None if getattr(features, each.name) is None
        else getattr(features, each.name)[shuffle]
        for each in fields(features)
    })  # fmt: skip
    plain = fuse(features, bucket_of(features), traits, Boosts())
    other = fuse(shuffled, bucket_of(features), traits, Boosts())
    np.testing.assert_allclose(other.relevance, plain.relevance[shuffle], atol=1e-5)


@given(search=searches())
def test_nothing_that_is_given_is_changed(search):
    features, traits = search
    kept = {e.name: np.copy(getattr(features, e.name)) for e in fields(features)}
    fuse(features, bucket_of(features), traits, Boosts())
    for name, values in kept.items():
        if getattr(features, name) is not None:
            np.testing.assert_array_equal(getattr(features, name), values)


@pytest.mark.parametrize(("number", "terms"), [(40_000, 3), (10_000, 8), (300, 8)])
def test_many_rows_and_terms_are_worked_on_in_blocks_that_add_up(number, terms):
    counts = (np.random.default_rng(4).random((number, terms)) < 0.2).astype(np.uint8)
    features = rows(counts=counts, session=[1] * number, order=range(number))
    bucket = bucket_of(features)
    whole = bm25(
        counts.T.astype(np.float32),
        features.lengths,
        rarity(bucket.holders, bucket.rows),
        bucket.mean_length,
    )
    lexical = fused(features, Boosts()).lexical
    np.testing.assert_allclose(lexical, whole / whole.max(), atol=1e-5)


def test_no_rows_have_no_relevance():
    features = rows(counts=np.zeros((0, 2)))
    assert fused(features).relevance.shape == (0,)


def test_one_row_that_says_it_is_as_relevant_as_can_be():
    result = fused(rows(counts=[[1]], cosine=[0.9]))
    assert result.relevance[0] == pytest.approx(1.0)


def test_one_row_with_nothing_of_the_query_is_not_relevant():
    result = fused(rows(counts=[[0]], cosine=[0.0]))
    assert result.relevance[0] == 0.0


def test_equal_rows_are_equally_relevant():
    result = fused(rows(counts=[[1]] * 4, cosine=[0.4] * 4), Boosts())
    assert len(set(result.relevance.tolist())) == 1


def test_without_a_lexical_hit_the_vectors_decide():
    result = fused(rows(counts=[[0], [0], [0], [0]], cosine=[0.1, 0.7, 0.4, 0.1]))
    assert np.argmax(result.relevance) == 1
    assert result.lexical.tolist() == [0.0] * 4


@pytest.mark.parametrize("cosine", [None, [math.nan] * 3])
def test_without_vectors_the_words_decide_alone(cosine):
    result = fused(rows(counts=[[0], [2], [1]], cosine=cosine))
    assert result.dense_share == 0.0
    np.testing.assert_allclose(result.relevance, result.lexical)
    assert np.argsort(-result.relevance).tolist() == [1, 2, 0]


def test_without_terms_the_vectors_decide_alone():
    result = fused(rows(counts=np.zeros((4, 0)), cosine=[0.1, 0.11, 0.12, 0.1]))
    assert result.dense_share == 1.0
    assert result.relevance[2] == pytest.approx(1.0)


def test_a_row_without_a_vector_is_judged_by_its_words():
    result = fused(rows(counts=[[1], [1], [0], [0]], cosine=[math.nan, 0.0, 0.9, 0.0]))
    assert result.dense[0] == result.lexical[0] == 1.0
    assert result.relevance[0] == pytest.approx(1.0)
    assert result.relevance[0] > result.relevance[1]


@pytest.mark.parametrize(
    ("lead", "share"),
    [
        (FAINT_LEAD - 0.01, 0.0),
        (FAINT_LEAD, 0.0),
        ((FAINT_LEAD + CLEAR_LEAD) / 2, 0.25),
        (CLEAR_LEAD, 0.5),
        (CLEAR_LEAD + 0.3, 0.5),
    ],
)
def test_vectors_that_hardly_tell_rows_apart_are_not_heard(lead, share):
    cosine = [0.0] * 9 + [lead]
    result = fused(rows(counts=[[1]] * 10, cosine=cosine))
    assert result.dense_share == pytest.approx(share, abs=1e-5)


@pytest.mark.parametrize(("cjk", "share"), [(0.0, 0.5), (0.5, 0.35), (1.0, 0.2)])
def test_the_share_of_the_vectors_belongs_to_the_script(cjk, share):
    result = fused(rows(counts=[[1]] * 9, cosine=[0.0] * 8 + [0.9]), cjk=cjk)
    assert result.dense_share == pytest.approx(share)


def reciprocal(*ranks):
    """Of the rows of an arm, 1 for the first; 0 for what has no rank."""
    return [(RRF_RANK + 1) / (RRF_RANK + rank) if rank else 0.0 for rank in ranks]


def test_reciprocal_ranks_forget_by_how_much_a_row_is_ahead():
    boosts = replace(ARMS, rrf=1.0)
    near = fused(rows(counts=[[2], [1], [0]], cosine=[0.0, 0.81, 0.9]), boosts)
    far = fused(rows(counts=[[9], [1], [0]], cosine=[0.0, 0.51, 0.9]), boosts)
    assert near.lexical.tolist() == pytest.approx(reciprocal(1, 2, 0))
    assert near.lexical.tolist() == far.lexical.tolist()
    assert near.dense.tolist() == pytest.approx(reciprocal(0, 2, 1))
    assert near.dense.tolist() == far.dense.tolist()


def test_rows_of_one_score_share_the_best_of_their_ranks():
    result = fused(rows(counts=[[1], [3], [1], [1], [0]], cosine=None), replace(ARMS, rrf=1.0))
    assert result.lexical.tolist() == pytest.approx(reciprocal(2, 1, 2, 2, 0))


def test_between_scores_and_ranks_an_arm_is_between_the_two():
    features = rows(counts=[[2], [1], [0]], cosine=[0.1, 0.5, 0.9])
    scores, ranks, between = (fused(features, replace(ARMS, rrf=rrf)) for rrf in (0.0, 1.0, 0.25))
    for arm in ("lexical", "dense"):
        expected = 0.75 * getattr(scores, arm) + 0.25 * getattr(ranks, arm)
        np.testing.assert_allclose(getattr(between, arm), expected, atol=1e-6)


def test_by_ranks_the_words_in_context_are_ranked_too():
    columns = {"cosine": None, "session": [1, 1, 0], "order": [0, 1, 0]}
    features = rows(counts=[[1, 1], [0, 0], [1, 0]], **columns)
    result = fused(features, replace(ARMS, near=0.5, rrf=1.0))
    in_context = result.lexical + result.near
    assert sorted(in_context.tolist(), reverse=True) == pytest.approx(reciprocal(1, 2, 3))


def test_without_vectors_or_rows_there_are_no_ranks():
    boosts = replace(ARMS, rrf=1.0)
    assert fused(rows(counts=[[0], [0]], cosine=[math.nan] * 2), boosts).relevance.tolist() == [
        0,
        0,
    ]
    assert fused(rows(counts=np.zeros((0, 2))), boosts).relevance.shape == (0,)


def test_a_turn_between_two_halves_of_the_answer_is_lifted():
    counts = [[1, 0], [1, 0], [0, 1], [1, 0], [1, 0]]
    features = rows(counts=counts, cosine=None, session=[1, 1, 1, 0, 0], order=[0, 1, 2, 0, 0])
    result = fused(features, replace(ARMS, near=0.5))
    assert result.near[1] > result.near[0] > result.near[3]
    assert result.relevance[1] > result.relevance[3]


def test_seats_follow_the_order_and_gaps_are_closed():
    features = rows(counts=[[0], [1], [0], [0]], cosine=None, session=[7] * 4, order=[90, 5, 9, 40])
    result = fused(features, replace(ARMS, adjacent=0.1))
    assert result.adjacent.tolist() == pytest.approx([0.0, 0.0, 0.1, 0.0])


def test_two_seats_away_counts_as_far():
    features = rows(counts=[[1], [0], [0], [0]], cosine=None, session=[7] * 4, order=[0, 1, 2, 3])
    near = fused(features, replace(ARMS, near=0.5)).near
    far = fused(features, replace(ARMS, far=0.5)).near
    assert near[1] > 0.0 == near[2] == near[3]
    assert far[2] > 0.0 == far[1] == far[3]


def test_rows_of_other_sessions_and_of_none_are_no_neighbours():
    features = rows(counts=[[1], [0], [1], [0]], cosine=None, session=[1, 2, 0, 0])
    result = fused(features, Boosts())
    assert not any(getattr(result, name).any() for name in ("near", "adjacent", "answer"))


def test_a_short_question_hands_its_score_to_the_answer():
    columns = {"cosine": None, "session": [1, 1, 1], "order": [0, 1, 2]}
    features = rows(counts=[[0], [1], [0]], question=[False, True, False], **columns)
    result = fused(features, replace(ARMS, answer=0.2))
    assert result.answer.tolist() == pytest.approx([0.0, 0.0, 0.2])


@pytest.mark.parametrize(("words", "lost"), [(29, True), (30, True), (31, False)])
def test_only_short_questions_are_pushed_down_and_hand_on(words, lost):
    columns = {"cosine": None, "session": [1, 1], "order": [0, 1], "words": [words, 50]}
    features = rows(counts=[[1], [0]], question=[True, False], **columns)
    result = fused(features, replace(ARMS, answer=0.2, question=0.3))
    assert result.question.tolist() == pytest.approx([-0.3 * lost, 0.0])
    assert result.answer.tolist() == pytest.approx([0.0, 0.2 * lost])


def test_the_session_is_one_document():
    features = rows(
        counts=[[1, 0], [0, 1], [1, 0], [0, 0], [1, 1]],
        cosine=None,
        session=[1, 1, 2, 2, 0],
    )
    result = fused(features, replace(ARMS, session=0.4))
    assert result.session[0] == result.session[1] == pytest.approx(0.4)
    assert 0.0 < result.session[2] == result.session[3] < 0.4
    assert result.session[4] == 0.0


def test_who_is_named_is_lifted():
    result = fused(rows(counts=[[1], [1]], named=[False, True]), replace(ARMS, speaker=0.6))
    assert result.speaker.tolist() == pytest.approx([0.0, 0.6])
    assert result.relevance.tolist() == pytest.approx([1 / 1.6, 1.0])


@pytest.mark.parametrize(
    ("day", "nearness"),
    [
        (10, 1.0),
        (10.5, 1.0),
        (11, 1.0),
        (18, math.exp(-1)),
        (3, math.exp(-1)),
        (math.nan, 0.0),
    ],
)
def test_a_day_in_the_query_fades_over_a_week(day, nearness):
    features = rows(counts=[[1]], time=[day * DAY])
    result = fused(features, replace(ARMS, date=0.4), dates=((10 * DAY, 11 * DAY),))
    assert result.date[0] == pytest.approx(0.4 * nearness)


def test_a_month_in_the_query_fades_over_a_month():
    features = rows(counts=[[1]] * 2, time=[15 * DAY, 60 * DAY])
    result = fused(features, replace(ARMS, date=1.0), dates=((0.0, 30 * DAY),))
    assert result.date.tolist() == pytest.approx([1.0, math.exp(-1)])


def test_the_nearest_of_several_dates_counts():
    features = rows(counts=[[1]], time=[20 * DAY])
    dates = ((0.0, DAY), (20 * DAY, 21 * DAY), (90 * DAY, 91 * DAY))
    assert fused(features, replace(ARMS, date=1.0), dates=dates).date[0] == pytest.approx(1.0)


@pytest.mark.parametrize(("when", "expected"), [(True, [0.15, 0.0]), (False, [0.0, 0.0])])
def test_time_expressions_count_when_a_time_is_asked_for(when, expected):
    features = rows(counts=[[1], [1]], timed=[True, False])
    result = fused(features, replace(ARMS, when=0.15), when=when)
    assert result.when.tolist() == pytest.approx(expected)


@given(search=searches())
def test_a_weight_of_0_switches_its_signal_off(search):
    features, traits = search
    result = fuse(features, bucket_of(features), traits, QUIET)
    for name in SIGNALS:
        # The words in context are those alone, but for rounding.
        assert np.abs(getattr(result, name)).max() < 1e-6


def test_a_term_said_four_times_counts_twice():
    features = rows(counts=[[1, 0], [0, 1]], cosine=None)
    traits = QueryTraits(np.array([4, 1], np.float32))
    result = fuse(features, bucket_of(features), traits, ARMS)
    assert result.lexical.tolist() == pytest.approx([1.0, 0.5])


def test_rarity_is_counted_before_filters():
    features = rows(counts=[[1, 0], [0, 1]], cosine=None)
    bucket = BucketStatistics(np.array([90, 1]), 100, 5.0)
    common, rare = fuse(features, bucket, asked(features), ARMS).lexical
    assert rare == 1.0
    assert common < 0.1


@pytest.mark.parametrize("name", BOOSTS)
@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, math.inf])
def test_a_weight_out_of_range_is_refused(name, value):
    with pytest.raises(InvalidWeightsError, match=name):
        Boosts(**{name: value})


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_weight_at_its_bounds_is_taken(value):
    assert all(getattr(Boosts(**{name: value}), name) == value for name in BOOSTS)


def test_weights_are_read_from_a_line():
    assert parsed_weights(" speaker=0.6, date=0 ,") == {"speaker": 0.6, "date": 0.0}
    assert Boosts().with_changes({"speaker": 0.3}) == Boosts(speaker=0.3)


def test_the_embedders_shares_stand_where_nobody_has_said_another():
    said = Boosts(dense_latin=0.0, speaker=0.3)

    assert said.with_dense(latin=0.6, cjk=0.2) == replace(said, dense_cjk=0.2)
    assert Boosts().with_dense(latin=0.6, cjk=0.2).dense_share(0.5) == pytest.approx(0.4)


def test_vectors_have_as_much_as_words_where_no_share_is_said():
    assert [Boosts().dense_share(cjk) for cjk in (0.0, 0.5, 1.0)] == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("volume=1", "volume is no weight; they are dense_latin"),
        ("speaker", "Write speaker=0.5"),
        ("speaker=loud", "Write speaker=0.5"),
        ("=1", "is no weight"),
        ("date=0, speaker=0.6, date=0.4", "date is there twice"),
        ("date=0,date=0", "date is there twice"),
    ],
)
def test_a_line_that_is_no_weights_is_refused(line, words):
    with pytest.raises(InvalidWeightsError, match=words):
        parsed_weights(line)


@pytest.mark.parametrize(("terms", "heard"), [(LONG_QUERY - 1, True), (LONG_QUERY, False)])
def test_a_conversation_asks_nothing(terms, heard):
    counts = [[1] * terms, [1] * terms]
    features = rows(counts=counts, question=[True, False], timed=[True, False], words=[5, 5])

    result = fused(features, replace(ARMS, question=0.3, when=0.15), when=True)

    assert bool(result.question.any()) is heard
    assert bool(result.when.any()) is heard


@pytest.mark.parametrize(
    ("terms", "cjk", "share"),
    [(LONG_QUERY - 1, 1.0, 0.2), (LONG_QUERY, 1.0, 0.0), (LONG_QUERY, 0.0, 0.5)],
)
def test_vectors_say_nothing_of_a_long_chinese_conversation(terms, cjk, share):
    features = rows(counts=[[1] * terms, [0] * terms, [1] * terms], cosine=[0.9, 0.1, 0.1])

    assert fused(features, cjk=cjk).dense_share == pytest.approx(share)


@pytest.mark.parametrize(
    ("lead", "share"),
    [(FAINT_LEAD, 0.0), ((FAINT_LEAD + CLEAR_LEAD) / 2, 0.5), (CLEAR_LEAD, 1.0)],
)
def test_without_a_word_anywhere_vectors_have_all_there_is(lead, share):
    cosines = [lead, *[0.0] * 200]
    features = rows(counts=[[0]] * len(cosines), cosine=cosines)

    assert fused(features).dense_share == pytest.approx(share, abs=1e-5)
