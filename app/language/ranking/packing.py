"""A text as a row keeps it for searches, its terms and traits; terms as sparse vectors, their
frequencies read back out of inner products, and exact BM25 (Robertson and Zaragoza, 2009) over
those of one bucket.

A stored text is a sparse vector of term frequencies. PostgreSQL can give its inner product with
another one and nothing else, so a query's terms weigh 1, 16, 256 and so on: the digits of the
product to base 16 are the frequencies of six terms. With them, exact BM25 needs no statistics that
somebody has to keep up to date (`docs/decisions/0010`).

Counts are term by row, since whatever is done to them runs along the rows.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from itertools import islice
from typing import Any, Final
from unicodedata import category, normalize

import numpy as np
import numpy.typing as npt
from pgvector import SparseVector

from app.language.text.function_words import ENGLISH, STOP_WORDS
from app.language.text.normal_forms import simplify
from app.language.text.periods import written_day
from app.language.text.terms import ANALYSER_VERSION, term_key, terms
from app.language.text.traits import cjk_share, has_time_expression, is_question, word_count

DIMENSION: Final = 1_000_000_000
"""The most that pgvector allows; `term_key` is below it."""

MOST_COUNTED: Final = 32_767
"""The most terms or words of a text that a row can count."""

TERMS_PER_VECTOR: Final = 6
DIGIT_BITS: Final = 4
BASE: Final = 2**DIGIT_BITS
"""Six digits to base 16 fill the 24 bits that a 32-bit float counts with exactly."""

MOST_OFTEN: Final = BASE - 1
"""Higher frequencies count as this: with k1 = 1.2, 15 occurrences give 93 % of what
infinitely many would."""

MOST_TERMS: Final = 4_000
"""Distinct terms of one text; pgvector allows 16,000. A text at the gate's limit of 2,000
characters has no more, the longest that a deployment may allow is cut."""

LONGEST_QUERY: Final = 384
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64)
"""How many vectors a query may come as: few, so that statements stay prepared."""


@dataclass(frozen=True, slots=True)
class StoredTerms:
    """What is kept of a text: its terms' frequencies, and how many terms it has in all."""

    vector: SparseVector
    count: int


def stored_terms(terms: Sequence[str], marks: Sequence[str] = ()) -> StoredTerms:
    """`terms` as a row keeps them; those of a very long text from its beginning.

    Args:
        terms: in order, repeated as often as they occur.
        marks: terms that are asked for apart, and are no words of the text.

    """
    keys = list(map(term_key, terms))
    # Most texts have few words twice.
    frequencies = dict.fromkeys(keys, 1)
    if len(frequencies) < len(keys):
        frequencies = dict(Counter(keys))
    count = len(terms)
    if len(frequencies) > MOST_TERMS:
        frequencies = dict(islice(frequencies.items(), MOST_TERMS))
        count = sum(frequencies.values())
    if len(keys) - len(frequencies) >= MOST_OFTEN and max(frequencies.values()) > MOST_OFTEN:
        frequencies = {key: min(often, MOST_OFTEN) for key, often in frequencies.items()}
    for mark in marks:
        frequencies[term_key(mark)] = 1
    return StoredTerms(_Frequencies(frequencies), min(count, MOST_COUNTED))


class _Frequencies(SparseVector):
    """Frequencies by key, none of them 0. Its base looks at each number three times."""

    def __init__(self, frequencies: dict[int, int]) -> None:
        self._dim = DIMENSION
        self._indices = sorted(frequencies)
        self._values = [frequencies[key] for key in self._indices]


@dataclass(frozen=True, slots=True)
class PackedQuery:
    """Distinct terms, and the vectors that ask for their frequencies, six each.

    Args:
        vectors: as many as one of a few sizes; those past the terms are empty.

    """

    terms: tuple[str, ...]
    vectors: tuple[SparseVector, ...]


