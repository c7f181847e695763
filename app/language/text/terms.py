"""The terms that a text is found by: one analysis for stored texts and queries.

Words are lower-cased, stemmed and without accents; numbers, dates, versions and identifiers are
kept whole and in parts; scripts without spaces give characters and pairs of characters. A text is
taken to be in one language, guessed from its function words; scripts other than Latin tell theirs.

Characters and pairs were measured on MADial-Bench in Chinese (BM25, recall@10): 69.0, against 60.1
for characters alone, 62.2 for pairs alone and 62.8 for both without the stop lists. Words of a
segmenter (`rjieba`, stop words left out) and characters gave 65.4, words, characters and pairs 66.7
to 67.9: not worth a dictionary of 25 MB in every process, and a segmenter cuts a word of the query
otherwise than the same word in a text.
"""

from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Final
from unicodedata import category, normalize

from app.language.text.function_words import (
    CHINESE_PARTICLES,
    CHINESE_STOP_CHARACTERS,
    CHINESE_STOP_PAIRS,
)
from app.language.text.latin_terms import bare_term, latin_terms, month_term
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import simplify

ANALYSER_VERSION: Final[int] = 1
"""Raised whenever the terms of any text change; terms stored under another number are stale."""

KEYS: Final = 1_000_000_000
"""How many keys there are: the most dimensions of a `sparsevec`."""

_CACHED_KEYS: Final = 65_536
_CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3100-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u1100-\u11ff"
    "\U00020000-\U0003fffd"
    # Thai, Lao, Burmese, Khmer: no spaces between words either.
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
)
# Vowel signs and points, which are no letters to `\w`.
_MARKS = "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_FIRST = rf"[^\W_{_CJK}]"
_LETTER = rf"(?:{_FIRST}|[{_MARKS}])"
_JOINT = rf"(?:[.@/\\:'&-]|_+|::|(?<=[0-9]),(?=[0-9]{{3}}(?![0-9])))(?={_FIRST})"
_SUFFIX = rf"(?<=[0-9])%|(?<=[^\W\d_])(?:\+\+|\#)(?!{_LETTER})"
_RUN = lazy_pattern(
    rf"([{_CJK}]+)"
    rf"|((?:(?<![\w.])\.(?=[^\W\d_]))?{_FIRST}{_LETTER}*(?:{_JOINT}{_LETTER}+)*(?:{_SUFFIX})?)"
)
# The same in a text of ASCII, in a quarter of the time.
_PLAIN = "[A-Za-z0-9]"
_ASCII_RUN = lazy_pattern(
    rf"(?:{_PLAIN}|(?<![\w.])\.[A-Za-z]){_PLAIN}*+(?:{_JOINT}{_PLAIN}++)*+(?:{_SUFFIX})?"
)
_UNSEEN = lazy_pattern("[\u00ad\u200b-\u200f\u2060\ufe0e\ufe0f\ufeff]")
_QUOTES: Final = str.maketrans("’‘ʼ", "'''")
_CHINESE_MONTH = lazy_pattern(
    r"(?<![0-9])(1[0-2]|0?[1-9])月|(十[一二]?|(?<!十)[一二三四五六七八九])月"
)
_NUMERALS: Final = ("", *"一二三四五六七八九十", "十一", "十二")


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, with repetitions; months of Chinese dates at the end.

    Takes time linear in the text's length. A text of stop words alone keeps them, and one of
    symbols alone keeps those; none of any is left of punctuation.
    """
    text = _fold(text)
    if text.isascii():
        words: list[str] = _ASCII_RUN.findall(text)
        found = list(chain.from_iterable(latin_terms(words)))
        return found or [bare_term(word) for word in words] or _symbols(text)
    runs: list[tuple[str, str]] = _RUN.findall(text)
    words = [run for _, run in runs if run]
    latin = latin_terms(words)
    if len(words) < len(runs):
        each = iter(latin)
        latin = [cjk_terms(cjk) if cjk else next(each) for cjk, _ in runs]
    found = list(chain.from_iterable(latin))
    if "月" in text:
        found += (
            month_term(int(digits) if digits else _NUMERALS.index(numeral))
            for digits, numeral in _CHINESE_MONTH.findall(text)
        )
    if found:
        return found
    if runs:
        return [cjk or bare_term(run) for cjk, run in runs]
    return _symbols(text)


def _symbols(text: str) -> list[str]:
    return [char for char in text if category(char) in {"So", "Sc", "Sm"}]


def _fold(text: str) -> str:
    """Fold width, script and quotes; case stays, as it parts the words of an identifier."""
    if text.isascii():
        return text
    return simplify(_UNSEEN.sub("", normalize("NFKC", text)).translate(_QUOTES))


@lru_cache(_CACHED_KEYS)
def term_key(term: str) -> int:
    """Return the term's dimension, 0 to 999,999,999: the same on every machine, for ever.

    Of 100,000 different terms some ten share a key with another and count as one with it.
    """
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % KEYS


_CACHED_PAIRS: Final = 32_768


def cjk_terms(run: str) -> list[str]:
    """Return the characters of a run, in simplified characters, each with the pair that it begins.

    Stop characters and pairs are left out; a hiragana alone says nothing unless it is all.
    """
    if len(run) == 1:
        return [] if run in CHINESE_STOP_CHARACTERS else [run]
    found: list[str] = []
    for place in range(len(run)):
        found += _at(run[place : place + 2])
    return found


@lru_cache(_CACHED_PAIRS)
def _at(pair: str) -> tuple[str, ...]:
    """Return what the first character of a pair says, alone and with the second if there is one."""
    char = pair[0]
    alone = char not in CHINESE_STOP_CHARACTERS and not "\u3040" <= char <= "\u309f"
    together = (
        len(pair) > 1
        and pair not in CHINESE_STOP_PAIRS
        and CHINESE_PARTICLES.isdisjoint(pair)
        and not CHINESE_STOP_CHARACTERS.issuperset(pair)
    )
    return (char,) * alone + (pair,) * together
