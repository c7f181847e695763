"""What a row keeps of its text for searches: words, speakers, the day, traits."""

from datetime import UTC, datetime
from itertools import product
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.ranking.packing import (
    INDEX_COLUMNS,
    LONGEST_NAME,
    MOST_NAMES,
    MOST_TERMS,
    index_values,
    speaker_marks_in,
)
from app.language.text.terms import ANALYSER_VERSION, term_key, terms

MAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def frequency(row: dict[str, Any], term: str) -> float:
    kept = dict(zip(row["terms"].indices(), row["terms"].values(), strict=True))
    return kept.get(term_key(term), 0.0)


def has_all(row: dict[str, Any], text: str) -> bool:
    """Whether the words of a text are all among those of a row."""
    return bool(terms(text)) and all(frequency(row, term) for term in terms(text))


def named(query: str, *speakers: str) -> bool:
    """Whether a query is understood to name a row of these speakers."""
    row = index_values("Hello.", speakers=speakers)
    return any(frequency(row, mark) for mark in speaker_marks_in(query))


class TestWords:
    def test_a_row_has_what_its_columns_hold(self) -> None:
        row = index_values("Do you drink tea on Mondays?")

        assert tuple(row) == INDEX_COLUMNS
        assert has_all(row, "drinking tea")
        assert row["term_count"] == len(terms("Do you drink tea on Mondays?"))
        assert (row["word_count"], row["is_question"], row["has_time"]) == (6, True, True)
        assert row["analyser"] == ANALYSER_VERSION

    def test_traits_are_of_the_text_and_not_of_who_said_it_when(self) -> None:
        row = index_values("She drinks tea.", speakers=["Monday Smith?"], said_at=MAY)

        assert (row["word_count"], row["is_question"], row["has_time"]) == (3, False, False)

    @pytest.mark.parametrize("text", ["", "   ", "...", "\u200b"])
    def test_a_text_without_words_keeps_none(self, text: str) -> None:
        row = index_values(text)

        assert (len(row["terms"].indices()), row["term_count"], row["word_count"]) == (0, 0, 0)

    @given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=3))
    def test_any_text_can_be_kept(self, text: str, speakers: list[str]) -> None:
        row = index_values(text, speakers=speakers, said_at=MAY)

        assert 0 <= row["term_count"] <= 32_767
        assert 0 <= row["word_count"] <= 32_767

    @pytest.mark.parametrize(
        "text",
        [" ".join(f"word{n}" for n in range(40_000)), "今天天气很好，" * 30_000, "a" * 200_000],
        ids=["words", "chinese", "one word"],
    )
    def test_a_very_long_text_is_kept_quickly_and_fits_its_columns(self, text: str) -> None:
        index_values("warm")
        started = process_time()

        row = index_values(text, speakers=["Caroline"], said_at=MAY)

        assert process_time() - started < 5
        assert len(row["terms"].indices()) <= MOST_TERMS + 1
        assert row["term_count"] <= 32_767
        assert row["word_count"] <= 32_767


class TestDay:
    def test_the_day_is_found_as_if_it_stood_in_the_text(self) -> None:
        row = index_values("She drinks tea.", said_at=MAY)

        assert has_all(row, "May 2023")
        assert has_all(row, "8 May 2023")
        assert frequency(row, "month:5") == 1
        assert row["term_count"] == len(terms("She drinks tea. 8 May 2023"))

    def test_a_chinese_text_has_it_in_chinese(self) -> None:
        row = index_values("她喝绿茶。", said_at=MAY)

        assert has_all(row, "2023年5月8日")
        assert frequency(row, "2023") == 1

    def test_the_script_of_most_of_a_text_decides(self) -> None:
        mostly_english = index_values("She says 茶 for tea.", said_at=MAY)
        mostly_chinese = index_values("她用 Go 写代码和测试。", said_at=MAY)

        assert not has_all(mostly_english, "8日")
        assert has_all(mostly_chinese, "8日")

    def test_without_a_day_there_is_none(self) -> None:
        assert not has_all(index_values("She drinks tea."), "2023")


