"""What the order of the same words tells: which parts of two statements changed places.

"On Monday I swim" says what "I swim on Monday" says; "tea to coffee" is not "coffee to tea". A
part that takes its preposition along, or an item of a list, may stand elsewhere; a part that
takes the place of another within a sentence takes its role.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from app.language.text import distinction_words as words
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.signal_patterns import CHINESE_RELATIVE

LONGEST: Final = 40
"""Words between the common beginning and the common end that are compared."""

_WINDOW: Final = 16
_SHARED: Final = 3
"""Words that two parts may both begin with: "on Monday", "on the bus"."""

_TURNED_AROUND: Final = frozenset(words.TURNED_AROUND.split("|"))
_MUTUAL: Final = frozenset(words.MUTUAL.split("|"))
_PREPOSITIONS: Final = frozenset(words.PREPOSITIONS.split("|"))
_LEADS: Final = _PREPOSITIONS.union(words.PHRASE_STARTS.split("|"))
_JOINING: Final = frozenset(("and", "or"))
_EITHER_WAY: Final = frozenset(("in", "with"))
_TAKEN: Final = frozenset(("lik", "use", "drink", "eat", "want"))
"""What two parts may stand around in either order, and the verbs, as they are stored here, before
such parts: who uses dark mode in the editor uses the editor in dark mode, but who replaces butter
with oil does not replace oil with butter.
"""
_COMMA: Final = ","

AS_WRITTEN: Final = _TURNED_AROUND | _MUTUAL | _LEADS
"""Words that are known here by how they are written, so no ending is cut off."""


_SELF = lazy_pattern(r"i\b|(?:the )?user\b(?!'s)|(?:我|用户)(?!的|们)")
_SELF_ELSEWHERE = lazy_pattern(r".+\b(?:me|the user)\b")
_OWNED = lazy_pattern(
    r"(?:my|our|(?:the )?user's) (?!name\b)([^\W\d]+)\b(?! and\b)"
    rf"|(?:我|用户)的?({CHINESE_RELATIVE})(?!和)"
)
_HE_OR_SHE = lazy_pattern(r"s?he\b")
_PASSIVE = lazy_pattern(r"\bby\b")


def is_told_of_another(a: str, b: str, content_a: Sequence[str], content_b: Sequence[str]) -> bool:
    """Tell whether one says of the speaker what the other says of somebody of theirs, or where one
    does what is done to the other: I'm vegan, my wife is vegan; I sued him, he sued me; she, he.

    Args:
        a: a statement in lower case; `content_a`: its words without those for the speaker.
        b: another, with `content_b`.

    """
    third_a, third_b = _HE_OR_SHE.match(a), _HE_OR_SHE.match(b)
    if third_a and third_b and third_a[0] != third_b[0]:
        return True
    pairs = ((a, b, content_a, content_b), (b, a, content_b, content_a))
    return any(_is_owned(*pair) or _is_done_to(*pair) for pair in pairs)


def _is_owned(own: str, other: str, said: Sequence[str], said_other: Sequence[str]) -> bool:
    somebody = _OWNED.match(other)
    if not somebody or _OWNED.match(own) or not _SELF.match(own):
        return False
    return (somebody[1] or somebody[2]) not in own and set(said) <= set(said_other)


def _is_done_to(own: str, other: str, said: Sequence[str], said_other: Sequence[str]) -> bool:
    if not _SELF.match(own) or _SELF.match(other) or not _SELF_ELSEWHERE.match(other):
        return False
    if _SELF_ELSEWHERE.match(own) or _PASSIVE.search(own) or _PASSIVE.search(other):
        return False
    return set(said) == set(said_other)


def common_start(a: Sequence[str], b: Sequence[str]) -> int:
    """Count the tokens that both begin with."""
    same = (one == other for one, other in zip(a, b, strict=False))
    return len(list(takewhile(bool, same)))


def is_turned(a: list[str], b: list[str]) -> bool:
    """Tell whether two parts changed places around an "and", an "is" or a comma."""
    start = common_start(a, b)
    for middle in [n for n, token in enumerate(a) if token in _TURNED_AROUND][:3]:
        for left in range(max(middle - _WINDOW, 0), min(middle, start + 1)):
            for right in range(middle + 2, min(middle + _WINDOW + 2, len(a) + 1)):
                moved = [*a[middle + 1 : right], a[middle], *a[left:middle]]
                if moved == b[left:right] and a[:left] == b[:left] and a[right:] == b[right:]:
                    return True
    return False


def is_place_moved(a: list[str], b: list[str]) -> bool:
    """Tell whether only a place moved before the verb: 出生在维也纳, 在维也纳出生."""
    start = common_start(a, b)
    end = common_start(a[start:][::-1], b[start:][::-1])
    left, right = a[start : len(a) - end], b[start : len(b) - end]
    return any(
        one[at:] + one[:at] == other
        for one, other in ((left, right), (right, left))
        for at in [n for n, char in enumerate(one) if char in "在从從用"][:3]
    )


def roles(tokens: Sequence[str], named: set[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the names as they follow each other, and apart, sorted, those with prepositions."""
    bare: list[str] = []
    led: list[tuple[str, str]] = []
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token in named:
            if before in _PREPOSITIONS:
                led.append((before, token))
            else:
                bare.append(token)
    return bare, sorted(led)


