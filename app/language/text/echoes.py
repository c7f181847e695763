"""Telling news from what was said back: a recalled memory, a system text, an injected block.

An extractor reads them beside the conversation and proposes them again; an audit of such loops
found 97.8 % junk. Words decide, not vectors: a restated sentence keeps its words.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from app.language.text.distinction_words import (
    CHINESE_STOP_CHARACTERS,
    CHINESE_SYNONYMS,
    STOP_WORDS,
    SYNONYMS,
)
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import normalise, simplify

THRESHOLD: Final = 0.8
"""Share of a statement from which it counts as said back.

Measured on the pairs of `tests/unit/test_text_echoes.py`: of 26 restatements 25 are covered
wholly and one to 0.86. Of 28 pieces of news 20 stay at 0.78 or below; in the other eight the user
said it as well, or said the word that differs, or a number differs.
"""

OWN_MARGIN: Final = 0.2
"""So much less of it may the speaker's own words cover, who says things shorter than a prompt."""

_HAN = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_CHAR = f"{_HAN}\ue000-\uf8ff"
_TOKEN = lazy_pattern(rf"[{_CHAR}]+|[^\W_{_CHAR}]+(?:['.+#-][^\W_{_CHAR}]+)*[+#]*")
_SENTENCE_END = lazy_pattern(r"[.!?](?=\s)|[。！？；;\n]")
_NOT = lazy_pattern(r"n't\b|(?<=\bcan)not\b")
_SHORT: Final = 5
"""Units; a longer statement may be drawn from two sentences that follow each other."""


class SaidBack:
    """What others put before a model and what the speaker said, read once for many statements.

    Reading takes time linear in the lengths of all texts together.
    """

    def __init__(self, said_back: Sequence[str], own_words: Sequence[str]) -> None:
        """Read what others put before the model, each text whole, and the speaker's texts."""
        self._own = set[str]().union(*(_units(text) for text in own_words))
        self._windows = {
            span: [each for text in said_back for each in _windows(text, span)] for span in (1, 2)
        }

    def share(self, statement: str) -> float | None:
        """The share of a statement, 0.8 to 1, that was only said back; None when it is news.

        It is news when the speaker said any of what nothing else says, when their own words cover
        it as well, or when a number in it stands nowhere else.

        Args:
            statement: one sentence about a user or a project.

        """
        units = _units(statement)
        if not units:
            return None
        own = units & self._own
        span = 1 if len(units) < _SHORT else 2
        known = max((units & each for each in self._windows[span]), key=len, default=set())
        if own - known or any(unit.isdecimal() for unit in units - known):
            return None
        covered = len(known) / len(units)
        by_speaker = len(known) - len(own) <= len(units) * OWN_MARGIN
        return None if covered < THRESHOLD or by_speaker else covered


def _windows(text: str, span: int) -> Iterator[set[str]]:
    """Yield the units of every `span` sentences in a row; a long text holds every common word."""
    before: set[str] = set()
    for sentence in _SENTENCE_END.split(text):
        units = _units(sentence)
        yield units | before if span > 1 else units
        before = units or before


def _units(text: str) -> set[str]:
    """Split into words that carry meaning, endings and synonyms folded; of Chinese, the characters
    and the pairs of neighbours.
    """
    form = _NOT.sub(" not", simplify(normalise(text)).replace("’", "'"))
    form = _CHINESE_SYNONYM.sub(lambda match: _SYNONYM_CHARACTER[match[0]], form)
    units: set[str] = set()
    for token in _TOKEN.findall(form):
        if _RUN.match(token):
            chars = [char for char in token if char not in _STOP_CHARACTERS]
            units.update(chars, map("".join, pairwise(chars)))
        elif token not in _STOP_WORDS:
            stem = _stem(token)
            units.add(_SYNONYM_STEMS.get(stem, stem))
    return units - _SUBJECTS


def _stem(word: str) -> str:
    """Cut the commonest English endings."""
    word = word.removesuffix("'s")
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e")


_RUN = lazy_pattern(f"[{_CHAR}]")
_STOP_WORDS: Final = frozenset(STOP_WORDS.split("|")) | {"assistant", "user's", "users'"}
_SYNONYM_STEMS: Final = {
    _stem(word): _stem(group.split("|")[0]) for group in SYNONYMS for word in group.split("|")
}
_SYNONYM_CHARACTER: Final = {
    word: chr(0xE000 + number)
    for number, group in enumerate(CHINESE_SYNONYMS)
    for word in group.split("|")
}
# Who is spoken of is "the user" in a statement, "you" in a prompt and "I" in a conversation.
_SUBJECTS: Final = {_SYNONYM_STEMS["user"], _SYNONYM_CHARACTER["用户"]}
_STOP_CHARACTERS: Final = frozenset(CHINESE_STOP_CHARACTERS) | {_SYNONYM_CHARACTER["用户"]}
_CHINESE_SYNONYM = lazy_pattern("|".join(sorted(_SYNONYM_CHARACTER, key=len, reverse=True)))
