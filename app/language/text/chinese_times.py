"""How dates and periods are said in Chinese: 上周五, 去年三月初, 两个星期前, 国庆节.

Written for simplified characters; whoever asks folds the traditional ones first.
"""

import re
from datetime import date, timedelta
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.periods import (
    CHINESE_NUMBER,
    CHINESE_NUMERALS,
    CHINESE_STEPS,
    CHINESE_YEARS,
    FEASTS,
    Period,
    Reader,
    ago,
    back_from,
    beside,
    days,
    decade,
    either,
    feast,
    last_weekend,
    month_of,
    month_part,
    months,
    season_of,
    some_ago,
    week_of,
    weekend_of,
    year_part,
    yearly,
)
from app.language.text.quantities import chinese_number, plain_number

_COUNT = rf"(?:(?P<few>好?几)|(?P<half>半)|(?P<count>[0-9]{{1,3}}|[{CHINESE_NUMERALS}百]{{1,4}}))"
_UNIT = r"(?P<unit>天|日|周|个?星期|个?礼拜|个?月|年)"
_WHICH = r"(?P<which>上上|下下|[上这本下])"
_WEEK = r"(?:周|星期|礼拜)"
_DAYS: Final = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_UNITS: Final = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week",
                 "月": "month", "年": "year"}  # fmt: skip
_PARTS: Final = {
    "初": "early", "头": "early", "上旬": "early", "中": "mid", "中旬": "mid", "底": "late",
    "末": "late", "尾": "late", "下旬": "late", "上半": "first", "下半": "second",
}  # fmt: skip

# 以前年轻, 过去年代, 聪明年轻, 目前天天: the end of one word and the beginning of another.
_YEAR_WORD = (
    r"(?P<which>大前年|(?<![以之目提空从跟当])前年|(?<![过失])去年|(?<![如现当至])今年"
    r"|(?<![聪说证表发清声透])明年|(?<![以之然最])后年)(?![轻龄级纪代])"
)
_YEAR = (
    rf"(?:(?<![0-9])(?P<year>(?:19|20)[0-9]{{2}}|[一二][零〇九][{CHINESE_NUMERALS[:-1]}]{{2}}"
    rf"|[0-9]{{2}}(?=年{CHINESE_NUMBER}月))年(?![轻龄级纪代]))"
)
_MONTH_PART = r"(?P<month_part>[上中下]旬|[初底末]|中(?![国午秋学文间部介医外华]))"
_MONTH = rf"(?P<month>{CHINESE_NUMBER})月(?![兔饼台票球光薪亮牙怀流]|天(?!气))"
_DAY = rf"份?(?:(?P<day>{CHINESE_NUMBER})[日号]|{_MONTH_PART})?"
_YEAR_PART = (
    r"年?(?P<year_part>上半(?=年)|下半(?=年)|底(?![下部线层薪])|末(?!日)|尾|头"
    r"|初(?![中一二三四五六七八九十次恋级期始衷步学心衣])|(?<=年)中(?![国午秋学文间部介医外华]))年?"
)
_QUARTER = r"(?:第?(?P<quarter>[一二三四1-4])季度?|[qQ](?P<q>[1-4]))"
_SEASON = r"(?P<season>[春夏秋冬])(?:[天季]|(?=[节以]))"
_VACATION = r"(?P<vacation>暑假)"
_OF_YEAR = rf"(?:的?(?:{_MONTH}{_DAY}|{_QUARTER}|{_YEAR_PART}|{_SEASON}|{_VACATION}))"


def _within(match: re.Match[str], year: int) -> Period:
    """The part of a year that is named, or all of it."""
    said = match.groupdict()
    if said.get("month"):
        return _part_of_month(match, months(year, plain_number(match["month"])))
    quarter = said.get("quarter") or said.get("q")
    if quarter:
        return months(year, "一二三四1234".index(quarter) % 4 * 3 + 1, 3)
    if said.get("season"):
        return season_of(year, match["season"])
    if said.get("vacation"):
        return months(year, 7, 2)
    return _part_of_year(said.get("year_part"), year)


def _part_of_year(said: str | None, year: int) -> Period:
    part = _PARTS[said] if said else None
    # 年初 and 年底 are two months, where "early 2022" is four.
    ends = {"early": (1, 2), "late": (11, 2)}
    return months(year, *ends[part]) if part in ends else year_part(year, part)


