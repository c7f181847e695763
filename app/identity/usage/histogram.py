"""How long things took, counted in a few fixed buckets, and the percentiles read from them. Pure.

A percentile is an estimate: within its bucket the values are taken to lie evenly.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

MILLISECONDS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000)
"""Upper ends of the buckets of what a caller waits for, in ms; a last one has what is longer."""

WAITS: Final = (
    1_000, 2_000, 5_000, 10_000, 20_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000,
    21_600_000, 86_400_000,
)  # fmt: skip
"""The same of what waits in the background."""

LONGER: Final = "longer"
"""Name of the last bucket; the others are named by their upper end."""


def bucket_of(milliseconds: float, ends: Sequence[int]) -> str:
    """The name of a value's bucket; an end is in the bucket above it."""
    place = bisect_right(ends, milliseconds)
    return str(ends[place]) if place < len(ends) else LONGER


def percentile(counts: Mapping[str, int], share: float, ends: Sequence[int]) -> float | None:
    """The value that `share` of the counted ones lie below; None where nothing was counted.

    Of what is longer than the last end nothing is known but that: the end is returned.
    """
    total = sum(counts.values())
    if not total:
        return None
    wanted, below, start = share * total, 0, 0
    for end in ends:
        count = counts.get(str(end), 0)
        if count and below + count >= wanted:
            return round(start + (end - start) * (wanted - below) / count, 2)
        below, start = below + count, end
    return float(ends[-1])
