"""The numbers a sentence states, in one form for digits, words and Chinese numerals.

"3 PM", "15:00" and "下午三点" are one time; "1,500 dollars" and "$1500" are one amount. The words
"one" and "一" are not counted: languages say them where nothing is counted.
"""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Final

from app.language.text import distinction_words as words
from app.language.text.lazy_pattern import lazy_pattern, literals
from app.language.text.periods import MONTHS, WEEKDAYS, either

Quantity = tuple[str, str]
"""A value and its unit, the unit empty where none is said."""
_Read = Callable[[re.Match[str]], Quantity]

# Private use: a minus that was told from a hyphen.
_NEGATIVE = "\ue0ff"
_DIGIT = "零〇一二两兩三四五六七八九"
_NUMERAL_CHAR = rf"[{_DIGIT}十百千万萬亿億]"
# Bounded: Python refuses to read or write a number of thousands of digits.
_NUMERAL = rf"{_NUMERAL_CHAR}{{1,24}}"
_ANY = rf"(?:[0-9]{{1,2}}|{_NUMERAL_CHAR}{{1,3}})"


_UNIT_NAMES: Final = {
    name: unit for unit, names in words.UNITS.items() for name in names.split("|")
}
_LATIN_UNITS = either(name for name in _UNIT_NAMES if name.isalpha() and name.isascii())
_OTHER_UNITS = either(name for name in _UNIT_NAMES if not (name.isalpha() and name.isascii()))
_UNIT = rf"(?:\s?(?P<unit>(?:{_LATIN_UNITS})(?![a-z])|{_OTHER_UNITS}))?"
_SCALE_WORDS = ("hundred", "thousand", "million", "billion")

_ANY_DIGIT = lazy_pattern(r"[0-9]")
_MONTH_PART = lazy_pattern(either({name[:3] for name in MONTHS}))
_DAY_PART = lazy_pattern(either({name[:3] for name in WEEKDAYS}))
# Patterns that begin with what may be missing say first what they can begin with: it takes a third
# of the time.
_TIME = lazy_pattern(
    r"(?=[0-9])(?:(?<![0-9:.])([0-9]{1,2})(?:[:.]([0-9]{2}))?\s?([ap])\.?m\b\.?"
    r"|(?<![0-9:.])([0-9]{1,2}):([0-9]{2})(?![0-9:]))"
)
_CHINESE_TIME = lazy_pattern(
    # 一点 alone is "a little".
    r"(凌晨|早上|早晨|上午|中午|下午|傍晚|晚上)?"
    rf"((?<=[晨午晚上])一|(?!一[点點](?![钟鐘半])){_ANY})(?:点钟|点|點|时(?!间|候))(?:(半)|({_ANY})分?)?"
)
# 每周一次 counts, and names no Monday.
_CHINESE_WEEKDAY = lazy_pattern(r"(?:周|週|星期|礼拜|禮拜)([一二三四五六日天](?![次回趟]))")
_WEEKDAY = lazy_pattern(rf"\b({either(WEEKDAYS)})\b")
_MONTH = lazy_pattern(
    rf"\b({either(m for m in MONTHS if m not in {'may', 'march', 'mar'})})\b"
    # The verbs only beside a day or a year.
    r"|\b(may|march|mar)(?=\.? [0-9])|(?<=[0-9] )(may|march|mar)\b|(?<=[0-9][a-z]{2} )(may|march)\b"
)
_DIGITS = lazy_pattern(
    rf"(?=[{_NEGATIVE}$€£¥\s0-9])(?P<minus>{_NEGATIVE})?"
    r"(?P<sign>[$€£¥])?\s?(?P<number>[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)*)"
    rf"(?:st|nd|rd|th)?(?P<scale>\s?(?:hundred|thousand|million|billion|k)\b|[百千万萬亿億]{{1,3}})?{_UNIT}"
)
_WORD = lazy_pattern(
    rf"\b(?P<number>(?:{literals([*words.NUMBER_WORDS, *_SCALE_WORDS])})"
    rf"(?:[ -](?:and )?(?:{literals([*words.NUMBER_WORDS, *_SCALE_WORDS, 'one'])})\b){{0,12}})\b"
    rf"{_UNIT}"
)
# 一 alone is an article as often as a number, so it stays in the text as "one" does.
_CHINESE = lazy_pattern(
    rf"(?P<minus>{_NEGATIVE})?(?P<number>(?!一(?!{_NUMERAL_CHAR})){_NUMERAL}){_UNIT}"
)
# What is named by letters and digits together is no amount: room 4A, an S21, BA123, web1.
# So is what three numbers or more make with hyphens: shelf 1-62-0, flat BX-1-62-0; but no day.
_MARK = lazy_pattern(
    r"(?<![a-z0-9_.$€£¥-])(?![12][0-9]{3}-[0-9]{1,2}-[0-9]{1,2}(?![0-9-]))"
    r"(?:(?:[a-z]{1,12}-)?[0-9]{1,12}(?:-[0-9]{1,12}){2,8}(?!-?[0-9])|[a-z]+[0-9][a-z0-9]*"
    rf"|[0-9]+(?!(?:st|nd|rd|th|k|[ap]m|{_LATIN_UNITS})(?![a-z0-9]))[a-z][a-z0-9]*)(?![a-z0-9_])"
)
_MINUS = lazy_pattern(
    rf"(?=[-\u2212m零负])(?:(?<![\w.)\]%-])[-\u2212](?=[$€£¥]?[0-9])|\bminus (?=[$€£¥]?[0-9])"
    rf"|(?:零下|负)(?=[0-9]|{_NUMERAL_CHAR}))"
)
_COUNTED = lazy_pattern(
    rf"([0-9]+(?:[.,:][0-9]+)*|{_NUMERAL}|\b(?:{either(words.NUMBER_WORDS)})\b)(?=[\W_]*(\w?[a-z]*))"
)
_MONTH_NAME = rf"(?:{either(MONTHS)})"
_DAY = r"[0-9]{1,2}(?:st|nd|rd|th)?"
_DATE = lazy_pattern(
    rf"\b({_DAY}) (?:of )?({_MONTH_NAME})\b|\b({_MONTH_NAME})\.? (?:the )?({_DAY})(?![0-9:.])\b"
    rf"|({_ANY})月({_ANY})[日号號]"
)
_CHINESE_IDIOM = lazy_pattern(rf"(?<!{_NUMERAL_CHAR})(?:{words.CHINESE_NUMBER_IDIOMS})")


