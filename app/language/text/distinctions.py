"""What keeps two near-identical sentences apart: a number, a no, an opposite, a name, a term.

Nearness alone cannot tell a duplicate from a contradiction ("lives in Berlin", "lives in
Munich"), so it nominates and this decides. Meant for single statements that an
embedder already found close; of unrelated texts it says nothing useful.
"""

from collections.abc import Callable, Collection
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final, Literal
from unicodedata import normalize

from app.language.text import distinction_words as words
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk, normalise
from app.language.text.periods import MONTHS, WEEKDAYS
from app.language.text.quantities import counts_differ, numbers_in, take_quantities
from app.language.text.word_order import (
    AS_WRITTEN,
    common_start,
    is_place_moved,
    is_role_changed,
    is_told_of_another,
    is_turned,
    roles,
)

Difference = Literal["number", "negation", "antonym", "name", "order", "term"]

ALIKE: Final = 0.6
"""Share of the words of the shorter of two statements that the other has, if they say the same. On
pairs for choosing, lower shares let other facts of the same topic pass."""

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# Private use: a Chinese word with synonyms, folded to one character; see _SYNONYM_CHARACTER.
_CHAR = f"{_HAN}\ue000-\uf8ff"
_TOKEN = lazy_pattern(rf"[{_CHAR}]|[^\W_{_CHAR}]+(?:['.+#-][^\W_{_CHAR}]+)*[+#]*")
_SENTENCE_START = lazy_pattern(r"(?:^|[.!?。！？:：\n])[\"'“‘「(\s]*$")


def _either(alternatives: str) -> str:
    """Build an alternation, the longest first; Latin words only whole."""
    ordered = "|".join(sorted(alternatives.split("|"), key=len, reverse=True))
    return f"(?:{ordered})" if has_cjk(alternatives) else rf"\b(?:{ordered})\b"


_CONTRACTION = lazy_pattern(r"n't\b|(?<=\bcan)not\b")
_SHORT = lazy_pattern(r"(?<=[a-z])'(?:m|re|ve|ll|d)\b|\bany (?:more|longer)\b")
_IDIOM = lazy_pattern(f"{_either(words.CHINESE_NEGATION_IDIOMS)}|{_either(words.NEGATION_IDIOMS)}")
_NO = f"{_either(words.NEGATORS)}|{_either(words.CHINESE_NEGATORS)}"
_NEGATIVE_VERB = f"{_either(words.NEGATIVE_VERBS)}|{_either(words.CHINESE_NEGATIVE_VERBS)}"
_DOUBLE_NO = lazy_pattern(f"(?:{_NO})[^,.;，。；]{{0,8}}?(?:{_NEGATIVE_VERB})")
_NEGATION = lazy_pattern(f"{_NEGATIVE_VERB}|{_NO}")
_WHOLE = lazy_pattern(rf"[{_CHAR}、,;]|[^\W{_CHAR}]+")
_MUTUAL = lazy_pattern(f"{_either(words.MUTUAL)}|{_either(words.CHINESE_MUTUAL)}")
_CHINESE_MOVABLE = lazy_pattern(_either(words.CHINESE_MOVABLE))
_NAMING = "在叫是到去姓为“"
_NAMED = lazy_pattern(rf"[{_NAMING}]([{_HAN}]{{2,4}})(?![{_HAN}])")
_COMPARED = lazy_pattern(f"{_either(words.COMPARISONS)}|{_either(words.CHINESE_COMPARISONS)}")
_REWRITTEN: Final = tuple(
    (lazy_pattern(_either(said)), instead)
    for said, instead in (words.REWRITTEN | words.CHINESE_REWRITTEN).items()
)
_OPPOSITES: Final = tuple(
    lazy_pattern(_either(group)) for group in (*words.OPPOSITES, *words.CHINESE_OPPOSITES)
)


def differs(a: str, b: str, *, read: "Callable[[str], Wording] | None" = None) -> Difference | None:
    """Say what keeps two near-identical sentences from stating the same, or None.

    The order of the two does not matter. A number or a name that only one of them has counts
    as a difference: to treat the two as one would lose it.

    "order" is the same words in another order, said of other names (in Chinese: in any order
    but that of who and when). "antonym" is a pair of opposites, or a comparison whose sides
    changed places. "name" is a capitalised word inside a sentence that the other
    does not have.
    "term" is a word (in Chinese, up to four characters) that stands in the place of
    another while most
    of the rest is shared, unless both are listed as synonyms: what is left when no rule above
    explains the difference, and all there is to see names by where a script has no capitals.

    Args:
        read: remembers, where one text is compared with many, how each is worded.

    """
    if _form(a) == _form(b):
        return None
    read = read or Wording
    said_a, said_b = read(a), read(b)
    if counts_differ(said_a.counts, said_b.counts) or counts_moved(said_a, said_b):
        return "number"
    opposed = _opposed(said_a.rest, said_b.rest)
    if said_a.negative != said_b.negative and opposed:
        # "Is not open" and "is closed": two differences that undo each other.
        return None
    if said_a.denies_what(said_b) or said_b.denies_what(said_a):
        return "negation"
    if opposed or _swapped(said_a.rest, said_b.rest):
        return "antonym"
    return _name_or_term(a, b, said_a, said_b)


