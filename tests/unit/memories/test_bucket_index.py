"""Choosing candidates out of a bucket's rows in memory, beside the same done row by row."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import log1p, sqrt
from struct import pack
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.ranking.packing import K1, MOST_OFTEN, B
from app.language.ranking.query import ParsedQuery, parse_query
from app.language.text.terms import term_key
from app.memory.memories.bucket_index import (
    LONGEST_SESSION,
    USUAL,
    BucketIndex,
    CandidateNumbers,
    choose,
)
from app.memory.memories.comparison_sql import FEWEST

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MODEL = "m"
DIMENSION = 128
WORDS = ("kestrel", "harbour", "lantern", "orchard")
ASKED = parse_query("kestrel harbour lantern lantern", NOW)


@dataclass(frozen=True)
class Stored:
    """A row: its number, the bits of its code, how often it has each word, and its session."""

    number: int
    bits: tuple[int, ...]
    often: tuple[int, ...]
    session: int
    model: str = MODEL

    @property
    def memory_id(self) -> str:
        return f"mem_{self.number:04}"

    @property
    def length(self) -> int:
        return sum(self.often) + self.number % 3


def sent(rows: Sequence[Stored], states: Sequence[str] = ("user ana m 1",)) -> dict[str, Any]:
    """As the database sends them."""
    codes, terms = [], []
    names = sorted({row.model for row in rows})
    for row in rows:
        codes.append(pack(">i", len(row.bits)) + np.packbits(row.bits).tobytes())
        held = {
            term_key(word): often for word, often in zip(stemmed(), row.often, strict=True) if often
        }
        keys = sorted(held)
        numbers = (1_000_000_000, len(keys), 0, *keys)
        values = [float(held[key]) for key in keys]
        terms.append(pack(f">{len(numbers)}i{len(values)}f", *numbers, *values))
    return {
        "states": list(states),
        "names": names,
        "ids": "".join(row.memory_id for row in rows).encode(),
        "id_sizes": b"".join(pack(">i", len(row.memory_id)) for row in rows),
        "models": b"".join(pack(">i", names.index(row.model) + 1) for row in rows),
        "codes": b"".join(codes),
        "code_sizes": b"".join(pack(">i", len(each)) for each in codes),
        "terms": b"".join(terms),
        "term_sizes": b"".join(pack(">i", len(each)) for each in terms),
        "sessions": b"".join(pack(">q", row.session) for row in rows),
        "lengths": b"".join(pack(">i", row.length) for row in rows),
    }


def stemmed() -> tuple[str, ...]:
    """The words of a row as a query has them."""
    return tuple(parse_query(word, NOW).packed.terms[0] for word in WORDS)


def index_of(rows: Sequence[Stored], *states: str) -> BucketIndex:
    return BucketIndex.read(sent(rows, states or ("user ana m 1",)))


@st.composite
def stored(draw: st.DrawFn) -> list[Stored]:
    """Rows of few different codes and words, so that many are equal."""
    number = draw(st.integers(1, 200))
    seed = draw(st.integers(0, 10_000))
    random = np.random.default_rng(seed)
    return [
        Stored(
            place,
            tuple(random.integers(0, 2, 4).tolist()) * (DIMENSION // 4),
            tuple((random.integers(0, 4, len(WORDS)) * (random.random(len(WORDS)) < 0.3)).tolist()),
            int(random.integers(0, 12)) * 7,
        )
        for place in range(number)
    ]


def vector_of(*signs: int) -> Any:
    return np.tile(np.array(signs, np.float32), DIMENSION // len(signs))


def asked_terms(asked: ParsedQuery) -> list[tuple[int, float]]:
    """The place of each word of the query in WORDS, and how much it is asked for."""
    return [
        (stemmed().index(term), sqrt(count))
        for term, count in zip(asked.packed.terms, asked.traits.term_counts, strict=True)
    ]


def rare(holders: int, rows: int) -> float:
    return log1p((rows - holders + 0.5) / (holders + 0.5))


def by_row(rows: list[Stored], vector: Any, wanted: CandidateNumbers) -> set[str]:
    """The candidates, row by row."""
    bits = (vector > 0).astype(int)
    distance = {row.number: int(np.sum(bits != np.array(row.bits))) for row in rows}
    each = max(min(max(len(rows) // 15, 80), 400), wanted.each)
    near = sorted(rows, key=lambda row: (distance[row.number], row.memory_id))[:each]
    terms = asked_terms(ASKED)
    holders = {place: sum(row.often[place] > 0 for row in rows) for place, _ in terms}
    score = {
        row.number: sum(
            asked * rare(holders[place], len(rows)) * row.often[place] / (row.often[place] + K1)
            for place, asked in terms
        )
        for row in rows
    }
    worded = sorted(
        (row for row in rows if score[row.number] > 0),
        key=lambda row: (
            -round(score[row.number], 9), distance[row.number], row.length, row.memory_id
        ),
    )[:each]  # fmt: skip
    middle = round(float(np.mean(list(distance.values()))))
    usual = [row for row in rows if distance[row.number] == middle][:USUAL]
    whole = leading(rows, wanted.sessions)
    chosen = [*near, *worded, *usual, *(row for row in rows if row.session in whole)]
    return {row.memory_id for row in chosen}


def leading(rows: list[Stored], number: int) -> set[int]:
    """The sessions that rank first as texts."""
    sessions = defaultdict(list)
    for row in rows:
        if row.session:
            sessions[row.session].append(row)
    if not sessions or not number:
        return set()
    often = {key: np.bitwise_or.reduce([row.often for row in of]) for key, of in sessions.items()}
    lengths = {key: sum(row.length for row in of) for key, of in sessions.items()}
    mean = max(np.mean(list(lengths.values())), 1.0)
    scores = {}
    for key in sessions:
        scores[key] = sum(
            asked
            * rare(sum(each[place] > 0 for each in often.values()), len(sessions))
            * often[key][place]
            / (often[key][place] + K1 * (1 - B + B * lengths[key] / mean))
            for place, asked in asked_terms(ASKED)
        )
    best = sorted((key for key in sessions if scores[key] > 0), key=lambda key: -scores[key])
    return {key for key in best[:number] if len(sessions[key]) <= LONGEST_SESSION}


@given(stored())
def test_candidates_are_those_chosen_row_by_row(rows: list[Stored]) -> None:
    vector, wanted = vector_of(1, -1, 1, 1), CandidateNumbers(0, 40)

    chosen = choose([index_of(rows)], {MODEL: vector}, ASKED, wanted)

    assert set(chosen.ids) == by_row(rows, vector, wanted)
    assert len(chosen.ids) == len(set(chosen.ids))
    assert chosen.rows == len(rows)
    assert list(chosen.statistics.holders) == [
        sum(row.often[place] > 0 for row in rows) for place, _ in asked_terms(ASKED)
    ]
    assert chosen.statistics.mean_length == pytest.approx(np.mean([row.length for row in rows]))


@given(stored(), st.integers(0, 200))
def test_two_buckets_are_looked_at_as_one(rows: list[Stored], cut: int) -> None:
    vector, wanted = vector_of(1, -1, 1, 1), CandidateNumbers(0, 40)
    parts = [index_of(rows[:cut], "a"), index_of(rows[cut:], "b")]

    chosen = choose(parts, {MODEL: vector}, ASKED, wanted)
    whole = choose([index_of(rows)], {MODEL: vector}, ASKED, wanted)

    assert chosen.states == {"a", "b"}
    assert replace(chosen, states=whole.states, statistics=whole.statistics) == whole


def rows_with(number: int, **fields: Any) -> list[Stored]:
    base = {"bits": (0,) * DIMENSION, "often": (0, 0, 0, 0), "session": 0} | fields
    return [Stored(place, **base) for place in range(number)]


def test_without_words_the_nearest_alone_are_chosen() -> None:
    near = [replace(row, bits=(1,) * DIMENSION) for row in rows_with(FEWEST)]
    far = [replace(row, number=row.number + FEWEST, often=(3, 0, 0, 0)) for row in rows_with(50)]

    chosen = choose([index_of([*near, *far])], {MODEL: vector_of(1)}, None, CandidateNumbers(0, 0))

    assert set(chosen.ids) == {row.memory_id for row in near}
    assert not chosen.middle
    assert not chosen.whole


def test_what_another_model_made_is_not_near() -> None:
    rows = [replace(row, model="n" if row.number % 2 else MODEL) for row in rows_with(10)]

    chosen = choose([index_of(rows)], {MODEL: vector_of(1)}, None, CandidateNumbers(0, 0))

    assert set(chosen.ids) == {row.memory_id for row in rows if row.model == MODEL}


@pytest.mark.parametrize(("rows", "whole"), [(LONGEST_SESSION, True), (LONGEST_SESSION + 1, False)])
def test_a_long_session_is_not_read_whole(rows: int, *, whole: bool) -> None:
    said = rows_with(rows, often=(1, 1, 0, 0), session=-5)

    chosen = choose([index_of(said)], {}, ASKED, CandidateNumbers(0, 40))

    assert chosen.whole == ([-5] if whole else [])


@pytest.mark.parametrize("width", [128, 129, 384, 700, 767])
def test_codes_of_any_width_are_compared(width: int) -> None:
    random = np.random.default_rng(width)
    vector = random.standard_normal(width).astype(np.float32)
    bits = random.integers(0, 2, (20, width))
    rows = [replace(row, bits=tuple(bits[row.number].tolist())) for row in rows_with(20)]

    found = index_of(rows).distances({MODEL: vector})

    assert found.tolist() == (bits != (vector > 0)).sum(axis=1).tolist()


def test_a_word_counts_at_most_so_often() -> None:
    [row] = rows_with(1, often=(40, 0, 0, 2))

    often = [index_of([row]).holders(term)[1].tolist() for term in stemmed()]

    assert often == [[MOST_OFTEN], [], [], [2]]


def test_a_bucket_without_codes_has_no_candidates() -> None:
    nothing = dict.fromkeys(sent([]), None)
    empty = BucketIndex.read(nothing | {"states": ["user ana m 0"], "names": [MODEL]})

    chosen = choose([empty], {MODEL: vector_of(1)}, ASKED, CandidateNumbers(0, 40))

    assert not chosen.ids
    assert chosen.states == {"user ana m 0"}


@given(st.lists(st.text("aé猫_", min_size=1, max_size=9), min_size=1, max_size=20, unique=True))
def test_ids_of_any_length_and_script_come_back(ids: list[str]) -> None:
    said = sent(rows_with(len(ids)))
    encoded = [each.encode() for each in sorted(ids)]
    said["ids"] = b"".join(encoded)
    said["id_sizes"] = b"".join(pack(">i", len(each)) for each in encoded)

    chosen = choose([BucketIndex.read(said)], {MODEL: vector_of(1)}, None, CandidateNumbers(0, 0))

    assert chosen.ids == sorted(ids)
