"""Words that a deployment keeps out of memory: compiled once, asked of every text."""

import re
from collections.abc import Callable, Iterable

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk, normalise

StopWords = Callable[[str], bool]
"""Tells whether a text holds one of the words."""


def stop_words(words: Iterable[str]) -> StopWords:
    """Find any of `words`, in whatever case and width; Latin words only whole.

    Words of scripts without spaces are found inside others.
    """
    folded = sorted({normalise(word) for word in words} - {""}, key=len, reverse=True)
    if not folded:
        return lambda _text: False
    parts = (
        re.escape(word) if has_cjk(word) else rf"(?<!\w){re.escape(word)}(?!\w)" for word in folded
    )
    pattern = lazy_pattern("|".join(parts))
    return lambda text: pattern.search(normalise(text)) is not None


NO_STOP_WORDS: StopWords = stop_words(())
