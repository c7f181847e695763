"""Times are found in both languages and both scripts; what only looks like one is none."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text.time_expressions import time_expressions
from tests.unit.time_sayings import CHINESE, ENGLISH, NO_TIME, SEVERAL

NOW = datetime(2023, 5, 10, 15, 30, tzinfo=UTC)
SHANGHAI = timezone(timedelta(hours=8))


def days(text: str, reference: datetime = NOW) -> list[tuple[str, str]]:
    return [
        (str(each.start.date()), str(each.end.date())) for each in time_expressions(text, reference)
    ]


def milliseconds(text: str) -> float:
    def one() -> float:
        begin = process_time()
        time_expressions(text, NOW)
        return (process_time() - begin) * 1000

    return min(one() for _ in range(5))


@pytest.mark.parametrize("sayings", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_what_people_say_of_time_is_one_period(sayings):
    assert {text: days(text) for text in sayings} == {
        text: [period] for text, period in sayings.items()
    }


@pytest.mark.parametrize(("text", "periods"), SEVERAL.items())
def test_several_times_come_in_their_order(text, periods):
    assert days(text) == periods


def test_what_only_looks_like_a_time_is_none():
    found = {text: time_expressions(text, NOW) for text in NO_TIME}

    assert {text: times for text, times in found.items() if times} == {}


def test_english_is_read_in_any_case():
    sayings = {text: [period] for text, period in ENGLISH.items() if "may" not in text.lower()}

    assert {text: days(text.upper()) for text in sayings} == sayings


def test_time_expression_says_the_words_that_name_it():
    (english,) = time_expressions("What did he do in early June 2022?", NOW)
    (chinese,) = time_expressions("兩個星期前推薦的歌", NOW)

    assert english.text == "early June 2022"
    assert chinese.text == "兩個星期前"


def test_days_begin_where_the_reference_is():
    late = datetime(2023, 5, 11, 1, tzinfo=SHANGHAI)
    (expression,) = time_expressions("昨天", late)

    assert expression.start == datetime(2023, 5, 9, 16, tzinfo=UTC)
    assert expression.end == datetime(2023, 5, 10, 16, tzinfo=UTC)
    assert expression.start.tzinfo is UTC


def test_a_reference_without_time_zone_is_in_utc():
    assert time_expressions("today", NOW.replace(tzinfo=None)) == time_expressions("today", NOW)


def test_words_beside_chinese_signs_are_read():
    assert days("我在May 8th去了哪里") == [("2023-05-08", "2023-05-09")]


def test_digits_of_full_width_are_read():
    assert days("２０２２年５月８日") == [("2022-05-08", "2022-05-09")]


def test_a_leap_day_without_year_is_the_last_one():
    assert days("on 29 February") == [("2020-02-29", "2020-03-01")]


def test_a_feast_is_found_where_it_moves():
    assert days("2020年中秋节") == [("2020-10-01", "2020-10-02")]
    assert days("Chinese New Year 2021") == [("2021-02-12", "2021-02-19")]


def test_eight_expressions_are_returned_and_a_ninth_is_not():
    named = [f"{day} June 2022" for day in range(1, 10)]

    assert len(time_expressions("; ".join(named[:7]), NOW)) == 7
    assert len(time_expressions("; ".join(named[:8]), NOW)) == 8
    assert len(time_expressions("; ".join(named), NOW)) == 8


def test_only_the_first_two_thousand_characters_are_read():
    # The word of nine characters ends before, at and after the limit.
    for blanks, count in ((990, 1), (991, 1), (992, 0)):
        assert len(time_expressions("x" * 1_000 + " " * blanks + "yesterday", NOW)) == count


@pytest.mark.parametrize(
    "piece", ["1 ", "may 5 ", "last ", "2023-", "一", "每年", "the week before ", "前两", "3 and "]
)
def test_a_hostile_text_takes_no_more_for_being_long(piece):
    assert milliseconds((piece * 10_000)[:10_000]) < 200


@pytest.mark.parametrize("text", ["What books does she like to read?", "她最喜欢的电影是什么？"])
def test_a_text_without_time_costs_next_to_nothing(text):
    assert milliseconds(text) < 0.1


@pytest.mark.parametrize("text", ["What did Caroline do last Friday?", "上周五她做了什么"])
def test_a_query_with_a_time_is_read_at_once(text):
    assert milliseconds(text) < 1.5


def test_threads_read_the_same():
    texts = [*ENGLISH, *CHINESE] * 3
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(days, texts)) == [days(text) for text in texts]


PIECES = sorted(
    {piece for text in [*ENGLISH, *CHINESE, *NO_TIME] for piece in re.findall(r"\w+|\W", text)}
)


@given(
    st.one_of(
        st.text(max_size=80),
        st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
        st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join),
    ),
    st.datetimes(timezones=st.sampled_from([None, UTC, SHANGHAI, timezone(timedelta(hours=-12))])),
)
def test_any_text_and_any_reference_are_read(text, reference):
    found = time_expressions(text, reference)

    assert len(found) <= 8
    for expression in found:
        assert expression.start < expression.end
        assert expression.text in text
        assert expression.start.tzinfo is UTC


@pytest.mark.parametrize("edge", [datetime(1, 1, 1), datetime(9999, 12, 31, 23)])  # noqa: DTZ001 (zones follow)
@pytest.mark.parametrize("zone", [None, UTC, SHANGHAI, timezone(timedelta(hours=-12))])
def test_the_first_and_the_last_year_raise_nothing(zone, edge):
    for text in (*ENGLISH, *CHINESE):
        time_expressions(text, edge.replace(tzinfo=zone))