def counts_moved(a: "Wording", b: "Wording") -> bool:
    """Tell whether the same numbers count other things: 2 dogs and 3 cats, 3 dogs and 2 cats.

    Where more than the numbers is said otherwise, the two are not compared.
    """
    of_a, of_b = a.numbers, b.numbers
    values_a, values_b = ([value for value, _ in numbers] for numbers in (of_a, of_b))
    if not of_a or set(values_a) != set(values_b):
        return False
    if len(of_a) == len(of_b) == 1:
        # Two daughters and a son, two sons and a daughter.
        behind = {_meaning(of_a[0][1]), _meaning(of_b[0][1])}
        return len(behind) == 2 and behind <= set(a.tokens) and set(a.tokens) == set(b.tokens)
    if a.tokens == b.tokens:
        return values_a != values_b
    return sorted(a.tokens) == sorted(b.tokens) and sorted(of_a) != sorted(of_b)


def _name_or_term(a: str, b: str, said_a: "Wording", said_b: "Wording") -> Difference | None:
    if names_in(a) - _words(_form(b)) or names_in(b) - _words(_form(a)):
        return "name"
    left, right = said_a.content, said_b.content
    told_of_another = is_told_of_another(_form(a), _form(b), left, right)
    if told_of_another or _reordered(a, b) or _other_subject(a, b):
        return "order"
    if _chinese_names(a, b) and _chinese_names(b, a):
        return "term"
    if _is_described(a, b, said_a, said_b):
        return "term"
    if _unlike(left, right) or _replaced(left, right) or _replaced_beside_more(left, right):
        return "term"
    return None


def describes(short: "Wording", long: "Wording", spared: Collection[str]) -> bool:
    """Tell whether what a statement is about only describes something in a longer one: cats, cat
    food.

    Args:
        short: a statement.
        long: one that may have all its words.
        spared: words behind which others may stand all the same: names, and who does something.

    """
    words = set(short.content)
    if not words < set(long.content):
        return False
    ends = (word for word in words.difference(spared) if "" in short.followed[word])
    return any(long.followed[word].isdisjoint({"", *words}) for word in ends)


def _is_described(a: str, b: str, said_a: "Wording", said_b: "Wording") -> bool:
    # Of Chinese, words are not told apart: 很不错 says what 不错 says.
    if said_a.negative or said_b.negative or has_cjk(a + b):
        return False
    return any(
        describes(short, long, names_in(text) | set(short.content[:1]))
        for text, short, long in ((a, said_a, said_b), (b, said_b, said_a))
    )


def _unlike(a: list[str], b: list[str]) -> bool:
    """Tell whether two statements share too few words to say the same."""
    left, right = set(a), set(b)
    few = len(left & right) < ALIKE * min(len(left), len(right))
    return few and min(len(left - right), len(right - left)) > 1


def _reordered(a: str, b: str) -> bool:
    """Tell whether the same words in another order say it of others: Ana paid Ben, Ben paid Ana."""
    form_a, form_b = _form(a), _form(b)
    if has_cjk(form_a):
        return _reordered_characters(form_a, form_b)
    if is_role_changed(*_without_user(_ordered(form_a), _ordered(form_b))):
        return True
    if _MUTUAL.search(form_a):
        return False
    all_a, all_b = (_words_only(form) for form in (form_a, form_b))
    if all_a == all_b or sorted(all_a) != sorted(all_b) or is_turned(all_a, all_b):
        return False
    names = names_in(a) | names_in(b)
    named = {token for token in all_a if _stem(token) in names}
    return len(names) >= 2 and roles(all_a, named) != roles(all_b, named)


def _reordered_characters(a: str, b: str) -> bool:
    if _MUTUAL.search(a):
        return False
    form_a, form_b = (_CHINESE_MOVABLE.sub("", take_quantities(form)[1]) for form in (a, b))
    if is_turned(_WHOLE.findall(form_a), _WHOLE.findall(form_b)):
        return False
    all_a, all_b = _words_only(form_a), _words_only(form_b)
    if all_a == all_b or sorted(all_a) != sorted(all_b) or is_turned(all_a, all_b):
        return False
    return not is_place_moved(all_a, all_b)


def _words_only(form: str) -> list[str]:
    return [token for token in _WHOLE.findall(form) if token not in {",", ";"}]


