"""How long a text is in words of any script, how it is cut where a sentence ends, and a message in
pieces that can be found and shown by themselves. Pure.

A long reply is about many things at once: as a whole its vector says little of any of them, and it
takes a budget that would hold the lines which answer from ten other messages.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
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
_SPEAKER = lazy_pattern(r"[^\s:：]{1,20}[:：]\s*")
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
    nothing is left when not even one does, or only who speaks ("User:").

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
    speaker = _SPEAKER.match(text)
    named = speaker.end() if speaker else 0
    places = [found.start() for found in _PLACE.finditer(text) if found.start() > named]
    kept = _last_fitting(places, lambda place: fits(text[:place].rstrip() + ELLIPSIS))
    return ("" if kept is None else text[:kept].rstrip() + ELLIPSIS), True


def first_words(text: str, most: int) -> tuple[str, bool]:
    """As `cut_at_sentence`, what has at most so many words, each of which is looked at once."""
    text = text.strip()
    starts = [found.start() for found in _WORD.finditer(text)]
    if not text.isascii():
        characters = [found.start() for found in _CHARS.finditer(text)]
        starts = sorted([*starts, *characters[::2]])
    if len(starts) <= most:
        return text, False
    # Neither a sentence nor a place ends inside a word, so what ends here or before has no more.
    limit = starts[most]
    kept = [end for end in sentence_ends(text) if end <= limit and text[:end].strip()]
    if kept:
        return text[: kept[-1]].rstrip(), True
    speaker = _SPEAKER.match(text)
    named = speaker.end() if speaker else 0
    places = [found.start() for found in _PLACE.finditer(text, 0, limit + 1)]
    place = next((place for place in reversed(places) if named < place <= limit), 0)
    return (text[:place].rstrip() + ELLIPSIS if place else ""), True


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


MOST_WORDS: Final = 30
"""Words of a piece that holds several sentences, at the most."""

MOST_ALONE: Final = 45
"""Words of a sentence that stays one piece."""

_PAUSES: Final = frozenset(",;:，；：、")


def piece_ends(text: str, most: int = MOST_WORDS, alone: int = MOST_ALONE) -> list[int]:
    """Where each piece of a text ends, in characters, in order; the last is its length.

    A piece holds as many whole sentences, list items or lines as have `most` words together. One
    that has more than `alone` by itself is cut behind a comma or the like, and behind a word where
    there is none. Each piece begins where the one before ends, so nothing is lost.
    """
    words = word_ends(text)
    if len(words) <= most:
        return [len(text)]
    ends: list[int] = []
    start = before = held = 0
    for first, end in pairwise(sorted({0, *sentence_ends(text), len(text)})):
        if held > start and _count(words, start, end) > most:
            # A heading belongs to what comes behind it.
            belongs = before > start and _is_heading(text[before:held])
            start = before if belongs else held
            ends.append(start)
        longer = _count(words, start, end) > max(most, alone)
        for cut in _too_long(text, start, end, words, most) if longer else ():
            ends.append(cut)
            start = cut
        before, held = first, end
    return [*ends, len(text)]


def piece_texts(text: str, ends: Sequence[int]) -> list[str]:
    """The pieces that end there."""
    return [text[start:end] for start, end in pairwise((0, *ends))]


def parts_within(text: str, longest: int) -> list[str]:
    """The text in parts of at most `longest` characters, which together are the text.

    Each ends with the last sentence or line of its second half, with a word where none ends
    there, and anywhere in a word that is longer.
    """
    if len(text) <= longest:
        return [text]
    sentences, words = sentence_ends(text), word_ends(text)
    ends = [0]
    while len(text) - ends[-1] > longest:
        half, stop = ends[-1] + longest // 2, ends[-1] + longest
        ends.append(_last(sentences, half, stop) or _last(words, half, stop) or stop)
    return piece_texts(text, [*ends[1:], len(text)])


def _last(places: Sequence[int], start: int, stop: int) -> int | None:
    """The last of the places behind `start` up to `stop`."""
    index = bisect_right(places, stop)
    return places[index - 1] if index and places[index - 1] > start else None


def _is_heading(line: str) -> bool:
    return line.startswith("#") or line.rstrip().endswith((":", "：", "**"))


def _too_long(text: str, start: int, end: int, words: Sequence[int], most: int) -> Iterator[int]:
    """Where a sentence that has more than `most` words is cut."""
    while _count(words, start, end) > most:
        first = bisect_right(words, start)
        # Not so early that hardly anything stands before it.
        places = words[first + most // 2 : first + most]
        cut = next(
            (place + 1 for place in reversed(places) if text[place : place + 1] in _PAUSES), 0
        )
        start = cut or places[-1]
        yield start


def _count(words: Sequence[int], start: int, end: int) -> int:
    return bisect_right(words, end) - bisect_right(words, start)
