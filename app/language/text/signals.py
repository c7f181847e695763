"""What the manner of a text says about it: that it corrects, confirms, prefers or decides.

A signal is a hint for whoever extracts, never a fact; a missing one costs a hint, and a wrong one
the same. Patterns are data, in `signal_patterns.py`.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.needed_parts import needed_parts
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

    @cached_property
    def _needed(self) -> frozenset[str]:
        return needed_parts(self.said.pattern, re.MULTILINE)

    def is_in(self, form: str) -> bool:
        # Most texts have no part of what would say it.
        if self._needed and not any(part in form for part in self._needed):
            return False
        cleared = form if self.lookalike is None else self.lookalike.sub(BLANK, form)
        return self.said.search(cleared) is not None


_Patterns = tuple[_Pattern, ...]


def find_signals(text: str) -> frozenset[Signal]:
    """The signals of one text, in English or Chinese or both.

    A text that corrects does not also confirm; of several texts the union is taken, and
    may hold both. Takes time linear in the length of the text.
    """
    form = _folded(text)
    found = {signal for signal in ENGLISH if _says(form, _PATTERNS[signal])}
    if "correction" in found:
        found.discard("reinforcement")
    return frozenset(found)


def confirms(text: str) -> bool:
    """Whether a text says that what was said before is so: "Exactly!", 没错.

    That is `reinforcement` without praise ("Perfect!", 太好了), and not where the text corrects.
    """
    form = _folded(text)
    return _says(form, _CONFIRMATIONS) and not _says(form, _PATTERNS["correction"])


def _folded(text: str) -> str:
    """Folded, with a full stop for every emoji: a sentence may begin or end with one."""
    form = fold_lines(text)
    return form if form.isascii() else _EMOJI.sub(". ", form)


def _says(form: str, patterns: _Patterns) -> bool:
    return any(pattern.is_in(form) for pattern in patterns)


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
_CONFIRMATIONS: Final = _compiled(
    (ENGLISH_CONFIRMATIONS, ENGLISH["reinforcement"][1]),
    (CHINESE_CONFIRMATIONS, CHINESE["reinforcement"][1]),
)
_EMOJI: Final = lazy_pattern(r" *[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\ufe0f]+ *")
