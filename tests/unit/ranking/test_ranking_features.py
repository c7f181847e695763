"""From records to features: who stands beside whom, and how well words cover a query."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.ranking.features import bucket_statistics, coverage, features_of, positions
from app.language.ranking.packing import packed_query
from app.language.ranking.query import QueryTraits
from app.language.ranking.records import NO_TIME


def places(*rows: tuple[str, int, int]) -> list[int]:
    """Places of rows of an id, a session and a time."""
    ids, sessions, created = zip(*rows, strict=True)
    return positions(ids, np.array(sessions, np.int64), np.array(created, np.int64)).tolist()


class TestPositions:
    def test_rows_of_a_session_are_numbered_as_they_were_stored(self) -> None:
        assert places(("c", 1, 30), ("a", 1, 10), ("x", 2, 5), ("b", 1, 20)) == [2, 0, 0, 1]

    def test_of_one_moment_the_smallest_id_comes_first(self) -> None:
        assert places(("c", 1, 10), ("a", 1, 10), ("b", 1, 10), ("d", 1, 9)) == [3, 1, 2, 0]

    def test_rows_of_no_session_all_have_the_first_place(self) -> None:
        assert places(("a", 0, 1), ("b", 0, 2), ("c", 0, 3)) == [0, 0, 0]
        assert places(("a", 0, 1), ("b", 7, 2), ("c", 0, 3), ("d", 7, 1)) == [0, 1, 0, 0]

    def test_no_rows_have_no_places(self) -> None:
        assert positions([], np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []

    @given(
        st.lists(
            st.tuples(st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-2, 2), st.integers(0, 3)),
            min_size=1,
            max_size=30,
        )
    )
    def test_each_session_has_every_place_once(self, rows: list[tuple[int, int]]) -> None:
        named = [(f"mem_{n:03}", *row) for n, row in enumerate(rows)]

        found = places(*named)

        for session in {session for _, session, _ in named} - {0}:
            members = sorted(
                (created, name, place)
                for (name, own, created), place in zip(named, found, strict=True)
                if own == session
            )
            assert [place for *_, place in members] == list(range(len(members)))


FIELDS = [
    ("ranked_similarity", ">f4"), ("product_0", ">f4"), ("product_1", ">f4"), ("named", ">f4"),
    ("length", ">i2"), ("words", ">i2"), ("question", "?"), ("timed", "?"), ("session", ">i8"),
    ("said", ">i8"), ("created", ">i8"),
]  # fmt: skip


class TestFeatures:
    def test_a_record_is_read_field_by_field(self) -> None:
        packed = packed_query([f"w{n}" for n in range(7)])
        rows = [
            (0.5, 2 + 3 * 16, 4, 2.0, 9, 8, True, False, 77, 0, 2),
            (np.nan, 0, 0, 0.0, 0, 0, False, True, 77, NO_TIME, 1),
        ]

        found = features_of(["a", "b"], np.array(rows, FIELDS), packed)

        assert found.counts.tolist() == [[2, 3, 0, 0, 0, 0, 4], [0] * 7]
        assert found.lengths.tolist() == [9, 0]
        assert found.cosine is not None
        assert found.cosine[0] == 0.5
        assert np.isnan(found.cosine[1])
        assert found.named.tolist() == [True, False]
        assert found.session.tolist() == [77, 77]
        assert found.order.tolist() == [1, 0]
        assert found.time[0] == 946_684_800
        assert np.isnan(found.time[1])
        assert found.question.tolist() == [True, False]
        assert found.timed.tolist() == [False, True]
        assert found.words.tolist() == [8, 0]

    def test_no_rows_are_no_features(self) -> None:
        found = features_of([], np.array([], FIELDS), packed_query(["tea"]))
        bucket = bucket_statistics(found)

        assert found.counts.shape == (0, 1)
        assert (bucket.rows, bucket.mean_length, bucket.holders.tolist()) == (0, 0.0, [0])


def covered(counts: list[list[int]], lengths: list[int], asked: list[float]) -> list[float]:
    packed = packed_query([f"w{n}" for n in range(len(asked))])
    products = [sum(often * 16**digit for digit, often in enumerate(row)) for row in counts]
    rows = [
        (0.0, product, 0.0, 0.0, length, length, False, False, 0, 0, 0)
        for product, length in zip(products, lengths, strict=True)
    ]
    ids = [f"m{n}" for n in range(len(rows))]
    features = features_of(ids, np.array(rows, FIELDS), packed)
    traits = QueryTraits(np.array(asked, np.float32))
    return coverage(features, bucket_statistics(features), traits).tolist()


class TestCoverage:
    def test_a_row_of_mean_length_that_holds_each_word_once_is_covered_in_full(self) -> None:
        found = covered([[1, 1], [0, 0], [0, 1]], [4, 4, 4], [1, 1])

        assert found[0] == pytest.approx(1)
        assert found[1] == 0
        assert 0 < found[2] < 0.5

    def test_more_than_that_is_no_more_than_all(self) -> None:
        assert covered([[15, 15], [0, 0]], [1, 7], [1, 1]) == [1, 0]

    def test_the_rarer_word_covers_more(self) -> None:
        _, common, rare = covered([[1, 0], [1, 0], [0, 1]], [4, 4, 4], [1, 1])

        assert rare > common

    def test_a_word_that_is_asked_twice_covers_more(self) -> None:
        once, twice = covered([[1, 0], [0, 1]], [4, 4], [1, 4])

        assert twice == pytest.approx(2 * once)

    def test_a_query_without_words_covers_nothing(self) -> None:
        assert covered([[], []], [3, 0], []) == [0, 0]

    def test_rows_of_no_length_are_no_harm(self) -> None:
        assert covered([[0], [0]], [0, 0], [1]) == [0, 0]
