"""Who has to go first where a bucket holds too much. Pure: no clock, no database.

`eviction_repository.py` says the same as SQL, and a test holds the two together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.identity.agents.retention import Eviction

W_CONFIDENCE: Final = 0.65
W_FRESHNESS: Final = 0.25
W_HEAT: Final = 0.10

FRESH_HALF_LIFE_DAYS: Final = 90
HEAT_HALF_LIFE_DAYS: Final = 30

RESERVED_SHARE: Final = 10
"""One of so many places is kept for corrections, at most `MOST_RESERVED`."""

MOST_RESERVED: Final = 10

CORRECTION: Final = "correction"
EXTRACTED: Final = "ai"
"""Source of what a model or the rules proposed; what a person saved never counts."""

DAY_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Evictable:
    """An extracted memory, as far as its place depends on it.

    Args:
        confirmed_at: when it was last said, or found to hold still.
        last_used_at: when a query last found it; standing in a context is no use.

    """

    memory_id: str
    memory_type: str
    confidence: float
    confirmed_at: datetime
    last_used_at: datetime | None
    use_count: int
    update_time: datetime


def hybrid_score(one: Evictable, now: datetime) -> float:
    """From 0 to 1: how sure it is, how lately it was confirmed, how often it is looked for."""
    fresh = _halved(one.confirmed_at, now, FRESH_HALF_LIFE_DAYS)
    heat = 0.0
    if one.last_used_at is not None:
        often = one.use_count / (one.use_count + 1)
        heat = often * _halved(one.last_used_at, now, HEAT_HALF_LIFE_DAYS)
    return W_CONFIDENCE * one.confidence + W_FRESHNESS * fresh + W_HEAT * heat


def reserve(keep: int) -> int:
    """How many corrections stand outside a cap of `keep`: a tenth, rounded up, at most ten."""
    return min(-(-keep // RESERVED_SHARE), MOST_RESERVED)


def weakest(
    rows: Sequence[Evictable], *, keep: int, eviction: Eviction, now: datetime
) -> list[str]:
    """Ids beyond the `keep` strongest, weakest first.

    By confidence, corrections neither count nor go. By the hybrid score that
    holds for the strongest of them alone, as many as `reserve` says.
    """

    def strength(one: Evictable) -> tuple[float, datetime, str]:
        score = one.confidence if eviction == "confidence" else hybrid_score(one, now)
        return score, one.update_time, one.memory_id

    ordered = sorted(rows, key=strength, reverse=True)
    corrections = [one for one in ordered if one.memory_type == CORRECTION]
    spared = corrections if eviction == "confidence" else corrections[: reserve(keep)]
    exempt = {one.memory_id for one in spared}
    counted = [one for one in ordered if one.memory_id not in exempt]
    return [one.memory_id for one in reversed(counted[keep:])]


def _halved(since: datetime, now: datetime, half_life_days: int) -> float:
    days = max((now - since).total_seconds(), 0.0) / DAY_SECONDS
    return float(0.5 ** (days / half_life_days))
