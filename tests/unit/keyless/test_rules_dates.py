"""Dates are resolved against the time of saying: Saturday, 14 March 2026."""

import time
from datetime import UTC, datetime

import pytest

from app.language.keyless.dates import find_dates, validity

SAID_AT = datetime(2026, 3, 14, 10, tzinfo=UTC)
BEHIND = [
    ("yesterday", "2026-03-13"), ("last week", "2026-03-02"), ("last month", "2026-02-01"),
    ("two years ago", "2024-03-14"), ("a week ago", "2026-03-07"), ("half a year ago",
    "2025-09-14"),
    ("in March 2024", "2024-03-01"), ("on 3 May 2019", "2019-05-03"), ("on May 3rd, 2019",
    "2019-05-03"),
    ("since 2019", "2019-01-01"), ("in July", "2025-07-01"), ("last summer", "2025-06-01"),
    ("last Friday", "2026-03-13"), ("on Monday", "2026-03-09"), ("2024-02-29", "2024-02-29"),
    ("昨天", "2026-03-13"), ("上周", "2026-03-02"), ("上周五", "2026-03-06"), ("去年三月",
    "2025-03-01"),
    ("三天前", "2026-03-11"), ("两年前", "2024-03-14"), ("2024年3月5日", "2024-03-05"),
    ("2019年", "2019-01-01"),
    ("二〇一九年", "2019-01-01"), ("上个月", "2026-02-01"), ("去年夏天", "2025-06-01"),
    ("半年前", "2025-09-14"),
    ("前天", "2026-03-12"), ("今年年初", "2026-01-01"), ("昨儿个", "2026-03-13"),
    ("大上周", "2026-02-23"), ("上个月底", "2026-02-21"), ("上个月中旬", "2026-02-11"),
    ("今年中考", "2026-01-01"), ("今年初三", "2026-01-01"),
]  # fmt: skip
AHEAD = [
    ("next Friday", "2026-03-20"), ("tomorrow", "2026-03-15"), ("in two weeks", "2026-03-28"),
    ("next month", "2026-04-01"), ("in July", "2026-07-01"), ("on Monday", "2026-03-16"),
    ("下个月", "2026-04-01"), ("下周五", "2026-03-20"), ("明年", "2027-01-01"), ("后天",
    "2026-03-16"),
    ("3月20日", "2026-03-20"), ("两周后", "2026-03-28"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "day"), BEHIND)
def test_dates_that_lie_behind(text, day):
    (found,) = find_dates(f"x {text} x", SAID_AT, past=True)
    assert found.first == datetime.fromisoformat(day).replace(tzinfo=UTC)


@pytest.mark.parametrize(("text", "day"), AHEAD)
def test_dates_that_lie_ahead(text, day):
    (found,) = find_dates(f"x {text} x", SAID_AT, past=False)
    assert found.first == datetime.fromisoformat(day).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["I may go with Sun", "every week", "每天", "5 years", "on 31.02.2024", "version 2019"]
)
def test_what_looks_like_a_date_is_none(text):
    assert find_dates(text, SAID_AT) == []


def test_a_month_shorter_than_the_day_ends_with_its_last_day():
    (found,) = find_dates("a month ago", datetime(2026, 3, 31, tzinfo=UTC))
    assert found.first.date().isoformat() == "2026-02-28"


def test_a_statement_holds_from_and_until():
    assert validity("since 2019", SAID_AT) == (datetime(2019, 1, 1, tzinfo=UTC), None)
    assert validity("until June 2027", SAID_AT) == (None, datetime(2027, 6, 1, tzinfo=UTC))
    assert validity("从2019年开始", SAID_AT) == (datetime(2019, 1, 1, tzinfo=UTC), None)
    assert validity("nothing", SAID_AT) == (None, None)


def test_what_ends_before_it_begins_has_no_end():
    assert validity("since 2020 until 2019", SAID_AT)[1] is None


def test_the_zone_of_saying_is_kept():
    (found,) = find_dates("yesterday", datetime.fromisoformat("2026-03-14T01:00:00+08:00"))
    assert found.first.isoformat() == "2026-03-13T00:00:00+08:00"


def test_years_out_of_the_calendar_are_left_out():
    assert find_dates("999 years ago", datetime(900, 1, 1, tzinfo=UTC)) == []


def test_time_grows_with_the_text_and_no_faster():
    def seconds(text: str) -> float:
        started = time.perf_counter()
        find_dates(text, SAID_AT)
        return time.perf_counter() - started

    unit = "in in the last may on the 3 of two years 去年上个 "
    seconds(unit * 20)
    short = min(seconds(unit * 200) for _ in range(3))
    assert min(seconds(unit * 800) for _ in range(3)) < 12 * max(short, 1e-4)
