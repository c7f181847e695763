"""Terms of words written with letters and digits: stemmed, without accents, whole and in parts."""

import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, repeat
from struct import Struct
from typing import Final
from unicodedata import category, normalize

import Stemmer

from app.language.text.function_words import AMBIGUOUS, ENGLISH, STOP_WORDS
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.periods import MONTHS

LONGEST: Final = 64
"""Characters of a term; what is longer is cut, so that the same blob still meets itself."""

_STRONG: Final = 3
_GUESSED_RUNS: Final = 200
_CACHED_RUNS: Final = 32_768
_MOST_PARTS: Final = 3

# Where a word needs no guess: its letters tell. Latin letters end before the first.
_SCRIPTS: Final = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)
_LAST_LATIN: Final = "\u036f"
_LETTERS: Final = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})

_CONTRACTION = lazy_pattern(r"^ain't$|n't$|'(?:s|re|ve|ll|d|m)$", re.IGNORECASE)
_ELIDED: Final = frozenset(
    {"l", "d", "j", "m", "n", "t", "c", "qu", "dell", "all", "nell", "sull", "dall"}
)
_JOINTS = lazy_pattern(r"[._@/\\:'&,%+#-]+")
_NUMBER = lazy_pattern(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?")
_ORDINAL = lazy_pattern(r"([0-9]+)(?:st|nd|rd|th)")
_VERSION = lazy_pattern(r"v?([0-9]+(?:\.[0-9]+)+)")
_YEAR_FIRST = lazy_pattern(r"([12][0-9]{3})([-/.])([01]?[0-9])\2([0-3]?[0-9])(?![0-9])")
_YEAR_LAST = lazy_pattern(r"[0-3]?[0-9]([-/.])[0-3]?[0-9]\1([12][0-9]{3})")
_CLOCK = lazy_pattern(r"t?([0-9]{1,2}:[0-9]{2})(?::[0-9.]+)?(?:([ap]m)|z|\+[0-9:]+)?")
_NO_WORD = lazy_pattern(r"[\d_.@/\\:'&,%+#-]")
_LETTERS_OR_DIGITS = lazy_pattern(r"[^\W\d_]+|\d+")
_HUMP = lazy_pattern(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class _Stemmers(threading.local):
    """One stemmer per language and thread: a Snowball stemmer keeps the word it works on."""

    def __init__(self) -> None:
        self._made: dict[str, Stemmer.Stemmer] = {}

    def stem(self, word: str, language: str) -> str:
        stemmer = self._made.get(language)
        if stemmer is None:
            stemmer = self._made[language] = Stemmer.Stemmer(language, 0)
        return str(stemmer.stemWord(word))


_STEMMERS: Final = _Stemmers()


def _weights() -> dict[str, tuple[tuple[str, int], ...]]:
    weights: dict[str, tuple[tuple[str, int], ...]] = {}
    for language, words in STOP_WORDS.items():
        for word in words:
            weight = 1 if word in AMBIGUOUS else _STRONG
            weights[word] = (*weights.get(word, ()), (language, weight))
    return weights


_WEIGHTS: Final = _weights()


def guess_language(runs: Iterable[str]) -> str:
    """Name the language whose function words weigh most among the first 200 runs, else English.

    A word that is also a word or a name elsewhere ("die", "la") weighs one, any other three. It
    takes two different ones, of more than three together, to make a text not English: one alone
    is a name ("Dan Brown") or an English word ("green door"). English wins a tie.
    """
    # No number says anything, and each would take a place among what is remembered.
    first = [run for run in islice(runs, _GUESSED_RUNS) if len(run) <= LONGEST and run[0] > "9"]
    # The scores of all languages in one number, which mostly say that no other comes near.
    english, *others = _SCORES.unpack(sum(map(_weight, first)).to_bytes(_SCORES.size, "little"))
    if max(others) <= max(english, _STRONG):
        return ENGLISH
    scores: dict[str, int] = {}
    words: defaultdict[str, set[str]] = defaultdict(set)
    for run in first:
        for word, language, weight in _spoken(run):
            scores[language] = scores.get(language, 0) + weight
            words[language].add(word)
    if not scores:
        return ENGLISH
    best = max((each for each in STOP_WORDS if each in scores), key=scores.__getitem__)
    clear = len(words[best]) > 1 and scores[best] > max(scores.get(ENGLISH, 0), _STRONG)
    return best if clear else ENGLISH


_LANGUAGES: Final = (ENGLISH, *(language for language in STOP_WORDS if language != ENGLISH))
_SCORES: Final = Struct(f"<{len(_LANGUAGES)}H")


@lru_cache(_CACHED_RUNS)
def _weight(run: str) -> int:
    """What a run weighs in each of `_LANGUAGES`, 16 bits each."""
    return sum(weight << 16 * _LANGUAGES.index(language) for _, language, weight in _spoken(run))


@lru_cache(_CACHED_RUNS)
def _spoken(run: str) -> tuple[tuple[str, str, int], ...]:
    """Each language that has the run as a function word, with the word and its weight there."""
    if run.isupper() and len(run) > 1:
        # "AI" and "CI" are no Italian.
        return ()
    word = run.casefold()
    return tuple((word, language, weight) for language, weight in _WEIGHTS.get(word, ()))


def latin_terms(runs: Sequence[str]) -> list[Sequence[str]]:
    """Return the terms of each run of a text, none for a stop word.

    A run holds letters, digits and what joins them, in the case it was written in; accents are
    composed and quotes straight.
    """
    language = guess_language(runs)
    if max(map(len, runs), default=0) <= LONGEST:
        return list(map(_cached, runs, repeat(language)))
    return [
        _cached(run, language) if len(run) <= LONGEST else tuple(_terms(run, language))
        for run in runs
    ]


def bare_term(run: str) -> str:
    """Return a run as one term, stop word or not."""
    return _fold(run.casefold())[:LONGEST]


@lru_cache(_CACHED_RUNS)
def _cached(run: str, language: str) -> tuple[str, ...]:
    return tuple(_terms(run, language))


def _terms(run: str, language: str) -> Iterator[str]:
    if _is_word(run):
        return _word(run, language)
    if run[0].isdecimal() or run[0] in "vV":
        lower = run.casefold()
        return _number(lower) or _date(lower) or _compound(run, language)
    return _compound(run, language)


def _is_word(run: str) -> bool:
    """Tell whether a run is one word; the vowel signs of Indian scripts are no letters."""
    return run.isalpha() or (run > _LAST_LATIN and _NO_WORD.search(run) is None)


def _number(lower: str) -> Iterator[str] | None:
    amount = lower.removesuffix("%")
    if _NUMBER.fullmatch(amount):
        plain = _plain(amount.replace(",", ""))
        return iter((f"{plain}%", plain) if lower.endswith("%") else (plain,))
    if ordinal := _ORDINAL.fullmatch(lower):
        return iter((_plain(ordinal[1]),))
    if clock := _CLOCK.fullmatch(lower):
        return iter(part for part in clock.groups() if part)
    return None


def _date(lower: str) -> Iterator[str] | None:
    if date := _YEAR_FIRST.match(lower):
        year, month, day = date[1], int(date[3]), int(date[4])
        clock = _CLOCK.fullmatch(lower, date.end())
        if clock or date.end() == len(lower):
            parts = (f"{year}-{month:02}-{day:02}", year, month_term(month), str(day))
            return iter((*parts, clock[1]) if clock else parts)
    if date := _YEAR_LAST.fullmatch(lower):
        # Whether the day or the month comes first, nobody knows.
        return iter((date[0], date[2]))
    if version := _VERSION.fullmatch(lower):
        forms = dict.fromkeys((lower[:LONGEST], version[1][:LONGEST]))
        return iter(forms)
    return None


def month_term(number: int) -> str:
    """Return the term that stands for a month, however it is written."""
    return f"month:{number}"


def _plain(number: str) -> str:
    """Only 05 and 5 are one number: 007 is a name."""
    return (number.lstrip("0") or "0" if len(number) == 2 else number)[:LONGEST]


def _compound(run: str, language: str) -> Iterator[str]:
    """Yield a run of several words as a whole and then each of them.

    Hyphens and apostrophes are not part of the whole: "e-mail" is "email" as well. "don't" and
    "Caroline's" are the words before the apostrophe, and "l'amour" the one after it.
    """
    run = _CONTRACTION.sub("", run)
    if _is_word(run):
        yield from _word(run, language)
        return
    pieces = [piece for piece in _JOINTS.split(run) if piece]
    if "'" in run and pieces[0].casefold() in _ELIDED:
        del pieces[0]
        if len(pieces) == 1 and language != ENGLISH:
            yield from _piece(pieces[0], language)
            return
    whole = run.replace("-", "").replace("'", "")
    if whole and _is_word(whole):
        yield from _stems(whole.casefold(), language)
    elif whole:
        yield _fold(whole[:LONGEST].casefold())[:LONGEST]
    if pieces == [whole]:
        yield from _inner(whole, language)
    else:
        for piece in pieces:
            yield from _piece(piece, language)


def _piece(piece: str, language: str) -> Iterator[str]:
    if _is_word(piece):
        yield from _word(piece, language)
    elif piece.isdecimal():
        yield _plain(piece)
    else:
        yield bare_term(piece)
        yield from _inner(piece, language)


def _inner(piece: str, language: str) -> Iterator[str]:
    """Yield letters and digits of a piece apart: "iPhone15" is an "iPhone"."""
    parts = _LETTERS_OR_DIGITS.findall(piece[: LONGEST + 1])
    if 1 < len(parts) <= _MOST_PARTS:
        for part in parts:
            if part.isdecimal():
                yield _plain(part)
            elif len(part.casefold()) > 1:
                yield from _word(part, language)


def _word(word: str, language: str) -> Iterator[str]:
    yield from _stems(word.casefold(), language)
    if not (word.islower() or word.istitle() or word.isupper()):
        humps = [hump for hump in _HUMP.split(word[:LONGEST]) if len(hump.casefold()) > 1]
        if len(humps) > 1:
            for hump in humps:
                yield from _stems(hump.casefold(), language)


def _stems(word: str, language: str) -> Iterator[str]:
    """Yield the stem in the language of the text and, where it differs, the one English gives.

    A text without a clue to its language has the latter alone, and so the two still meet.
    """
    word = word[:LONGEST]
    if word > _LAST_LATIN:
        script = next((name for low, high, name in _SCRIPTS if low <= word[0] <= high), None)
        if script is None or word not in STOP_WORDS.get(script, ()):
            # Of an Arabic run that only stretches others no stem is left.
            yield (script and _STEMMERS.stem(word, script)) or word
        return
    if word in STOP_WORDS[language]:
        return
    folded = _fold(word)
    if language != ENGLISH:
        stem = _fold(_STEMMERS.stem(word, language))
        yield stem
        if folded in STOP_WORDS[ENGLISH] or stem == _english(folded):
            return
    yield _english(folded)


def _english(word: str) -> str:
    month = MONTHS.get(word)
    if month is not None:
        return month_term(month)
    return _STEMMERS.stem(BASES.get(word, word), ENGLISH)


def _fold(word: str) -> str:
    """Take accents off Latin letters."""
    if word.isascii() or word > _LAST_LATIN:
        return word
    bare = "".join(char for char in normalize("NFD", word) if category(char) != "Mn")
    return bare.translate(_LETTERS)


_FORMS = """
arise arose arisen; awake awoke awoken; bear bore borne; beat beaten; become became; begin began
begun; bend bent; bet; bind bound; bite bit bitten; bleed bled; blow blew blown; break broke
broken; breed bred; bring brought; broadcast; build built; burn burnt; buy bought; catch caught;
choose chose chosen; cling clung; come came; creep crept; deal dealt; dig dug; draw drew drawn;
dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed;
feel felt; fight fought; find found; flee fled; fly flew flown; forbid forbade forbidden; forget
forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given;
go went gone; grind ground; grow grew grown; hang hung; hear heard; hide hid hidden; hold held;
keep kept; kneel knelt; know knew known; lay laid; lead led; lean leant; leap leapt; learn learnt;
leave left; lend lent; lie lain; light lit; lose lost; make made; mean meant; meet met; pay paid;
prove proven; ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen;
seek sought; sell sold; send sent; sew sewn; shake shook shaken; shine shone; shoot shot; show
shown; shrink shrank shrunk; sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid;
smell smelt; speak spoke spoken; spell spelt; spend spent; spill spilt; spin spun; spoil spoilt;
stand stood; steal stole stolen; stick stuck; sting stung; strike struck; strive strove striven;
swear swore sworn; sweep swept; swell swollen; swim swam swum; swing swung; take took taken; teach
taught; tear tore torn; tell told; think thought; throw threw thrown; undergo underwent undergone;
understand understood; wake woke woken; wear wore worn; weave wove woven; weep wept; win won; wind
wound; withdraw withdrew withdrawn; write wrote written; child children; foot feet; goose geese;
half halves; knife knives; loaf loaves; man men; mouse mice; ox oxen; person people; shelf
shelves; tooth teeth; wife wives; wolf wolves; woman women; good better best; bad worse worst; far
further furthest farther farthest
"""

BASES: Final = {
    form: base for base, *forms in (line.split() for line in _FORMS.split(";")) for form in forms
}
"""The base of each form. "Lives" and "leaves" are missing: mostly they are of regular verbs."""