# An idiom is a word and stays; only its numerals must not be read, so they hide meanwhile.
_HIDE: Final = {ord(char): chr(0xE000 + n) for n, char in enumerate(_DIGIT + "十百千万萬亿億")}
_SHOW: Final = {ord(hidden): chr(char) for char, hidden in _HIDE.items()}


def take_quantities(text: str) -> tuple[frozenset[Quantity], str]:
    """Return what a normalised text counts, dates and times included, and the text without it."""
    found: set[Quantity] = set()

    def take(pattern: re.Pattern[str], read: _Read, text: str) -> str:
        def replace(match: re.Match[str]) -> str:
            found.add(read(match))
            return " "

        return pattern.sub(replace, text)

    has = _parts(text)
    if "digits" in has or "characters" in has:
        if "months" in has or "characters" in has:
            found.update(_dates(text))
        text = _MINUS.sub(_NEGATIVE, text)
    for pattern, read, needed in _READERS:
        if needed is None or needed in has:
            text = take(pattern, read, text)
    if "characters" in has:
        text = _CHINESE_IDIOM.sub(lambda match: match[0].translate(_HIDE), text)
        text = take(_CHINESE, _chinese, text).translate(_SHOW)
    return frozenset(found), text.replace(_NEGATIVE, " ")


def _parts(text: str) -> set[str]:
    """Which of the parts a text has without which most patterns cannot match."""
    has = set()
    if _ANY_DIGIT.search(text):
        has.add("digits")
    if not text.isascii():
        has.add("characters")
    if _MONTH_PART.search(text):
        has.add("months")
    if _DAY_PART.search(text):
        has.add("days")
    return has


def _dates(text: str) -> Iterator[Quantity]:
    """Yield each day of a month as one, besides its numbers: 3 May and 5 March share those."""
    for day, month, other_month, other_day, chinese_month, chinese_day in _DATE.findall(text):
        if chinese_month:
            yield f"{plain_number(chinese_day)}.{plain_number(chinese_month)}", "date"
        else:
            name = MONTHS[month or other_month]
            yield f"{int((day or other_day).rstrip('stndrh'))}.{name}", "date"


def counts_differ(a: frozenset[Quantity], b: frozenset[Quantity]) -> bool:
    """Tell whether two texts count differently; a unit only one of them says does not differ."""
    dates_a, dates_b = ({each for each in both if each[1] == "date"} for both in (a, b))
    if dates_a and dates_b and dates_a != dates_b:
        return True
    a, b = a - dates_a, b - dates_b
    values_a, values_b = {value for value, _ in a}, {value for value, _ in b}
    if values_a != values_b:
        return True
    return any(
        one == other and unit and other_unit and unit != other_unit
        for one, unit in a - b
        for other, other_unit in b - a
    )


