"""Names in a text (the words of a query that may name a person, the query without them, and the
keys that names are compared by), and the names of attributes: `subject.property`, as
`user.residence`.

A name in a query is guessed by how it is written. Keys guess nothing: every run of up to four
words and every piece of a run of Chinese characters has one, and the graph, asked for all of them
at once, knows which are names.

Every memory of one attribute has the name in the same form, whoever wrote it: an attribute holds
one value at a time, and two forms of its name would hold two.
"""

import re
from collections.abc import Iterable
from typing import Final
from unicodedata import category, normalize

from app.language.text.function_words import ENGLISH, STOP_WORDS
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk, normalise
from app.language.text.periods import MONTHS, WEEKDAYS

_NAME = lazy_pattern(r"[^\W\d_\u2e80-\U0010ffff]+(?:['’-][^\W\d_\u2e80-\U0010ffff]+)*")
_FIRST_CJK: Final = "\u2e80"
_POSSESSIVE = lazy_pattern(r"['’](?:s|re|ll|d|ve|m)$", re.IGNORECASE)
_SENTENCE_START = lazy_pattern(r"(?:\A|[.!?:\n])[\s\"'“‘(<>\[*-]*$")
_BEFORE: Final = 12
_IN_TIME: Final = lazy_pattern(
    r"(?:\b(?:in|on|of|since|by|until|till|last|next|this|during|before|after|from|every|early|late|mid)"
    r"|[0-9](?:st|nd|rd|th)?)[\s-]$",
    re.IGNORECASE,
)
_NUMBER_AFTER: Final = lazy_pattern(r"\.?,?\s[0-9]")
_STARTERS: Final = frozenset(
    {
        *("tell", "show", "find", "list", "give", "describe", "remember", "remind", "recall"),
        *("name", "explain", "summarize", "summarise", "compare", "suggest", "recommend", "let"),
        *("check", "search", "look", "see", "say", "know", "get", "make", "mention", "consider"),
        *("please", "hello", "hey", "hi", "thanks", "thank", "sorry", "wow", "oh", "ah", "yeah"),
        *("yesterday", "today", "tomorrow", "recently", "currently", "lately", "maybe", "perhaps"),
        *("according", "based", "considering", "given", "besides", "despite", "although", "since"),
        *("though", "however", "even", "also", "first", "next", "last", "any", "anything", "well"),
        *("now", "sure", "good", "great", "nice", "happy"),
    }
)
_NEVER: Final = STOP_WORDS[ENGLISH] | frozenset({"mr", "mrs", "ms", "dr", "ok"})


def name_candidates(text: str) -> list[str]:
    """Return the words that may be a name, casefolded, each once and in order, without 's.

    A word with a capital that is no stop word, acronym, month or weekday, and at the start of a
    sentence no word that often starts one; in a text without any capital, every word but these.
    Chinese names cannot be told by their look: none.
    """
    no_capitals = text in {text.lower(), text.upper()}
    found: dict[str, None] = {}
    for match in _NAME.finditer(text):
        written = _POSSESSIVE.sub("", match[0])
        word = written.casefold()
        if (no_capitals or _looks_like_name(written)) and not _is_common(word, text, match):
            found[word] = None
    return list(found)


def _looks_like_name(word: str) -> bool:
    return word[0].isupper() and len(word) > 1 and not word.isupper()


def _is_common(word: str, text: str, match: re.Match[str]) -> bool:
    if len(word) < 2 or word in _NEVER or _POSSESSIVE.sub("", word) in _NEVER:
        return True
    if word in WEEKDAYS:
        return True
    before = text[max(0, match.start() - _BEFORE) : match.start()]
    if word in MONTHS and (_IN_TIME.search(before) or _NUMBER_AFTER.match(text, match.end())):
        return True
    return word in _STARTERS and _SENTENCE_START.search(before) is not None


def without_names(text: str, names: Iterable[str]) -> str:
    """Return a text without some names, in whatever case, and their possessive 's.

    A name is found as whole words, one in Chinese among other characters. A text that has
    no word left is returned as it is.
    """
    wanted: dict[str, list[tuple[str, ...]]] = {}
    left = text
    for name in names:
        if words := tuple(_words_of(name)):
            wanted.setdefault(words[0], []).append(words)
        elif any(char >= _FIRST_CJK for char in name):
            left = left.replace(name.strip(), " ")
    if wanted:
        left = _without(left, wanted)
    left = " ".join(left.split())
    return left if any(char.isalnum() for char in left) else text


def _without(text: str, wanted: dict[str, list[tuple[str, ...]]]) -> str:
    matches = list(_NAME.finditer(text))
    words = [_POSSESSIVE.sub("", match[0]).casefold() for match in matches]
    kept: list[str] = []
    end = place = 0
    while place < len(matches):
        count = max(
            (
                len(name)
                for name in wanted.get(words[place], ())
                if tuple(words[place : place + len(name)]) == name
            ),
            default=0,
        )
        if count:
            kept += (text[end : matches[place].start()], " ")
            end = matches[place + count - 1].end()
        place += count or 1
    return "".join((*kept, text[end:]))


