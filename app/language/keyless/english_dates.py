"""How dates are said in English: "three weeks ago", "since May", "next Friday"."""

import re
from datetime import datetime, timedelta
from typing import Final

from app.language.keyless.calendar_steps import (
    Grain,
    Reader,
    day_of,
    later,
    midnight,
    monday,
    month_near,
    months_later,
)
from app.language.keyless.patterns import compiled, exact, joined
from app.language.text.calendar_words import MONTHS, SEASONS, WEEKDAYS, either
from app.language.text.distinction_words import NUMBER_WORDS

_MONTH = rf"(?P<month>{either(MONTHS)})\b\.?"


_WEEKDAY = rf"(?P<weekday>{either(WEEKDAYS)})\b"


_COUNT = joined(rf"""
    (?P<count>[0-9]{{1,3}}|an?|one|half an?|a (?:couple|few)(?: of)?|{either(NUMBER_WORDS)})
    """)


_UNIT = r"(?P<unit>day|week|month|year)s?"


_YEAR = r"(?P<year>(?:19|20)[0-9]{2})"


_SEASON = r"(?P<season>spring|summer|autumn|fall|winter)"


_DAYS: Final = {
    "the day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0,
    "tomorrow": 1, "the day after tomorrow": 2,
}  # fmt: skip


def _count(word: str) -> float:
    word = word.casefold()
    if word.isdecimal():
        return int(word)
    if word.startswith("half"):
        return 0.5
    if word.startswith("a few"):
        return 3
    if word.startswith("a couple"):
        return 2
    return NUMBER_WORDS.get(word, 1)


def _shifted(said_at: datetime, count: float, unit: str, sign: int) -> datetime:
    if count == 0.5:
        return later(said_at, sign * 6, "month") if unit == "year" else midnight(said_at)
    return later(said_at, sign * int(count), unit)


def _numeric(match: re.Match[str], said_at: datetime, _past: bool) -> datetime:
    return day_of(said_at, int(match["year"]), int(match["month"]), int(match["day"]))


def _named(match: re.Match[str], said_at: datetime, past: bool) -> datetime:
    groups = match.groupdict()
    month = MONTHS[match["month"].casefold()]
    day = int(groups.get("day") or 1)
    if groups.get("year"):
        return day_of(said_at, int(match["year"]), month, day)
    which = (groups.get("which") or "").casefold()
    return month_near(said_at, month, day, past=past if not which else which == "last")


def _year(match: re.Match[str], said_at: datetime, _past: bool) -> datetime:
    return day_of(said_at, int(match["year"]))


def _ago(match: re.Match[str], said_at: datetime, _past: bool) -> datetime:
    return _shifted(said_at, _count(match["count"]), match["unit"].casefold(), -1)


def _in(match: re.Match[str], said_at: datetime, past: bool) -> datetime | None:
    # "Finished in two weeks" says how long it took.
    return None if past else _shifted(said_at, _count(match["count"]), match["unit"].casefold(), 1)


def _relative_day(match: re.Match[str], said_at: datetime, _past: bool) -> datetime:
    return later(said_at, _DAYS[match["name"].casefold()], "day")


def _which(match: re.Match[str], said_at: datetime, _past: bool) -> datetime:
    step = {"last": -1, "this": 0, "next": 1}[match["which"].casefold()]
    unit = match["unit"].casefold()
    if unit in {"week", "weekend"}:
        return monday(said_at) + timedelta(weeks=step, days=5 if unit == "weekend" else 0)
    if unit == "month":
        return months_later(day_of(said_at, said_at.year, said_at.month), step)
    return day_of(said_at, said_at.year + step)


def _weekday(match: re.Match[str], said_at: datetime, past: bool) -> datetime:
    which = match["which"].casefold().replace("on", "")
    ahead = (WEEKDAYS[match["weekday"].casefold()] - 1 - said_at.weekday()) % 7
    if which == "last" or (not which and past):
        return later(said_at, (ahead or 7) - 7 if ahead else -7, "day")
    return later(said_at, ahead or (7 if which == "next" else 0), "day")


