"""The words of the calendar in English and Chinese, as every reader of dates knows them; days,
weeks, months, seasons and years as periods, and the feasts that the library knows.

Queries are read for periods of days (`time_expressions`) and statements for the moment they hold
from; the names of months, weekdays, seasons and years are the same for both.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, timedelta
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from dateutil.relativedelta import relativedelta

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


class Period(NamedTuple):
    """Days from `first` up to, not including, `after`; `unsaid` where a text leaves open which."""

    first: date
    after: date
    unsaid: Literal["year", "week"] | None = None


Reader = tuple[re.Pattern[str], Callable[[re.Match[str], date], Period | None]]
"""A pattern, and what it names on a day; None, or ValueError, where that is no time at all."""


def days(first: date, count: int = 1) -> Period:
    """So many days from `first`."""
    return Period(first, first + timedelta(days=count))


def week_of(today: date, step: int = 0) -> Period:
    """The week from Monday to Sunday, so many weeks from today's."""
    return days(today + timedelta(days=7 * step - today.weekday()), 7)


def last_weekend(today: date) -> Period:
    """The last weekend that has begun."""
    return weekend_of(today, 0 if today.weekday() >= 5 else -1)._replace(unsaid="week")


def weekend_of(today: date, step: int = 0) -> Period:
    """Saturday and Sunday of the week so many weeks from today's."""
    return days(week_of(today, step).first + timedelta(days=5), 2)


def months(year: int, month: int, count: int = 1) -> Period:
    """So many whole months from the first of `month`."""
    first = date(year, month, 1)
    return Period(first, first + relativedelta(months=count))


def month_of(today: date, step: int = 0) -> Period:
    """The month so many months from today's."""
    then = today + relativedelta(months=step)
    return months(then.year, then.month)


def year_of(year: int) -> Period:
    """A whole year."""
    return months(year, 1, 12)


def decade(said: int) -> Period:
    """Ten years; of "the 90s" those of the last century."""
    return months(said if said > 99 else 1900 + said, 1, 120)