def _ordered(form: str) -> list[str]:
    """The words of a form and its commas, endings and synonyms folded, without articles."""
    tokens = (token for token in _WHOLE.findall(_SHORT.sub("", form)) if token not in _ARTICLES)
    return [
        token if token in AS_WRITTEN else _SYNONYMS.get(_stem(token), _stem(token))
        for token in tokens
    ]


def _without_user(a: list[str], b: list[str]) -> tuple[list[str], list[str]]:
    """Two lists of words without the user at the beginning of one that the other leaves out."""
    user = [_SYNONYMS["user"]]
    if (a[:1] == user) != (b[:1] == user):
        a, b = (each[each[:1] == user :] for each in (a, b))
    return a, b


def _other_subject(a: str, b: str) -> bool:
    """Tell whether two people change parts: "Ana asked Ben …", "Ben promised Ana …"."""
    first, other = (_stem(next(iter(_TOKEN.findall(_form(each))), "")) for each in (a, b))
    if first == other or first not in names_in(b) or other not in names_in(a):
        return False
    return not (_MUTUAL.search(_form(a)) or _form(a).startswith(f"{first} and {other}"))


def _replaced_beside_more(a: list[str], b: list[str]) -> bool:
    """Tell whether one word stands for another while one of the two says more besides."""
    if max(len(a), len(b)) > 40 or any(has_cjk(token) for token in (*a, *b)):
        return False
    changes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    kinds = [kind for kind, *_ in changes if kind != "equal"]
    if sorted(kinds) not in (["delete", "replace"], ["insert", "replace"]):
        return False
    at = next(n for n, change in enumerate(changes) if change[0] == "replace")
    _, left, left_end, right, right_end = changes[at]
    between = 0 < at < len(changes) - 1
    alone = left_end - left == right_end - right == 1
    return between and alone and a[left] not in b and b[right] not in a


class Wording:
    """A statement taken apart into what it counts, what it says and what it denies.

    Args:
        counts: its numbers, dates and times.
        tokens: its words that carry meaning, in order, synonyms and endings folded; characters of
            Chinese.
        negative: it says no.
        denied: what stands behind each no, a word each.
        scope: all that stands behind the first.

    """

    def __init__(self, statement: str) -> None:
        self._form = _form(statement)
        self.counts, self.rest = take_quantities(self._form)

    @cached_property
    def numbers(self) -> list[tuple[str, str]]:
        """Its numbers in order, as they are written, each with the word behind it."""
        return numbers_in(self._form)

    # The rest is read when it is asked for: most statements that are near differ in a number.
    @cached_property
    def _plain(self) -> str:
        text = _CONTRACTION.sub(" not", _SHORT.sub("", self.rest).replace("can't", "can not"))
        text = _DOUBLE_NO.sub(" ", text)
        for pattern, said in _REWRITTEN:
            text = pattern.sub(said, text)
        return _IDIOM.sub(" ", text)

    @cached_property
    def _ends(self) -> list[int]:
        """Where each no ends."""
        return [match.end() for match in _NEGATION.finditer(self._plain)]

    @property
    def negative(self) -> bool:
        return bool(self._ends)

    @cached_property
    def denied(self) -> set[tuple[str, ...]]:
        return {_next_words(self._plain, end) for end in self._ends} - {()}

    @cached_property
    def scope(self) -> set[str]:
        return set(_content(self._plain[self._ends[0] :])) if self._ends else set()

    @cached_property
    def tokens(self) -> list[str]:
        return _content(_NEGATION.sub(" ", self._plain))

    @property
    def content(self) -> list[str]:
        """Its words without those for the user themself."""
        return [token for token in self.tokens if token not in _SUBJECTS]

    @cached_property
    def followed(self) -> dict[str, set[str]]:
        """By word of `tokens` those that stand right behind it; "" where none does."""
        text = _folded(_NEGATION.sub(" ", self._plain))
        found: dict[str, set[str]] = {}
        follower, start = "", len(text)
        for match in reversed([*_TOKEN.finditer(text)]):
            means = _meaning(match[0])
            beside = not text[match.end() : start].strip()
            if means:
                found.setdefault(means, set()).add(follower if beside else "")
            follower, start = means, match.start()
        return found

    def denies_what(self, other: "Wording") -> bool:
        """Tell whether this denies something that the other, denying other things, says.

        "Does not eat meat" denies nothing that "is vegetarian" says.
        """
        said = set(other.tokens)
        if self.denies_all_that(other) or other.denies_all_that(self):
            return False
        return any(said.issuperset(each) for each in self.denied - other.denied)

    def denies_all_that(self, other: "Wording") -> bool:
        """Tell whether what the other denies stands behind the no of this one, too."""
        return bool(other.denied) and all(self.scope.issuperset(each) for each in other.denied)


