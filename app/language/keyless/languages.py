"""Which language a text is in, and where it changes to the other."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from app.language.keyless.sentences import without_foreign_words
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk

_HAN: Final = lazy_pattern(r"[\u3400-\u9fff]")
_WORD: Final = lazy_pattern(r"[A-Za-zÀ-ÿ][\w'’-]*")
_END: Final = lazy_pattern(r"(?<=[。！？!?；])|(?<=[.])\s+|(?<=[.])(?=[\u3400-\u9fff])|\n")
# "I live in 上海 and 我喜欢喝绿茶": a clause of the other language.
_CLAUSE: Final = lazy_pattern(
    r"[,，]?\s*(?:\b(?:and|but|so)\b|[,，]|\s)\s*(?=我们?[\u3400-\u9fff])"
)
_CLAUSE_BACK: Final = lazy_pattern(
    r"(?<=[\u3400-\u9fff])[,，]?\s*\b(?:and|but|so)\s+(?=(?:I|I'm|my)\b)"
)
_SPEAKS: Final = lazy_pattern(r"\b(?:i|i'm|my|we|our)\b", re.IGNORECASE)
# Whoever speaks about language quotes the other one: "what does 我住在上海 mean?"
_ABOUT_WORDS: Final = lazy_pattern(
    r"\b(?:mean|means|translat\w+|pronounce\w*|grammar|sentences?|phrase|chinese|english|mandarin"
    r"|correct|proofread|word|words)\b|中文|英文|英语|汉语|翻译|意思|怎么说|语法|句子|句话|润色|单词",
    re.IGNORECASE,
)


def is_chinese(text: str) -> bool:
    """Tell Chinese with some Latin words from English with a Chinese name in it."""
    return len(_HAN.findall(text)) > len(_WORD.findall(text))


def by_language(text: str) -> Iterator[tuple[str, bool]]:
    """The text in runs of sentences of one language, and whether it is Chinese.

    Of a text about words only the language in which they are spoken about is left.
    """
    if not has_cjk(text) or not _WORD.search(text):
        yield text, is_chinese(text)
        return
    cut = [each for each in _END.split(without_foreign_words(text)) if each.strip()]
    pieces = [part for each in cut for part in _clauses(each) if part.strip()]
    about = [is_chinese(each) for each in pieces if _ABOUT_WORDS.search(each)]
    if about:
        pieces = [each for each in pieces if is_chinese(each) == about[0]]
    for han, run in groupby(pieces, is_chinese):
        yield ("" if han else " ").join(run), han


def _clauses(sentence: str) -> list[str]:
    """A sentence in two where English speaks of itself first and Chinese after it."""
    found = _CLAUSE.search(sentence)
    back = _CLAUSE_BACK.search(sentence)
    if back:
        return [sentence[: back.start()], sentence[back.end() :]]
    if found is None or not _SPEAKS.search(sentence[: found.start()]):
        return [sentence]
    return [sentence[: found.start()], sentence[found.end() :]]