def numbers_in(text: str) -> list[tuple[str, str]]:
    """The numbers of a normalised text in their order, as they are written, each with the word
    behind it.
    """
    return [(match[1].lstrip("0") or "0", match[2]) for match in _COUNTED.finditer(text)]


def chinese_number(numeral: str) -> int:
    """Read a Chinese numeral; digits in a row, as in a year, are read one by one."""
    if not set(numeral) - set(_DIGIT):
        return int("".join(str(words.CHINESE_DIGITS[char]) for char in numeral))
    total = section = digit = 0
    last_scale = 1
    for char in numeral:
        if char in words.CHINESE_DIGITS:
            digit = words.CHINESE_DIGITS[char]
            last_scale = 1 if char in "零〇" else last_scale
            continue
        scale = 10 if char == "十" else words.SCALES[char]
        if scale >= 10**4:
            total = (total + section + digit) * scale
            section = 0
        else:
            section += (digit or 1) * scale
        digit, last_scale = 0, scale
    # 一万五 is 15,000: the last digit counts tenths of the scale before it.
    return total + section + digit * (last_scale // 10 if last_scale >= 100 else 1)


def _unit(match: re.Match[str]) -> str:
    name = match["unit"]
    return _UNIT_NAMES[name] if name else ""


def _clock(hour: int, minute: int, afternoon: bool | None) -> Quantity:
    if afternoon is not None:
        hour = hour % 12 + (12 if afternoon else 0)
    return f"{hour}:{minute:02}", "time"


def _time(match: re.Match[str]) -> Quantity:
    if match[3]:
        return _clock(int(match[1]), int(match[2] or 0), match[3] == "p")
    return _clock(int(match[4]), int(match[5]), None)


def _chinese_time(match: re.Match[str]) -> Quantity:
    part, hour, half, minute = match.groups()
    afternoon = None if part is None else part in {"中午", "下午", "傍晚", "晚上"}
    hours = plain_number(hour)
    if part == "中午" and hours >= 11:
        afternoon = hours == 12
    return _clock(hours, 30 if half else plain_number(minute or "0"), afternoon)


def plain_number(numeral: str) -> int:
    """A number in digits or Chinese numerals."""
    return int(numeral) if numeral.isdecimal() else chinese_number(numeral)


def _chinese_weekday(match: re.Match[str]) -> Quantity:
    return str(min("一二三四五六日天".index(match[1]) + 1, 7)), "weekday"


def _month(match: re.Match[str]) -> Quantity:
    return str(MONTHS[match[0]]), ""


def _digits(match: re.Match[str]) -> Quantity:
    number = match["number"].replace(",", "")
    minus = "-" if match["minus"] else ""
    unit = _unit(match) or words.CURRENCY_SIGNS.get(match["sign"] or "", "")
    if match["scale"]:
        factor = 1
        for word in re.findall(r"[a-z]+|[^a-z\s]", match["scale"]):
            factor *= words.SCALES[word]
        return minus + _scaled(number, factor), unit
    # As written: 3.10 and 3.1 are two versions. Only 05 and 5 are one number.
    return minus + (number if "." in number else number.lstrip("0") or "0"), unit


def _scaled(number: str, factor: int) -> str:
    if number.count(".") > 1 or len(number) > 20:
        return f"{number}*{factor}"
    return f"{(Decimal(number) * factor).normalize():f}"


def _spoken(match: re.Match[str]) -> Quantity:
    total = section = 0
    for word in re.findall(r"[a-z]+", match["number"]):
        if word in words.SCALES:
            section = (section or 1) * words.SCALES[word]
            if words.SCALES[word] >= 1000:
                total, section = total + section, 0
        else:
            section += words.NUMBER_WORDS.get(word, 1 if word == "one" else 0)
    return str(total + section), _unit(match)


def _chinese(match: re.Match[str]) -> Quantity:
    minus = "-" if match["minus"] else ""
    return f"{minus}{chinese_number(match['number'])}", _unit(match)


# With what of `_parts` a text needs for a pattern to match.
_READERS: Final[tuple[tuple[re.Pattern[str], _Read, str | None], ...]] = (
    (_TIME, _time, "digits"),
    (_MARK, lambda match: (match[0], "mark"), "digits"),
    (_CHINESE_TIME, _chinese_time, "characters"),
    (_CHINESE_WEEKDAY, _chinese_weekday, "characters"),
    (_WEEKDAY, lambda match: (str(WEEKDAYS[match[1]]), "weekday"), "days"),
    (_MONTH, _month, "months"),
    (_DIGITS, _digits, "digits"),
    (_WORD, _spoken, None),
)
