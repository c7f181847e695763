"""How long a text is in words of any script, and how it is cut where a sentence ends. Pure."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk

ELLIPSIS: Final = "…"
ENDS: Final = (".", "!", "?", "。", "！", "？", ELLIPSIS)

# Scripts without spaces; Korean has them.
_CHAR: Final = (
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003fffd"
)
_CHARS = lazy_pattern(f"[{_CHAR}]")
_WORD = lazy_pattern(rf"[^\W{_CHAR}]++(?:['’.,@/:-][^\W{_CHAR}]++)*+")
_CLOSING: Final = "\"'”’」』）)\\]"
# A word is tried from its beginning alone: from each of its letters takes three times as long.
_END = lazy_pattern(
    rf"[。！？…!?]+[{_CLOSING}]*\s*|\n\s*"
    rf"|(?<![^\s{_CLOSING}.。！？…!?])(?P<latin>[^\s{_CLOSING}.。！？…!?]*+)\.+[{_CLOSING}]*(?:\s+|$)"
)
_ABBREVIATIONS: Final = frozenset({
    "dr", "mr", "mrs", "ms", "st", "prof", "sr", "jr", "vs", "etc", "approx", "no", "nr", "inc",
    "ltd", "co", "ca", "cf", "fig", "eg", "ie", "jan", "feb", "mar", "apr", "jun", "jul", "aug",
    "sep", "sept", "oct", "nov", "dec",
})  # fmt: skip
_PLACE = lazy_pattern(rf"(?<=\S)(?=\s)|(?<=[{_CHAR}])")


def word_count(text: str) -> int:
    """Words of the text; two characters of a script without spaces count as one."""
    return len(_WORD.findall(text)) + math.ceil(len(_CHARS.findall(text)) / 2)


def word_ends(text: str) -> list[int]:
    """Where each word ends, in order; every second character of a script without spaces."""
    characters = [] if text.isascii() else [found.end() for found in _CHARS.finditer(text)]
    words = [found.end() for found in _WORD.finditer(text)]
    return sorted([*words, *characters[1::2]]) if characters else words


def mostly_characters(text: str) -> bool:
    """Whether the text is written in characters rather than in spaced words."""
    return len(_CHARS.findall(text)) > len(_WORD.findall(text))


def sentences(text: str) -> list[str]:
    """The text's sentences in order, without the space around them."""
    places = [0, *sentence_ends(text)]
    found = (text[a:b].strip() for a, b in zip(places, [*places[1:], len(text)], strict=True))
    return [sentence for sentence in found if sentence]


def ended(text: str) -> str:
    """The text on one line, with a full stop of its script where it has no end."""
    text = " ".join(text.split())
    if not text or text.endswith(ENDS):
        return text
    return text + ("。" if has_cjk(text) else ".")


def cut_at_sentence(text: str, fits: Callable[[str], bool]) -> tuple[str, bool]:
    """As many whole sentences from the beginning as fit, and whether anything was cut off.

    Of a first sentence that is too long alone as many words are left as fit, with an ellipsis;
    nothing is left when not even one does.

    Args:
        fits: true for a text implies true for what it begins with.

    """
    text = text.strip()
    if fits(text):
        return text, False
    ends = [end for end in sentence_ends(text) if text[:end].strip()]
    kept = _last_fitting(ends, lambda end: fits(text[:end].rstrip()))
    if kept is not None:
        return text[:kept].rstrip(), True
    places = [found.start() for found in _PLACE.finditer(text)]
    kept = _last_fitting(places, lambda place: fits(text[:place].rstrip() + ELLIPSIS))
    return ("" if kept is None else text[:kept].rstrip() + ELLIPSIS), True


def sentence_ends(text: str) -> list[int]:
    """Where its sentences and lines end, the space behind them included, in order."""
    return [
        found.end()
        for found in _END.finditer(text)
        if not (found["latin"] and _goes_on(text, found.start(), found["latin"]))
    ]


def _goes_on(text: str, start: int, word: str) -> bool:
    """Whether the dot behind a word ends no sentence: of an abbreviation, or a number in a list."""
    numbers_item = word.isdigit() and text[max(start - 8, 0) : start].rstrip(" ")[-1:] in {"", "\n"}
    return numbers_item or _is_abbreviation(word)


def _is_abbreviation(word: str) -> bool:
    bare = word.strip("(\"'“‘").lower()
    return (len(bare) == 1 and bare.isalpha()) or bare in _ABBREVIATIONS


def _last_fitting(places: Sequence[int], fits: Callable[[int], bool]) -> int | None:
    count = bisect_right(places, False, key=lambda place: not fits(place))
    return places[count - 1] if count else None
