"""One relevance from what the words, the vectors and the context of each row say, and the best rows
by it. Pure arithmetic.

Both arms are scaled per query and summed; the context adds to the sum by rules that know no data
set. The weights are round and stand on a plateau: moved by a third, one at a time, they change
recall@10 on LoCoMo by -0.4 to +0.5 points (`benchmarks/results/recall.md`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from app.language.ranking.boosts import Boosts
from app.language.ranking.features import (
    BucketStatistics,
    Features,
    Flags,
    SessionIndex,
    covered,
    word_scores,
    word_weights,
)
from app.language.ranking.packing import Floats, Ints, bm25, rarity
from app.language.ranking.query import QueryTraits

DAY: Final = 86_400.0
WEEK: Final = 7 * DAY

FAINT_LEAD: Final = 0.12
CLEAR_LEAD: Final = 0.2
"""By how much the best cosine must exceed the usual one for the vectors to be heard at all, and
in full. With wordllama it is 0.45 for English questions, 0.25 for English dialogues and 0.11 for
Chinese ones, since its table knows some 700 characters: scaling would make noise loud."""


SHORT_QUESTION_WORDS: Final = 30

SIGNALS: Final = (
    "near",
    "adjacent",
    "answer",
    "session",
    "speaker",
    "date",
    "when",
    "question",
    "graph",
)

RRF_RANK: Final = 60
"""What is added to a rank before it is turned over, as is usual (Cormack and others, 2009)."""

_BLOCK: Final = 32_768
"""Counts worked on at a time, so that they stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Fused:
    """One value per row, in the order of the features.

    `relevance` is 0 to 1. Before it is cut and scaled, it is `lexical * (1 - dense_share) + dense *
    dense_share` plus the other arrays, whose weights are applied; for a row without a vector
    `dense` is its `lexical`.
    """

    relevance: Floats
    covered: Floats
    """As `features.coverage`."""
    lexical: Floats
    dense: Floats
    near: Floats
    """Of the words around a row, one and two rows away; may take away, where others have more."""
    adjacent: Floats
    answer: Floats
    session: Floats
    speaker: Floats
    date: Floats
    when: Floats
    question: Floats
    graph: Floats
    dense_share: float

    def boosts(self, row: int) -> dict[str, float]:
        """Return what each signal of the context added to one row, by name."""
        # A penalty of nothing is 0, not minus 0.
        return {name: float(getattr(self, name)[row]) + 0.0 for name in SIGNALS}


def fuse(
    features: Features, bucket: BucketStatistics, traits: QueryTraits, boosts: Boosts
) -> Fused:
    """Rate every row for the query; never NaN, nothing is changed in place."""
    parts, share = (
        _in_sessions(features, bucket, traits, boosts)
        if features.session.any()
        else _alone(features, bucket, traits, boosts)
    )
    asks = _asks(features)
    parts |= {
        "speaker": features.named * np.float32(boosts.speaker),
        "question": asks * np.float32(-_penalty(traits, boosts)),
    }
    if traits.dates:
        parts["date"] = _nearness(features.time, traits.dates) * np.float32(boosts.date)
    if when := _time_weight(traits, boosts):
        parts["when"] = features.timed * np.float32(when)
    if features.linked is not None:
        parts["graph"] = features.linked * np.float32(boosts.graph)
    total = _mixed(parts["lexical"], parts["dense"], share)
    for name in SIGNALS:
        if name in parts:
            total += parts[name]
    none = np.zeros_like(total)
    silent = {name: none for name in SIGNALS if name not in parts}
    return Fused(relevance=_bounded(total), dense_share=share, **parts, **silent)


def _in_sessions(
    features: Features, bucket: BucketStatistics, traits: QueryTraits, boosts: Boosts
) -> tuple[dict[str, Floats], float]:
    """The two arms and what the sessions add, and the share of the vectors."""
    order = np.lexsort((features.order, features.session))
    apart = None if features.apart is None else features.apart[order]
    index = SessionIndex.of(features.session[order], apart)
    words = _LexicalArm.of(features, bucket, traits, boosts, order, index)
    vectors = _DenseArm.of(features.cosine, order, boosts, bucket.usual_cosine)
    share = vectors.share(traits, boosts, worded=bool(words.alone.any()))

    dense = vectors.heard(words.alone)
    # Without a vector a row's words speak for it, in context as alone.
    base = _mixed(words.in_context, vectors.heard(words.in_context), share)
    asked_before = index.after(base * _asks(features)[order])
    return {
        "covered": _put_back(words.covered, order),
        "lexical": _put_back(words.alone, order),
        "dense": _put_back(dense, order),
        "near": _put_back(base - _mixed(words.alone, dense, share), order),
        "adjacent": _put_back(index.gather(base, boosts.adjacent, 0.0), order),
        "answer": _put_back(asked_before, order) * np.float32(boosts.answer),
        "session": _put_back(words.session, order) * np.float32(boosts.session),
    }, share


