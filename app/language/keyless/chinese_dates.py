"""How dates are said in Chinese: 三周前, 去年三月, 下周五."""

import re
from datetime import datetime, timedelta
from typing import Final

from app.language.keyless.calendar_steps import (
    Grain,
    Reader,
    day_of,
    later,
    monday,
    month_near,
    months_later,
)
from app.language.keyless.patterns import exact
from app.language.text.calendar_words import (
    CHINESE_NUMBER,
    CHINESE_NUMERALS,
    CHINESE_STEPS,
    CHINESE_YEARS,
    SEASONS,
    either,
)
from app.language.text.quantities import chinese_number, plain_number

_CHINESE_DAYS: Final = {
    "大前天": -3, "大前儿": -3, "前天": -2, "前儿": -2, "昨": -1, "今": 0, "明": 1, "后天": 2,
    "后儿": 2, "大后天": 3,
}  # fmt: skip


_PART_DAY: Final = {"初": 1, "中旬": 11, "底": 21, "末": 21}


_PART_MONTH: Final = {"初": 1, "中": 6, "底": 12, "末": 12, "上半": 1, "下半": 7}


def _chinese_full(match: re.Match[str], said_at: datetime, _past: bool) -> datetime:
    year, month, day = match["year"], match["month"], match["day"]
    part = match["part"]
    return day_of(
        said_at,
        int(year) if year.isdecimal() and year.isascii() else chinese_number(year),
        plain_number(month) if month else _PART_MONTH.get(part or "", 1),
        plain_number(day) if day else 1,
    )


def _chinese_year(match: re.Match[str], said_at: datetime, _past: bool) -> datetime:
    month, day, season, part = match["month"], match["day"], match["season"], match["part"]
    number = plain_number(month) if month else _PART_MONTH.get(part or "", 1)
    number = SEASONS[season] if season else number
    year = said_at.year + CHINESE_YEARS[match["which"]]
    return day_of(said_at, year, number, plain_number(day) if day else 1)


def _chinese_month(match: re.Match[str], said_at: datetime, _past: bool) -> datetime:
    step = CHINESE_STEPS[match["which"]]
    first = months_later(day_of(said_at, said_at.year, said_at.month), step)
    if match["part"]:
        return first.replace(day=_PART_DAY[match["part"]])
    return first.replace(day=plain_number(match["day"])) if match["day"] else first


def _chinese_week(match: re.Match[str], said_at: datetime, _past: bool) -> datetime:
    which, weekday = match["which"], match["weekday"]
    step = CHINESE_STEPS[which]
    day = 0 if weekday is None else min("一二三四五六日天末".index(weekday), 6)
    if weekday == "末":
        day = 5
    return monday(said_at) + timedelta(weeks=step, days=day)


def _chinese_day(match: re.Match[str], said_at: datetime, _past: bool) -> datetime:
    return later(said_at, _CHINESE_DAYS[match["name"] or match["told"]], "day")


def _chinese_weekday(match: re.Match[str], said_at: datetime, past: bool) -> datetime:
    day = min("一二三四五六日天".index(match["weekday"]), 6)
    first = monday(said_at) + timedelta(days=day)
    if past:
        return first if first <= said_at else first - timedelta(weeks=1)
    return first if first > said_at else first + timedelta(weeks=1)


def _chinese_shift(match: re.Match[str], said_at: datetime, _past: bool) -> datetime:
    sign = 1 if match["way"] and match["way"].endswith("后") else -1
    if match["half"]:
        return later(said_at, sign * 6, "month")
    unit = match["unit"].removeprefix("个")
    return later(said_at, sign * plain_number(match["count"]), {"年": "year"}.get(unit, unit))


def _chinese_named(match: re.Match[str], said_at: datetime, past: bool) -> datetime:
    day = plain_number(match["day"]) if match["day"] else 1
    return month_near(said_at, plain_number(match["month"]), day, past=past)


