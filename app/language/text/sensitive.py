"""What must not be remembered: secrets, and numbers that name a person to a bank or a state.

Names, addresses, mail addresses and phone numbers are what a memory is for and pass. A value that
was found is never returned, so that no error, log or row can carry it: a finding is a place.

Decided here: bare hexadecimal and UUIDs pass (commits, checksums, ids), as do random parts of
URLs and base64 of images; with a label ("api key: 3f2a…", "?token=…") each of them is found.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal
from unicodedata import category, decimal, normalize

from pydantic import JsonValue

from app.language.text.identifiers import (
    find_cards,
    find_ibans,
    find_identities,
    find_social_security,
)
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.secret_checks import find_secrets

Kind = Literal["secret", "identifier"]
KINDS: Final[tuple[Kind, ...]] = ("secret", "identifier")

_IDENTIFIERS: Final = (
    ("payment_card", find_cards),
    ("cn_identity_number", find_identities),
    ("iban", find_ibans),
    ("us_ssn", find_social_security),
)

# Each has at least four, most texts have fewer.
_FOUR_DIGITS: Final = lazy_pattern(r"(?:[0-9][^0-9]*){4}")


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
        for detector, find in _IDENTIFIERS:
            for start, end in find(folded):
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
