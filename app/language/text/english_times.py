"""How dates and periods are said in English: "last Friday", "in early June 2022", "8 May"."""

import re
from datetime import date, timedelta
from typing import Final

from app.language.text import distinction_words as words
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.periods import (
    FEASTS,
    MONTHS,
    SEASONS,
    WEEKDAYS,
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
    month_part,
    months,
    season_of,
    some_ago,
    unit_of,
    week_of,
    year_part,
    yearly,
)

_WEEKDAYS: Final = {name: n for name, n in WEEKDAYS.items() if not name.endswith("s")}
_DAYS: Final = {
    "the day before yesterday": -2, "day before yesterday": -2, "yesterday": -1, "last night": -1,
    "last evening": -1, "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0,
    "this evening": 0, "the day after tomorrow": 2, "day after tomorrow": 2, "tomorrow": 1,
}  # fmt: skip
_PARTS: Final = {
    "early": "early", "beginning": "early", "start": "early", "mid": "mid", "middle": "mid",
    "late": "late", "end": "late", "first half": "first", "second half": "second",
}  # fmt: skip
_STEPS: Final = {"last": -1, "this": 0, "next": 1}

_MONTH = rf"(?P<month>{either(MONTHS)})\b\.?"
_DAY = r"(?P<day>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})(?![\w%€$£]|[-./:,][0-9])"
_WEEKDAY = rf"(?P<weekday>{either(_WEEKDAYS)})"
_WHICH = r"(?P<which>last|this|next)"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_COUNT = rf"(?P<count>[0-9]{{1,3}}|an?|one|a couple(?: of)?|{either(words.NUMBER_WORDS)})"
_FEW = r"(?P<few>(?:a |the )?(?:few|several))"
_SEASON = r"(?P<season>spring|summer|autumn|fall|winter)"
_PART = (
    r"(?:(?P<part>early|mid|late|(?:the )?(?:beginning|start|middle|end|first half|second half)"
    r"(?= of))(?: of(?: the)?)?[ -])"
)
# "In 2023 pieces" counts; "in 2023 was" does not.
_COUNTED = r"(?! (?!(?:is|was|as|does|has|this|his|its|us|versus)\b)[a-z]+s\b)"
_DURING = r"(?:in|during|over|throughout)"
# Names and verbs as well as months; "this may", "from April" and "of June" are left to them.
_WITHIN = r"(?:in|during|since|until|till|throughout)"
_CERTAIN = r"january|february|july|september|october|november|december"


def _english(pattern: str) -> re.Pattern[str]:
    # ASCII, so that a Chinese character beside a word is no part of it; an é is.
    return lazy_pattern(
        rf"(?<![\w\u00c0-\u024f$€£#-])(?:{pattern})(?![\w\u00c0-\u024f-])",
        re.IGNORECASE | re.ASCII,
    )


def _number(said: str) -> int:
    said = said.casefold().removeprefix("a ").removesuffix(" of")
    return int(said) if said.isdecimal() else words.NUMBER_WORDS.get(said, 1)


def _group(match: re.Match[str], name: str) -> str:
    return (match.groupdict().get(name) or "").casefold()


def _year_in(match: re.Match[str]) -> int | None:
    return int(match["year"]) if _group(match, "year") else None


def _numeric(match: re.Match[str], _today: date) -> Period:
    return days(date(*map(int, re.findall(r"[0-9]+", match[0]))))


def _slashed(match: re.Match[str], _today: date) -> Period:
    """The month first, as in 8/5/2023 for 5 August, unless only the day can be first."""
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    if first > 12 or match["sep"] == ".":
        first, second = second, first
    return days(date(year, first, second))


def _numeric_month(match: re.Match[str], _today: date) -> Period:
    return months(int(match["year"]), int(match["month"]))


def _is_verb(match: re.Match[str]) -> bool:
    """Tell "you may 5 times" and "march 10 miles" from dates."""
    said = match[0]
    if match["month"] not in {"may", "march", "mar"} or match["year"] or said.startswith("the "):
        return False
    before, after = match.string[max(match.start() - 6, 0) : match.start()], match.string
    led = re.search(r"\b(?:on|by|of|since|until|till|from)(?: the)? $", before, re.IGNORECASE)
    return not led and re.match(r" [a-z]", after[match.end() : match.end() + 2]) is not None