class _Exchange(NamedTuple):
    """Two parts of a statement that another one has in each other's place.

    Args:
        first: where the part that stands first begins.
        between: where what stands between the two begins.
        second: where the other part begins.

    """

    first: int
    between: int
    second: int


def is_role_changed(a: Sequence[str], b: Sequence[str]) -> bool:
    """Tell whether the same words have two parts in each other's place: tea to coffee, coffee to
    tea.

    Args:
        a: the words of a statement and its commas, in order; `b`: those of another.

    """
    said, other = ([token for token in each if token != _COMMA] for each in (a, b))
    if said == other or sorted(said) != sorted(other) or is_turned(said, other):
        return False
    exchanges = list(_exchanges(said, other))
    ended = _before_commas(a)
    return bool(exchanges) and not any(_keeps_roles(said, ended, each) for each in exchanges)


def _exchanges(a: list[str], b: list[str]) -> Iterator[_Exchange]:
    same = common_start(a, b)
    end = len(a) - common_start(a[same:][::-1], b[same:][::-1])
    if end - same > LONGEST:
        return
    for start in range(same, max(same - _SHARED, 0) - 1, -1):
        left, right = a[start:end], b[start:end]
        size = len(left)
        for first in range(1, size - 1):
            if left[:first] != right[size - first :]:
                continue
            for second in range(1, size - first):
                middle = slice(first, size - second), slice(second, size - first)
                if left[size - second :] == right[:second] and left[middle[0]] == right[middle[1]]:
                    yield _Exchange(start, start + first, end - second)


def _keeps_roles(said: list[str], ended: set[int], parts: _Exchange) -> bool:
    """Tell whether two parts only stand elsewhere: phrases of their own, items of a list, or two
    who are something to each other.
    """
    between = said[parts.between : parts.second]
    listed = ended & set(range(parts.between - 1, parts.second - 1))
    if not _MUTUAL.isdisjoint(between):
        return True
    if _EITHER_WAY.issuperset(between):
        return parts.first > 0 and said[parts.first - 1] in _TAKEN
    if listed or not _TURNED_AROUND.isdisjoint(between):
        first = parts.between - 1 in ended or between[0] in _JOINING
        last = parts.second - 1 in ended or between[-1] in _JOINING
        return first and last and _LEADS.isdisjoint(between)
    leads = [said[at] in _LEADS for at in (parts.first, parts.second)]
    return all(leads) or (any(leads) and parts.first == 0)


def _before_commas(tokens: Sequence[str]) -> set[int]:
    """Which words, counted without the commas, a comma follows."""
    found: set[int] = set()
    count = 0
    for token in tokens:
        if token == _COMMA:
            found.add(count - 1)
        else:
            count += 1
    return found
