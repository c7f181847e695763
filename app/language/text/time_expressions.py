"""Dates and periods that a text names, in English and Chinese: the one reader of them.

A query asks about them: "What did Anna say last Friday?" is one day, 去年夏天 three months. A
statement holds from or until them: "I moved to Lisbon last month".

Libraries were measured first. `recognizers-text-date-time` read 57 % of the sayings of
tests/unit/time_sayings.py with the right first day, saw time in 36 of 81 texts that name none,
and needs 7 to 12 ms; `dateparser` read 21 % and saw 38; `jionlp` read 59 % of the Chinese ones
and takes 165 MB. `holidays` is taken: it knows the feasts.
"""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal, NamedTuple

from app.language.text import chinese_times as chinese
from app.language.text import english_times as english
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import simplify
from app.language.text.periods import Period, moved

Bound = Literal["at", "from", "until", "through", "span"]
Grain = Literal["day", "week", "month", "season", "year"]

_MAX_LENGTH: Final = 2_000
_MAX_EXPRESSIONS: Final = 8
# Two ends and a weekday may make one expression.
_MAX_FOUND: Final = 3 * _MAX_EXPRESSIONS
_OTHER_CLAUSE: Final = lazy_pattern(
    r"[,，;；。]|\b(?:and|but|because|since|as my|ends?)\b|[要会将]", re.IGNORECASE
)
_PLANNED: Final = lazy_pattern(
    r"[^,，.。;；]{0,6}[要会将]|,? (?:i|we|my) (?:will|am|have|ends)\b", re.IGNORECASE
)


class NamedDate(NamedTuple):
    """A day, week, month, season or year that a text names, by the calendar of whoever says it.

    Args:
        start, end: its place in the text.
        period: its days. Where the text leaves open which year or week it means, the last that
            has begun, with `period.unsaid`.
        bound: whether something happens then, begins then, ends as it begins, or ends with it; or
            both ends are named.

    """

    start: int
    end: int
    period: Period
    bound: Bound = "at"

    @property
    def grain(self) -> Grain:
        """How exactly it is named; a weekend is a week, and half a year a year."""
        length = (self.period.after - self.period.first).days
        grains: tuple[tuple[int, Grain], ...] = (
            (1, "day"), (11, "week"), (31, "month"), (92, "season"),
        )  # fmt: skip
        return next((grain for most, grain in grains if length <= most), "year")


class TimeExpression(NamedTuple):
    """A time that a text names, from `start` up to, not including, `end`; in UTC."""

    start: datetime
    end: datetime
    text: str


def find_dates(text: str, said_at: datetime) -> list[NamedDate]:
    """What a text names of the calendar, in its order, against the day on which it is said.

    The zone of `said_at` says which day that is. Weeks begin on Monday. "Two weeks ago" is that
    day and three on either side; "two months ago" that month; "a few days ago" two to five days
    ago; 8/5/2023 is 5 August. Durations ("for two weeks"), times of day, "recently" and what
    recurs ("every Monday") name no date, and neither does what no calendar has. Only the first
    2,000 characters are read.
    """
    return _found(_folded(text), said_at.date())


def validity(
    text: str, said_at: datetime, *, began: bool = False
) -> tuple[datetime | None, datetime | None]:
    """From when and until when a statement holds, as far as it says so.

    Days of the speaker's calendar as midnights of UTC, which every reader of memories shows. A
    date whose year or week is not said ("on 3 May", "on Friday") is none, but behind "since" and
    in the clause that says that something `began`: there it is the last one. What lies ahead is no
    beginning, for a plan holds from when it is made; and what lies behind is no end, for it
    stays true of the past.
    """
    begin: datetime | None = None
    end: datetime | None = None
    folded = _folded(text)
    for each in _found(folded, said_at.date()):
        period, bound = each.period, each.bound
        if period.unsaid and not ((began and _of_beginning(folded, each)) or _lasts(folded, each)):
            continue
        if bound not in {"until", "through"} and begin is None and period.first <= said_at.date():
            begin = min(_midnight(period.first), said_at)
        # "Until Friday" takes the day in, "until June" ends with May.
        first_day = bound == "until" and each.grain not in {"day", "week"}
        last = _midnight(period.first if first_day else period.after)
        if bound in {"until", "through", "span"} and end is None and last > said_at:
            end = last
    return begin, end


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def time_expressions(text: str, reference: datetime) -> list[TimeExpression]:
    """The times that a query names, as `find_dates` does; at most eight.

    Days begin where the reference is, in UTC where it has no zone. "Since May" lasts until the
    reference.
    """
    folded = _folded(text)
    expressions: list[TimeExpression] = []
    for each in _stretched(folded, _found(folded, reference.date()), reference.date()):
        times = _times(each.period, reference)
        if times is not None:
            first, after = (moment.astimezone(UTC) for moment in times)
            expressions.append(TimeExpression(first, after, text[each.start : each.end]))
    return expressions[:_MAX_EXPRESSIONS]


def _folded(text: str) -> str:
    """The beginning, in simplified characters and plain digits, each in its place."""
    text = text[:_MAX_LENGTH]
    return text if text.isascii() else simplify(text).translate(_PLAIN)


