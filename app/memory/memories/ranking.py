"""Similarity, confidence and scope weighed into one score. Pure arithmetic."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Final

from app.language.ranking.boosts import InvalidWeightsError


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


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """What each part contributed to a score, its weight applied; for `explain`."""

    similarity: float
    confidence: float
    scope: float

    @property
    def total(self) -> float:
        """The score, 0 to 1."""
        # The weights may sum to a hair over 1.
        return min(self.similarity + self.confidence + self.scope, 1.0)


def score_parts(
    similarity: float, confidence: float, scope_weight: float, weights: RankWeights
) -> ScoreParts:
    """Weigh one item.

    Args:
        similarity: cosine of query and item; below 0 counts as 0 and above 1, from rounding,
            as 1. Not a number, from a vector of zeros, counts as 0.
        confidence: 0 to 1, as the gate let it in.
        scope_weight: 0 to 1, from `ScopeWeights`.
        weights: the share of each part.

    """
    likeness = 0.0 if math.isnan(similarity) else min(max(similarity, 0.0), 1.0)
    return ScoreParts(
        similarity=likeness * weights.similarity,
        confidence=confidence * weights.confidence,
        scope=scope_weight * weights.scope,
    )


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