def _part_of_month(match: re.Match[str], month: Period) -> Period:
    if match["day"]:
        return days(month.first.replace(day=plain_number(match["day"])))
    return month_part(month, _PARTS[match["month_part"]] if match["month_part"] else None)


def _year_in(match: re.Match[str], today: date) -> int | None:
    said = match.groupdict()
    if said.get("which"):
        return today.year + CHINESE_YEARS[match["which"]]
    if not said.get("year"):
        return None
    year = int(match["year"]) if match["year"].isdecimal() else chinese_number(match["year"])
    return year + today.year // 100 * 100 if year < 100 else year


def _in_year(match: re.Match[str], today: date) -> Period:
    return yearly(today, lambda year: _within(match, year), _year_in(match, today))


def _month_near(match: re.Match[str], today: date) -> Period:
    return _part_of_month(match, month_of(today, CHINESE_STEPS[match["which"]]))


def _end_of_month(match: re.Match[str], today: date) -> Period:
    part = _PARTS[match["month_part"]]
    period = month_part(month_of(today), part)
    period = period if period.first <= today else month_part(month_of(today, -1), part)
    return period._replace(unsaid="year")


def _week(match: re.Match[str], today: date) -> Period:
    step, weekday = CHINESE_STEPS[match["which"]], match["weekday"]
    if weekday == "末":
        return weekend_of(today, step)
    week = week_of(today, step)
    return days(week.first + timedelta(days=_number_of(weekday))) if weekday else week


def _number_of(weekday: str) -> int:
    return min("一二三四五六日天".index(weekday), 6)


def _weekday(match: re.Match[str], today: date) -> Period:
    if match["weekday"] == "末":
        return last_weekend(today)
    return beside(days(today), str(_number_of(match["weekday"])), None, -1)._replace(unsaid="week")


def _day(match: re.Match[str], today: date) -> Period:
    return days(today + timedelta(days=_DAYS[match["name"]]))


def _unit(match: re.Match[str]) -> str:
    return _UNITS[match["unit"].removeprefix("个")]


def _shift(match: re.Match[str], today: date) -> Period | None:
    unit, past = _unit(match), match["way"] == "前"
    if match["half"]:
        return ago(today, 6 if past else -6, "month") if unit == "year" else None
    if match["few"]:
        return some_ago(today, unit) if past else None
    return ago(today, plain_number(match["count"]) * (1 if past else -1), unit)


def _some_days_ago(match: re.Match[str], today: date) -> Period:
    return some_ago(today, "day") if match["few"] else Period(ago(today, 3, "day").first, today)


def _trailing(match: re.Match[str], today: date) -> Period | None:
    unit = _unit(match)
    if match["half"]:
        return back_from(today, *{"year": (6, "month"), "month": (15, "day")}.get(unit, (1, unit)))
    return back_from(today, 5 if match["few"] else plain_number(match["count"]), unit)


def _decade(match: re.Match[str], _today: date) -> Period:
    said = match["decade"]
    return decade(int(said) if said.isdecimal() else chinese_number(said))


def _feast(match: re.Match[str], today: date) -> Period:
    return feast(today, match["feast"], _year_in(match, today))


_FEAST = rf"(?P<feast>{either(name for name in FEASTS if not name.isascii())})"