def packed_query(terms: Sequence[str]) -> PackedQuery:
    """The distinct terms of a query in order; of a very long one, those that came last."""
    distinct = tuple(dict.fromkeys(terms))[-LONGEST_QUERY:]
    # Two terms of one key would add up in one digit.
    kept = tuple({term_key(term): term for term in distinct}.values())
    needed = -(-len(kept) // TERMS_PER_VECTOR)
    size = next(size for size in (0, *_SIZES) if size >= needed)
    vectors = tuple(
        SparseVector(
            {
                term_key(term): float(BASE**digit)
                for digit, term in enumerate(kept[start : start + TERMS_PER_VECTOR])
            },
            DIMENSION,
        )
        for start in range(0, size * TERMS_PER_VECTOR, TERMS_PER_VECTOR)
    )
    return PackedQuery(kept, vectors)


def any_of(marks: Sequence[str]) -> SparseVector:
    """The vector whose product is above 0 for rows that have one of `marks`."""
    return SparseVector({term_key(mark): 1.0 for mark in marks}, DIMENSION)


_DIGITS: Final = DIGIT_BITS * np.arange(TERMS_PER_VECTOR, dtype=np.int32)


def frequencies(products: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.uint8]:
    """How often each of `count` terms occurs in each row.

    Args:
        products: per row the inner products with the vectors of a `PackedQuery`; shape
            (rows, vectors).

    Returns:
        Shape (rows, count); whole numbers from 0 to `MOST_OFTEN`.

    """
    sums = np.rint(products).astype(np.int32)
    read = (sums[:, :, np.newaxis] >> _DIGITS) & (BASE - 1)
    return read.reshape(len(products), sums.shape[1] * TERMS_PER_VECTOR)[:, :count].astype(np.uint8)


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


INDEX_COLUMNS: Final = (
    "terms", "term_count", "word_count", "is_question", "has_time", "analyser",
)  # fmt: skip

LONGEST_NAME: Final = 64
MOST_NAMES: Final = 3

_WORD = re.compile(r"[^\W_\u2e80-\U0010ffff]+(?:-[^\W_\u2e80-\U0010ffff]+)*")
# A capital at the start of a sentence says nothing.
_WRITTEN_AS_NAME = re.compile(r"(?<=[\w,;'’\"]\s)[A-Z][a-z]+\b")
_CJK_RUN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_CJK_NAME_LENGTHS: Final = (2, 3, 4)
_CJK_RUNS: Final = 20
_MOST_MARKS: Final = 1_000
_CACHED_DAYS: Final = 1_024


def index_values(
    text: str,
    *,
    speakers: Iterable[str] = (),
    said_at: datetime | None = None,
    words: Iterable[str] | None = None,
) -> dict[str, Any]:
    """The values of `INDEX_COLUMNS` for a row that says `text`.

    Who said it and when are found as if they stood in the text, because questions name them
    and turns do not; they count as words of it.

    Args:
        text: what was said or is remembered.
        speakers: names of whoever says it or it is about; the first `MOST_NAMES` count, and
            `LONGEST_NAME` characters of each: metadata may hold a book there.
        said_at: when; its day is what is found.
        words: the terms of the text, where they are known.

    """
    names = list(dict.fromkeys(name[:LONGEST_NAME] for name in islice(speakers, MOST_NAMES)))
    said = terms(text) if words is None else list(words)
    for name in names:
        said += terms(name)
    if said_at is not None:
        said += _day_terms(said_at.date(), chinese=cjk_share(text) > 0.5)
    kept = stored_terms(said, marks=[mark for name in names for mark in _marks(name)])
    return {
        "terms": kept.vector,
        "term_count": kept.count,
        "word_count": min(word_count(text), MOST_COUNTED),
        "is_question": is_question(text),
        "has_time": has_time_expression(text),
        "analyser": ANALYSER_VERSION,
    }


def speaker_marks_in(query: str) -> list[str]:
    """Marks of whoever `query` may name: rows of a speaker it does name have one of them.

    Any word may be a name, since rows alone know who speaks, but one that is also a common
    word has to be written as a name.
    """
    words = [word.casefold() for word in _WORD.findall(query)]
    common = STOP_WORDS[ENGLISH]
    names = {name.casefold() for name in _WRITTEN_AS_NAME.findall(query)}
    marks = {_mark(word): None for word in words if word not in common or word in names}
    for run in _CJK_RUN.findall(query)[:_CJK_RUNS]:
        for length in _CJK_NAME_LENGTHS:
            for start in range(min(len(run) - length + 1, _MOST_MARKS)):
                if len(marks) >= _MOST_MARKS:
                    return list(marks)
                marks[_mark(simplify(run[start : start + length]))] = None
    return list(marks)[:_MOST_MARKS]


def _marks(name: str) -> Iterator[str]:
    """A speaker is named by the whole name, and by any word of it."""
    yield _mark(simplify(name))
    parts = _WORD.findall(name)
    if len(parts) > 1:
        yield from (_mark(part) for part in parts)


def _mark(name: str) -> str:
    """What a name is looked for by, whatever its case and accents: no text has such a term."""
    bare = name.strip()
    if not bare.isascii():
        bare = "".join(char for char in normalize("NFKD", bare) if category(char) != "Mn")
    return f"\x1fspeaker:{bare.casefold()}"


@lru_cache(_CACHED_DAYS)
def _day_terms(day: date, *, chinese: bool) -> Sequence[str]:
    """Most texts of a while are of one day."""
    return terms(f"{day.year}年{day.month}月{day.day}日" if chinese else written_day(day))
