"""What is left of a text without the words that every text has."""

from typing import Final

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.term_words import CHINESE_PARTICLES, ENGLISH, STOP_WORDS

_LETTER = r"[^\W_\u2e80-\U0010ffff]"
_PIECE = lazy_pattern(rf"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+|{_LETTER}+(?:['’-]{_LETTER}+)*")

_CONTRACTION = lazy_pattern(r"['’](?:s|t|re|ve|ll|d|m)$")

_LEFT_OUT: Final = CHINESE_PARTICLES | frozenset(
    "是我你他她它们这那个和在有就也都不很哈得地着过到说要会能可以什怎样为与及或但而且因所如果"
)
"""Signs that mostly stand for grammar; a query's nearness is not to come from them."""


def essence(text: str) -> str:
    """The words of a text that are its own, each once and in order; empty when it has none."""
    found: dict[str, None] = {}
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece >= "\u2e80":
            piece = "".join(sign for sign in piece if sign not in _LEFT_OUT)
        elif _CONTRACTION.sub("", piece.casefold()) in STOP_WORDS[ENGLISH]:
            continue
        if piece:
            found[piece] = None
    return " ".join(found)
