"""What similarity, confidence and scope weigh in one score; the order of a search by words, vectors
and context, and every part of it. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from app.language.ranking.boosts import Boosts, InvalidWeightsError
from app.language.ranking.features import (
    BucketStatistics,
    bucket_statistics,
    coverage,
    features_of,
)
from app.language.ranking.fusion import best_rows, fuse
from app.language.ranking.query import ParsedQuery
from app.language.ranking.records import Records
from app.memory.memories.comparison_sql import SHORT, SLACK, calibrated, candidates, spread
from app.memory.memories.graph_sql import Link


@dataclass(frozen=True, slots=True)
class RankWeights:
    """How much each part counts. Each is 0 to 1; together they are 1."""

    similarity: float = 0.5
    confidence: float = 0.3
    scope: float = 0.2

    def __post_init__(self) -> None:
        """Raises InvalidWeightsError."""
        _check_range(self)
        total = self.similarity + self.confidence + self.scope
        if abs(total - 1.0) > 1e-6:
            raise InvalidWeightsError(f"The weights must sum to 1, not to {total:g}.")


SCOPES: Final = ("session", "project", "user", "agent")


@dataclass(frozen=True, slots=True)
class ScopeWeights:
    """How much nearer to the conversation counts. Each is 0 to 1."""

    session: float = 1.0
    project: float = 0.8
    user: float = 0.6
    agent: float = 0.4
    by_scope: Mapping[str, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_range(self)
        weights = {name: getattr(self, name) for name in SCOPES}
        object.__setattr__(self, "by_scope", MappingProxyType(weights))


def _check_range(weights: RankWeights | ScopeWeights) -> None:
    """Check that each weight is 0 to 1.

    Raises:
        InvalidWeightsError: one is not.

    """
    for each in fields(weights):
        if each.init:
            value = getattr(weights, each.name)
            # Written so that NaN fails too.
            if not 0.0 <= value <= 1.0:
                raise InvalidWeightsError(f"The weight {each.name} must be 0 to 1.")


Floats = npt.NDArray[np.float64]

BEHIND: Final = 2.0
"""More than any two scores lie apart."""


@dataclass(slots=True)
class RankedMemory:
    """One memory with everything that its rank comes from. Not frozen: making one would take five
    times as long.

    Args:
        similarity: cosine of query and memory, 0 to 1.
        lexical: how well its words fit, 0 to 1; None where words were not compared.
        relevance: what words, vectors and context make together, 0 to 1.
        boosts: what each part of the context added before the sum was scaled, by name; nothing
            where no explanation was asked for.
        path: how it is related to what the query names, if the graph knows.

    """

    memory_id: str
    score: float
    similarity: float
    lexical: float | None
    relevance: float
    confidence: float
    scope_weight: float
    boosts: Mapping[str, float] = field(default_factory=dict)
    path: str | None = None


@dataclass(frozen=True, slots=True)
class RankingRules:
    """What may be among the hits, and how they are ordered.

    Args:
        mode: `hybrid`, or `lexical`: words alone, and nothing without one of them.
        threshold: of similarity, in lexical mode of the lexical score; inclusive.
        rerank: order by score; else by similarity, in lexical mode by the lexical score.
        limit: how many at most.
        corrections: so many corrections come besides, the best, whatever their similarity.
        explain: whether it is told what each part of the context added.

    """

    mode: str
    threshold: float | None
    rerank: bool
    limit: int
    corrections: int = 0
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """How the rows of a search are rated, and what becomes of them."""

    asked: ParsedQuery
    boosts: Boosts
    weights: RankWeights
    cut: RankingRules
    links: Mapping[str, Link] = field(default_factory=dict)
    statistics: BucketStatistics | None = None
    """Of the whole bucket, where the rows are candidates alone; None counts the rows."""


@dataclass(frozen=True, slots=True)
class _Rated:
    """Every row rated, in the order of the records; in double precision, as thresholds are."""

    lexical: Floats
    similarity: Floats
    relevance: Floats
    score: Floats
    boosts: Callable[[int], Mapping[str, float]]
    ended: npt.NDArray[np.bool_] | None = None
    """Those behind all others, where there are such."""

    @classmethod
    def of(cls, ids: Sequence[str], records: Records, how: Ranking) -> "_Rated":
        features = features_of(ids, records, how.asked.packed)
        bucket = how.statistics or bucket_statistics(features)
        boosts: Callable[[int], Mapping[str, float]] = _no_boosts
        # Rounded, to hide the noise of single precision.
        if how.cut.mode == "lexical":
            words = coverage(features, bucket, how.asked.traits)
            lexical = relevance = words.astype(np.float64).round(6)
        else:
            if how.links:
                features = replace(features, linked=_linked(ids, how.links))
            fused = fuse(features, bucket, how.asked.traits, how.boosts)
            lexical = fused.covered.astype(np.float64).round(6)
            relevance = fused.relevance.astype(np.float64).round(6)
            if how.cut.explain:
                boosts = fused.boosts
        score = np.minimum(
            how.weights.similarity * relevance
            + how.weights.confidence * records["confidence"].astype(np.float64)
            + how.weights.scope * records["scope_weight"].astype(np.float64),
            1.0,
        )
        # Not a number counts as 0.
        similarity = np.minimum(np.fmax(records["similarity"].astype(np.float64), 0.0), 1.0)
        ended = records["ended"] if "ended" in (records.dtype.names or ()) else None
        return cls(lexical, similarity, relevance, score, boosts, ended)

    def raw(self, cut: RankingRules) -> Floats:
        """What the threshold is compared with."""
        return self.lexical if cut.mode == "lexical" else self.similarity

    def order(self, cut: RankingRules) -> Floats:
        order = self.score if cut.rerank else self.raw(cut)
        return order if self.ended is None else order - BEHIND * self.ended


def _linked(ids: Sequence[str], links: Mapping[str, Link]) -> npt.NDArray[np.float32]:
    strengths = (links[memory_id].strength if memory_id in links else 0.0 for memory_id in ids)
    return np.fromiter(strengths, np.float32, len(ids))


def _no_boosts(_row: int) -> Mapping[str, float]:
    return {}


def ranked(ids: Sequence[str], records: Records, how: Ranking) -> list[RankedMemory]:
    """The best memories of a bucket, best first; then the corrections wanted besides.

    Ties are broken by the time of the last change, newest first, then by id.

    Args:
        ids: of every memory of the buckets, and `records` what is known of each, in one order.

    """
    if not ids:
        return []
    rated, cut = _Rated.of(ids, records, how), how.cut
    kept = records["eligible"].copy()
    if cut.mode == "lexical":
        kept &= rated.lexical > 0
    if cut.threshold is not None:
        kept &= rated.raw(cut) >= cut.threshold
    order = (rated.order(cut), records["updated"])
    places = best_rows(order, ids, kept, cut.limit)
    best = _with_corrections(places, order, ids, records, cut.corrections)
    at = np.array(best, np.intp)
    parts = (
        rated.score, rated.similarity, rated.lexical, rated.relevance,
        records["confidence"], records["scope_weight"],
    )  # fmt: skip
    rows = zip(best, *(part[at].tolist() for part in parts), strict=True)
    return [
        RankedMemory(
            ids[place],
            score,
            similarity,
            lexical,
            relevance,
            confidence,
            scope_weight,
            rated.boosts(place),
            how.links[ids[place]].path if ids[place] in how.links else None,
        )
        for place, score, similarity, lexical, relevance, confidence, scope_weight in rows
    ]


def _with_corrections(
    places: list[int],
    order: Sequence[npt.NDArray[Any]],
    ids: Sequence[str],
    records: Records,
    wanted: int,
) -> list[int]:
    """`places`, then those of the best `wanted` corrections that are not among them."""
    if not wanted:
        return places
    kept = records["eligible"] & records["correction"]
    return list(dict.fromkeys([*places, *best_rows(order, ids, kept, wanted)]))


def nominated(ids: Sequence[str], records: Records, how: Ranking) -> list[str]:
    """Ids of the memories to be compared exactly, where codes gave the similarity of some.

    They are those that may be among the hits, whatever the filters leave out, and a few others
    that show what the codes are worth (`with_exact_cosines`). A search by words alone
    compares nothing and does not call it.
    """
    rated, cut = _Rated.of(ids, records, how), how.cut
    rough = records["rough"]
    order = rated.order(cut)
    kept = records["eligible"].copy()
    if cut.threshold is not None:
        short = cut.threshold - rated.similarity
        kept &= rough | (short <= 0.0)
        # What seems to miss it comes last, and not at all only if others are enough.
        order = order - SHORT * np.maximum(short - SLACK, 0.0)
    by = (order, records["updated"])
    places = best_rows(by, ids, kept, candidates(cut.limit))
    places = _with_corrections(places, by, ids, records, cut.corrections)
    sample = spread(records["ranked_similarity"].astype(np.float64), np.flatnonzero(rough))
    return [ids[place] for place in dict.fromkeys([*places, *sample.tolist()])]


def with_exact_cosines(
    ids: Sequence[str], records: Records, found: Mapping[str, Mapping[str, Any]]
) -> Records:
    """The records with exact cosines where they are known; nothing else is eligible.

    Args:
        found: rows of `exact_statement` by id.

    """
    places = {memory_id: place for place, memory_id in enumerate(ids) if memory_id in found}
    known = np.fromiter(places.values(), np.intp, len(places))
    rows = [found[memory_id] for memory_id in places]
    cosines = np.array([(row["exact"], row["exact_ranked"]) for row in rows], np.float64)
    cosines = cosines.reshape(-1, 2)
    records = records.copy()
    ranked_similarity = records["ranked_similarity"].astype(np.float64)
    true = np.full(len(records), np.nan)
    true[known] = cosines[:, 1]
    both = np.flatnonzero(records["rough"] & np.isfinite(true) & np.isfinite(ranked_similarity))
    rough = records["rough"]
    records["ranked_similarity"][rough] = calibrated(ranked_similarity, true, both.tolist())[rough]
    records["ranked_similarity"][known] = cosines[:, 1]
    records["similarity"][known] = cosines[:, 0]
    shown = np.zeros(len(records), np.bool_)
    shown[known] = [row["fits"] for row in rows]
    records["eligible"] &= shown
    return records
