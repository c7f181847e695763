"""Finds secrets by the format of their issuer, by the label before them, or by their disorder.

Works on folded text (see `sensitive.py`). A label alone says little ("the password is in the
safe"), so what follows it must look like a value and not like a sentence.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final

from app.language.text import secret_patterns as patterns
from app.language.text.lazy_pattern import lazy_pattern

Place = tuple[int, int, str]
"""Start, end and detector."""

_NOT_ASCII = lazy_pattern(r"[^\x00-\x7f]")
_REST_OF_KEY = lazy_pattern(r"[A-Za-z0-9_+/=-]*")
_KEY_SIGN = lazy_pattern(r"[A-Za-z0-9_-]")
_TRAILING = "\"'`,.;:!?)]}>"
_QUOTES = "\"'`“”‘’「『"
_ENDS_HERE = lazy_pattern(r"\s*(?:$|[\n\"'`”’」』,.;!?。、)\]}<>|&])", re.MULTILINE)
_GOES_ON = lazy_pattern(r"\s(?:for|on|is|and|at|in)\b")
_UNIT = lazy_pattern(r"\s?[年月日号号位个個次天字条條分元]")
_DATE = lazy_pattern(r"[0-9]{4}[-/.][0-9]{1,2}(?:[-/.].*)?")
_URL = lazy_pattern(r"://[!-~]+")
_TOKEN = lazy_pattern(r"[A-Za-z0-9+/_=-]{20,}")
_LONGEST_KEY = 256
"""A longer run without a label is data, such as base64 of an image, and no key."""
_IMAGES = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")


def find_secrets(text: str) -> Iterator[Place]:
    """Yield the place of every secret; places may overlap."""
    # Formats end at "\w", which Chinese characters are; beside them a key would be missed.
    plain = text if text.isascii() else _NOT_ASCII.sub(" ", text)
    yield from _formats(plain)
    yield from _labelled(text)
    yield from _disorder(plain)


def _formats(text: str) -> Iterator[Place]:
    formats = patterns.formats()
    for place in patterns.format_index().possible(text):
        detector, pattern = formats[place]
        end = 0
        for match in pattern.finditer(text):
            # Inside of the last key; to follow it to its end again would cost the square.
            if match.start() < end:
                continue
            start, end = match.span()
            if detector in patterns.STANDS_ALONE:
                if _KEY_SIGN.match(text, end) or (start and _KEY_SIGN.match(text, start - 1)):
                    continue
            elif (rest := _REST_OF_KEY.match(text, end)) and detector != "private_key":
                end = rest.end()
            yield start, end, detector
    for match in patterns.JWT.finditer(text) if "eyJ" in text else ():
        if patterns.is_jwt(match[0]):
            yield *match.span(), "jwt"


def _labelled(text: str) -> Iterator[Place]:
    lower = text.lower()
    needed = _NEEDED
    if text.isascii():
        if not any(part in lower for part in _PARTS_OF_ASCII):
            return
        needed = _NEEDED_OF_ASCII
    for detector, pattern, is_value in _LABELS:
        # A search that ignores case is slow, and most texts have no label.
        parts = needed.get(pattern)
        if parts is not None and not any(part in lower for part in parts):
            continue
        for match in pattern.finditer(text):
            start, end = match.span("value")
            end = start + len(match["value"].rstrip(_TRAILING))
            if end - start < 4 or _stands_for_nothing(text[start:end]):
                continue
            if _is_code(text, start, match["value"], text[start:end]):
                continue
            if is_value(text, start, end):
                yield start, end, detector


def _is_code(text: str, start: int, *values: str) -> bool:
    """Tell an assignment in a program, `password = request.form["password"]`, or an argument or
    entry of one, from what somebody says their password is.
    """
    if not text.endswith(_ASSIGNED, 0, start):
        return False
    return any(patterns.CODE.fullmatch(value) for value in values)


_ASSIGNED: Final = ("=", "= ", "=  ", "': ", '": ')

_LOGIN_PARTS: Final = ("pass", "pwd", "kennwort", "wachtwoord", "contrase", "senha")
_KEY_PARTS: Final = ("key", "token", "secret")
_NEEDED: Final[Mapping[re.Pattern[str], Sequence[str]]] = {
    patterns.BASIC_AUTH: ("://",),
    patterns.PASSWORD_ASSIGNED: _LOGIN_PARTS,
    patterns.PASSWORD_SAID: _LOGIN_PARTS,
    patterns.PASSWORD_BARE: _LOGIN_PARTS,
    patterns.KEY_ASSIGNED: _KEY_PARTS,
    patterns.KEY_SAID: _KEY_PARTS,
}
# To a pattern that ignores case a Turkish I is an i, which is none in small letters.
_NEEDED_OF_ASCII: Final = {
    **_NEEDED,
    patterns.PIN: ("pin",),
    patterns.BEARER: ("bearer", "basic"),
    patterns.CHINESE_ASSIGNED: (),
    patterns.CHINESE_SAID: (),
    patterns.CHINESE_BARE: (),
}
# All labels of `_LABELS` have their parts here.
_PARTS_OF_ASCII: Final = tuple(dict.fromkeys(chain.from_iterable(_NEEDED_OF_ASCII.values())))


def _stands_for_nothing(value: str) -> bool:
    plain = value.strip(_TRAILING + _QUOTES).lower()
    return (
        patterns.PLACEHOLDER.fullmatch(plain) is not None
        or patterns.PLACEHOLDER_SHAPE.fullmatch(value) is not None
        or _DATE.fullmatch(value) is not None
    )


def _assigned_password(text: str, start: int, end: int) -> bool:
    """After a colon or an equals sign: a word alone at the end of its line counts, too."""
    value = text[start:end]
    if value.isdigit():
        return _UNIT.match(text, end) is None
    if value.isalpha() and (value.islower() or value.istitle()):
        return _ENDS_HERE.match(text, end) is not None
    return any(char.isalnum() for char in value)


def _said_password(text: str, start: int, end: int) -> bool:
    """After "is" a sentence may follow: only what is no word counts, or what is quoted."""
    value = text[start:end]
    if text[start - 1] in _QUOTES and text[end : end + 1] in tuple(_QUOTES):
        return True
    if value.isdigit():
        return _UNIT.match(text, end) is None
    digits = any(char.isdigit() for char in value)
    return digits or not set(value).isdisjoint("!@#$%^&*+=~")


def _said_chinese_password(text: str, start: int, end: int) -> bool:
    """Between Chinese words a run of Latin letters is a value when the sentence ends after it."""
    value = text[start:end]
    if value.isalpha():
        return _ENDS_HERE.match(text, end) is not None
    return _said_password(text, start, end)


def _bare_password(text: str, start: int, end: int) -> bool:
    value = text[start:end]
    return (
        end - start >= 6
        and _has_letters_and_digits(value)
        and patterns.NO_PASSWORD.fullmatch(value) is None
        and bool(_ENDS_HERE.match(text, end) or _GOES_ON.match(text, end))
    )


def _assigned_key(text: str, start: int, end: int) -> bool:
    return end - start >= 8 and _has_letters_and_digits(text[start:end])


def _said_key(text: str, start: int, end: int) -> bool:
    return end - start >= 12 and _has_letters_and_digits(text[start:end])


def _has_letters_and_digits(value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


_LABELS: Final[tuple[tuple[str, re.Pattern[str], Callable[[str, int, int], bool]], ...]] = (
    ("password", patterns.PASSWORD_ASSIGNED, _assigned_password),
    ("password", patterns.PASSWORD_SAID, _said_password),
    ("password", patterns.CHINESE_ASSIGNED, _assigned_password),
    ("password", patterns.CHINESE_SAID, _said_chinese_password),
    ("password", patterns.PASSWORD_BARE, _bare_password),
    ("password", patterns.CHINESE_BARE, _bare_password),
    ("password", patterns.PIN, lambda _text, _start, _end: True),
    ("api_key", patterns.KEY_ASSIGNED, _assigned_key),
    ("api_key", patterns.KEY_SAID, _said_key),
    ("bearer_token", patterns.BEARER, _said_key),
    ("basic_auth", patterns.BASIC_AUTH, lambda _text, _start, _end: True),
)


def _disorder(text: str) -> Iterator[Place]:
    """Find long runs that mix lower case, upper case and digits as no name or word does."""
    for match in _TOKEN.finditer(_URL.sub(_blank, text) if "://" in text else text):
        start, end = match.span()
        if end - start > _LONGEST_KEY or match[0].startswith(_IMAGES):
            continue
        if patterns.DIGEST.fullmatch(match[0]):
            continue
        # The path after a host without a scheme: docs.example.com/d/1Bxi….
        if text.endswith(".", 0, start) and "/" in match[0]:
            continue
        if not text.endswith("base64,", 0, start) and _is_disorder(match[0]):
            yield start, end, "high_entropy"


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _is_disorder(token: str) -> bool:
    """Tell a random token from an identifier.

    Neighbours in random base 62 change between lower, upper and digit 62 times in 100; in
    names such as "getUserById2FromCache" fewer than 40 times. The share of random tokens of
    20, 32 and 40 characters found is 0.85, 0.97 and 0.99 (measured on 20,000 each).
    """
    chars = [char for char in token if char.isalnum()]
    classes = ["0" if char.isdigit() else "A" if char.isupper() else "a" for char in chars]
    if len(chars) < 18 or min(classes.count(each) for each in "0Aa") < 2:
        return False
    changes = sum(left != right for left, right in pairwise(classes))
    return changes >= 0.4 * (len(chars) - 1) and _entropy(token) >= 3.5


def _entropy(token: str) -> float:
    """Shannon entropy, bits per character."""
    counts = Counter(token).values()
    return -sum(count / len(token) * math.log2(count / len(token)) for count in counts)
