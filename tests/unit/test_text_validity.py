"""From when and until when statements hold, said on Saturday, 14 March 2026."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.text.time_expressions import find_dates, validity
from tests.unit.time_sayings import CHINESE, ENGLISH

SAID_AT = datetime(2026, 3, 14, 10, tzinfo=UTC)

BEGINS = {
    "I moved to Lisbon last month": "2026-02-01",
    "I started at Acme yesterday": "2026-03-13",
    "we married last week": "2026-03-02",
    "I left my job two months ago": "2026-01-01",
    "I joined Acme two years ago": "2024-01-01",
    "in March 2024 I became a nurse": "2024-03-01",
    "I quit smoking on 3 May 2019": "2019-05-03",
    "I've lived in Porto since 2019": "2019-01-01",
    "Last summer I learnt to sail": "2025-06-01",
    "Last Friday I sold my car": "2026-03-13",
    "I broke my arm last May": "2025-05-01",
    "Last Christmas I stopped eating meat": "2025-12-25",
    "my contract began 2024-02-29": "2024-02-29",
    "As of today I am a vegan": "2026-03-14",
    "我昨天搬到了里斯本": "2026-03-13",
    "我上周换了工作": "2026-03-02",
    "上周五卖了车": "2026-03-06",
    "去年三月开始学琴": "2025-03-01",
    "三天前搬家了": "2026-03-11",
    "2024年3月5日入职": "2024-03-05",
    "从2019年开始住在深圳": "2019-01-01",
    "上个月辞职了": "2026-02-01",
    "去年夏天学会了游泳": "2025-06-01",
}

ENDS = {
    "I am in Berlin until Sunday, 15 March 2026": "2026-03-16",
    "I am in Berlin until tomorrow": "2026-03-16",
    "my lease runs until June 2027": "2027-06-01",
    "I work from home till next week": "2026-03-23",
    "I am on leave through the end of March 2026": "2026-04-01",
    "my contract runs until the end of 2026": "2027-01-01",
    "until end of 2026 I am in Rome": "2027-01-01",
    "I rent it until late 2026": "2027-01-01",
    "I rent it until mid 2026": "2026-09-01",
    "I study here until the first half of 2027": "2027-07-01",
    "I am away until the end of next month": "2026-05-01",
    "I am away till the end of this month": "2026-04-01",
    "my visa is good up to the end of next year": "2028-01-01",
    "I am on leave through August 2026": "2026-09-01",
    "I am on leave through next month": "2026-05-01",
    "my lease runs through 2027": "2028-01-01",
    "my lease runs through next year": "2028-01-01",
    "I stay here until the beginning of 2027": "2027-01-01",
    "合同到2027年6月": "2027-06-01",
    "我的合同到2026年底": "2027-01-01",
    "合同到今年年底": "2027-01-01",
    "直到明年年末都在这里": "2028-01-01",
    "我休假到下个月底": "2026-05-01",
    "截至2026年6月底": "2026-07-01",
    "项目持续到2026年第三季度末": "2026-10-01",
    "我在这里住到2026年中": "2026-09-01",
    "我在这里读到2027年上半年": "2027-07-01",
    "我在这里住到2027年初": "2027-03-01",
    "我在北京待到下周五": "2026-03-21",
    "截至明年": "2027-01-01",
}

OPEN = (
    "I was born on 3 May",
    "I have a dentist on Friday",
    "on Monday I called her",
    "in July we go to the sea",
    "I ski in the winter",
    "I cook at Christmas",
    "over the weekend I slept",
    "I run every Monday",
    "5月3日出生",
    "周五去看牙",
    "夏天去海边",
    "月底发工资",
    "I'm moving to Lisbon next month",
    "tomorrow I see the doctor",
    "下个月搬家",
    "明年想去日本",
    "I lived in Porto until 2019",
    "I lived in Porto until the end of 2019",
    "I lived in Porto through 2019",
    "住到2019年",
    "住到2019年底",
    "I studied for two weeks",
    "住了三年",
    "on 30 February 2023",
    "nothing",
)


def moment(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


@pytest.mark.parametrize(("text", "day"), BEGINS.items())
def test_statement_holds_from_the_date_it_names(text: str, day: str) -> None:
    assert validity(text, SAID_AT) == (moment(day), None)


@pytest.mark.parametrize(("text", "day"), ENDS.items())
def test_statement_holds_until_the_date_it_names(text: str, day: str) -> None:
    assert validity(text, SAID_AT) == (None, moment(day))


@pytest.mark.parametrize("text", OPEN)
def test_statement_without_a_date_of_its_own_has_none(text: str) -> None:
    assert validity(text, SAID_AT) == (None, None)


@pytest.mark.parametrize(
    "text",
    ["I am on leave from 1 March to 20 March 2026", "我从2026年3月1日到2026年3月20日休假"],
)
def test_period_has_both_ends(text: str) -> None:
    assert validity(text, SAID_AT) == (moment("2026-03-01"), moment("2026-03-21"))


def test_last_month_is_that_before_it_was_said() -> None:
    said = datetime(2024, 6, 20, tzinfo=UTC)

    assert validity("I moved to Lisbon last month", said) == (moment("2024-05-01"), None)


def test_day_is_that_of_the_speaker() -> None:
    early = datetime.fromisoformat("2026-03-14T01:00:00+08:00")

    assert validity("I moved yesterday", early) == (moment("2026-03-13"), None)
    # In UTC this day is still to come, and what begins then would not be found.
    assert validity("I moved today", early) == (early, None)


@pytest.mark.parametrize(
    ("text", "grain", "unsaid"),
    [
        ("on 3 May 2019", "day", None),
        ("on 3 May", "day", "year"),
        ("last Friday", "day", None),
        ("on Friday", "day", "week"),
        ("上周", "week", None),
        ("周末", "week", "week"),
        ("去年三月", "month", None),
        ("in July", "month", "year"),
        ("last summer", "season", None),
        ("2019年", "year", None),
        ("the Sunday before 8 May", "day", "year"),
        ("from 3 May to 5 May", "day", "year"),
    ],
)
def test_date_says_how_exactly_it_is_named_and_what_is_left_open(
    text: str, grain: str, unsaid: str | None
) -> None:
    [found] = find_dates(f"x {text} x", SAID_AT)

    assert (found.grain if found.bound != "span" else "day", found.period.unsaid) == (grain, unsaid)


def test_date_is_where_it_stands() -> None:
    text = "我在上週五 met Ana until June 2027"

    places = [(text[each.start : each.end], each.bound) for each in find_dates(text, SAID_AT)]

    assert places == [("上週五", "at"), ("June 2027", "until")]


@given(
    st.sampled_from([*ENGLISH, *CHINESE, *BEGINS, *ENDS, *OPEN]),
    st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-12))])),
)
def test_nothing_begins_ahead_or_ends_behind(text: str, said_at: datetime) -> None:
    begin, end = validity(text, said_at)

    assert begin is None or begin <= said_at
    assert end is None or end > said_at
    for each in find_dates(text, said_at):
        assert date.min <= each.period.first < each.period.after
