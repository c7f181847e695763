"""Terms as sparse vectors: what PostgreSQL's products say is what stood in the text."""

import random
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgvector import SparseVector

from app.language.ranking.packing import (
    BASE,
    DIMENSION,
    LONGEST_QUERY,
    MOST_OFTEN,
    MOST_TERMS,
    TERMS_PER_VECTOR,
    any_of,
    frequencies,
    packed_query,
    stored_terms,
)
from app.language.text.terms import term_key

LONGEST_COUNT = 32_767


def words(number: int, prefix: str = "w") -> list[str]:
    return [f"{prefix}{one}" for one in range(number)]


def values(vector: SparseVector) -> dict[int, float]:
    return dict(zip(vector.indices(), vector.values(), strict=True))


def product(one: SparseVector, other: SparseVector) -> np.float32:
    """As pgvector reckons it: in 32 bits, by ascending index."""
    mine, theirs = values(one), values(other)
    total = np.float32(0)
    for key in sorted(mine.keys() & theirs.keys()):
        total += np.float32(mine[key]) * np.float32(theirs[key])
    return total


def read(text: list[str], query: list[str]) -> dict[str, int]:
    """How often each term of a query stands in a text, by way of products."""
    stored, packed = stored_terms(text).vector, packed_query(query)
    products = np.array([[product(stored, one) for one in packed.vectors]], np.float32)
    found = frequencies(products, len(packed.terms))
    return dict(zip(packed.terms, (int(one) for one in found[0]), strict=True))


def two_of_one_key() -> tuple[str, str]:
    seen: dict[int, str] = {}
    for number in count():
        term = f"t{number}"
        twin = seen.setdefault(term_key(term), term)
        if twin != term:
            return twin, term
    raise AssertionError


class TestFrequencies:
    @given(
        st.lists(st.integers(0, 40), min_size=1, max_size=192),
        st.randoms(use_true_random=False),
    )
    def test_whatever_stands_in_a_text_is_read_back(
        self, often: list[int], shuffled: random.Random
    ) -> None:
        terms = words(len(often))
        text = [term for term, times in zip(terms, often, strict=True) for _ in range(times)]
        shuffled.shuffle(text)

        found = read([*text, "another"], terms)

        assert list(found.values()) == [min(times, MOST_OFTEN) for times in often]

    @pytest.mark.parametrize(("times", "counted"), [(14, 14), (15, 15), (16, 15), (200, 15)])
    def test_more_than_fifteen_count_as_fifteen(self, times: int, counted: int) -> None:
        assert read(["tea"] * times, ["cup", "tea", "pot"]) == {"cup": 0, "tea": counted, "pot": 0}

    def test_six_full_digits_are_the_last_that_a_float_holds_exactly(self) -> None:
        text = words(TERMS_PER_VECTOR) * MOST_OFTEN

        assert float(product(stored_terms(text).vector, packed_query(text).vectors[0])) == 2**24 - 1
        assert BASE**TERMS_PER_VECTOR == 2**24
        assert set(read(text, words(TERMS_PER_VECTOR)).values()) == {MOST_OFTEN}

    def test_no_rows_and_no_terms_are_read_too(self) -> None:
        assert frequencies(np.zeros((0, 1), np.float32), 3).shape == (0, 3)
        assert frequencies(np.zeros((2, 0), np.float32), 0).shape == (2, 0)


class TestStored:
    def test_a_text_keeps_each_term_and_how_many_there_are(self) -> None:
        kept = stored_terms(["tea", "cup", "tea"])

        assert values(kept.vector) == {term_key("tea"): 2.0, term_key("cup"): 1.0}
        assert (kept.count, kept.vector.dimensions()) == (3, DIMENSION)

    def test_a_text_without_terms_is_an_empty_vector(self) -> None:
        kept = stored_terms([])

        assert (values(kept.vector), kept.count) == ({}, 0)

    def test_marks_are_no_words(self) -> None:
        kept = stored_terms(["tea"], marks=["mark", "mark"])

        assert values(kept.vector) == {term_key("tea"): 1.0, term_key("mark"): 1.0}
        assert kept.count == 1

    @pytest.mark.parametrize(
        ("distinct", "kept"),
        [(MOST_TERMS - 1, MOST_TERMS - 1), (MOST_TERMS, MOST_TERMS), (MOST_TERMS + 1, MOST_TERMS)],
    )
    def test_a_very_long_text_keeps_its_beginning(self, distinct: int, kept: int) -> None:
        text = words(distinct)

        stored = stored_terms([*text, "w0"])

        assert (len(stored.vector.indices()), stored.count) == (kept, kept + 1)
        assert read([*text, "w0"], ["w0", text[-1]]) == {
            "w0": 2,
            text[-1]: int(distinct <= MOST_TERMS),
        }

    @pytest.mark.parametrize(
        ("length", "counted"),
        [(LONGEST_COUNT - 1, LONGEST_COUNT - 1), (LONGEST_COUNT, LONGEST_COUNT),
         (LONGEST_COUNT + 1, LONGEST_COUNT)],
    )  # fmt: skip
    def test_a_length_is_what_its_column_holds_at_most(self, length: int, counted: int) -> None:
        assert stored_terms(["tea"] * length).count == counted


class TestQuery:
    @pytest.mark.parametrize(
        ("terms", "vectors"),
        [(0, 0), (1, 1), (5, 1), (6, 1), (7, 2), (12, 2), (13, 4), (24, 4), (25, 8), (96, 16),
         (97, 32), (192, 32), (193, 64), (383, 64), (384, 64), (385, 64)],
    )  # fmt: skip
    def test_a_query_comes_in_one_of_few_sizes(self, terms: int, vectors: int) -> None:
        packed = packed_query(words(terms))

        assert len(packed.vectors) == vectors
        assert len(packed.terms) == min(terms, LONGEST_QUERY)
        filled = [len(one.indices()) for one in packed.vectors]
        assert sum(filled) == len(packed.terms)
        assert all(size == TERMS_PER_VECTOR for size in filled[: terms // TERMS_PER_VECTOR])

    def test_of_a_very_long_query_what_came_last_is_asked(self) -> None:
        terms = words(LONGEST_QUERY + 1)

        assert packed_query(terms).terms == tuple(terms[1:])

    def test_a_term_is_asked_once_where_it_first_stood(self) -> None:
        assert packed_query(["tea", "cup", "tea"]).terms == ("tea", "cup")

    def test_two_terms_of_one_key_are_asked_as_one(self) -> None:
        one, twin = two_of_one_key()

        packed = packed_query([one, "cup", twin])

        assert len(packed.terms) == 2
        assert set(read([one, "cup", "cup"], [one, "cup", twin]).values()) == {1, 2}

    def test_any_of_some_marks_is_enough(self) -> None:
        stored = stored_terms(["tea"], marks=["a", "b"]).vector

        assert product(stored, any_of(["b", "c"])) > 0
        assert product(stored, any_of(["c", "c"])) == 0
        assert product(stored, any_of([])) == 0


class TestKeys:
    @given(st.text(min_size=1, max_size=80))
    def test_every_term_has_a_key_that_pgvector_takes(self, term: str) -> None:
        assert 0 <= term_key(term) < DIMENSION

    def test_keys_never_change(self) -> None:
        found = [term_key(term) for term in ("tea", "茶", "month:5", "\ud800")]

        assert found == [846_850_704, 879_761_507, 917_914_443, 457_903_464]
