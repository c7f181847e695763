"""Dates and periods that a search query names, in English and Chinese, as times.

"What did Anna say last Friday?" asks for one day; 去年夏天 for three months. Libraries were
measured first. `recognizers-text-date-time` read 57 % of the sayings of
tests/unit/time_sayings.py with the right first day, saw time in 36 of 81 texts that name none,
and needs 7 to 12 ms; `dateparser` read 21 % and saw 38; `jionlp` read 59 % of the Chinese ones
and takes 165 MB. `holidays` is taken: it knows the feasts.
"""

from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple

from app.language.text import chinese_times as chinese
from app.language.text import english_times as english
from app.language.text.normal_forms import simplify
from app.language.text.periods import Period, Reader, moved

_MAX_LENGTH: Final = 2_000
_MAX_EXPRESSIONS: Final = 8
# Two ends and a weekday may make one expression.
_MAX_FOUND: Final = 3 * _MAX_EXPRESSIONS


class TimeExpression(NamedTuple):
    """A time that a text names, from `start` up to, not including, `end`; in UTC."""

    start: datetime
    end: datetime
    text: str


class _Found(NamedTuple):
    start: int
    end: int
    period: Period


def time_expressions(text: str, reference: datetime) -> list[TimeExpression]:
    """The days, weeks, months, seasons and years that a text names, in their order.

    Relative ones count from `reference`, whose time zone says where days begin (UTC where it
    has none). A month, day, weekday, season or feast without a year is the last one that has
    begun. Weeks begin on Monday. "Two weeks ago" is that day and three on either side; "two
    months ago" that month; "a few days ago" two to five days ago; "since May" lasts until the
    reference; 8/5/2023 is 5 August. Durations ("for two weeks"), times of day and "recently"
    name no date. Only the first 2,000 characters are read, and at most eight are returned.
    """
    text = text[:_MAX_LENGTH]
    readers = (
        *(english.READERS if english.may_name_time(text) else ()),
        *(chinese.READERS if chinese.may_name_time(text) else ()),
    )
    if not readers:
        return []
    folded = simplify(text).translate(_FOLDED)
    today = reference.date()
    found = _stretched(
        folded, _joined(folded, _moved(folded, _find(folded, readers, today))), today
    )
    times = (_as_times(text, each, reference) for each in found)
    return [expression for expression in times if expression is not None][:_MAX_EXPRESSIONS]


def _find(text: str, readers: tuple[Reader, ...], today: date) -> list[_Found]:
    found: list[_Found] = []
    taken = bytearray(len(text))
    for pattern, read in readers:
        for match in pattern.finditer(text):
            start, end = match.span("said" if "said" in pattern.groupindex else 0)
            if any(taken[start:end]):
                continue
            try:
                period = read(match, today)
            except (ValueError, OverflowError):
                # No calendar has this day, not even a part of it: 30 February 2023.
                taken[start:end] = b"\1" * (end - start)
                continue
            if period is not None:
                taken[start:end] = b"\1" * (end - start)
                if not _recurs(text[max(start - 12, 0) : start]):
                    found.append(_Found(start, end, period))
    return sorted(found)[:_MAX_FOUND]


def _recurs(before: str) -> bool:
    return bool(english.RECURRING.search(before) or chinese.RECURRING.search(before))


def _moved(text: str, found: list[_Found]) -> list[_Found]:
    """Read "the week before 8 May" as a week, not a day."""
    result: list[_Found] = []
    for each in found:
        moved_each = each
        with suppress(ValueError, OverflowError):
            moved_each = _led(text, each) or _followed(text, each) or each
        if moved_each.start < each.start and result and result[-1].end > moved_each.start:
            if result[-1].start < moved_each.start:
                moved_each = each
            else:
                # The Sunday of "the Sunday before 8 May".
                result.pop()
        result.append(moved_each)
    return result


def _led(text: str, each: _Found) -> _Found | None:
    floor = max(each.start - 40, 0)
    match = english.LED_BY.search(text[floor : each.start])
    if match is None:
        return None
    return _Found(floor + match.start(), each.end, english.led_by(match, each.period))


def _followed(text: str, each: _Found) -> _Found | None:
    match = chinese.FOLLOWED_BY.match(text[each.end : each.end + 12])
    if match is None:
        return None
    return _Found(each.start, each.end + match.end(), chinese.followed_by(match, each.period))


def _joined(text: str, found: list[_Found]) -> list[_Found]:
    """Read "from May to July 2022" as one period."""
    result: list[_Found] = []
    for each in found:
        last = result[-1] if result else None
        if last is not None and _are_joined(text, last, each):
            period = _from_to(last.period, each.period)
            if period is not None:
                result[-1] = _Found(last.start, each.end, period)
                continue
        result.append(each)
    return result


def _are_joined(text: str, last: _Found, each: _Found) -> bool:
    between = text[last.end : each.start]
    if english.JOINED.fullmatch(between) or chinese.JOINED.fullmatch(between):
        return True
    led = english.JOINED_WITHIN.search(text[max(last.start - 16, 0) : last.start])
    return between == " and " and led is not None


def _from_to(first: Period, last: Period) -> Period | None:
    """The period from one to another; what was said without year takes that of the other."""
    try:
        if first.yearless:
            first = moved(first, last.first.year - first.first.year)
            first = moved(first, -1) if first.first > last.first else first
        elif last.yearless:
            last = moved(last, first.first.year - last.first.year)
            last = moved(last, 1) if last.first < first.first else last
    except (ValueError, OverflowError):
        return None
    return Period(first.first, last.after) if first.first < last.after else None


def _stretched(text: str, found: list[_Found], today: date) -> list[_Found]:
    """Let what began at a time last until today, where the text says "since"."""
    return [
        _Found(start, end, Period(period.first, max(period.after, _next(today))))
        if english.EXTENDED.search(text[max(start - 12, 0) : start])
        or chinese.EXTENDED.match(text[end : end + 4])
        else _Found(start, end, period)
        for start, end, period in found
    ]


def _next(today: date) -> date:
    return today + timedelta(days=1) if today < date.max else today


def _as_times(text: str, found: _Found, reference: datetime) -> TimeExpression | None:
    start, end, period = found
    zone = reference.tzinfo or UTC
    try:
        first, after = (
            datetime.combine(day, time.min, zone).astimezone(UTC)
            for day in (period.first, period.after)
        )
    except (ValueError, OverflowError):
        return None
    return TimeExpression(first, after, text[start:end])


# Characters and digits of full width, and traditional characters that `simplify` leaves.
_FOLDED: Final[dict[int, str | int]] = {
    **{0xFF10 + digit: str(digit) for digit in range(10)},
    **str.maketrans("週慶誕／－．", "周庆诞/-."),
}
