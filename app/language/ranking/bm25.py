"""Exact BM25 (Robertson and Zaragoza, 2009) over the rows of one bucket. Pure arithmetic.

Counts are term by row, since whatever is done to them runs along the rows.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

K1: Final = 1.2
B: Final = 0.75
"""The usual constants. LoCoMo does not tell them from k1 1 and b 0.5, but Chinese loses two points
of recall with those."""


def rarity(holders: npt.ArrayLike, documents: int) -> Floats:
    """Return each term's inverse document frequency, never negative.

    Args:
        holders: how many documents hold each term.
        documents: how many there are.

    """
    held = np.minimum(np.asarray(holders, dtype=np.float64), documents)
    return np.log1p((documents - held + 0.5) / (held + 0.5)).astype(np.float32)


def bm25(
    counts: Floats,
    lengths: Floats,
    weights: Floats,
    mean_length: float,
    *,
    k1: float = K1,
    b: float = B,
) -> Floats:
    """Score every row; 0 for a row with none of the terms.

    Args:
        counts: how often each term (first axis) stands in each row (second axis).
        lengths: of each row, in terms.
        weights: what each term is worth: its `rarity`, times its weight in the query.
        mean_length: of a row of the bucket.
        k1: how slowly repetitions of a term stop to count; above 0.
        b: how much a row's length counts, 0 to 1.

    """
    relative = lengths / np.float32(mean_length) if mean_length > 0 else np.ones_like(lengths)
    # A row of no length at b = 1 would be 0 / 0.
    saturation = np.maximum(np.float32(k1 * (1.0 - b)) + np.float32(k1 * b) * relative, 1e-6)
    scores: Floats = weights @ (counts / (counts + saturation))
    return scores * np.float32(k1 + 1.0)
