"""What a ranked answer is worth: recall, nDCG, reciprocal rank, and their means. Pure.

A hit is given as the units that it stands for: none, one, or several that are word for word the
same and share one memory. Ranks count from 1.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.language.text.normal_forms import has_cjk

NDCG_AT = 10
SESSIONS_AT = 5

COUNTED_AS = "characters: 1 per CJK character, 1/4 per other"
"""Names how tokens are counted here: an estimate without a tokenizer, the same for everybody."""

Hit = Collection[str]


@dataclass(frozen=True, slots=True)
class Scores:
    """What the answer to one question is worth, each from 0 to 1."""

    recall: Mapping[int, float]
    hit: Mapping[int, float]
    ndcg: float
    mrr: float
    session_recall: float | None
    """None when the units of the answer are of no session."""


def score(
    hits: Sequence[Hit],
    gold: Collection[str],
    *,
    relevant: int,
    ks: Sequence[int],
    sessions: Mapping[str, str],
) -> Scores:
    """Every measure of one ranked answer.

    Args:
        hits: best first.
        gold: the units that answer the question, at least one.
        relevant: how many memories hold them, counting a unit that was not stored as one: fewer
            than `gold` when units share a memory, which can be found only once.
        ks: depths for recall and hit.
        sessions: the session of each unit that has one.

    """
    gold = set(gold)
    ranks = [rank for rank, hit in enumerate(hits, 1) if gold & set(hit)]
    first = ranks[0] if ranks else math.inf
    return Scores(
        recall={k: recall_at(hits, gold, k) for k in ks},
        hit={k: float(first <= k) for k in ks},
        ndcg=_ndcg(ranks, relevant),
        mrr=1 / first,
        session_recall=session_recall(hits, gold, sessions),
    )


def recall_at(hits: Sequence[Hit], gold: Collection[str], k: int) -> float:
    """The share of the gold units that the first `k` hits stand for."""
    found = {unit for hit in hits[:k] for unit in hit}
    return len(found & set(gold)) / len(set(gold))


def session_recall(
    hits: Sequence[Hit], gold: Collection[str], sessions: Mapping[str, str]
) -> float | None:
    """The share of the gold units' sessions among the first five sessions that hits are of.

    Sessions come in the order of their best hit. None when no gold unit has a session.
    """
    wanted = {sessions[unit] for unit in gold if unit in sessions}
    if not wanted:
        return None
    met = dict.fromkeys(sessions[unit] for hit in hits for unit in sorted(hit) if unit in sessions)
    return len(wanted & set(list(met)[:SESSIONS_AT])) / len(wanted)


def _ndcg(ranks: Sequence[int], relevant: int) -> float:
    """Binary gain, cut at ten: 1 when the relevant hits come first."""
    gained = sum(_discount(rank) for rank in ranks if rank <= NDCG_AT)
    ideal = sum(_discount(rank) for rank in range(1, min(relevant, NDCG_AT) + 1))
    return gained / ideal


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def mean_scores(scores: Sequence[Scores]) -> Scores:
    """The mean over questions; at least one. Sessions: over those that have any."""
    ks = list(scores[0].recall)
    told = [
        question_scores.session_recall
        for question_scores in scores
        if question_scores.session_recall is not None
    ]
    return Scores(
        recall={k: _mean([question_scores.recall[k] for question_scores in scores]) for k in ks},
        hit={k: _mean([question_scores.hit[k] for question_scores in scores]) for k in ks},
        ndcg=_mean([question_scores.ndcg for question_scores in scores]),
        mrr=_mean([question_scores.mrr for question_scores in scores]),
        session_recall=_mean(told) if told else None,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


RESAMPLES = 2000


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Within which the mean over questions lies with 95 %, by the bootstrap; at least one value.

    The same values always have the same interval.
    """
    held = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(0).integers(len(held), size=(RESAMPLES, len(held)))
    low, high = np.quantile(held[drawn].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which a share of them lies, between neighbours in proportion."""
    return float(np.quantile(np.asarray(values, dtype=np.float64), share))


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, by COUNTED_AS; rounded up."""
    wide = sum(map(has_cjk, text)) if has_cjk(text) else 0
    return wide + math.ceil((len(text) - wide) / 4)
