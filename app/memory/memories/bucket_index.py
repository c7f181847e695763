"""What is kept in memory of a large bucket's rows with codes, and which of them are candidates.

A search of every row would read them all; so would PostgreSQL to choose some. Here the choice is
a few passes over arrays (`docs/decisions/0024`). Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from app.language.ranking.features import BucketStatistics
from app.language.ranking.packing import K1, MOST_OFTEN, B, rarity
from app.language.ranking.query import ParsedQuery
from app.language.text.terms import term_key
from app.memory.memories.comparison_sql import nearest

USUAL: Final = 32
"""How many rows at the middle distance tell what the usual cosine is."""

LONGEST_SESSION: Final = 60
"""A session of more rows is not read. Rows of a session that is not have no neighbours."""

FAR: Final = np.iinfo(np.int32).max
"""Farther than any code: of a row that nothing compares."""

Ints = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SessionsOfRows:
    """Which session each row is of, and what each session is as one text.

    Args:
        hashes: of the sessions, ascending.
        places: of each row's session among them; of a row without one the place behind them.
        rows: how many each has.
        lengths: terms of each.

    """

    hashes: Hashes
    places: Ints
    rows: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.float64]

    @classmethod
    def of(cls, by_row: Hashes, lengths: Ints) -> "SessionsOfRows":
        """Out of the hash of each row's session, 0 for none, and how many terms the row has."""
        real = by_row != 0
        hashes, found = np.unique(by_row[real], return_inverse=True)
        places = np.full(len(by_row), len(hashes), np.int32)
        places[real] = found
        rows = np.bincount(places, minlength=len(hashes) + 1)
        terms = np.bincount(places, lengths, minlength=len(hashes) + 1).astype(np.float64)
        return cls(hashes, places, rows[:-1], terms[:-1])

    @property
    def by_row(self) -> Hashes:
        """The hash of each row's session; 0 for none."""
        return np.append(self.hashes, np.int64(0))[self.places]

    def rows_of(self, sessions: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The rows of the sessions at these places."""
        chosen = np.zeros(len(self.hashes) + 1, np.bool_)
        chosen[sessions] = True
        return np.flatnonzero(chosen[self.places])


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """Rows of one bucket that had codes at one moment, by id.

    Args:
        states: of the bucket in `memory_buckets` at that moment, one for each model.
        ids: as bytes, ascending.
        models: what made each row's code, as a place in `names` from 1.
        codes: bits of each row (second axis), those of the longest model wide.
        sessions: of the rows.
        lengths: terms of each row.
        keys: distinct keys of terms, ascending; the rows that have the one at a place, and how
            often, lie in `rows` and `often` from `starts` at that place to the next.

    """

    states: frozenset[str]
    ids: npt.NDArray[np.bytes_]
    names: Sequence[str]
    models: npt.NDArray[np.int16]
    codes: npt.NDArray[np.uint64]
    sessions: SessionsOfRows
    lengths: Ints
    keys: Ints
    starts: npt.NDArray[np.int64]
    rows: Ints
    often: npt.NDArray[np.uint8]

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "BucketIndex":
        """Out of the row of `bucket_sql.CODED_ROWS`."""
        keys, starts, rows, often = _postings(row["terms"], row["term_sizes"])
        ids = _by_row(row["ids"], row["id_sizes"], 0)
        lengths = np.frombuffer(row["lengths"] or b"", ">i4").astype(np.int32)
        sessions = np.frombuffer(row["sessions"] or b"", ">i8").astype(np.int64)
        codes = _by_row(row["codes"], row["code_sizes"], 4).view(np.uint64)
        return cls(
            frozenset(row["states"] or ()),
            ids.view(f"S{ids.shape[1]}").ravel(),
            row["names"] or (),
            np.frombuffer(row["models"] or b"", ">i4").astype(np.int16),
            # A sum over the first axis takes a tenth of the time.
            np.ascontiguousarray(codes.T),
            SessionsOfRows.of(sessions, lengths),
            lengths,
            keys,
            starts,
            rows,
            often,
        )

    @property
    def size(self) -> int:
        """Bytes that it takes, as good as all of them."""
        arrays = (
            self.ids, self.models, self.codes, self.sessions.places, self.lengths, self.keys,
            self.starts, self.rows, self.often,
        )  # fmt: skip
        return sum(array.nbytes for array in arrays)

    def distances(self, vectors: Mapping[str, Any]) -> Ints:
        """Bits by which each row differs from the query; FAR where another model made its code."""
        found = np.full(len(self.ids), FAR, np.int32)
        for name, vector in vectors.items():
            made = self.models == (self.names.index(name) + 1 if name in self.names else -1)
            code = np.packbits(np.asarray(vector) > 0)
            if made.any() and len(code) <= len(self.codes) * 8:
                wide = np.zeros(len(self.codes) * 8, np.uint8)
                wide[: len(code)] = code
                apart = np.bitwise_count(self.codes ^ wide.view(np.uint64)[:, np.newaxis])
                found = np.where(made, apart.sum(0, dtype=np.int32), found)
        return found

    def holders(self, term: str) -> tuple[Ints, npt.NDArray[np.uint8]]:
        """The rows that have a term, and how often each."""
        key = term_key(term)
        place = int(np.searchsorted(self.keys, key))
        if place == len(self.keys) or self.keys[place] != key:
            return self.rows[:0], self.often[:0]
        held = slice(self.starts[place], self.starts[place + 1])
        return self.rows[held], self.often[held]


def _begins(sizes: bytes | None) -> Hashes:
    """Where the bytes of each row begin, out of how many there are; and the end of all."""
    return np.concatenate(([0], np.cumsum(np.frombuffer(sizes or b"", ">i4").astype(np.int64))))


def _by_row(packed: bytes | None, sizes: bytes | None, skipped: int) -> npt.NDArray[np.uint8]:
    """The bytes of each row without its first `skipped`, filled up with zeros to as many for all
    rows, a multiple of eight.
    """
    begins = _begins(sizes)
    widths = np.diff(begins) - skipped
    widest = int(widths.max(initial=1))
    found = np.zeros((len(widths), -(-widest // 8) * 8), np.uint8)
    flat = np.frombuffer(packed or b"", np.uint8)
    if len(widths) and widths.min() == widest:
        found[:, :widest] = flat.reshape(len(widths), -1)[:, skipped:]
        return found
    within = np.arange(len(flat), dtype=np.int64) - np.repeat(begins[:-1], widths + skipped)
    found[:, :widest][np.arange(widest) < widths[:, np.newaxis]] = flat[within >= skipped]
    return found


def _postings(
    packed: bytes | None, sizes: bytes | None
) -> tuple[Ints, npt.NDArray[np.int64], Ints, npt.NDArray[np.uint8]]:
    """Terms as `sparsevec_send` gives them: three numbers, then the keys, then as many floats."""
    flat = np.frombuffer(packed or b"", ">i4").astype(np.int32)
    begins = _begins(sizes) // 4
    held = (np.diff(begins) - 3) // 2
    owner = np.repeat(np.arange(len(held), dtype=np.int32), held)
    # Numbers of 32 bits, for these arrays are the largest of all.
    first = (begins[:-1] + 3 - (np.cumsum(held) - held)).astype(np.int32)
    at = np.repeat(first, held) + np.arange(len(owner), dtype=np.int32)
    keys = flat[at]
    at += np.repeat(held.astype(np.int32), held)
    often = np.minimum(flat[at].view(np.float32), MOST_OFTEN).astype(np.uint8)
    del flat, at
    order = np.argsort(keys, kind="stable").astype(np.int32)
    distinct, starts = np.unique(keys[order], return_index=True)
    return (
        distinct,
        np.append(starts, len(keys)).astype(np.int64),
        owner[order],
        often[order],
    )


@dataclass(frozen=True, slots=True)
class ChosenCandidates:
    """Candidates of a search, and what is known of all rows that were looked at.

    Args:
        ids: of the candidates.
        middle: those at the middle distance.
        whole: hashes of the sessions of which every row is a candidate.
        rows: how many were looked at.
        states: of the buckets, as the rows were read.
        statistics: of all of them; of no words where none were compared.

    """

    ids: Sequence[str]
    middle: frozenset[str]
    whole: Sequence[int]
    rows: int
    states: frozenset[str]
    statistics: BucketStatistics


@dataclass(frozen=True, slots=True)
class CandidateNumbers:
    """How many candidates there are at least.

    Args:
        each: of a kind.
        sessions: read whole.

    """

    each: int
    sessions: int


def choose(
    parts: Sequence[BucketIndex],
    vectors: Mapping[str, Any],
    asked: ParsedQuery | None,
    wanted: CandidateNumbers,
) -> ChosenCandidates:
    """The rows that are nearest by code or have the rarest words of the query, and the sessions
    that have most of them.

    Args:
        parts: indexes of different buckets.
        vectors: of the query, by model.
        asked: its words; None compares vectors alone.
        wanted: how many.

    """
    distances = _joined([part.distances(vectors) for part in parts])
    rows = len(distances)
    each = max(nearest(rows), wanted.each)
    known = np.flatnonzero(distances < FAR)
    compared = distances[known]
    chosen = [_first(each, (compared,), known)]
    middle = np.zeros(0, np.intp)
    statistics = BucketStatistics(np.zeros(0, np.int64), rows, 0.0)
    whole: Hashes = np.zeros(0, np.int64)
    if asked is not None:
        words = _Words.of(parts, asked)
        chosen.append(words.best(each, distances))
        if len(known):
            middle = known[compared == np.round(compared.mean())][:USUAL]
            chosen.append(middle)
        of_sessions = BucketStatistics(np.zeros(0, np.int64), 0, 0.0)
        if wanted.sessions and len(words.sessions.hashes):
            leading, of_sessions = words.leading_sessions(wanted.sessions)
            whole = words.sessions.hashes[leading]
            chosen.append(words.sessions.rows_of(leading))
        statistics = BucketStatistics(words.held, rows, words.mean_length, sessions=of_sessions)
    ids = _joined([part.ids for part in parts])
    return ChosenCandidates(
        _texts(ids[np.unique(np.concatenate(chosen))]),
        frozenset(_texts(ids[middle])),
        whole.tolist(),
        rows,
        frozenset().union(*(part.states for part in parts)),
        statistics,
    )


def _joined(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Of all parts; most searches have one, which is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _texts(ids: npt.NDArray[np.bytes_]) -> list[str]:
    # No id has the end of a line.
    return b"\n".join(ids.tolist()).decode().split("\n") if len(ids) else []


def _first(
    number: int, keys: Sequence[npt.NDArray[Any]], places: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Those of `places` that come first by `keys`, the first of which counts most; all ascend."""
    if len(places) <= number:
        return places
    # Only what may be among them is sorted.
    edge = np.partition(keys[0], number - 1)[number - 1]
    few = np.flatnonzero(keys[0] <= edge)
    order = np.lexsort([key[few] for key in reversed(keys)])
    return places[few[order[:number]]]


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a query in all rows: the rows that have each, and how often."""

    rows: Sequence[Ints]
    often: Sequence[npt.NDArray[np.uint8]]
    lengths: Ints
    sessions: SessionsOfRows
    held: npt.NDArray[np.int64]
    """How many rows have each."""
    emphasis: npt.NDArray[np.float64]
    """How much each is asked for."""

    @classmethod
    def of(cls, parts: Sequence[BucketIndex], asked: ParsedQuery) -> "_Words":
        begins = np.cumsum([0, *(len(part.ids) for part in parts[:-1])])
        lengths = _joined([part.lengths for part in parts])
        rows, often = [], []
        for term in asked.packed.terms:
            found = [part.holders(term) for part in parts]
            placed = zip(found, begins, strict=True)
            rows.append(_joined([held + begin for (held, _), begin in placed]))
            often.append(_joined([counted for _, counted in found]))
        sessions = (
            parts[0].sessions
            if len(parts) == 1
            else SessionsOfRows.of(_joined([part.sessions.by_row for part in parts]), lengths)
        )
        held = np.array([len(each) for each in rows], np.int64)
        return cls(rows, often, lengths, sessions, held, np.sqrt(asked.traits.term_counts))

    @property
    def mean_length(self) -> float:
        return float(self.lengths.mean()) if len(self.lengths) else 0.0

    def best(self, number: int, distances: Ints) -> npt.NDArray[np.intp]:
        """The rows with the rarest words, however long they are; of equals the nearest."""
        weights = rarity(self.held, len(self.lengths)) * self.emphasis
        scores = np.zeros(len(self.lengths))
        for weight, rows, often in zip(weights, self.rows, self.often, strict=True):
            scores[rows] += (weight * _SATURATED)[often]
        some = np.flatnonzero(scores)
        keys = (-scores[some].round(9), distances[some], self.lengths[some])
        return _first(number, keys, some)

    def leading_sessions(self, number: int) -> tuple[npt.NDArray[np.intp], BucketStatistics]:
        """Places of the sessions that rank first, each as one text, and are not too long; and what
        all of them are like.
        """
        of = self.sessions
        counts = np.zeros((len(self.rows), len(of.hashes) + 1), np.uint8)
        for each, rows, often in zip(counts, self.rows, self.often, strict=True):
            np.bitwise_or.at(each, of.places[rows], often)
        counts = counts[:, :-1]
        held = np.count_nonzero(counts, axis=1).astype(np.int64)
        mean = max(float(of.lengths.mean()), 1.0)
        weights = rarity(held, len(of.hashes)) * self.emphasis
        saturation = K1 * (1 - B + B * of.lengths / mean)
        scores = weights @ (counts.astype(np.float64) / (counts + saturation))
        some = np.flatnonzero(scores > 0)
        best = _first(number, (-scores[some],), some)
        return best[of.rows[best] <= LONGEST_SESSION], BucketStatistics(held, len(of.hashes), mean)


_SATURATED: Final = np.arange(MOST_OFTEN + 1) / (np.arange(MOST_OFTEN + 1) + K1)
"""What a word of a row is worth that has it so often."""
