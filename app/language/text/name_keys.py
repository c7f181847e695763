"""The form names are compared in, and every piece of a text that could be the name of an entity.

Nothing is guessed: each run of up to four words, and each piece of a run of Chinese signs. Which
of them are names is known to the graph alone, which is asked for all of them at once.
"""

import re
from typing import Final

from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normalise import has_cjk, normalise
from app.language.text.term_words import ENGLISH, STOP_WORDS

MOST_WORDS: Final = 4
LONGEST_SIGNS: Final = 8
"""Of a piece of Chinese: 中国人民解放军 has seven."""

# Scripts that put no space between words: Han, kana, bopomofo. The marks that NFKC joins to a
# kana before them are left out, so that a key stays the key of itself; Hangul has spaces.
_SIGN: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003fffd\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3105-\u312f\u31a0-\u31bf"
)
_DOT: Final = ".\u00b7\u2022\u2027\u2219\u22c5\u30fb"
"""Between the parts of a foreign name: a full stop, and each middle dot that keyboards have."""

_PARTED: Final = lazy_pattern(f"(?<=[{_SIGN}])[ {_DOT}]+(?=[{_SIGN}])")
_WHOLE: Final = lazy_pattern(f"[{_SIGN}]+(?:[{_DOT}]+[{_SIGN}]+)*")
_RUN: Final = lazy_pattern(r"[^\W_]+(?:['’.&+#/-]+[^\W_]+)*[+#]*")
_POSSESSIVE: Final = lazy_pattern(r"['’]s$")


def name_key(name: str) -> str:
    """What makes two names one: NFKC, casefold, runs of spaces folded; between Chinese signs
    neither spaces nor dots, so that 约翰·史密斯 and 约翰 史密斯 are one.

    The key of a key is itself. It may be longer than the name ("ß" is "ss").
    """
    return _PARTED.sub("", normalise(name))


def name_keys(text: str, *, most: int) -> list[str]:
    """Pieces in the form of `name_key`, each once, in the order of the text but for long Chinese
    ones, which come first; at most `most`.

    A word alone is none when it is a stop word, a sign alone never is.
    """
    plain = normalise(text)
    whole = _PARTED.sub("", plain)
    runs = list(_RUN.finditer(whole))
    long = (_PARTED.sub("", one[0]) for one in _WHOLE.finditer(plain))
    found = dict.fromkeys([one for one in long if len(one) > LONGEST_SIGNS][:most])
    for place, run in enumerate(runs):
        pieces = _signs(run[0]) if has_cjk(run[0]) else _words(whole, runs, place)
        for piece in pieces:
            if len(found) >= most:
                return list(found)
            found[piece] = None
    return list(found)


def _signs(run: str) -> list[str]:
    pieces = [
        run[start : start + length]
        for start in range(len(run))
        for length in range(2, min(LONGEST_SIGNS, len(run) - start) + 1)
    ]
    return pieces if len(run) <= LONGEST_SIGNS else [run, *pieces]


def _words(whole: str, runs: list[re.Match[str]], place: int) -> list[str]:
    pieces = []
    begin = runs[place].start()
    for last in runs[place : place + MOST_WORDS]:
        if has_cjk(last[0]):
            break
        piece = whole[begin : last.end()]
        bare = _POSSESSIVE.sub("", piece)
        pieces += [bare] if bare == piece else [bare, piece]
    return [one for one in pieces if len(one) > 1 and one not in STOP_WORDS[ENGLISH]]
