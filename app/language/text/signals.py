"""What the manner of a text says about it: that it corrects, confirms, prefers or decides.

A signal is a hint for whoever extracts, never a fact; a missing one costs a hint, and a wrong one
the same. Patterns are data, in `signal_patterns.py`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.language.text.lazy_pattern import PatternIndex, lazy_pattern
from app.language.text.normal_forms import fold_lines
from app.language.text.signal_patterns import (
    CHINESE,
    CHINESE_CONFIRMATIONS,
    ENGLISH,
    ENGLISH_CONFIRMATIONS,
    Signal,
)

_Expressions = tuple[tuple[str, ...], tuple[str, ...]]

BLANK: Final = "\x00"
"""Stands where a lookalike stood, so that its neighbours do not become one phrase."""


@dataclass(frozen=True)
class _Pattern:
    """What says something, unless it is part of what only looks like it."""

    said: re.Pattern[str]
    lookalike: re.Pattern[str] | None

    def is_in(self, form: str) -> bool:
        cleared = form if self.lookalike is None else self.lookalike.sub(BLANK, form)
        return self.said.search(cleared) is not None


_Patterns = tuple[_Pattern, ...]


class _Manners:
    """The patterns of several signals. Most texts have no part of what would say one."""

    def __init__(self, patterns: Mapping[Signal, _Patterns]) -> None:
        self._patterns = [(signal, each) for signal, both in patterns.items() for each in both]
        self._index = PatternIndex([each.said.pattern for _, each in self._patterns], re.MULTILINE)

    def said_in(self, form: str) -> set[Signal]:
        found: set[Signal] = set()
        for place in self._index.possible(form):
            signal, pattern = self._patterns[place]
            if signal not in found and pattern.is_in(form):
                found.add(signal)
        return found


def find_signals(text: str) -> frozenset[Signal]:
    """The signals of one text, in English or Chinese or both.

    A text that corrects does not also confirm; of several texts the union is taken, and
    may hold both. Takes time linear in the length of the text.
    """
    found = _SIGNALS.said_in(_folded(text))
    if "correction" in found:
        found.discard("reinforcement")
    return frozenset(found)


def confirms(text: str) -> bool:
    """Whether a text says that what was said before is so: "Exactly!", 没错.

    That is `reinforcement` without praise ("Perfect!", 太好了), and not where the text corrects.
    """
    form = _folded(text)
    return bool(_CONFIRMATIONS.said_in(form)) and not _CORRECTIONS.said_in(form)


def _folded(text: str) -> str:
    """Folded, with a full stop for every emoji: a sentence may begin or end with one."""
    form = fold_lines(text)
    return form if form.isascii() else _EMOJI.sub(". ", form)


def _whole_words(alternatives: tuple[str, ...]) -> str:
    # Chinese characters are letters to \b, and Chinese text has no spaces around English words.
    return rf"(?<![a-z0-9'])(?:{'|'.join(alternatives)})(?:(?<![a-z0-9])|(?![a-z0-9]))"


def _compiled(english: _Expressions, chinese: _Expressions) -> _Patterns:
    return tuple(
        _Pattern(
            lazy_pattern(join(said), re.MULTILINE),
            lazy_pattern(join(alike), re.MULTILINE) if alike else None,
        )
        for (said, alike), join in ((english, _whole_words), (chinese, "|".join))
    )


_PATTERNS: Final = {signal: _compiled(ENGLISH[signal], CHINESE[signal]) for signal in ENGLISH}
_SIGNALS: Final = _Manners(_PATTERNS)
_CORRECTIONS: Final = _Manners({"correction": _PATTERNS["correction"]})
_CONFIRMATIONS: Final = _Manners(
    {
        "reinforcement": _compiled(
            (ENGLISH_CONFIRMATIONS, ENGLISH["reinforcement"][1]),
            (CHINESE_CONFIRMATIONS, CHINESE["reinforcement"][1]),
        )
    }
)
_EMOJI: Final = lazy_pattern(r" *[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\ufe0f]+ *")
