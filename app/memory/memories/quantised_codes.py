"""Binary codes: a bit per dimension of a vector, enough to choose what is compared exactly. Pure.

A long vector lies outside of its row, and fetching it costs more than comparing it; its code
lies within. `docs/decisions/0012` has the figures that the numbers here come from.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

import asyncpg
import numpy as np
import numpy.typing as npt

MINIMUM_DIMENSION: Final = 768
"""Codes of fewer bits find too little of the nearest hundred, and those of 256 save nothing: such
vectors lie within their rows."""

CANDIDATES: Final = 200
PER_HIT: Final = 4

SPREAD: Final = 32
"""How many rows beside the candidates are compared exactly, to learn what a distance means."""

SLACK: Final = 0.05
"""By how much a similarity that a code tells may miss the threshold and count as reaching it."""

SHORT: Final = 10.0
"""How far what seems to miss the threshold falls behind in the order, per cosine: behind all that
seem to reach it, and still to be compared where these are too few."""

Floats = npt.NDArray[np.float64]


def coded_models(vectors: Mapping[str, Any]) -> list[str]:
    """Models among those that made `vectors` whose rows may have codes."""
    return [name for name, vector in vectors.items() if len(vector) >= MINIMUM_DIMENSION]


def code_of(vector: Any) -> asyncpg.BitString:
    """The code of a vector, as pgvector's `binary_quantize` makes it."""
    bits = np.packbits(np.asarray(vector) > 0)
    return asyncpg.BitString.frombytes(bits.tobytes(), bitlength=len(vector))


def candidates(limit: int) -> int:
    """How many of the nearest by code are compared exactly for `limit` hits."""
    return max(CANDIDATES, PER_HIT * limit)


def spread(values: Floats, places: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Some of `places`, evenly from the greatest of `values` to the least."""
    if len(places) <= SPREAD:
        return places
    order = places[np.argsort(values[places], kind="stable")]
    return order[np.linspace(0, len(order) - 1, SPREAD).astype(np.intp)]


def calibrated(rough: Floats, exact: Floats, known: Collection[int]) -> Floats:
    """Cosines that codes tell, put on the scale of the exact ones.

    How far the two lie apart belongs to the model and to the bucket: vectors of one model
    often share a direction, in which all their codes agree.

    Args:
        rough: of every row.
        exact: of the rows at `known`; the others do not count.
        known: where both are numbers.

    """
    places = np.fromiter(known, np.intp, len(known))
    x, y = rough[places], exact[places]
    apart = x - x.mean() if len(places) else x
    variance = float(apart @ apart)
    if variance <= 0.0:
        return rough
    # Never turned round: the nearer by code stays the nearer.
    slope = max(float(apart @ (y - y.mean())) / variance, 0.0)
    scaled: Floats = (rough - x.mean()) * slope + y.mean()
    return scaled
