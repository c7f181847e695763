"""Dates that hold for ever in the place of those that hold on the day of saying.

"The user moved to Hamburg last week" is wrong a year later; "… in the week of 2026-11-02" is not.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from app.language.keyless.calendar_steps import Grain
from app.language.keyless.dates import Dated, find_dates
from app.language.keyless.patterns import compiled
from app.language.text.calendar_words import MONTH_NAMES
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk

_SEASONS: Final = {3: "spring", 6: "summer", 9: "autumn", 12: "winter"}
_CHINESE_SEASONS: Final = {3: "春天", 6: "夏天", 9: "秋天", 12: "冬天"}
# What stands before a date and stays: "since last week", "by next Friday".
_KEPT_BEFORE: Final = compiled(
    r"\b(?:since|until|till|by|before|after|from|through|during|of|around|for|starting|as of|to)"
    r"(?: the)? $"
)
_OWN: Final = compiled(r"(?P<word>since|until|till|from|starting|for)\b")
_LOOSE_BEFORE: Final = compiled(r"\b(?:on|in|at)(?: the)? $")
# "Every Monday", "on Monday mornings", "on 3 March of every year": no date of the calendar.
_RECURRING: Final = compiled(
    r"\b(?:every|each|birthday|anniversary|mornings|evenings|nights|afternoons)\b|每|生日|纪念日"
)
_NAMED_MONTH: Final = compiled(
    r"""
    (?:[0-9]{1,2}(?:st|nd|rd|th)? (?:of )?)?
    (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*
    (?: (?:the )?[0-9]{1,2}(?:st|nd|rd|th)?)?
    """
)
_BARE_WEEKDAY: Final = compiled(r"on (?:mon|tue|wed|thu|fri|sat|sun)")
_CHINESE_MONTH: Final = lazy_pattern(r"(?:[0-9]{1,2}|[一二三四五六七八九十]{1,3})月")
_CHINESE_BARE_WEEKDAY: Final = lazy_pattern(r"(?:周|星期|礼拜)[一二三四五六日天]")
_PART_OF_MONTH: Final = lazy_pattern(r"(?<=月)(?:初|底|末|中旬)$")
_CHINESE_KEPT_BEFORE: Final = lazy_pattern(r"[在从自到于至]$|直到$|截至$")


def with_written_dates(
    content: str, said_at: datetime, *, past: bool = True, weekdays: bool = True
) -> str:
    """The sentence with dates in full where it had "last week" or 上周; else as it was.

    Without `weekdays` a bare "on Tuesday" stays, where nothing tells which one it is.
    """
    if _RECURRING.search(content):
        return content
    found = [each for each in find_dates(content, said_at, past=past) if each.grain is not None]
    if not weekdays:
        found = [each for each in found if not _is_bare_weekday(content[each.start : each.end])]
    put = _in_chinese if has_cjk(content) else _in_english
    for each in reversed(found):
        content = put(content, each)
    return content


def _is_bare_weekday(said: str) -> bool:
    return bool(_BARE_WEEKDAY.match(said) or _CHINESE_BARE_WEEKDAY.fullmatch(said))


def _in_english(content: str, date: Dated) -> str:
    before, after = content[: date.start], content[date.end :]
    said = content[date.start : date.end]
    # The dot of an abbreviated month is the full stop at the end.
    after = after or ("." if said.endswith(".") else "")
    if _NAMED_MONTH.fullmatch(said.rstrip(".")):
        # "On 30 April" lacks nothing but the year.
        return f"{before}{said.rstrip('.')} {date.first.year}{after}"
    bare = _ENGLISH[date.grain or "day"](date.first)
    own = _OWN.match(said)
    if own:
        word = "since" if own["word"].casefold() == "for" else own["word"].casefold()
        text = f"{word} {bare}"
    elif _KEPT_BEFORE.search(before):
        before, text = re.sub(r" the $", " ", before), bare
    else:
        before = _LOOSE_BEFORE.sub("", before)
        text = f"{'on' if date.grain in {'day', 'weekend'} else 'in'} {bare}"
    return before + (text if before.strip() else text[0].upper() + text[1:]) + after


def _in_chinese(content: str, date: Dated) -> str:
    before, after = content[: date.start], content[date.end :]
    bare = _CHINESE[date.grain or "day"](date.first)
    said = content[date.start : date.end]
    months = _CHINESE_MONTH.search(said)
    if months and date.grain in {"day", "month"}:
        # 明年三月: what was said of month and day stays in its own signs.
        return f"{before}{date.first.year}年{said[months.start() :]}{after}"
    part = _PART_OF_MONTH.search(said)
    if part and date.grain == "month":
        return f"{before}{bare}{part[0]}{after}"
    if date.grain == "day" and after[:1] in {"天", "日"}:
        after = after[1:]
    needs_in = date.grain in {"week", "weekend"} and not _CHINESE_KEPT_BEFORE.search(before)
    return f"{before}{'在' if needs_in else ''}{bare}{after}"


def _start(first: datetime) -> datetime:
    return first - timedelta(days=first.weekday())


def _monday(first: datetime) -> str:
    return _start(first).date().isoformat()


def _day(first: datetime) -> str:
    return f"{first.year}年{first.month}月{first.day}日"


_Write = Callable[[datetime], str]
_ENGLISH: Final[dict[Grain, _Write]] = {
    "day": lambda first: first.date().isoformat(),
    "week": lambda first: f"the week of {_monday(first)}",
    "weekend": lambda first: f"the weekend of {first.date().isoformat()}",
    "month": lambda first: f"{MONTH_NAMES[first.month - 1]} {first.year}",
    "season": lambda first: f"the {_SEASONS.get(first.month, 'summer')} of {first.year}",
    "year": lambda first: str(first.year),
}
_CHINESE: Final[dict[Grain, _Write]] = {
    "day": _day,
    "week": lambda first: f"{_day(_start(first))}那一周",
    "weekend": lambda first: f"{_day(first)}那个周末",
    "month": lambda first: f"{first.year}年{first.month}月",
    "season": lambda first: f"{first.year}年{_CHINESE_SEASONS.get(first.month, '夏天')}",
    "year": lambda first: f"{first.year}年",
}