def _day_of_month(match: re.Match[str], today: date) -> Period | None:
    if _is_verb(match):
        return None
    month, day, other = MONTHS[match["month"].casefold()], int(match["day"]), match["other"]
    first, last = sorted((day, int(other))) if other else (day, day)

    def named(year: int) -> Period:
        date(year, month, last)
        return days(date(year, month, first), last - first + 1)

    return yearly(today, named, _year_in(match))


def _month(match: re.Match[str], today: date) -> Period | None:
    month, part, which = MONTHS[_group(match, "month")], _part(match), _group(match, "which")
    if which == "this" and match["month"] in {"may", "march", "mar"}:
        return None
    return yearly(today, lambda year: month_part(months(year, month), part), _year_in(match), which)


def _part(match: re.Match[str]) -> str | None:
    said = _group(match, "part")
    return _PARTS[said.removeprefix("the ")] if said else None


def _quarter(match: re.Match[str], today: date) -> Period:
    said = _group(match, "quarter")
    number = int(said[1]) if said[0] == "q" else _NTH[said.split()[0]]
    return yearly(today, lambda year: months(year, number * 3 - 2, 3), _year_in(match))


_NTH: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4}


def _year(match: re.Match[str], _today: date) -> Period:
    return year_part(int(match["year"]), _part(match))


def _ago(match: re.Match[str], today: date) -> Period:
    unit = match["unit"].casefold()
    if match["few"]:
        return some_ago(today, unit)
    if match["half"]:
        return ago(today, 6, "month")
    count = _number(match["count"])
    if match["exact"]:
        return days(back_from(today, count, unit).first)
    return ago(today, count, unit)


def _trailing(match: re.Match[str], today: date) -> Period:
    count = 5 if match["few"] else _number(match["count"] or "a")
    return back_from(today, count, match["unit"].casefold())


def _named_day(match: re.Match[str], today: date) -> Period:
    return days(today + timedelta(days=_DAYS[match[0].casefold()]))


def _unit(match: re.Match[str], today: date) -> Period:
    return unit_of(today, _group(match, "unit"), _STEPS[_group(match, "which")])


def _weekday(match: re.Match[str], today: date) -> Period | None:
    """The last such day before today; "this" stays in the week, "next" is the next to come."""
    number, which = _WEEKDAYS[match["weekday"].casefold()], (match["which"] or "").casefold()
    if len(match["weekday"]) == 3 and not which:
        led = match.string[max(match.start() - 3, 0) : match.start()].casefold() == "on "
        if not led:
            return None
    if which == "this":
        return _weekday_of_week(match, today)
    period = beside(days(today), str(number - 1), None, 1 if which == "next" else -1)
    return period if which else period._replace(unsaid="week")


def _weekday_of_week(match: re.Match[str], today: date) -> Period:
    week = week_of(today, _STEPS[_group(match, "which")])
    return days(week.first + timedelta(days=_WEEKDAYS[_group(match, "weekday")] - 1))


def _season(match: re.Match[str], today: date) -> Period:
    name = _group(match, "season")
    return yearly(
        today, lambda year: season_of(year, name), _year_in(match), _group(match, "which")
    )


def _feast(match: re.Match[str], today: date) -> Period:
    name = _group(match, "feast").replace("’", "'")
    return feast(today, name, _year_in(match), _group(match, "which"))


_BEFORE_DAY = rf"(?:{_WHICH.replace('which', 'leading')} )?(?:{either(_WEEKDAYS)}),? (?:on )?"
_NUMBER_START = r"(?<![0-9])(?<![0-9][-./])"
_NUMBER_END = r"(?![0-9])(?![-./:][0-9])"

