"""The order of a search by words, vectors and context, and every part of it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from app.memories.codes import SHORT, SLACK, calibrated, candidates, spread
from app.memories.ranking import RankWeights
from app.ranking.boosts import Boosts
from app.ranking.fusion import Fused, fuse
from app.ranking.query import Asked
from app.ranking.reading import bucket_of, coverage, features_of
from app.ranking.rows import Records


@dataclass(frozen=True, slots=True)
class Ranked:
    """One memory with all that its place comes from.

    Args:
        similarity: cosine of query and memory, 0 to 1.
        lexical: how well its words fit, 0 to 1; None where nobody looked at them.
        relevance: what words, vectors and context make together, 0 to 1.
        boosts: what each part of the context added before the sum was scaled, by name.

    """

    memory_id: str
    score: float
    similarity: float
    lexical: float | None
    relevance: float
    confidence: float
    scope_weight: float
    boosts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cut:
    """What may be among the hits, and how they are ordered.

    Args:
        mode: `hybrid`, or `lexical`: words alone, and nothing without one of them.
        threshold: of similarity, in lexical mode of the lexical score; inclusive.
        rerank: order by score; else by similarity, in lexical mode by the lexical score.
        limit: how many at most.

    """

    mode: str
    threshold: float | None
    rerank: bool
    limit: int


@dataclass(frozen=True, slots=True)
class _Rated:
    """Every row rated, in the order of the records."""

    fused: Fused
    lexical: Any
    similarity: npt.NDArray[np.float64]
    relevance: Any
    score: npt.NDArray[np.float64]

    def raw(self, cut: Cut) -> Any:
        """What the threshold is compared with."""
        return self.lexical if cut.mode == "lexical" else self.similarity

    def order(self, cut: Cut) -> Any:
        return self.score if cut.rerank else self.raw(cut)


def _rated(
    ids: Sequence[str],
    records: Records,
    asked: Asked,
    boosts: Boosts,
    weights: RankWeights,
    cut: Cut,
) -> _Rated:
    features = features_of(ids, records, asked.packed)
    bucket = bucket_of(features)
    fused = fuse(features, bucket, asked.traits, boosts)
    # In double precision, as thresholds are, and without the noise of single precision.
    lexical = np.round(coverage(features, bucket, asked.traits).astype(np.float64), 6)
    fused_relevance = np.round(fused.relevance.astype(np.float64), 6)
    relevance = lexical if cut.mode == "lexical" else fused_relevance
    score = np.minimum(
        weights.similarity * relevance
        + weights.confidence * records["confidence"].astype(np.float64)
        + weights.scope * records["scope_weight"].astype(np.float64),
        1.0,
    )
    similarity = np.nan_to_num(np.clip(records["similarity"].astype(np.float64), 0.0, 1.0))
    return _Rated(fused, lexical, similarity, relevance, score)


def ranked(
    ids: Sequence[str],
    records: Records,
    asked: Asked,
    boosts: Boosts,
    weights: RankWeights,
    cut: Cut,
) -> list[Ranked]:
    """The best memories of a bucket, best first.

    Ties are broken by the time of the last change, newest first, then by id.

    Args:
        ids: of every memory of the buckets, and `records` what is known of each, in one order.

    """
    if not ids:
        return []
    rated = _rated(ids, records, asked, boosts, weights, cut)
    kept = records["eligible"].copy()
    if cut.mode == "lexical":
        kept &= rated.lexical > 0
    if cut.threshold is not None:
        kept &= rated.raw(cut) >= cut.threshold
    return [
        Ranked(
            ids[place],
            float(rated.score[place]),
            float(rated.similarity[place]),
            float(rated.lexical[place]),
            float(rated.relevance[place]),
            float(records["confidence"][place]),
            float(records["scope_weight"][place]),
            rated.fused.boosts(place) if cut.mode == "hybrid" else {},
        )
        for place in _best(rated.order(cut), records["updated"], ids, kept, cut.limit)
    ]


def nominated(
    ids: Sequence[str],
    records: Records,
    asked: Asked,
    boosts: Boosts,
    weights: RankWeights,
    cut: Cut,
) -> list[str]:
    """Ids of the memories to be compared exactly, of which codes tell the similarity of some.

    They are those that may be among the hits, whatever the filters leave out, and a few others
    that show what the codes are worth (`settled`).
    """
    rated = _rated(ids, records, asked, boosts, weights, cut)
    rough = records["rough"]
    order = rated.order(cut)
    kept = records["eligible"].copy()
    if cut.mode == "lexical":
        kept &= rated.lexical > 0
    if cut.threshold is not None:
        short = cut.threshold - rated.raw(cut)
        if cut.mode == "lexical":
            kept &= short <= 0.0
        else:
            kept &= rough | (short <= 0.0)
            # What seems to miss it comes last, and not at all only if others are enough.
            order = order - SHORT * np.maximum(short - SLACK, 0.0)
    most = cut.limit if cut.mode == "lexical" else candidates(cut.limit)
    places = _best(order, records["updated"], ids, kept, most)
    sample = spread(records["essence"].astype(np.float64), np.flatnonzero(rough))
    return [ids[place] for place in dict.fromkeys([*places, *sample.tolist()])]


def settled(
    ids: Sequence[str], records: Records, found: Mapping[str, Mapping[str, Any]]
) -> Records:
    """The records with exact cosines where they are known; nothing else is eligible.

    Args:
        found: rows of `settling_statement` by id.

    """
    places = {memory_id: place for place, memory_id in enumerate(ids) if memory_id in found}
    known = np.fromiter(places.values(), np.intp, len(places))
    rows = [found[memory_id] for memory_id in places]
    cosines = np.array([(row["exact"], row["exact_essence"]) for row in rows], np.float64)
    cosines = cosines.reshape(-1, 2)
    records = records.copy()
    essence = records["essence"].astype(np.float64)
    true = np.full(len(records), np.nan)
    true[known] = cosines[:, 1]
    both = np.flatnonzero(records["rough"] & np.isfinite(true) & np.isfinite(essence))
    rough = records["rough"]
    records["essence"][rough] = calibrated(essence, true, both.tolist())[rough]
    records["essence"][known] = cosines[:, 1]
    records["similarity"][known] = cosines[:, 0]
    shown = np.zeros(len(records), np.bool_)
    shown[known] = [row["fits"] for row in rows]
    records["eligible"] &= shown
    return records


def _best(
    order: Any,
    updated: npt.NDArray[np.int64],
    ids: Sequence[str],
    kept: npt.NDArray[np.bool_],
    limit: int,
) -> list[int]:
    places = np.flatnonzero(kept)
    if len(places) > limit:
        # All that could be among the first, ties included.
        floor = np.partition(order[places], -limit)[-limit]
        places = places[order[places] >= floor]
    chosen = sorted(
        (int(place) for place in places),
        key=lambda place: (-order[place], -int(updated[place]), ids[place]),
    )
    return chosen[:limit]