def _alone(
    features: Features, bucket: BucketStatistics, traits: QueryTraits, boosts: Boosts
) -> tuple[dict[str, Floats], float]:
    """As `_in_sessions` where no row is of a session: nothing has neighbours, and adds nothing."""
    weights = word_weights(bucket, traits)
    scores = word_scores(features, bucket, weights)
    words = _arm(scores, boosts.rrf)
    vectors = _DenseArm.of(features.cosine, slice(None), boosts, bucket.usual_cosine)
    share = vectors.share(traits, boosts, worded=bool(words.any()))
    return {
        "covered": covered(scores, float(weights.sum())),
        "lexical": words,
        "dense": vectors.heard(words),
    }, share


@dataclass(frozen=True, slots=True)
class _LexicalArm:
    """The lexical arm, of rows sorted by session and order; each part is 1 for the best row."""

    covered: Floats
    """Of a row alone, as `features.coverage`."""
    alone: Floats
    in_context: Floats
    """As if a part of its neighbours stood in the row. Unlike adding their scores, this rewards
    rows that hold *different* words of the query."""
    session: Floats
    """Of the row's session as one document; 0 for rows of none."""

    @classmethod
    def of(
        cls,
        features: Features,
        bucket: BucketStatistics,
        traits: QueryTraits,
        boosts: Boosts,
        order: Ints,
        index: SessionIndex,
    ) -> "_LexicalArm":
        counts = np.ascontiguousarray(features.counts[order].T)
        emphasis = np.sqrt(traits.term_counts.astype(np.float32))
        weights = word_weights(bucket, traits)
        lengths = features.lengths[order].astype(np.float32)
        wide_lengths = lengths + index.gather(lengths, boosts.near, boosts.far)
        wide_mean = bucket.mean_length * _mean(wide_lengths) / (_mean(lengths) or 1.0)
        totals = index.totals(lengths)
        known = bucket.sessions
        usual = _mean(totals) if known is None else known.mean_length

        alone, wide, sessions = (np.zeros_like(each) for each in (lengths, lengths, totals))
        step = max(1, _BLOCK // max(1, len(lengths)))
        for part in (slice(start, start + step) for start in range(0, len(weights), step)):
            block = counts[part].astype(np.float32)
            alone += bm25(block, lengths, weights[part], bucket.mean_length)
            whole = index.totals(block)
            holders = np.count_nonzero(whole, axis=1) if known is None else known.holders[part]
            rare = rarity(holders, len(totals) if known is None else known.rows) * emphasis[part]
            sessions += bm25(whole, totals, rare, usual)
            block += index.gather(block, boosts.near, boosts.far)
            wide += bm25(block, wide_lengths, weights[part], wide_mean)
        return cls(
            covered(alone, float(weights.sum())),
            _arm(alone, boosts.rrf),
            _arm(wide, boosts.rrf),
            index.spread(_scaled(sessions)),
        )


@dataclass(frozen=True, slots=True)
class _DenseArm:
    """The dense arm, of rows sorted by session and order."""

    known: Flags
    scores: Floats
    """Of each known row; 1 for the best."""
    lead: float
    """How far the best cosine is above the usual one, which is the median."""

    @classmethod
    def of(
        cls, cosine: Floats | None, order: Ints | slice, boosts: Boosts, usual: float | None
    ) -> "_DenseArm":
        if cosine is None:
            return cls(np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.float32), 0.0)
        cosine = cosine[order]
        known = np.isfinite(cosine)
        found = cosine[known].astype(np.float32)
        if usual is None:
            # Of one or two rows the median is no background, but what was looked for.
            usual = float(median(found)) * len(found) / (len(found) + 2) if len(found) else 0.0
        leads = np.maximum(found - np.float32(usual), 0.0)
        return cls(known, _arm(leads, boosts.rrf), float(leads.max(initial=0.0)))

    def share(self, traits: QueryTraits, boosts: Boosts, *, worded: bool) -> float:
        """Return how much of the sum is theirs: less where they hardly tell rows apart.

        Args:
            worded: whether any row has a word of the query; without one there is nothing to
                share with.

        """
        if not len(self.scores):
            return 0.0
        if not len(traits.term_counts):
            return 1.0
        clear = min(max((self.lead - FAINT_LEAD) / (CLEAR_LEAD - FAINT_LEAD), 0.0), 1.0)
        if traits.is_long:
            clear *= 1.0 - traits.cjk
        return clear * boosts.dense_share(traits.cjk) if worded else clear

    def heard(self, words: Floats) -> Floats:
        """Return the score of each row; for a row without a vector its words speak."""
        if len(self.scores) == len(words):
            return self.scores
        dense = words.copy()
        if len(self.scores):
            dense[self.known] = self.scores
        return dense


