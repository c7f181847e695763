"""What the manner of a text says about it: that it corrects, confirms, prefers or decides.

A signal is a hint for whoever extracts, never a fact; a missing one costs a hint, and a wrong one
the same. Patterns are data, in `signal_patterns.py`.
"""

import re
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import fold_lines
from app.language.text.signal_patterns import CHINESE, ENGLISH, Signal

BLANK: Final = "\x00"
"""Stands where a lookalike stood, so that its neighbours do not become one phrase."""


def find_signals(text: str) -> frozenset[Signal]:
    """The signals of one text, in English or Chinese or both.

    A text that corrects does not also confirm; of several texts the union is taken, and
    may hold both. Takes time linear in the length of the text.
    """
    form = fold_lines(text)
    found = {signal for signal in ENGLISH if _says(form, signal)}
    if "correction" in found:
        found.discard("reinforcement")
    return frozenset(found)


def _says(form: str, signal: Signal) -> bool:
    return any(
        said.search(form if lookalike is None else lookalike.sub(BLANK, form))
        for said, lookalike in _PATTERNS[signal]
    )


def _whole_words(alternatives: tuple[str, ...]) -> str:
    # Chinese characters are letters to \b, and Chinese text has no spaces around English words.
    return rf"(?<![a-z0-9'])(?:{'|'.join(alternatives)})(?:(?<![a-z0-9])|(?![a-z0-9]))"


def _compiled(signal: Signal) -> tuple[tuple[re.Pattern[str], re.Pattern[str] | None], ...]:
    return tuple(
        (
            lazy_pattern(join(said), re.MULTILINE),
            lazy_pattern(join(alike), re.MULTILINE) if alike else None,
        )
        for (said, alike), join in ((ENGLISH[signal], _whole_words), (CHINESE[signal], "|".join))
    )


_PATTERNS: Final = {signal: _compiled(signal) for signal in ENGLISH}
