"""A stored sentence says when, and not how long ago: it is read a year later."""

from datetime import UTC, datetime

import pytest
from rules_support import proposed, said

from app.language.keyless.written_dates import with_written_dates

SAID_AT = datetime(2026, 11, 14, 10, tzinfo=UTC)
WRITTEN = [
    ("The user moved to Rome yesterday.", "The user moved to Rome on 2026-11-13."),
    ("The user moved to Rome last week.", "The user moved to Rome in the week of 2026-11-02."),
    ("The user moved to Rome last month.", "The user moved to Rome in October 2026."),
    ("The user moved to Rome two years ago.", "The user moved to Rome in 2024."),
    ("The user moved to Rome last summer.", "The user moved to Rome in the summer of 2026."),
    ("The user moved to Rome in May.", "The user moved to Rome in May 2026."),
    ("The user moved to Rome on 3 May.", "The user moved to Rome on 3 May 2026."),
    ("The user has lived in Rome since last May.", "The user has lived in Rome since May 2026."),
    ("Last week, the user left Fiat.", "In the week of 2026-11-02, the user left Fiat."),
    ("用户昨天搬到了罗马", "用户2026年11月13日搬到了罗马"),
    ("用户上周搬到了罗马", "用户在2026年11月2日那一周搬到了罗马"),
    ("用户上个月搬到了罗马", "用户2026年10月搬到了罗马"),
    ("用户去年三月搬到了罗马", "用户2025年三月搬到了罗马"),
    ("用户从去年起住在罗马", "用户从2025年起住在罗马"),
    ("用户昨儿个求了婚", "用户2026年11月13日求了婚"),
    ("用户上个月底搬到了罗马", "用户2026年10月底搬到了罗马"),
    ("用户礼拜二做的手术", "用户2026年11月10日做的手术"),
    ("用户女儿今年中考", "用户女儿2026年中考"),
]  # fmt: skip
KEPT = [
    "The user moved to Rome in 2019.",
    "The user moved to Rome on 3 May 2019.",
    "The user calls their mother every Sunday.",
    "The user's birthday is on 3 May.",
    "The user is called April.",
    "用户2019年搬到了罗马",
    "用户的生日是5月3日",
    "用户在北京住了三年了",
    "用户做了十年前端",
    "用户周二健身",
]


@pytest.mark.parametrize(("content", "written"), WRITTEN)
def test_what_is_said_from_today_is_written_in_full(content, written):
    assert with_written_dates(content, SAID_AT) == written


@pytest.mark.parametrize("content", KEPT)
def test_what_holds_on_any_day_stays_as_it_was_said(content):
    assert with_written_dates(content, SAID_AT) == content


def test_what_lies_ahead_is_written_as_such():
    written = with_written_dates("The user marries in May.", SAID_AT, past=False)
    assert written == "The user marries in May 2027."


def test_a_bare_weekday_stays_where_nothing_tells_which_it_is():
    content = "The user's flight is on Tuesday."
    assert with_written_dates(content, SAID_AT, weekdays=False) == content


def test_proposals_and_the_mistakes_they_mend_are_written_in_full():
    assert said("I moved to Turin last week.") == [
        ("fact", "The user moved to Turin in the week of 2026-03-02.")
    ]
    (_, mended) = proposed("I moved to Turin last week.", "No, Milan.")
    assert mended.content == "The user moved to Milan in the week of 2026-03-02."
    assert mended.source_error == "The user moved to Turin in the week of 2026-03-02."