def _time_weight(traits: QueryTraits, boosts: Boosts) -> float:
    return boosts.when if traits.when and not traits.is_long else 0.0


def _penalty(traits: QueryTraits, boosts: Boosts) -> float:
    return 0.0 if traits.is_long else boosts.question


def _asks(features: Features) -> Flags:
    asks: Flags = features.question & (features.words <= SHORT_QUESTION_WORDS)
    return asks


def _nearness(time: npt.NDArray[np.float64], dates: tuple[tuple[float, float], ...]) -> Floats:
    """Return 1 within a date of the query, fading over the length of it, but at least a week."""
    nearest = np.zeros(len(time))
    for start, end in dates:
        gap = np.maximum(np.maximum(start - time, time - end), 0.0)
        np.fmax(nearest, np.exp(-gap / max(end - start, WEEK)), out=nearest)
    return nearest.astype(np.float32)


def _mixed(words: Floats, vectors: Floats, share: float) -> Floats:
    return words * np.float32(1.0 - share) + vectors * np.float32(share)


def median(values: Floats) -> np.float32:
    """As numpy's, which takes ten times as long for a hundred values."""
    middle = (len(values) - 1) // 2
    parted = np.partition(values, [middle, len(values) // 2])
    return np.float32((parted[middle] + parted[len(values) // 2]) / np.float32(2.0))


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def _scaled(scores: Floats) -> Floats:
    best_rows = float(scores.max(initial=0.0))
    return (
        scores / np.float32(best_rows) if best_rows > 0 and math.isfinite(best_rows) else scores * 0
    )


def _arm(scores: Floats, rrf: float) -> Floats:
    """Return what one arm says, 1 for the best: its scores, reciprocal ranks, or between them."""
    scaled = _scaled(scores)
    if not rrf:
        return scaled
    better = np.searchsorted(np.sort(-scores), -scores)
    # What the arm has not found has no rank in it; what is equal shares one.
    ranks = np.where(scores > 0, (RRF_RANK + 1) / (RRF_RANK + 1 + better), 0.0)
    return scaled + (ranks.astype(np.float32) - scaled) * np.float32(rrf)


def _bounded(total: Floats) -> Floats:
    """Return the totals as 0 to 1. The best is 1 when it has more than the two arms can give."""
    bounded: Floats = np.maximum(total, 0.0, dtype=np.float32)
    return bounded / np.float32(max(1.0, float(total.max(initial=0.0))))


def _put_back(values: Floats, order: Ints) -> Floats:
    """Undo the sorting."""
    placed = np.empty_like(values)
    placed[order] = values
    return placed


def best_rows(
    order: Sequence[npt.NDArray[Any]], ids: Sequence[str], kept: npt.NDArray[np.bool_], limit: int
) -> list[int]:
    """Places of the best rows, best first.

    Args:
        order: what the rows are ordered by, greatest first; each of them breaks the ties of the
            one before, and the id those of the last. The first is never NaN.
        ids: of the rows.
        kept: which rows may be among them.
        limit: how many at most.

    """
    places = np.flatnonzero(kept)
    if len(places) > limit:
        # All that could be among the first, ties included.
        floor = np.partition(order[0][places], -limit)[-limit]
        places = places[order[0][places] >= floor]
    # The last key decides first; read backwards, so that equals come in the order of their ids.
    by_id = np.array(sorted(places.tolist(), key=ids.__getitem__, reverse=True), np.intp)
    keys = [each[by_id] for each in reversed(order)]
    found: list[int] = by_id[np.lexsort(keys)[::-1][:limit]].tolist()
    return found
