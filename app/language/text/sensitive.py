"""What must not be remembered: secrets, numbers that name a person to a bank or a state (cards,
IBANs, identities of China and the US), and words that a deployment keeps out.

Names, addresses, mail addresses and phone numbers are what a memory is for and pass. A value that
was found is never returned, so that no error, log or row can carry it: a finding is a place.

Decided here: bare hexadecimal and UUIDs pass (commits, checksums, ids), as do random parts of
URLs and base64 of images; with a label ("api key: 3f2a…", "?token=…") each of them is found.

Words that a deployment keeps out of memory: compiled once, asked of every text.

Each must have the shape its issuer gives it and pass its own check digits, as one number in ten
passes Luhn by chance.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal
from unicodedata import category, decimal, normalize

from pydantic import JsonValue
from stdnum import iban, luhn
from stdnum.cn import ric
from stdnum.us import ssn

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk, normalise
from app.language.text.secret_checks import find_secrets

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


Kind = Literal["secret", "identifier"]
KINDS: Final[tuple[Kind, ...]] = ("secret", "identifier")

_IDENTIFIERS: Final = (
    ("payment_card", find_cards),
    ("cn_identity_number", find_identities),
    ("iban", find_ibans),
    ("us_ssn", find_social_security),
)

# Each has at least four digits, and all but an IBAN nine; most texts have fewer.
_FOUR_DIGITS: Final = lazy_pattern(r"(?:[0-9][^0-9]*+){4}")
_NINE_DIGITS: Final = lazy_pattern(r"(?:[0-9][^0-9]*+){9}")


@dataclass(frozen=True, slots=True)
class Finding:
    """Where something sensitive stands, and what found it; never what it is.

    `start` and `end` count code points of the text as it was given. `detector` is a stable name.
    """

    detector: str
    kind: Kind
    start: int
    end: int


def find_sensitive(text: str) -> list[Finding]:
    """Find secrets and identifiers, in order of place and without overlaps.

    Full-width digits, odd spaces and dashes, and characters of no width do not hide one.
    Takes time linear in the length of the text.
    """
    if not text:
        return []
    folded = text if text.isascii() else text.translate(_FOLD)
    found = _merged(list(_find(folded)))
    if text.isascii() or not found:
        return found
    places = _places(text)
    return [
        Finding(each.detector, each.kind, places[each.start], places[each.end - 1] + 1)
        for each in found
    ]


ROUNDS = 4


def redact(text: str, kinds: Collection[Kind] = KINDS) -> str:
    """Replace every finding of `kinds` with `[REDACTED:detector]`.

    With all kinds nothing is found in the answer: what stood beside a finding may be one by
    itself once that is gone, so it is looked for again.
    """
    for _ in range(ROUNDS):
        findings = [finding for finding in find_sensitive(text) if finding.kind in kinds]
        if not findings:
            break
        text = _replace(text, findings, kinds)
    return text


def redact_in(value: JsonValue, kinds: Collection[Kind] = KINDS, label: str = "") -> JsonValue:
    """The same in every string of a JSON value that is not nested deeper than a few levels.

    A whole number in which something is found becomes the replacement text.
    """
    if isinstance(value, dict):
        return {
            redact(key, kinds): redact_in(inner, kinds, label=key) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [redact_in(inner, kinds, label) for inner in value]
    if isinstance(value, str):
        return _replace(value, _find_labelled(label, value), kinds)
    if isinstance(value, int) and not isinstance(value, bool):
        found = _find_labelled(label, str(value))
        return _replace(str(value), found, kinds) if any(x.kind in kinds for x in found) else value
    return value


def _replace(text: str, findings: list[Finding], kinds: Collection[Kind]) -> str:
    parts: list[str] = []
    position = 0
    for finding in findings:
        if finding.kind in kinds:
            parts += (text[position : finding.start], f"[REDACTED:{finding.detector}]")
            position = finding.end
    return "".join((*parts, text[position:]))


def find_sensitive_in(value: JsonValue) -> list[Finding]:
    """Find in every string, whole number and key of a JSON value; places are within each.

    A key is read as the label of its value, so `{"password": "hunter2"}` is found.
    """
    found: list[Finding] = []
    pending: list[tuple[str, JsonValue]] = [("", value)]
    # A list and not recursion: JSON may be nested deeper than Python calls.
    while pending:
        label, each = pending.pop()
        if isinstance(each, dict):
            found += [finding for key in each for finding in find_sensitive(key)]
            pending += reversed(each.items())
        elif isinstance(each, list):
            pending += [(label, inner) for inner in reversed(each)]
        elif isinstance(each, str) or (isinstance(each, int) and not isinstance(each, bool)):
            found += _find_labelled(label, str(each))
    return found


def _find_labelled(label: str, text: str) -> list[Finding]:
    before = len(label) + 2
    return [
        Finding(each.detector, each.kind, max(each.start - before, 0), each.end - before)
        for each in find_sensitive(f"{label}: {text}")
        if each.end > before
    ]


def _find(folded: str) -> Iterator[Finding]:
    if _FOUR_DIGITS.search(folded):
        many = _NINE_DIGITS.search(folded) is not None
        for detector, find in _IDENTIFIERS:
            for start, end in find(folded) if many or find is find_ibans else ():
                yield Finding(detector, "identifier", start, end)
    for start, end, detector in find_secrets(folded):
        yield Finding(detector, "secret", start, end)


def _merged(found: list[Finding]) -> list[Finding]:
    """Join what overlaps under the name found first, so that redacting leaves no tail."""
    merged: list[tuple[int, Finding]] = []
    for rank, each in sorted(enumerate(found), key=lambda pair: pair[1].start):
        if merged and each.start < merged[-1][1].end:
            other_rank, other = merged.pop()
            name = min((rank, each), (other_rank, other), key=lambda pair: pair[0])
            end = max(each.end, other.end)
            merged.append((name[0], Finding(name[1].detector, name[1].kind, other.start, end)))
        else:
            merged.append((rank, each))
    return [each for _, each in merged]


def _folding() -> dict[int, str]:
    """List what NFKC turns into ASCII, digits, dashes, and characters of no width.

    Only the blocks that have such characters: the whole of Unicode takes half a second.
    """
    table: dict[int, str] = {}
    blocks = ((0x80, 0x2500), (0x3000, 0x3400), (0xFB00, 0x10000), (0x1D400, 0x1D800))
    for first, last in (*blocks, (0x1F100, 0x1F200), (0xE0000, 0xE0080)):
        for point in range(first, last):
            folded = normalize("NFKC", chr(point))
            if category(chr(point)) == "Cf":
                table[point] = ""
            elif category(chr(point)) == "Pd" or point == 0x2212:
                table[point] = "-"
            elif folded.isascii():
                table[point] = folded
            elif category(chr(point)) == "Nd":
                table[point] = str(decimal(chr(point)))
    return table


_FOLD: Final = _folding()


def _places(text: str) -> list[int]:
    """Give for every character of the folded text its place in the text as given."""
    return [
        place for place, char in enumerate(text) for _ in range(len(_FOLD.get(ord(char), char)))
    ]


StopWords = Callable[[str], bool]
"""Tells whether a text holds one of the words."""


def stop_words(words: Iterable[str]) -> StopWords:
    """Find any of `words`, in whatever case and width; Latin words only whole.

    Words of scripts without spaces are found inside others.
    """
    folded = sorted({normalise(word) for word in words} - {""}, key=len, reverse=True)
    if not folded:
        return lambda _text: False
    parts = (
        re.escape(word) if has_cjk(word) else rf"(?<!\w){re.escape(word)}(?!\w)" for word in folded
    )
    pattern = lazy_pattern("|".join(parts))
    return lambda text: pattern.search(normalise(text)) is not None


NO_STOP_WORDS: StopWords = stop_words(())
