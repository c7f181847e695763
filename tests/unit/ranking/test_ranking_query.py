"""What is read out of a query: words, whom and when it means, what is embedded of it."""

from datetime import UTC, datetime, timedelta
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.ranking.packing import LONGEST_QUERY
from app.language.ranking.query import parse_query
from app.language.text.terms import terms

NOW = datetime(2023, 5, 10, 12, 0, tzinfo=UTC)  # A Wednesday.
LONGEST = 10_000


def days(query: str) -> list[tuple[str, str]]:
    """First and last day of each date in a query."""
    return [
        (f"{datetime.fromtimestamp(start, UTC):%m-%d}",
         f"{datetime.fromtimestamp(end - 1, UTC):%m-%d}")
        for start, end in parse_query(query, NOW).traits.dates
    ]  # fmt: skip


class TestWords:
    def test_each_term_is_asked_once_and_counted(self) -> None:
        asked = parse_query("tea tea cup", NOW)

        assert asked.packed.terms == tuple(dict.fromkeys(terms("tea tea cup")))
        assert asked.traits.term_counts.tolist() == [2.0, 1.0]

    @pytest.mark.parametrize("query", ["   ", "?!", "\u200b"])
    def test_a_query_without_words_asks_for_none(self, query: str) -> None:
        asked = parse_query(query, NOW)

        assert (asked.packed.terms, asked.packed.vectors) == ((), ())
        assert len(asked.traits.term_counts) == 0
        assert asked.ranked_texts == (query,)

    def test_counts_belong_to_the_terms_that_are_asked(self) -> None:
        asked = parse_query(" ".join(f"word{n}" for n in range(900)) + " word899", NOW)

        assert len(asked.packed.terms) == len(asked.traits.term_counts) == LONGEST_QUERY
        assert asked.traits.term_counts[list(asked.packed.terms).index("word899")] == 2

    @pytest.mark.parametrize(
        ("query", "share"), [("tea", 0.0), ("绿茶", 1.0), ("tea 茶", 0.25), ("?", 0.0)]
    )
    def test_the_share_of_chinese_is_told(self, query: str, share: float) -> None:
        assert parse_query(query, NOW).traits.cjk == share


class TestRankedTexts:
    @pytest.mark.parametrize(
        ("query", "ranked_texts"),
        [
            ("What does Caroline drink?", ("What does drink?", "drink")),
            ("What did Caroline and Melanie buy in Berlin?", ("What did and buy in ?", "buy")),
            ("Caroline?", ("Caroline?", "Caroline")),
            ("What is it?", ("What is it?",)),
            ("她喜欢喝什么茶?", ("她喜欢喝什么茶?", "喜欢喝茶")),
        ],
    )
    def test_names_and_words_of_every_text_are_left_out(
        self, query: str, ranked_texts: tuple[str, ...]
    ) -> None:
        assert parse_query(query, NOW).ranked_texts == ranked_texts

    @pytest.mark.parametrize(
        "query",
        ["what does caroline drink", "WHAT DOES CAROLINE DRINK", "green tea", "小明用python写代码"],
    )
    def test_without_capitals_nothing_is_taken_for_a_name(self, query: str) -> None:
        bare, words = parse_query(query, NOW).ranked_texts

        assert bare == query
        assert set(words.casefold().split()) >= {
            one for one in ("caroline", "drink", "tea", "python") if one in query.casefold()
        }

    def test_unit_vectors_add_up_to_a_unit_vector(self) -> None:
        as_it_stands = [0, 1]
        both = np.array([as_it_stands, [1, 0], [0, 1]], np.float32)
        one = np.array([as_it_stands, [1, 0]], np.float32)
        opposite = np.array([as_it_stands, [1, 0], [-1, 0]], np.float32)

        asked = parse_query("tea", NOW).embedded({"a": both, "b": one, "c": opposite})

        assert asked.vectors["a"] == pytest.approx([0.5**0.5, 0.5**0.5])
        assert asked.vectors["b"].tolist() == [1, 0]
        assert asked.vectors["c"].tolist() == [0, 0]


class TestTimes:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("What did she do yesterday?", [("05-09", "05-09")]),
            ("昨天她做了什么?", [("05-09", "05-09")]),
            ("前天她做了什麼?", [("05-08", "05-08")]),
            ("What happened on 8 May 2023?", [("05-08", "05-08")]),
            ("What happened on May 8, 2023?", [("05-08", "05-08")]),
            ("2023年5月8日发生了什么?", [("05-08", "05-08")]),
            ("What did she do in April 2023?", [("04-01", "04-30")]),
            ("2023年4月她做了什么?", [("04-01", "04-30")]),
            ("What does she drink?", []),
            ("她喝什么?", []),
        ],
    )
    def test_dates_are_understood_from_when_it_is_asked(
        self, query: str, expected: list[tuple[str, str]]
    ) -> None:
        assert days(query) == expected

    def test_a_relative_date_moves_with_the_reference(self) -> None:
        [today] = parse_query("What did she do yesterday?", NOW).traits.dates
        [tomorrow] = parse_query("What did she do yesterday?", NOW + timedelta(days=1)).traits.dates

        assert [one - other for one, other in zip(tomorrow, today, strict=True)] == [86_400] * 2

    @pytest.mark.parametrize(
        ("query", "when"),
        [
            ("When did she move?", True),
            ("What year did she move?", True),
            ("她什么时候搬家的?", True),
            ("她什麼時候搬家的?", True),
            ("What does she drink when she works?", False),
            ("她喝什么?", False),
        ],
    )
    def test_whether_a_time_is_asked_for_is_told(self, query: str, when: bool) -> None:
        assert parse_query(query, NOW).traits.when is when


class TestHostile:
    @pytest.mark.parametrize(
        "piece",
        ["a", "a ", "Ab ", "aB", "今", "今天小明", "会上", "1-", "1/2/", "1:", "9", "_", "(", "?",
         "\n", " ", "a'", "a.", "Monday ", "2023-05-08 ", "2023年5月8日", "3 weeks ago ", "一",
         "when ", "date of ", "什么时候", "in the morning ", "😀", "e\u0301", "Aa1_中", "the "],
    )  # fmt: skip
    def test_the_longest_query_is_read_quickly(self, piece: str) -> None:
        query = (piece * LONGEST)[:LONGEST]
        started = process_time()

        asked = parse_query(query, NOW)

        assert process_time() - started < 1
        assert len(asked.packed.terms) <= LONGEST_QUERY

    @given(st.text(max_size=300))
    def test_any_query_can_be_read(self, query: str) -> None:
        asked = parse_query(query, NOW)

        assert len(asked.packed.terms) == len(asked.traits.term_counts)
        assert 1 <= len(asked.ranked_texts) <= 2
        assert all(start <= end for start, end in asked.traits.dates)
