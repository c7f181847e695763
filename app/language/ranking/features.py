"""What a ranking knows, as arrays: of the rows, their sessions, their bucket and the query."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.language.ranking.packing import Floats, Ints, PackedQuery, bm25, frequencies, rarity
from app.language.ranking.query import QueryTraits
from app.language.ranking.records import Records, seconds

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SessionIndex:
    """Rows sorted by session and order; session 0 is none."""

    starts: Ints
    """Of the sessions, and of the rows of none."""
    number: Ints
    """Of the row's start."""
    real: Flags
    """Per start: it is a session's."""
    beside: tuple[Floats, Floats]
    """1 where a row and the one after it, or two after it, are of one session."""

    @classmethod
    def of(cls, session: Ints, apart: Flags | None = None) -> "SessionIndex":
        """Index rows that are sorted by session and order; those `apart` have no neighbours."""
        first = np.ones(len(session), dtype=np.bool_)
        first[1:] = session[1:] != session[:-1]
        starts = np.flatnonzero(first)
        joined = session != 0 if apart is None else (session != 0) & ~apart
        next_row, second_row = (
            ((session[gap:] == session[:-gap]) & joined[gap:]).astype(np.float32) for gap in (1, 2)
        )
        return cls(starts, np.cumsum(first) - 1, session[starts] != 0, (next_row, second_row))

    def gather(self, values: Floats, near: float, far: float) -> Floats:
        """Return, along the last axis, the sum of what stands one and two rows away."""
        sums = np.zeros_like(values)
        for gap, weight in ((1, near), (2, far)):
            if weight and values.shape[-1] > gap:
                link = self.beside[gap - 1] * np.float32(weight)
                sums[..., gap:] += values[..., :-gap] * link
                sums[..., :-gap] += values[..., gap:] * link
        return sums

    def after(self, values: Floats) -> Floats:
        """Return for each row the value of the one before it in its session, else 0."""
        passed = np.zeros_like(values)
        passed[1:] = values[:-1] * self.beside[0]
        return passed

    def totals(self, values: Floats) -> Floats:
        """Return, along the last axis, the sum of each session."""
        if not self.real.any():
            return np.zeros((*values.shape[:-1], 0), dtype=np.float32)
        sums: Floats = np.add.reduceat(values, self.starts, axis=-1)
        return sums[..., self.real]

    def spread(self, totals: Floats) -> Floats:
        """Return for each row what its session has; 0 for a row of none."""
        values = np.zeros(len(self.starts), dtype=np.float32)
        values[self.real] = totals
        return values[self.number]


@dataclass(frozen=True, slots=True)
class Features:
    """What is known of each row, in any order, all arrays as long; rows are the first axis."""

    counts: npt.NDArray[np.uint8]
    """How often each distinct term of the query (second axis) stands in the row; no terms in
    semantic mode."""
    lengths: Floats
    """Terms in the row."""
    cosine: Floats | None
    """To the query as it is ranked; NaN for a row without a vector, None in lexical mode."""
    named: Flags
    """The query names the row's speaker or subject."""
    session: Ints
    """The same number for rows of one session; 0 for none."""
    order: Ints
    """Where in its session the row stands; gaps are closed."""
    time: npt.NDArray[np.float64]
    """When it was said, in seconds of the epoch; NaN for unknown."""
    question: Flags
    """It asks something."""
    words: Ints
    """Words and CJK characters."""
    timed: Flags
    """It holds a time expression."""
    linked: Floats | None = None
    """How near it is in the graph to what the query names, 0 to 1; None where nobody looked."""
    apart: Flags | None = None
    """Other rows of its session are missing, so that those beside it here are no neighbours."""


@dataclass(frozen=True, slots=True)
class BucketStatistics:
    """Statistics of all rows of the user, before filters."""

    holders: Ints
    """How many rows hold each term of the query."""
    rows: int
    mean_length: float
    usual_cosine: float | None = None
    """The median, where not every row is ranked; None takes it from the rows."""
    sessions: "BucketStatistics | None" = None
    """Of each session as one row, where not every row is ranked; None takes them from the rows."""


def features_of(ids: Sequence[str], records: Records, packed: PackedQuery) -> Features:
    """What is known of each row, in the order of the rows.

    Args:
        ids: break ties of rows that were stored in one transaction; ours sort by time.
        records: with the fields of `text_columns`, and `ranked_similarity`, `product_0` and so on,
            `named`, `session`, `said`, `created`; `apart` where rows are missing.
        packed: what the products are of.

    """
    sessions = records["session"].astype(np.int64)
    return Features(
        counts=term_counts(records, packed),
        lengths=records["length"].astype(np.float32),
        cosine=records["ranked_similarity"].astype(np.float32),
        named=records["named"] > 0,
        session=sessions,
        order=positions(ids, sessions, records["created"].astype(np.int64)),
        time=seconds(records["said"].astype(np.int64)),
        question=records["question"],
        words=records["words"].astype(np.int64),
        timed=records["timed"],
        apart=records["apart"] if "apart" in (records.dtype.names or ()) else None,
    )


def term_counts(records: Records, packed: PackedQuery) -> npt.NDArray[np.uint8]:
    """How often each record (first axis) has each term of the query (second axis)."""
    products = np.empty((len(records), len(packed.vectors)), np.float32)
    for number in range(len(packed.vectors)):
        products[:, number] = records[f"product_{number}"]
    return frequencies(products, len(packed.terms))


def bucket_statistics(features: Features) -> BucketStatistics:
    """Statistics of the words, counted over the rows themselves."""
    lengths = features.lengths
    return BucketStatistics(
        holders=np.count_nonzero(features.counts, axis=0),
        rows=len(lengths),
        # The sum by hand is the same number, in a tenth of the time for a hundred rows.
        mean_length=float(lengths.sum() / len(lengths)) if len(lengths) else 0.0,
    )


def coverage(features: Features, bucket: BucketStatistics, traits: QueryTraits) -> Floats:
    """BM25 of each row, 0 to 1, comparable between queries.

    1 is what a row of mean length would have that holds each word of the query once; more
    counts as 1.
    """
    weights = word_weights(bucket, traits)
    return covered(word_scores(features, bucket, weights), float(weights.sum()))


def covered(scores: Floats, total: float) -> Floats:
    """BM25 as a share of `total`, what the words of the query are worth; 0 where they are worth
    nothing.
    """
    if total <= 0.0:
        return np.zeros_like(scores)
    shares: Floats = np.minimum(scores / np.float32(total), 1.0)
    return shares


def word_weights(bucket: BucketStatistics, traits: QueryTraits) -> Floats:
    """What each term of the query is worth: its rarity, and how often it is asked for."""
    # Said twice is asked for more, but not twice as much.
    weights: Floats = rarity(bucket.holders, bucket.rows) * np.sqrt(traits.term_counts)
    return weights


def word_scores(features: Features, bucket: BucketStatistics, weights: Floats) -> Floats:
    """BM25 of each row; `weights` are those of the words."""
    counts = np.ascontiguousarray(features.counts.T, dtype=np.float32)
    return bm25(counts, features.lengths, weights, bucket.mean_length)


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