def _in_year(match: re.Match[str]) -> Grain | None:
    if match["season"]:
        return "season"
    if match["day"]:
        return "day"
    return "month" if match["month"] or match["part"] else "year"


def _in_month(match: re.Match[str]) -> Grain | None:
    return "day" if match["day"] else "month"


def _in_week(match: re.Match[str]) -> Grain | None:
    if not match["weekday"]:
        return "week"
    return "weekend" if match["weekday"] == "末" else "day"


def _shift(match: re.Match[str]) -> Grain | None:
    """How exact 三天前 is; 住了三年了 says how long and stays as it is."""
    if match["way"] == "了":
        return None
    if match["half"]:
        return "month"
    grains: dict[str, Grain] = {
        "天": "day",
        "周": "week",
        "星期": "week",
        "礼拜": "week",
        "月": "month",
    }
    return grains.get(match["unit"].removeprefix("个"), "year")


def _dayless(match: re.Match[str]) -> Grain | None:
    return "day" if match["day"] else "month"


# The more exact before what it contains; what is found first keeps its place.
READERS: Final[tuple[Reader, ...]] = (
    (
        exact(
            rf"""
            (?P<year>(?:19|20)[0-9]{{2}}|[一二][{CHINESE_NUMERALS}]{{3}})年
            (?:(?P<month>{CHINESE_NUMBER})月份?(?:(?P<day>{CHINESE_NUMBER})[日号])?|(?P<part>[初中底末]|[上下]半)年?)?
            """
        ),
        _chinese_full,
        lambda _: None,
    ),
    (
        exact(
            rf"""
            (?P<which>{either(CHINESE_YEARS)})(?:
                (?P<month>{CHINESE_NUMBER})月份?(?:(?P<day>{CHINESE_NUMBER})[日号])?|
                年?(?P<part>初(?![一二三中])|中(?![考秋旬午年])|[底末]|[上下]半年)|
                (?P<season>[春夏秋冬])[天季]?
            )?
            """
        ),
        _chinese_year,
        _in_year,
    ),
    (
        exact(
            rf"""
            (?P<which>大上|上上|下下|[上这本下])个?月
            (?:(?P<day>{CHINESE_NUMBER})[日号]|月?(?P<part>初(?![一二三中])|中旬|[底末]))?
            """
        ),
        _chinese_month,
        _in_month,
    ),
    (
        exact(
            r"""
            (?P<which>大上|上上|下下|[上这本下])个?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天末])?
            """
        ),
        _chinese_week,
        _in_week,
    ),
    (
        exact(
            rf"""
            (?:(?P<half>半)年|(?P<count>{CHINESE_NUMBER}|[0-9]{{3}})(?:多)?(?P<unit>天|周|个?星期|个?礼拜|个月|年))
            (?P<way>[以之]?[前后](?![端台锋卫景程提辈任门])|了(?!解))
            """
        ),
        _chinese_shift,
        _shift,
    ),
    (
        exact(
            r"""
            (?:
                (?P<name>大前天|前天|大后天|后天|昨(?=[天晚日夜])|今(?=[天早晚晨])|明(?=[天早晚]))|
                (?P<told>大前儿|前儿|后儿|[昨今明](?=儿))儿?个?
            )
            """
        ),
        _chinese_day,
        lambda _: "day",
    ),
    (
        exact(
            rf"""
            (?<![0-9{CHINESE_NUMERALS}个])(?P<month>{CHINESE_NUMBER})月(?:份|(?P<day>{CHINESE_NUMBER})[日号])
            """
        ),
        _chinese_named,
        _dayless,
    ),
    # 礼拜二做的手术: one day that is over, and none of every week.
    (
        exact(
            r"""
            (?<![上下这本每到至、和])(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])
            (?![、到至和]|都|一般|必|固定)(?=[^，。每都]{1,14}(?:[了过的]$|[了过的]))
            """
        ),
        _chinese_weekday,
        lambda _: "day",
    ),
)
