"""Numbers that name a person to a bank or a state: cards, IBANs, identities of China and the US.

Each must have the shape its issuer gives it and pass its own check digits, as one number in ten
passes Luhn by chance.
"""

import re
from collections.abc import Iterator
from typing import Final

from stdnum import iban, luhn
from stdnum.cn import ric
from stdnum.us import ssn

from app.language.text.lazy_pattern import lazy_pattern

_CARD_START = lazy_pattern(r"(?<![A-Za-z0-9_])(?<![0-9][.])[2-6][0-9]{3}")
_SEPARATOR = r"[-._/|\\·•・]|\)\s?\(|\]\s?\["
# Between the groups stand spaces, line ends among them, or always the same character.
_FIRST = rf"(?:\s{{1,4}}|\s?(?P<sep>{_SEPARATOR})\s?)"
_NEXT = r"(?(sep)\s?(?P=sep)\s?|\s{1,4})"
# As printed on cards; the longer first. Other groupings are other numbers, one after the other.
_CARD_SHAPES: Final = tuple(
    lazy_pattern(rf"{shape}(?![A-Za-z0-9_])")
    for shape in (
        r"[0-9]{13,19}",
        rf"[0-9]{{4}}{_FIRST}[0-9]{{4}}(?:{_NEXT}[0-9]{{4}}){{2}}{_NEXT}[0-9]{{1,3}}",
        rf"[0-9]{{4}}{_FIRST}[0-9]{{4}}(?:{_NEXT}[0-9]{{4}}){{2}}",
        rf"[0-9]{{4}}{_FIRST}[0-9]{{6}}{_NEXT}[0-9]{{4,5}}",
        rf"[0-9]{{6}}{_FIRST}[0-9]{{13}}",
    )
)
# A digit at a time, or two; pairs with spaces between are numbers of their own. Only the whole
# row counts: a part of a longer one passes Luhn by chance.
_CARD_ROWS: Final = tuple(
    lazy_pattern(
        rf"(?<![A-Za-z0-9_])(?<![0-9][-._/|·\s]){row}(?!\s?(?:{_SEPARATOR})?\s?[0-9])(?![A-Za-z_])"
    )
    for row in (
        rf"[2-6]{_FIRST}[0-9](?:{_NEXT}[0-9]){{11,17}}",
        rf"[2-6][0-9](?P<sep>{_SEPARATOR})[0-9]{{2}}(?:(?P=sep)[0-9]{{2}}){{5,7}}(?:(?P=sep)[0-9])?",
    )
)
_RATINGS = lazy_pattern("[1-5]+")
# First digits and lengths by network; a number outside of these is no card, whatever Luhn says.
_NETWORKS: Final = tuple(
    lazy_pattern(pattern)
    for pattern in (
        r"4[0-9]{15}(?:[0-9]{3})?",  # Visa.
        r"(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}",
        r"3[47][0-9]{13}",  # American Express.
        r"62[0-9]{14,17}",  # UnionPay.
        r"(?:6011|64[4-9][0-9]|65[0-9]{2})[0-9]{12}(?:[0-9]{3})?",  # Discover.
        r"35(?:2[89]|[3-8][0-9])[0-9]{12}",  # JCB.
        r"3(?:0[0-5]|[689][0-9])[0-9]{11}",  # Diners Club.
        r"(?:5018|5020|5038|5893|6304|6759|676[1-3])[0-9]{8,15}",  # Maestro.
    )
)
_IDENTITY = lazy_pattern(
    r"(?<![A-Za-z0-9])[1-9][0-9]{5}[\s._-]?(?:18|19|20)[0-9]{2}(?:[\s._-]?[0-9]{2}){2}"
    r"[\s._-]?[0-9]{3}[\s._-]?[0-9Xx](?![A-Za-z0-9])"
)
_SOCIAL_SECURITY = lazy_pattern(
    r"(?<![A-Za-z0-9])(?<![0-9]-)(?P<dashed>[0-9]{3}-[0-9]{2}-[0-9]{4})(?![A-Za-z0-9]|-[0-9])"
    r"|(?<![A-Za-z])(?i:ssn|social security)(?![A-Za-z])[^0-9\n]{0,20}"
    r"(?P<said>[0-9]{3}[ .-]?[0-9]{2}[ .-]?[0-9]{4})(?![A-Za-z0-9]|-[0-9])"
)
_IBAN = lazy_pattern(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ .-]?[A-Za-z0-9]){11,30}")
_WORD = lazy_pattern("[A-Za-z0-9]")
_NO_WORD = lazy_pattern("[^A-Za-z0-9]")
_SHORTEST_IBAN = 15


def find_cards(text: str) -> Iterator[tuple[int, int]]:
    """Yield the place of every payment card number."""
    for start in _CARD_START.finditer(text):
        for shape in _CARD_SHAPES:
            match = shape.match(text, start.start())
            if match is not None and _is_card(_bare(match[0])):
                yield match.span()
                break
    for row in _CARD_ROWS:
        for match in row.finditer(text):
            number = _bare(match[0])
            # Sixteen ratings in a row have more than two values; a card has digits above five.
            if _is_card(number) and not (_RATINGS.fullmatch(number) and len(set(number)) > 2):
                yield match.span()


def _bare(written: str) -> str:
    return _NO_WORD.sub("", written)


def _is_card(number: str) -> bool:
    return luhn.is_valid(number) and any(network.fullmatch(number) for network in _NETWORKS)


def find_identities(text: str) -> Iterator[tuple[int, int]]:
    """Yield the place of every 18-digit identity number of mainland China."""
    for match in _IDENTITY.finditer(text):
        if ric.is_valid(_bare(match[0])):
            yield match.span()


def find_social_security(text: str) -> Iterator[tuple[int, int]]:
    """Yield the place of every US social security number with dashes or with its name before it."""
    for match in _SOCIAL_SECURITY.finditer(text):
        group = "dashed" if match["dashed"] else "said"
        if ssn.is_valid(_bare(match[group])):
            yield match.span(group)


def find_ibans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the place of every IBAN.

    The words after it may read as its continuation, so every length is tried.
    """
    match = _IBAN.search(text)
    while match is not None:
        end = _iban_end(text, match)
        if end is not None:
            yield match.start(), end
        match = _IBAN.search(text, end or match.start() + 4)


def _iban_end(text: str, match: re.Match[str]) -> int | None:
    ends = [match.start() + n + 1 for n, char in enumerate(match[0]) if char not in " .-"]
    for count in range(len(ends), _SHORTEST_IBAN - 1, -1):
        end = ends[count - 1]
        # An IBAN ends where a word ends.
        if _WORD.match(text, end) is None:
            number = _bare(text[match.start() : end]).upper()
            if _passes_97(number) and iban.is_valid(number):
                return end
    return None


def _passes_97(number: str) -> bool:
    """Check the two digits cheaply, before the library looks up the country."""
    return int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97 == 1
