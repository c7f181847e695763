"""From packed records to the arrays that `fusion` works on."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.language.ranking.bm25 import bm25, rarity
from app.language.ranking.fusion import Bucket, Features, QueryTraits
from app.language.ranking.packing import PackedQuery, frequencies
from app.language.ranking.rows import Records, seconds


def features_of(ids: Sequence[str], records: Records, packed: PackedQuery) -> Features:
    """What is known of each row, in the order of the rows.

    Args:
        ids: break ties of rows that were stored in one transaction; ours sort by time.
        records: with the fields of `text_columns`, and `ranked_similarity`, `product_0` and so on,
            `named`, `session`, `said`, `created`.
        packed: what the products are of.

    """
    products = np.empty((len(records), len(packed.vectors)), np.float32)
    for number in range(len(packed.vectors)):
        products[:, number] = records[f"product_{number}"]
    sessions = records["session"].astype(np.int64)
    return Features(
        counts=frequencies(products, len(packed.terms)),
        lengths=records["length"].astype(np.float32),
        cosine=records["ranked_similarity"].astype(np.float32),
        named=records["named"] > 0,
        session=sessions,
        order=positions(ids, sessions, records["created"].astype(np.int64)),
        time=seconds(records["said"].astype(np.int64)),
        question=records["question"],
        words=records["words"].astype(np.int64),
        timed=records["timed"],
    )


def bucket_of(features: Features) -> Bucket:
    """Statistics of the words, counted over the rows themselves."""
    lengths = features.lengths
    return Bucket(
        holders=np.count_nonzero(features.counts, axis=0),
        rows=len(lengths),
        mean_length=float(lengths.mean()) if len(lengths) else 0.0,
    )


def coverage(features: Features, bucket: Bucket, traits: QueryTraits) -> npt.NDArray[np.float32]:
    """BM25 of each row, 0 to 1, comparable between queries.

    1 is what a row of mean length would have that holds each word of the query once; more
    counts as 1.
    """
    weights = rarity(bucket.holders, bucket.rows) * np.sqrt(traits.term_counts)
    total = float(weights.sum())
    if total <= 0.0:
        return np.zeros_like(features.lengths)
    counts = np.ascontiguousarray(features.counts.T, dtype=np.float32)
    scores = bm25(counts, features.lengths, weights, bucket.mean_length)
    covered: npt.NDArray[np.float32] = np.minimum(scores / np.float32(total), 1.0)
    return covered


def positions(
    ids: Sequence[str], sessions: npt.NDArray[np.int64], created: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The place of each row among those of its session, from 0, by when it was stored.

    Rows without a session (0) have no neighbours, and all have the place 0.
    """
    places = np.zeros(len(ids), np.int64)
    if not np.any(sessions):
        return places
    order = np.lexsort((created, sessions))
    sorted_sessions = sessions[order]
    if _any_together(sorted_sessions, created[order]):
        # The sort that follows keeps their order.
        by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__))
        order = by_id[np.lexsort((created[by_id], sessions[by_id]))]
    begins = np.flatnonzero(np.diff(sorted_sessions, prepend=sorted_sessions[0] - 1))
    lengths = np.diff(begins, append=len(ids))
    places[order] = np.arange(len(ids)) - np.repeat(begins, lengths)
    places[sessions == 0] = 0
    return places


def _any_together(sessions: npt.NDArray[np.int64], created: npt.NDArray[np.int64]) -> bool:
    """Whether rows of one session were stored at one moment; both are sorted alike."""
    together = (sessions[1:] == sessions[:-1]) & (created[1:] == created[:-1])
    return bool(np.any(together & (sessions[1:] != 0)))