# The more exact before what it contains; what is found first keeps its place.
READERS: Final[tuple[Reader, ...]] = (
    (
        lazy_pattern(
            rf"(?:(?:{_YEAR}|{_YEAR_WORD})的?)?(?<![0-9{CHINESE_NUMERALS[2:]}])"
            rf"{_FEAST}(?!上河|[{CHINESE_NUMERALS}点%％号])"
        ),
        _feast,
    ),
    (lazy_pattern(r"(?<![0-9])(?P<decade>(?:19|20)?[0-9]0|[五六七八九]十)年代"), _decade),
    (lazy_pattern(rf"(?:{_YEAR}|{_YEAR_WORD}){_OF_YEAR}?"), _in_year),
    (lazy_pattern(rf"(?<![早晚]){_WHICH}个?月(?![球亮光饼台]){_DAY}"), _month_near),
    (
        lazy_pattern(
            rf"(?<![晚早]){_WHICH}个?{_WEEK}(?P<weekday>[一二三四五六日天末])?(?![围边身岁期杰刊])"
        ),
        _week,
    ),
    (
        lazy_pattern(
            rf"(?<![第每0-9{CHINESE_NUMERALS}]){_COUNT}多?{_UNIT}(?:以|之)?"
            r"(?P<way>前(?![锋台提途夕面进辈任景程往一两])|后(?![来面悔果辈]))"
        ),
        _shift,
    ),
    (lazy_pattern(r"前(?:(?P<few>几)|两)[天日](?!后)"), _some_days_ago),
    (
        lazy_pattern(
            rf"(?:最近|过去|(?<![最附接靠将])近|这(?=[几两]))的?(?:这)?{_COUNT}{_UNIT}(?![级份])"
        ),
        _trailing,
    ),
    (
        lazy_pattern(
            r"(?P<name>大前(?=天)|(?<![以之目提空从眼跟生])前(?=天(?![花赋性才线井]))|昨(?=[天日晚夜晨儿])"
            r"|今(?=[天早晚晨儿]|日(?!头条))|大后(?=天)|(?<![以之然最先])后(?=天(?![性空赋培]))"
            r"|(?<![聪说证表发清声透])明(?=[早晚]|[天日](?![真生])))[天日早晚夜晨儿]"
        ),
        _day,
    ),
    (lazy_pattern(rf"(?<![0-9{CHINESE_NUMERALS}个第.每]){_MONTH}{_DAY}"), _in_year),
    (lazy_pattern(rf"(?<![0-9个每]){_QUARTER}(?<=度)"), _in_year),
    (lazy_pattern(r"(?<![每0-9])(?P<year_part>[上下]半)年"), _in_year),
    (lazy_pattern(r"(?<![每0-9几])年(?P<year_part>[初底末])"), _in_year),
    (lazy_pattern(r"(?<![每0-9个几])月(?P<month_part>[初底末])"), _end_of_month),
    (
        lazy_pattern(
            rf"(?<![每逢第几0-9{CHINESE_NUMERALS}])(?<!每个){_WEEK}(?P<weekday>[一二三四五六日天末])(?![次遍回个围])"
        ),
        _weekday,
    ),
    (lazy_pattern(rf"(?:{_SEASON}|{_VACATION})"), _in_year),
)
FOLLOWED_BY: Final = lazy_pattern(
    rf"的?(?P<way>[前后])(?:的?那?)(?P<count>{CHINESE_NUMBER})(?:个)?(?P<unit>天|日|周|星期|礼拜|月|年)"
)
"""What may stand behind a date and move it: 五月八号前一周."""
_TIME_HINT: Final = lazy_pattern(
    "[年月日号號天周週昨今明前后後节節春夏秋冬假旦]|星期|[礼禮]拜|季度|中秋|[国國][庆慶]|[圣聖][诞誕]"
    "|清明|端午|除夕|五一|三十|平安夜|十一"
)


def may_name_time(text: str) -> bool:
    """Tell quickly whether a text, of either script, may name a time; `False` is certain."""
    return not text.isascii() and _TIME_HINT.search(text) is not None


EXTENDED: Final = lazy_pattern(r"(?:以来|至今|到现在|到今天)")
"""What may stand behind a period and stretch it until now."""
FROM: Final = lazy_pattern(r"(?:自从?|从)$")
ON_FROM: Final = lazy_pattern(r"(?:以来|至今|开始|起|到现在)")
"""What may stand before or behind a date from which something holds."""
UNTIL: Final = lazy_pattern(r"(?:直到|到|至|截至|截止到?)$")
UP_TO: Final = lazy_pattern(r"(?:为止|之前都)")
"""What may stand before or behind a date until which something holds."""
PART: Final = lazy_pattern(r"(?:[初头底末尾]|[上中下]旬|[年月]中|[上下]半)年?$")
"""How a part of a month or year ends, which 到 takes in."""
END: Final = lazy_pattern(r"的?[底末]")
"""What may stand behind a period and name its end."""
JOINED: Final = lazy_pattern(r"\s?(?:[到至~～]|直到)\s?")
RECURRING: Final = lazy_pattern(r"每(?:逢|[个年月周到])?$")


def followed_by(match: re.Match[str], period: Period) -> Period:
    """Return the time that words like 前一周 make of the date before them."""
    count, unit = plain_number(match["count"]), _UNITS[match["unit"]]
    direction = 1 if match["way"] == "后" else -1
    return beside(period, unit, None if count == 1 else count, direction)