def _season(match: re.Match[str], said_at: datetime, past: bool) -> datetime:
    which = (match["which"] or "").casefold()
    behind = which == "last" or (which in {"", "the"} and past)
    month = SEASONS[match["season"].casefold()]
    if which == "this":
        return day_of(said_at, said_at.year, month)
    return month_near(said_at, month, 1, past=behind)


def _english(pattern: str) -> re.Pattern[str]:
    return compiled(rf"\b(?:{pattern})(?![\w-])")


def _dayless(match: re.Match[str]) -> Grain | None:
    """A day or month without its year."""
    groups = match.groupdict()
    if groups.get("year"):
        return None
    return "day" if groups.get("day") else "month"


def _unit(match: re.Match[str]) -> Grain | None:
    unit = match["unit"].casefold()
    if match["count"].casefold().startswith("half"):
        return "month" if unit == "year" else "week"
    grains: dict[str, Grain] = {"day": "day", "week": "week", "month": "month"}
    return grains.get(unit, "year")


def _which_unit(match: re.Match[str]) -> Grain | None:
    grains: dict[str, Grain] = {"week": "week", "weekend": "weekend", "month": "month"}
    return grains.get(match["unit"].casefold(), "year")


# The more exact before what it contains; what is found first keeps its place.
READERS: Final[tuple[Reader, ...]] = (
    (
        exact(
            r"""
            (?<![0-9])(?P<year>(?:19|20)[0-9]{2})[-/.](?P<month>[0-9]{1,2})[-/.]
            (?P<day>[0-9]{1,2})(?![0-9])
            """
        ),
        _numeric,
        lambda _: None,
    ),
    (
        exact(
            r"""
            (?<![0-9.])(?P<day>[0-9]{1,2})\.(?P<month>[0-9]{1,2})\.(?P<year>(?:19|20)[0-9]{2})
            (?![0-9])
            """
        ),
        _numeric,
        lambda _: None,
    ),
    (
        _english(rf"(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? {_YEAR})?"),
        _named,
        _dayless,
    ),
    (
        _english(
            rf"""
            {_MONTH} (?:the )?(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?(?![0-9:])(?:,? {_YEAR})?
            """
        ),
        _named,
        _dayless,
    ),
    (_english(rf"{_MONTH}(?: of|,)? {_YEAR}"), _named, lambda _: None),
    (
        _english(
            rf"""
            (?:
                (?P<which>last|next)|
                (?:in|since|until|till|from|this|starting)(?: (?:early|mid|late))?
            ) {_MONTH}
            """
        ),
        _named,
        _dayless,
    ),
    (
        _english(
            rf"""
            (?:in|since|until|till|from|around|back in)(?: (?:early|mid|late))?[ -]
            (?:the year )?{_YEAR}
            """
        ),
        _year,
        lambda _: None,
    ),
    (_english(rf"{_COUNT} {_UNIT} (?:ago|back)"), _ago, _unit),
    (
        _english(
            rf"""
            for (?:the (?:past|last) |about |almost |over |nearly |more than )?{_COUNT} {_UNIT}
            (?: now| already)
            """
        ),
        _ago,
        _unit,
    ),
    (_english(rf"(?:in {_COUNT} {_UNIT}(?:' time)?)"), _in, _unit),
    (_english(rf"(?P<name>{either(_DAYS)})"), _relative_day, lambda _: "day"),
    (_english(r"(?P<which>last|this|next) (?P<unit>week|weekend|month|year)"), _which, _which_unit),
    (
        _english(rf"(?:(?P<which>last|this|next|on) )(?:coming )?{_WEEKDAY}(?<!s)"),
        _weekday,
        lambda _: "day",
    ),
    (
        _english(rf"(?P<which>last|this|next|the) (?:coming )?{_SEASON}"),
        _season,
        lambda _: "season",
    ),
)