# The more exact before what it contains; what is found first keeps its place.
READERS: Final[tuple[Reader, ...]] = (
    (
        lazy_pattern(
            rf"{_NUMBER_START}(?:19|20)[0-9]{{2}}(?:(?P<sep>[-/])[0-9]{{1,2}}"
            # Two characters each, for 2023.1.2 is a version.
            rf"(?P=sep)[0-9]{{1,2}}|\.[0-9]{{2}}\.[0-9]{{2}})"
            rf"{_NUMBER_END}"
        ),
        _numeric,
    ),
    (
        lazy_pattern(
            rf"{_NUMBER_START}(?P<first>[0-9]{{1,2}})(?P<sep>[-/.])(?P<second>[0-9]{{1,2}})"
            rf"(?P=sep)(?P<year>(?:19|20)[0-9]{{2}}){_NUMBER_END}"
        ),
        _slashed,
    ),
    (
        lazy_pattern(
            rf"(?<!\w){_NUMBER_START}(?P<year>(?:19|20)[0-9]{{2}})-(?P<month>0[1-9]|1[0-2])"
            rf"{_NUMBER_END}(?![A-Za-z-])"
        ),
        _numeric_month,
    ),
    (
        _english(
            rf"(?:{_BEFORE_DAY})?(?:the )?"
            r"(?:(?P<other>[0-9]{1,2})(?:st|nd|rd|th)? ?(?:-|–|to|and|until) ?)?"
            rf"{_DAY}(?: day)? (?:of )?{_MONTH}(?:,? {_YEAR})?"
        ),
        _day_of_month,
    ),
    (
        _english(
            rf"(?:{_BEFORE_DAY})?{_MONTH} (?:the )?{_DAY}(?![:.][0-9])"
            rf"(?: ?(?:-|–|to|until) ?(?P<other>[0-9]{{1,2}})(?:st|nd|rd|th)?)?(?:,? {_YEAR})?"
        ),
        _day_of_month,
    ),
    (
        _english(
            rf"(?:{_WHICH} )?(?P<feast>{either(name for name in FEASTS if name.isascii())})"
            rf"(?:,? (?:of |in )?{_YEAR})?(?! (?:egg|island|bunny)s?)"
        ),
        _feast,
    ),
    (_english(rf"{_PART}?{_MONTH}(?: of|,| in)? {_YEAR}"), _month),
    (_english(rf"{_PART}{_MONTH}(?!')"), _month),
    (_english(rf"{_WHICH} {_MONTH}(?!'s)"), _month),
    (_english(rf"{_WITHIN} (?P<said>{_PART}?{_MONTH})(?!'s)"), _month),
    (
        _english(
            rf"(?:from|between) (?P<said>{_MONTH})"
            rf"(?= (?:to|until|till|through|and) (?:{either(MONTHS)}))"
        ),
        _month,
    ),
    (_english(rf"(?P<month>{_CERTAIN})"), _month),
    (
        _english(
            r"(?:the )?(?P<quarter>q[1-4]|(?:first|second|third|fourth|last) quarter)"
            rf"(?:,? (?:of )?{_YEAR})"
        ),
        _quarter,
    ),
    (_english(r"in (?P<quarter>q[1-4])(?P<year>)"), _quarter),
    (_english(rf"{_SEASON}(?: of|,)? {_YEAR}"), _season),
    (_english(rf"{_PART}(?:the year )?{_YEAR}"), _year),
    (
        _english(
            r"(?:in|during|of|since|from|to|until|till|by|before|after|around|through|throughout|year)"
            rf"(?: the year)? (?P<said>{_PART}?{_YEAR}){_COUNTED}"
        ),
        _year,
    ),
    (
        lazy_pattern(
            r"(?:(?<![\w.$€£-])(?=[12])|(?<=the )['’]?(?=[5-9]))"
            r"(?P<decade>(?:19|20)?[0-9]0)['’]?[sS](?!\w)"
        ),
        lambda match, _today: decade(int(match["decade"])),
    ),
    (
        _english(rf"(?:{_FEW}|(?P<half>half an?)|{_COUNT}) {_UNIT} (?:ago|back)(?P<exact> today)?"),
        _ago,
    ),
    (_english(rf"(?:last|past|previous) (?:{_FEW}|{_COUNT}) {_UNIT}(?! of)"), _trailing),
    (_english(rf"past (?P<few>)(?P<count>){_UNIT}(?! of)"), _trailing),
    (_english(either(_DAYS)), _named_day),
    (
        _english(r"the (?P<unit>week|weekend|month|year) before last"),
        lambda match, today: unit_of(today, _group(match, "unit"), -2),
    ),
    (_english(rf"{_WEEKDAY}(?: of| in)? {_WHICH} week"), _weekday_of_week),
    (_english(rf"{_WHICH} week(?:'s| on)? {_WEEKDAY}"), _weekday_of_week),
    (_english(rf"{_WHICH} (?P<unit>week|weekend|month|quarter|year)(?! of)"), _unit),
    (
        _english(r"(?:on|over|during|at) (?P<said>the weekend)"),
        lambda _match, today: last_weekend(today),
    ),
    (_english(rf"(?:{_WHICH} )?{_WEEKDAY}"), _weekday),
    (_english(rf"{_WHICH} {_SEASON}(?! of)"), _season),
    (_english(rf"{_DURING}(?: the)? (?P<said>{_SEASON})(?! of)"), _season),
)