def _words_of(name: str) -> list[str]:
    return [_POSSESSIVE.sub("", word).casefold() for word in _NAME.findall(name)]


MOST_WORDS: Final = 4
LONGEST_CJK_NAME: Final = 8
"""Of a piece of Chinese: 中国人民解放军 has seven."""

# Scripts that put no space between words: Han, kana, bopomofo. The marks that NFKC joins to a
# kana before them are left out, so that a key stays the key of itself; Hangul has spaces.
_UNSPACED: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003fffd\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3105-\u312f\u31a0-\u31bf"
)
_DOT: Final = ".\u00b7\u2022\u2027\u2219\u22c5\u30fb"
"""Between the parts of a foreign name: a full stop, and each middle dot that keyboards have."""

_PARTED: Final = lazy_pattern(f"(?<=[{_UNSPACED}])[ {_DOT}]+(?=[{_UNSPACED}])")
_CJK_NAME: Final = lazy_pattern(f"[{_UNSPACED}]+(?:[{_DOT}]+[{_UNSPACED}]+)*")
_KEY_RUN: Final = lazy_pattern(r"[^\W_]+(?:['’.&+#/-]+[^\W_]+)*[+#]*")
_FINAL_S: Final = lazy_pattern(r"['’]s$")


def name_key(name: str) -> str:
    """What makes two names one: NFKC, casefold, runs of spaces folded; between Chinese characters
    neither spaces nor dots, so that 约翰·史密斯 and 约翰 史密斯 are one.

    The key of a key is itself. It may be longer than the name ("ß" is "ss").
    """
    return _PARTED.sub("", normalise(name))


def name_keys(text: str, *, most: int) -> list[str]:
    """Pieces in the form of `name_key`, each once, in the order of the text but for long Chinese
    ones, which come first; at most `most`.

    A word alone is none when it is a stop word, a character alone never is.
    """
    plain = normalise(text)
    whole = _PARTED.sub("", plain)
    runs = list(_KEY_RUN.finditer(whole))
    long = (_PARTED.sub("", name[0]) for name in _CJK_NAME.finditer(plain))
    found = dict.fromkeys([name for name in long if len(name) > LONGEST_CJK_NAME][:most])
    for place, run in enumerate(runs):
        pieces = _cjk_keys(run[0]) if has_cjk(run[0]) else _word_keys(whole, runs, place)
        for piece in pieces:
            if len(found) >= most:
                return list(found)
            found[piece] = None
    return list(found)


def _cjk_keys(run: str) -> list[str]:
    pieces = [
        run[start : start + length]
        for start in range(len(run))
        for length in range(2, min(LONGEST_CJK_NAME, len(run) - start) + 1)
    ]
    return pieces if len(run) <= LONGEST_CJK_NAME else [run, *pieces]


def _word_keys(whole: str, runs: list[re.Match[str]], place: int) -> list[str]:
    pieces = []
    begin = runs[place].start()
    for last in runs[place : place + MOST_WORDS]:
        if has_cjk(last[0]):
            break
        piece = whole[begin : last.end()]
        bare = _FINAL_S.sub("", piece)
        pieces += [bare] if bare == piece else [bare, piece]
    return [piece for piece in pieces if len(piece) > 1 and piece not in STOP_WORDS[ENGLISH]]


LONGEST: Final = 100
WANTED: Final = (
    "subject.property: letters, digits and _, the subject in any script with a letter first "
    "and more parts after a dot if it needs them, the property in ASCII"
)
_PROPERTY: Final = re.compile(r"[a-z0-9_]+")


def checked_attribute(text: str) -> str:
    """The name in its form: composed (NFC) and in lower case.

    Raises:
        ValueError: it is no such name.

    """
    name = _form(text)
    *subject, held = name.split(".")
    if (
        len(name) > LONGEST
        or not name[:1].isalpha()
        or not subject
        or not all(part and all(map(_in_word, part)) for part in subject)
        or not _PROPERTY.fullmatch(held)
    ):
        raise ValueError(f"must be {WANTED}")
    return name


def mended_attribute(text: str) -> str | None:
    """The same of a name with spaces or other marks, which become `_`; None for what is none."""
    if len(text) > LONGEST:
        return None
    marked = "".join(char if char == "." or _in_word(char) else " " for char in _form(text.strip()))
    try:
        return checked_attribute(re.sub(" +", "_", marked).replace("._", "."))
    except ValueError:
        return None


def _form(text: str) -> str:
    return normalize("NFC", text.lower())


def _in_word(char: str) -> bool:
    # Vowel signs of Hindi and Thai are marks, and no letters.
    return char.isalnum() or char == "_" or category(char).startswith("M")