def _next_words(text: str, start: int) -> tuple[str, ...]:
    """Return the word after a negation, or two Chinese characters, which are about a word."""
    tokens = _content(text[start : start + 60])
    return tuple(tokens[: 2 if tokens and has_cjk(tokens[0]) else 1])


def _form(text: str) -> str:
    return normalise(text).replace("’", "'").rstrip(" .!?。")


def _words(form: str) -> set[str]:
    return {_stem(token) for token in _TOKEN.findall(form)}


def names_in(text: str) -> set[str]:
    """The stems of capitalised words that do not begin a sentence."""
    found: set[str] = set()
    text = normalize("NFKC", text).replace("’", "'")
    for match in _TOKEN.finditer(text):
        word = match[0].casefold()
        if not match[0][0].isupper() or word in _NO_NAMES:
            continue
        if not _SENTENCE_START.search(text[max(match.start() - 20, 0) : match.start()]):
            found.add(_stem(word))
    return found


def _chinese_names(text: str, other: str) -> bool:
    """Tell whether a place for a name holds what the other has nowhere: 在深圳, 叫“北岸”."""
    form, said = _form(text), set(_form(other))
    masked = "".join("#" if char in said and char not in _NAMING else char for char in form)
    return _NAMED.search(masked) is not None


def _content(text: str) -> list[str]:
    """Split into words that carry meaning, synonyms and endings folded; characters for Chinese."""
    return [means for token in _TOKEN.findall(_folded(text)) if (means := _meaning(token))]


def _folded(text: str) -> str:
    return _CHINESE_SYNONYM.sub(lambda match: _SYNONYM_CHARACTER[match[0]], text)


def _meaning(token: str) -> str:
    """What is compared of a word; nothing of one that carries no meaning."""
    stem = "" if token in _STOP_WORDS else _stem(token)
    return _SYNONYMS.get(stem, stem)


def _stem(word: str) -> str:
    """Cut the commonest English endings, so that "likes" and "liked" are one word."""
    word = word.removesuffix("'s")
    if not word.isascii() or len(word) < 4:
        return word
    for ending, rest in (("ies", "y"), ("ing", ""), ("ed", ""), ("ly", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(ending) + rest
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word.removesuffix("e")


def _opposed(a: str, b: str) -> bool:
    for group in _OPPOSITES:
        found_a, found_b = set(group.findall(a)), set(group.findall(b))
        if found_a and found_b and not found_a & found_b:
            return True
    return False


def _swapped(a: str, b: str) -> bool:
    """Tell whether the sides of a comparison changed places: tea over coffee, coffee over tea."""
    sides = [[set(_content(side)) for side in _COMPARED.split(text, maxsplit=1)] for text in (a, b)]
    if len(sides[0]) != 2 or len(sides[1]) != 2:
        return False
    (left_a, right_a), (left_b, right_b) = sides
    return bool(right_a & left_b - left_a and right_b & left_a - left_b)


def _replaced(a: list[str], b: list[str]) -> bool:
    """Tell whether one place holds the whole difference, and words on both sides of it.

    A place is what is left between the common beginning and the common end.
    """
    start = common_start(a, b)
    end = common_start(a[start:][::-1], b[start:][::-1])
    left, right = a[start : len(a) - end], b[start : len(b) - end]
    # Words that only moved, or were only added, take nobody's place.
    if set(left) <= set(b) or set(right) <= set(a):
        return False
    return max(_size(left), _size(right)) <= 4


def _size(tokens: list[str]) -> int:
    """Count a Latin word as two characters of Chinese."""
    return sum(1 if has_cjk(token) else 2 for token in tokens)


_STOP_WORDS: Final = frozenset(words.STOP_WORDS.split("|")) | frozenset(
    words.CHINESE_STOP_CHARACTERS
)
_NO_NAMES: Final = frozenset(
    ("i", "am", "pm", *MONTHS, *WEEKDAYS, *words.NUMBER_WORDS, *_STOP_WORDS)
)
_ARTICLES: Final = frozenset({"a", "an", "the"})
_SYNONYMS: Final = {
    _stem(word): _stem(group.split("|")[0]) for group in words.SYNONYMS for word in group.split("|")
}
_SYNONYM_CHARACTER: Final = {
    word: chr(0xE000 + number)
    for number, group in enumerate(words.CHINESE_SYNONYMS)
    for word in group.split("|")
}
# Who is spoken of is "the user" in one statement, "he" in another and left out in a third.
_SUBJECTS: Final = {_SYNONYMS["user"], _SYNONYM_CHARACTER["用户"]}
_CHINESE_SYNONYM = lazy_pattern(_either("|".join(_SYNONYM_CHARACTER)))
