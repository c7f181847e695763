"""When something was, is or will be: dates in English and Chinese, against the time of saying.

`dateparser` was measured first and not taken: of 22 plain expressions it read 去年三月, 三天前,
两年前, 下周五, "since 2019" and "last March" not at all, 2019年 as the year 7, gave a month the
day of the message, took "may" and "Sun" inside sentences for dates, and needed 2 to 4 ms each.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from app.language.keyless import chinese_dates, english_dates
from app.language.keyless.calendar_steps import Grain, Reader
from app.language.keyless.patterns import compiled
from app.language.text.lazy_pattern import lazy_pattern

Bound = Literal["at", "from", "to"]


@dataclass(frozen=True, slots=True)
class Dated:
    """A date that a text names.

    Args:
        start, end: its place in the text.
        first: the first moment of the day, week, month or year it names.
        bound: whether something happens then, begins then, or ends then.
        grain: how exactly it is named; None where it is named in full and can stand for ever.

    """

    start: int
    end: int
    first: datetime
    bound: Bound
    grain: Grain | None


def find_dates(text: str, said_at: datetime, *, past: bool = True) -> list[Dated]:
    """Dates in order of place, without overlaps.

    A month or weekday without a year or week is the last one when `past`, else the next one.
    Dates no calendar has, and those before year 1 or after 9999, are left out. Takes time
    linear in the length of the text.
    """
    found: list[Dated] = []
    taken = bytearray(len(text))
    for pattern, read, grain in _READERS:
        for match in pattern.finditer(text):
            if any(taken[match.start() : match.end()]):
                continue
            try:
                first = read(match, said_at, past)
            except (ValueError, OverflowError):
                continue
            if first is not None:
                found.append(
                    Dated(match.start(), match.end(), first, _bound(text, match), grain(match))
                )
                taken[match.start() : match.end()] = b"\1" * (match.end() - match.start())
    return sorted(found, key=lambda each: each.start)


def validity(
    text: str, said_at: datetime, *, past: bool = True
) -> tuple[datetime | None, datetime | None]:
    """From when and until when a statement holds, as far as it says so."""
    begin: datetime | None = None
    end: datetime | None = None
    for each in find_dates(text, said_at, past=past)[:4]:
        if each.bound == "to":
            end = end or each.first
        else:
            begin = begin or each.first
    if begin is not None and end is not None and end <= begin:
        end = None
    return begin, end


_READERS: Final[tuple[Reader, ...]] = (*english_dates.READERS, *chinese_dates.READERS)
_FROM_BEFORE = compiled(
    r"""
    (?:since|from|starting|as of|beginning)(?: on| in)? $|(?:自从?|从)$
    """,
)


_TO_BEFORE = compiled(
    r"""
    (?:until|till|through|up to)(?: the end of)? $|(?:直到|到|截至|截止到?)$
    """,
)


_OWN = lazy_pattern(r"(?P<from>since|from|starting)|(?P<to>until|till)", re.IGNORECASE)


_TO_AFTER = lazy_pattern(r"(?:为止|之前都)")


_FROM_AFTER = lazy_pattern(r"(?:开始|起|以来)")


def _bound(text: str, match: re.Match[str]) -> Bound:
    """Whether the words around a date make it a beginning or an end."""
    before = text[max(match.start() - 24, 0) : match.start()]
    after = text[match.end() : match.end() + 4]
    own = _OWN.match(match[0])
    if _TO_BEFORE.search(before) or _TO_AFTER.match(after) or (own and own["to"]):
        return "to"
    if _FROM_BEFORE.search(before) or _FROM_AFTER.match(after) or (own and own["from"]):
        return "from"
    return "at"
