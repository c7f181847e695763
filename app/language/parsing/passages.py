"""A text in pieces that can be found and read by themselves, English and Chinese alike. Pure.

Pieces follow one another without overlap; nothing is lost but white space between them. They
end where a reader would pause: before a heading, at a paragraph, at a sentence, and only within
a sentence where it alone is too long. None goes over the end of a page, so that a page can be
cited.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

VERSION: Final = "passages/2"
"""Shown with the parser: another version cuts otherwise."""

MOST_TOKENS: Final = 300
"""Tokens of a piece at the most, estimated."""
FEW_TOKENS: Final = 40
"""A piece of less does not end before a heading."""

_CJK = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef\u3000-\u303f]"
)
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
_HEADING = re.compile(r"(?:#{1,6}\s|第[一二三四五六七八九十百零\d]{1,4}[章节條条部篇])")
_SENTENCE_END = re.compile(r"[。！？；…]+[”’」』）]*\s*|[.!?]+[\"')\]]*\s+|\n+")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class TextPassage:
    """A part of a text.

    Args:
        start: where it begins in the text, in characters; it ends before `end`.
        page: from 1, where all of it stands; None where there are no pages.

    """

    content: str
    start: int
    end: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class _Unit:
    start: int
    end: int
    tokens: float
    page: int | None
    heading: bool = False


def text_passages(text: str, page_starts: Sequence[int] = ()) -> list[TextPassage]:
    """The pieces of a text, in its order."""
    return [
        TextPassage(text[start:end], start, end, page)
        for start, end, page in _packed(list(_units(text, page_starts)))
    ]


def tokens_of(text: str) -> float:
    """About how many tokens a text takes: one per CJK character, else one for four characters."""
    wide = len(_CJK.findall(text))
    return wide + (len(text) - wide) / 4


def _packed(units: Sequence[_Unit]) -> Iterator[tuple[int, int, int | None]]:
    """Units put together as long as they fit; start, end and page of each piece."""
    held: list[_Unit] = []
    tokens = 0.0
    for unit in units:
        over = tokens + unit.tokens > MOST_TOKENS
        before_heading = unit.heading and tokens >= FEW_TOKENS
        new_page = bool(held) and unit.page != held[-1].page
        if held and (over or before_heading or new_page):
            # A heading belongs to what comes behind it.
            belongs = over and not new_page and held[-1].heading and len(held) > 1
            tail = held.pop() if belongs else None
            if tail is not None and tail.tokens + unit.tokens > MOST_TOKENS:
                held.append(tail)
                tail = None
            yield held[0].start, held[-1].end, held[0].page
            held = [] if tail is None else [tail]
            tokens = 0.0 if tail is None else tail.tokens
        held.append(unit)
        tokens = tokens_between(held)
    if held:
        yield held[0].start, held[-1].end, held[0].page


def tokens_between(units: Sequence[_Unit]) -> float:
    """Tokens of units with the white space between them."""
    gaps = units[-1].end - units[0].start - sum(unit.end - unit.start for unit in units)
    return sum(unit.tokens for unit in units) + gaps / 4


def _units(text: str, page_starts: Sequence[int]) -> Iterator[_Unit]:
    """The smallest parts that stay together: paragraphs, else sentences, else parts of them."""
    for start, end in _paragraphs(text, page_starts):
        whole = tokens_of(text[start:end])
        page = _page(start, page_starts)
        if whole <= MOST_TOKENS:
            yield _Unit(start, end, whole, page, _HEADING.match(text, start) is not None)
            continue
        for first, last in _sentences(text, start, end):
            yield _Unit(first, last, tokens_of(text[first:last]), page)


def _paragraphs(text: str, page_starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    cuts = {0, len(text), *page_starts}
    cuts.update(found.end() for found in _BLANK_LINE.finditer(text))
    ordered = sorted(cut for cut in cuts if cut <= len(text))
    for start, end in pairwise(ordered):
        yield from _trimmed(text, start, end)


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = start
    for found in _SENTENCE_END.finditer(text, start, end):
        yield from _short(text, first, found.end())
        first = found.end()
    yield from _short(text, first, end)


def _short(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence, in parts where it alone is too long."""
    # Four characters are a token at least: of a long one nobody counts all that is left each time.
    while end - start > 4 * MOST_TOKENS or tokens_of(text[start:end]) > MOST_TOKENS:
        cut = _fitting(text, start, end)
        yield from _trimmed(text, start, cut)
        start = cut
    yield from _trimmed(text, start, end)


def _fitting(text: str, start: int, end: int) -> int:
    """The last place up to which `MOST_TOKENS` reach from `start`, at white space if there is."""
    low, high = start + 1, min(end, start + 4 * MOST_TOKENS)
    while low < high:
        middle = (low + high + 1) // 2
        if tokens_of(text[start:middle]) <= MOST_TOKENS:
            low = middle
        else:
            high = middle - 1
    spaces = [found.end() for found in _SPACE.finditer(text, start + (low - start) // 2, low)]
    return spaces[-1] if spaces else low


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The part without white space around it; nothing where there is nothing else."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


def _page(place: int, page_starts: Sequence[int]) -> int | None:
    return bisect_right(page_starts, place) or None if page_starts else None
