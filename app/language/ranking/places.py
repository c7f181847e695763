"""The first places of a ranking, in order."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def best(
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
    chosen = sorted(
        (int(place) for place in places),
        key=lambda place: (*(-each[place].item() for each in order), ids[place]),
    )
    return chosen[:limit]
