"""A message in pieces that can be found and shown by themselves. Pure.

A long reply is about many things at once: as a whole its vector says little of any of them, and it
takes a budget that would hold the lines which answer from ten other messages.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from app.language.text.word_limit import sentence_ends, word_ends

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
