"""A text as a row keeps it for searches: its terms and traits, derived from the row itself."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Final
from unicodedata import category, normalize

from app.language.ranking.packing import MOST_COUNTED, stored_terms
from app.language.text.function_words import ENGLISH, STOP_WORDS
from app.language.text.normal_forms import simplify
from app.language.text.periods import written_day
from app.language.text.terms import ANALYSER_VERSION, terms
from app.language.text.traits import cjk_share, has_time_expression, is_question, word_count

INDEX_COLUMNS: Final = (
    "terms", "term_count", "word_count", "is_question", "has_time", "analyser",
)  # fmt: skip

LONGEST_NAME: Final = 64
MOST_NAMES: Final = 3

_WORD = re.compile(r"[^\W_\u2e80-\U0010ffff]+(?:-[^\W_\u2e80-\U0010ffff]+)*")
# A capital at the start of a sentence says nothing.
_WRITTEN_AS_NAME = re.compile(r"(?<=[\w,;'’\"]\s)[A-Z][a-z]+\b")
_CJK_RUN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_CJK_NAME_LENGTHS: Final = (2, 3, 4)
_CJK_RUNS: Final = 20
_MOST_MARKS: Final = 1_000


def index_values(
    text: str,
    *,
    speakers: Iterable[str] = (),
    said_at: datetime | None = None,
    words: Iterable[str] | None = None,
) -> dict[str, Any]:
    """The values of `INDEX_COLUMNS` for a row that says `text`.

    Who said it and when are found as if they stood in the text, because questions name them
    and turns do not; they count as words of it.

    Args:
        text: what was said or is remembered.
        speakers: names of whoever says it or it is about; the first `MOST_NAMES` count, and
            `LONGEST_NAME` characters of each: metadata may hold a book there.
        said_at: when; its day is what is found.
        words: the terms of the text, where they are known.

    """
    names = list(dict.fromkeys(name[:LONGEST_NAME] for name in islice(speakers, MOST_NAMES)))
    said = terms(text) if words is None else list(words)
    for name in names:
        said += terms(name)
    if said_at is not None:
        said += terms(_day(said_at, chinese=cjk_share(text) > 0.5))
    kept = stored_terms(said, marks=[mark for name in names for mark in _marks(name)])
    return {
        "terms": kept.vector,
        "term_count": kept.count,
        "word_count": min(word_count(text), MOST_COUNTED),
        "is_question": is_question(text),
        "has_time": has_time_expression(text),
        "analyser": ANALYSER_VERSION,
    }


def speaker_marks_in(query: str) -> list[str]:
    """Marks of whoever `query` may name: rows of a speaker it does name have one of them.

    Any word may be a name, since rows alone know who speaks, but one that is also a common
    word has to be written as a name.
    """
    words = [word.casefold() for word in _WORD.findall(query)]
    common = STOP_WORDS[ENGLISH] - {name.casefold() for name in _WRITTEN_AS_NAME.findall(query)}
    marks = dict.fromkeys(_mark(word) for word in words if word not in common)
    for run in _CJK_RUN.findall(query)[:_CJK_RUNS]:
        for length in _CJK_NAME_LENGTHS:
            for start in range(min(len(run) - length + 1, _MOST_MARKS)):
                if len(marks) >= _MOST_MARKS:
                    return list(marks)
                marks[_mark(simplify(run[start : start + length]))] = None
    return list(marks)[:_MOST_MARKS]


def _marks(name: str) -> Iterator[str]:
    """A speaker is named by the whole name, and by any word of it."""
    yield _mark(simplify(name))
    parts = _WORD.findall(name)
    if len(parts) > 1:
        yield from (_mark(part) for part in parts)


def _mark(name: str) -> str:
    """What a name is looked for by, whatever its case and accents: no text has such a term."""
    bare = "".join(char for char in normalize("NFKD", name.strip()) if category(char) != "Mn")
    return f"\x1fspeaker:{bare.casefold()}"


def _day(moment: datetime, *, chinese: bool) -> str:
    if chinese:
        return f"{moment.year}年{moment.month}月{moment.day}日"
    return written_day(moment)
