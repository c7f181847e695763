"""Words of a query that may name a person, and the query without them.

A guess by how a word is written: whether somebody has the name, only the stored texts know.
"""

import re
from collections.abc import Iterable
from typing import Final

from app.language.text.distinction_words import MONTHS, WEEKDAYS
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.term_words import ENGLISH, STOP_WORDS

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

    A name is found as whole words, one in Chinese among other signs. A text that has no word left
    is returned as it is.
    """
    wanted: dict[str, list[tuple[str, ...]]] = {}
    left = text
    for name in names:
        if words := tuple(_words_of(name)):
            wanted.setdefault(words[0], []).append(words)
        elif any(sign >= _FIRST_CJK for sign in name):
            left = left.replace(name.strip(), " ")
    if wanted:
        left = _without(left, wanted)
    left = " ".join(left.split())
    return left if any(sign.isalnum() for sign in left) else text


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
