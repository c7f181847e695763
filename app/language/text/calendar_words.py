"""The words of the calendar in English and Chinese, as every reader of dates knows them.

Queries are read for periods of days (`time_expressions`) and statements for the moment they hold
from; the names of months, weekdays, seasons and years are the same for both.
"""

import re
from collections.abc import Iterable
from datetime import date
from typing import Final

MONTH_NAMES: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
MONTHS: Final = {
    word: number
    for number, words in enumerate(
        (
            "january|jan", "february|feb", "march|mar", "april|apr", "may", "june|jun",
            "july|jul", "august|aug", "september|sept|sep", "october|oct", "november|nov",
            "december|dec",
        ),
        start=1,
    )
    for word in words.split("|")
}  # fmt: skip
WEEKDAYS: Final = {
    word: number
    for number, words in enumerate(
        (
            "monday|mondays|mon", "tuesday|tuesdays|tue", "wednesday|wednesdays|wed",
            "thursday|thursdays|thu", "friday|fridays|fri", "saturday|saturdays",
            "sunday|sundays",
        ),
        start=1,
    )
    for word in words.split("|")
}  # fmt: skip
"""From 1 for Monday. "Mon" may stand for it, "sat" and "sun" are words of their own."""

SEASONS: Final = {
    "spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12,
    "春": 3, "夏": 6, "秋": 9, "冬": 12,
}  # fmt: skip
"""The month that each begins in, of the northern calendar."""

CHINESE_NUMERALS: Final = "零〇一二两三四五六七八九十"
CHINESE_NUMBER: Final = rf"(?:[0-9]{{1,2}}|[{CHINESE_NUMERALS}]{{1,3}})"
"""An expression for a number below a hundred, of a month, a day or a count."""

CHINESE_YEARS: Final = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}
CHINESE_STEPS: Final = {"大上": -2, "上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
"""Of weeks and months, from the present one."""


def either(names: Iterable[str]) -> str:
    """An alternation of names, the longest first, so that "min" does not hide "mins"."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def written_day(day: date) -> str:
    """`3 May 2025`, as texts for a reader have it; no locale changes it."""
    return f"{day.day} {MONTH_NAMES[day.month - 1]} {day.year}"
