"""Whether two names that an embedder finds near name one entity. Pure.

Nearness nominates and this decides, as with statements (`text/distinctions.py`): to make one
entity of two people is worse than to keep two of one, which a merge mends.
"""

import re
from typing import Final

from app.language.text.distinctions import differs
from app.language.text.names import name_key
from app.language.text.normal_forms import has_cjk

NEAR: Final = 0.25
"""Largest cosine distance at which two names are looked at. Of the 25 labelled pairs in
`tests/unit/graph/test_graph_likeness.py` wordllama has nine of ten spellings of one name within it
(0.007 to 0.219), and eight of fifteen others too ("Boeing 737" and "Boeing 747" at 0.048): no
threshold parts them, so that the checks below decide."""

_WORD = re.compile(r"[^\W_]+")


def same_name(a: str, b: str) -> bool:
    """Whether two near names differ in nothing but spelling: the order of words, punctuation, an
    ending. In Chinese nothing may differ but punctuation and spaces.
    """
    words_a, words_b = (_WORD.findall(name_key(name)) for name in (a, b))
    if not words_a or not words_b:
        return False
    if has_cjk(a) or has_cjk(b):
        return "".join(words_a) == "".join(words_b)
    if sorted(_digits(words_a)) != sorted(_digits(words_b)):
        return False
    if sorted(map(_stem, words_a)) != sorted(map(_stem, words_b)):
        return "".join(words_a) == "".join(words_b)
    # Words in another order may be another thing: "House of Cards", "Cards of House".
    return sorted(words_a) == sorted(words_b) or differs(a, b) is None


def _digits(words: list[str]) -> list[str]:
    return [word for word in words if any(sign.isdigit() for sign in word)]


def _stem(word: str) -> str:
    """A word without the ending of its plural, where it is long enough to have one."""
    if len(word) > 4 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