class TestSpeakers:
    def test_a_speakers_name_is_a_word_of_the_row(self) -> None:
        row = index_values("She drinks tea.", speakers=["Caroline Smith", "Caroline Smith"])

        assert has_all(row, "Caroline")
        assert has_all(row, "Smith")
        assert frequency(row, terms("Caroline")[0]) == 1
        assert row["term_count"] == len(terms("She drinks tea. Caroline Smith"))

    @pytest.mark.parametrize(
        ("query", "speaker"),
        [
            ("What does Caroline drink?", "Caroline"),
            ("what does caroline drink", "Caroline"),
            ("CAROLINE?", "caroline"),
            ("Is this Caroline's cup?", "Caroline"),
            ("What does Caroline drink?", "Caroline Smith"),
            ("What does Smith drink?", "Caroline Smith"),
            ("Where is Anne-Marie?", "Anne-Marie"),
            ("Where is O'Brien?", "Pat O’Brien"),
            ("Was hat Jürgen gesagt?", "Jürgen"),
            ("What did Will say?", "Will"),
            ("Where does Don live?", "Don"),
            ("王小明喜欢喝什么?", "王小明"),
            ("小明喜欢喝什么?", "小明"),
            ("陳志強昨天說了什麼?", "陈志强"),
            ("陈志强昨天说了什么?", "陳志強"),
            ("請問歐陽娜娜在哪裡?", "欧阳娜娜"),
            ("Caroline 喜欢喝什么?", "Caroline"),
        ],
    )
    def test_a_query_that_names_the_speaker_marks_the_row(self, query: str, speaker: str) -> None:
        assert named(query, speaker)
        assert named(query, "Nobody", speaker)

    @pytest.mark.parametrize(
        ("query", "speaker"),
        [
            ("What does Melanie drink?", "Caroline"),
            ("Will she come?", "Will"),
            ("where will she live", "Will"),
            ("What do you do?", "What"),
            ("carolines", "Caroline"),
            ("小红喜欢喝什么?", "小明"),
            ("What does she drink?", ""),
        ],
    )
    def test_a_query_that_does_not_leaves_it(self, query: str, speaker: str) -> None:
        assert not named(query, *([speaker] if speaker else []))

    @pytest.mark.parametrize("length", [LONGEST_NAME - 1, LONGEST_NAME, LONGEST_NAME + 1, 20_000])
    def test_a_book_in_place_of_a_name_is_cut(self, length: int) -> None:
        row = index_values("hello", speakers=["x" * length])

        assert row["term_count"] == 2
        whole = term_key(f"\x1fspeaker:{'x' * min(length, LONGEST_NAME)}")
        assert whole in row["terms"].indices()

    @pytest.mark.parametrize("count", [MOST_NAMES - 1, MOST_NAMES, MOST_NAMES + 1, 1_000])
    def test_so_many_names_count(self, count: int) -> None:
        names = [f"anna{number}" for number in range(count)]

        marks = {term_key(f"\x1fspeaker:{name}") for name in names}
        kept = marks & set(index_values("hello", speakers=names)["terms"].indices())

        assert len(kept) == min(count, MOST_NAMES)

    def test_a_name_in_the_text_is_no_speaker(self) -> None:
        row = index_values("Caroline drinks tea.")

        assert not any(frequency(row, mark) for mark in speaker_marks_in("Caroline"))

    def test_no_text_can_pretend_to_be_somebody(self) -> None:
        [mark] = speaker_marks_in("Caroline")

        row = index_values(f"{mark} speaker:caroline \x1fspeaker:caroline")

        assert not frequency(row, mark)

    @pytest.mark.parametrize(
        "query",
        [
            " ".join(f"Name{chr(97 + n // 26)}{chr(97 + n % 26)}x" for n in range(26 * 26)) * 3,
            " ".join("".join(signs) for signs in product("abcdefghijk", repeat=4))[:10_000],
            "".join(chr(0x4E00 + n) for n in range(10_000)),
        ],
        ids=["repeated", "words", "signs"],
    )
    def test_a_long_query_asks_for_no_more_than_so_many(self, query: str) -> None:
        marks = speaker_marks_in(query)

        assert 600 < len(marks) <= 1_000
        assert len(set(marks)) == len(marks)