def unit_of(today: date, unit: str, step: int) -> Period:
    """The week, weekend, month, quarter or year so many from the present one."""
    if unit == "quarter":
        quarter = today.year * 4 + (today.month - 1) // 3 + step
        return months(quarter // 4, quarter % 4 * 3 + 1, 3)
    if unit == "year":
        return year_of(today.year + step)
    return {"week": week_of, "weekend": weekend_of, "month": month_of}[unit](today, step)


def season_of(year: int, name: str) -> Period:
    """Three whole months of the northern calendar; winter belongs to the year it begins in."""
    return months(year, SEASONS[name], 3)


def yearly(
    today: date, named: Callable[[int], Period], year: int | None = None, which: str = ""
) -> Period:
    """What recurs each year, in the one that is said.

    Args:
        which: "last" is over, "this" is of this year, "next" has not begun; else it is the last
            that has begun, and the year is unsaid.

    Raises:
        ValueError: no year has such a day.

    """
    if year is not None or which == "this":
        return named(today.year if year is None else year)
    # Nine years hold a 29 February, even around 1900.
    years = range(today.year, max(today.year - 9, 0), -1)
    if which == "next":
        years = range(today.year, min(today.year + 9, date.max.year))
    for each in years:
        with suppress(ValueError):
            period = named(each)
            if which == "next" and period.first > today:
                return period
            if which == "last" and period.after <= today:
                return period
            if not which and period.first <= today:
                return period._replace(unsaid="year")
    raise ValueError("No year has such a day.")


def month_part(period: Period, part: str | None) -> Period:
    """The first ten days of a month, the next ten, or the rest; a half; or all of it."""
    if part is None:
        return period
    borders = {
        "early": (0, 10), "mid": (10, 20), "late": (20, 31), "first": (0, 15), "second": (15, 31),
    }  # fmt: skip
    begin, end = borders[part]
    after = min(period.first + timedelta(days=end), period.after)
    return period._replace(first=period.first + timedelta(days=begin), after=after)


def year_part(year: int, part: str | None) -> Period:
    """Four months of a year, a half, or all of it."""
    begin, count = {
        None: (1, 12), "early": (1, 4), "mid": (5, 4), "late": (9, 4), "first": (1, 6),
        "second": (7, 6),
    }[part]  # fmt: skip
    return months(year, begin, count)


def ago(today: date, count: int, unit: str) -> Period:
    """The day, month or year so long ago; of weeks the seven days around, for they are rounded."""
    if unit == "day":
        return days(today - timedelta(days=count))
    if unit == "week":
        return days(today - timedelta(days=7 * count + 3), 7)
    if unit == "month":
        return month_of(today, -count)
    return year_of(today.year - count)


def some_ago(today: date, unit: str) -> Period:
    """A few days, weeks, months or years ago: two to five."""
    return Period(ago(today, 5, unit).first, ago(today, 2, unit).after)


def _step(unit: str, count: int) -> relativedelta:
    if unit in {"day", "week"}:
        return relativedelta(days=count * (7 if unit == "week" else 1))
    return relativedelta(months=count * (12 if unit == "year" else 1))


def back_from(today: date, count: int, unit: str) -> Period:
    """The last so many days, weeks, months or years up to and with today."""
    step = _step(unit, count)
    return Period(today - step, today + timedelta(days=1))


def beside(period: Period, unit: str, count: int | None, direction: int) -> Period:
    """A time before (-1) or after (1) another; without `count` the one right beside it."""
    edge = period.first if direction < 0 else period.after - timedelta(days=1)
    if unit == "weekend":
        # Of a Sunday the one before, not the one it is part of.
        return days(
            beside(period, "5", None, direction).first
            - timedelta(days=7 * (direction < 0 and edge.weekday() == 6)),
            2,
        )
    if unit.isdecimal():
        step = (edge.weekday() - int(unit)) * -direction % 7 or 7
        return days(edge + timedelta(days=direction * step))
    if count is None and unit != "day":
        step_back = _step(unit, 1)
        if direction < 0:
            return Period(period.first - step_back, period.first)
        return Period(period.after, period.after + step_back)
    return ago(edge, -direction * (count or 1), unit)


def moved(period: Period, years: int) -> Period:
    """The same days of another year."""
    shift = relativedelta(years=years)
    return Period(period.first + shift, period.after + shift)


def feast(today: date, name: str, year: int | None, which: str = "") -> Period:
    """A feast in a year, as `yearly` says.

    Raises:
        ValueError: the library does not know it in this year.

    """

    def named(year: int) -> Period:
        (country, key), offset, count = FEASTS[name]
        first = _feast_days(country, year).get(key)
        if first is None:
            raise ValueError("The library does not know the feast in this year.")
        return days(first + timedelta(days=offset), count)

    return yearly(today, named, year, which)


@lru_cache(maxsize=256)
def _feast_days(country: str, year: int) -> dict[str, date]:
    """First day of each feast of a year, by the name that the library gives it."""
    from holidays import country_holidays

    kinds, language = _CALENDARS[country]
    calendar = country_holidays(country, years=year, categories=kinds, language=language)
    found: dict[str, date] = {}
    for day, names in sorted(calendar.items()):
        for name in names.split("; "):
            found.setdefault(name, day)
    return found


def _feasts(
    country: str, rows: Iterable[tuple[str, str, int, int]]
) -> dict[str, tuple[tuple[str, str], int, int]]:
    return {
        name: ((country, key), offset, count)
        for names, key, offset, count in rows
        for name in names.split("|")
    }


# Without a language the library takes that of the machine.
_CALENDARS: Final = {"US": (("public", "unofficial"), "en_US"), "CN": (("public",), "zh_CN")}
# What people say; the library's name; days from that day; how many days.
FEASTS: Final = _feasts(
    "US",
    (
        ("christmas eve|圣诞夜|平安夜", "Christmas Eve", 0, 1),
        ("christmas day|christmas|xmas|圣诞节|圣诞", "Christmas Day", 0, 1),
        ("new year's eve|new years eve", "New Year's Eve", 0, 1),
        ("new year's day|new years day", "New Year's Day", 0, 1),
        ("thanksgiving day|thanksgiving|感恩节", "Thanksgiving Day", 0, 1),
        ("halloween|万圣节", "Halloween", 0, 1),
        ("valentine's day|valentines day|情人节", "Valentine's Day", 0, 1),
        ("good friday", "Good Friday", 0, 1),
        ("easter sunday|easter|复活节", "Easter Sunday", 0, 1),
        ("easter monday", "Easter Sunday", 1, 1),
        ("mother's day|mothers day|母亲节", "Mother's Day", 0, 1),
        ("father's day|fathers day|父亲节", "Father's Day", 0, 1),
        ("labor day", "Labor Day", 0, 1),
        ("independence day", "Independence Day", 0, 1),
        ("memorial day", "Memorial Day", 0, 1),
        ("saint patrick's day|st patrick's day|st. patrick's day", "Saint Patrick's Day", 0, 1),
    ),
) | _feasts(
    "CN",
    (
        ("元旦节|元旦", "元旦", 0, 1),
        ("除夕夜|除夕|年三十|chinese new year's eve", "春节", -1, 1),
        ("春节|chinese new year|lunar new year|spring festival", "春节", 0, 7),
        ("元宵节|lantern festival", "春节", 14, 1),
        ("清明节|清明", "清明节", 0, 1),
        ("五一劳动节|五一假期|五一长假|五一|劳动节", "劳动节", 0, 5),
        ("端午节|端午|dragon boat festival", "端午节", 0, 1),
        ("中秋节|中秋|mid-autumn festival", "中秋节", 0, 1),
        ("国庆节|国庆|十一假期|十一长假|十一黄金周", "国庆节", 0, 7),
    ),
)