def _times(period: Period, reference: datetime) -> tuple[datetime, datetime] | None:
    """Its first moment and the one after its last; None where UTC has no such time."""
    zone = reference.tzinfo or UTC
    first, after = (datetime.combine(day, time.min, zone) for day in (period.first, period.after))
    try:
        first.astimezone(UTC), after.astimezone(UTC)
    except OverflowError:
        return None
    return first, after


def _found(text: str, today: date) -> list[NamedDate]:
    readers = (
        *(english.READERS if english.may_name_time(text) else ()),
        *(chinese.READERS if chinese.may_name_time(text) else ()),
    )
    found: list[NamedDate] = []
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
                    found.append(NamedDate(start, end, period))
    joined = _joined(text, _moved(text, sorted(found)[:_MAX_FOUND]))
    return [each._replace(bound=_bound(text, each)) for each in joined]


def _recurs(before: str) -> bool:
    return bool(english.RECURRING.search(before) or chinese.RECURRING.search(before))


def _bound(text: str, each: NamedDate) -> Bound:
    if each.bound == "span":
        return "span"
    before, after = text[max(each.start - 24, 0) : each.start], text[each.end : each.end + 4]
    said = text[each.start : each.end]
    if english.THROUGH.search(before):
        return "through"
    if english.UNTIL.search(before) or chinese.UNTIL.search(before) or chinese.UP_TO.match(after):
        part = english.PART.match(said) or chinese.PART.search(said) or chinese.END.match(after)
        return "through" if part else "until"
    if english.FROM.search(before) or chinese.FROM.search(before) or chinese.ON_FROM.match(after):
        return "from"
    return "at"


def _moved(text: str, found: list[NamedDate]) -> list[NamedDate]:
    """Read "the week before 8 May" as a week, not a day."""
    result: list[NamedDate] = []
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


def _led(text: str, each: NamedDate) -> NamedDate | None:
    floor = max(each.start - 40, 0)
    match = english.LED_BY.search(text[floor : each.start])
    if match is None:
        return None
    period = english.led_by(match, each.period)._replace(unsaid=each.period.unsaid)
    return NamedDate(floor + match.start(), each.end, period)


def _followed(text: str, each: NamedDate) -> NamedDate | None:
    match = chinese.FOLLOWED_BY.match(text[each.end : each.end + 12])
    if match is None:
        return None
    period = chinese.followed_by(match, each.period)._replace(unsaid=each.period.unsaid)
    return NamedDate(each.start, each.end + match.end(), period)


def _joined(text: str, found: list[NamedDate]) -> list[NamedDate]:
    """Read "from May to July 2022" as one period."""
    result: list[NamedDate] = []
    for each in found:
        last = result[-1] if result else None
        period = _from_to(last.period, each.period) if last and _joins(text, last, each) else None
        if last is not None and period is not None:
            result[-1] = NamedDate(last.start, each.end, period, "span")
        else:
            result.append(each)
    return result


def _joins(text: str, last: NamedDate, each: NamedDate) -> bool:
    between = text[last.end : each.start]
    if english.JOINED.fullmatch(between) or chinese.JOINED.fullmatch(between):
        return True
    led = english.JOINED_WITHIN.search(text[max(last.start - 16, 0) : last.start])
    return between == " and " and led is not None


def _from_to(first: Period, last: Period) -> Period | None:
    """The period from one to another; what was said without year takes that of the other."""
    unsaid = first.unsaid if first.unsaid == last.unsaid else None
    try:
        if first.unsaid == "year":
            first = moved(first, last.first.year - first.first.year)
            first = moved(first, -1) if first.first > last.first else first
        elif last.unsaid == "year":
            last = moved(last, first.first.year - last.first.year)
            last = moved(last, 1) if last.first < first.first else last
    except (ValueError, OverflowError):
        return None
    return Period(first.first, last.after, unsaid) if first.first < last.after else None


def _stretched(text: str, found: list[NamedDate], today: date) -> list[NamedDate]:
    """Let what began at a time last until today, where the text says "since"."""
    tomorrow = today + timedelta(days=today < date.max)
    return [
        each._replace(period=each.period._replace(after=max(each.period.after, tomorrow)))
        if _lasts(text, each)
        else each
        for each in found
    ]


def _lasts(text: str, each: NamedDate) -> bool:
    """Whether the text says "since" of it."""
    before, after = text[max(each.start - 12, 0) : each.start], text[each.end : each.end + 4]
    return bool(english.EXTENDED.search(before) or chinese.EXTENDED.match(after))


def _of_beginning(text: str, each: NamedDate) -> bool:
    """Whether the date is in the first clause, and not of a plan: 我搬到汉堡了，五月要结婚."""
    return not (_OTHER_CLAUSE.search(text, 0, each.start) or _PLANNED.match(text, each.end))


# Characters and digits of full width, and traditional characters that `simplify` leaves.
_PLAIN: Final[dict[int, str | int]] = {
    **{0xFF10 + digit: str(digit) for digit in range(10)},
    **str.maketrans("週慶誕／－．", "周庆诞/-."),
}