LED_BY: Final = lazy_pattern(
    rf"\b(?:(?:the last|the|last|{_COUNT}) )?"
    rf"(?P<unit>day|week|weekend|month|year|{either(_WEEKDAYS)})s?"
    r" (?P<way>before|prior to|leading up to|after|following)(?: the)? (?:on )?$",
    re.IGNORECASE | re.ASCII,
)
"""What may stand before a date and move it: "two weeks before 8 May"."""
_TIME_HINTS: Final = frozenset(
    (
        *MONTHS, *WEEKDAYS, *SEASONS, "yesterday", "today", "tonight", "tomorrow",
        "morning", "afternoon", "evening", "night", "day", "days", "week", "weeks", "weekend",
        "month", "months", "quarter", "q", "year", "years", "ago",
        *(name.split()[-1].split("-")[-1] for name in FEASTS if name.isascii()),
    )
)  # fmt: skip
_WORD: Final = lazy_pattern(r"[a-z]+")
_NUMBER_HINT: Final = lazy_pattern(r"[0-9０-９]{4}|[0-9]0['’]?s")


def may_name_time(text: str) -> bool:
    """Tell quickly whether a text may name a time; `False` is certain."""
    if not _TIME_HINTS.isdisjoint(_WORD.findall(text.casefold())):
        return True
    return _NUMBER_HINT.search(text) is not None


EXTENDED: Final = lazy_pattern(r"\bsince(?: the)? $", re.IGNORECASE | re.ASCII)
"""What may stand before a period and stretch it until now."""
FROM: Final = lazy_pattern(
    r"\b(?:since|from|starting|beginning|as of)(?: on| in)?(?: the)? $", re.IGNORECASE
)
"""What may stand before a date from which something holds."""
UNTIL: Final = lazy_pattern(r"\b(?:until|till|up to)(?: the)? $", re.IGNORECASE)
"""What may stand before a date until which something holds."""
THROUGH: Final = lazy_pattern(
    r"\b(?:through|(?:until|till|through|up to) (?:the )?end of)(?: the)? $", re.IGNORECASE
)
"""What may stand before a date with whose last day something ends."""
PART: Final = lazy_pattern(r"(?:the )?(?:early|mid|middle|late|end|first|second)\b", re.IGNORECASE)
"""How a part of a month or year begins, which "until" takes in; not its beginning."""
JOINED: Final = lazy_pattern(r" ?(?:-|–|—) ?| (?:to|until|till|through) ", re.IGNORECASE | re.ASCII)
JOINED_WITHIN: Final = lazy_pattern(r"\bbetween(?: the)? $", re.IGNORECASE | re.ASCII)
RECURRING: Final = lazy_pattern(
    r"\b(?:every|each|black|good|ruby|ash|cyber|casual)(?: other)? $", re.IGNORECASE
)


def led_by(match: re.Match[str], period: Period) -> Period:
    """Return the time that words like "two weeks before" make of the date behind them."""
    unit = match["unit"].casefold()
    if unit in _WEEKDAYS:
        unit = str(_WEEKDAYS[unit] - 1)
    count = _number(match["count"]) if match["count"] else None
    after = match["way"].casefold() in {"after", "following"}
    return beside(period, unit, count, 1 if after else -1)
