"""What can have one value at a time: which attributes a statement gives, their values, when two of
these are the same, and when one says the other more precisely.

Reads the first person ("I live in Munich") and the third ("The user lives in Munich."), and only
what is said plainly and of the present: what was, what is for a while, what is wished, asked or
supposed gives nothing, and neither does what is said of somebody else. It reads the frames of
sentences (`attribute_frames`), so there is no list of cities, jobs or names.

Numbers are compared by what they count (85k and $85,000), words as whole words: 十万 is no part of
二十万, and York none of New York.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from app.language.keyless import attribute_frames as frames
from app.language.keyless.attribute_frames import CHINESE, ENGLISH, Frame
from app.language.text.function_words import ENGLISH as IN_ENGLISH
from app.language.text.function_words import STOP_WORDS
from app.language.text.normal_forms import has_cjk, normalise, simplify
from app.language.text.quantities import Quantity, counts_differ, take_quantities

LONGEST: Final = 400
"""Characters of a statement that is read; what is longer is not plain."""

_MARKS: Final = " .,;:!?\"'“”《》「」。，、；：！？…"
_GOES_ON: Final = ("user.residence", "user.origin", "user.birthday", "user.employer")


class Attribute(NamedTuple):
    """A value that can be the only one of its kind.

    Args:
        name: as `user.residence`.
        value: as written.
        began: the statement says that it came to be so ("moved to Munich"), and not that it is so.
        rest: the words of the statement that belong to none of its attributes.

    """

    name: str
    value: str
    began: bool = False
    rest: frozenset[str] = frozenset()


def attribute_of(content: str) -> Attribute | None:
    """The first attribute that a statement gives."""
    return next(iter(attributes_of(content)), None)


@lru_cache(maxsize=256)
def attributes_of(content: str) -> tuple[Attribute, ...]:
    """The attributes that a statement gives, in its order; each name once."""
    text = " ".join(content.replace("’", "'").split())
    if not text or len(text) > LONGEST:
        return ()
    english = frames.IS_ENGLISH.match(text) or not has_cjk(text)
    reading = _EnglishReading(text) if english else _ChineseReading(text)
    first: dict[str, Attribute] = {}
    for each in reading.given:
        first.setdefault(each.name, each)
    rest = frozenset(reading.rest)
    return tuple(each._replace(rest=rest) for each in first.values())


def gives(memory_type: str, attribute: str) -> bool:
    """Tell whether a statement of a type says what is, and not what is wished or done often."""
    if memory_type in {"preference", "constraint"}:
        return attribute in {"user.language", "user.diet", "user.budget"}
    return memory_type in {"fact", "event", "correction", "context", "knowledge"}


def comparable(value: str) -> str:
    """The form in which two values are the same: "Munich" and "munich."."""
    return normalise(simplify(value)).strip(_MARKS).removeprefix("the ")


class _EnglishReading:
    """What a text gives, sentence by sentence and piece by piece."""

    def __init__(self, text: str) -> None:
        self.given: list[Attribute] = []
        self.rest: set[str] = set()
        # Somebody who writes no capitals writes none in names either.
        self._lower = text == text.lower()
        self._self = True
        greeted = False
        for sentence in frames.SENTENCE.split(text):
            if frames.UNSURE.search(sentence):
                self._leave(sentence)
                self._self = False
                continue
            already = len(self.given)
            for piece in (each.strip(_MARKS) for each in frames.PIECE.split(sentence)):
                self._read(piece, already, greeted=greeted)
                greeted = frames.GREETING.fullmatch(piece) is not None

    def _read(self, piece: str, already: int, *, greeted: bool) -> None:
        last = self.given[-1] if len(self.given) > already else None
        if last and last.name in _GOES_ON and frames.GOES_ON.fullmatch(piece):
            # "Rome, Italy": the value goes on behind the comma.
            self.given[-1] = last._replace(value=f"{last.value}, {piece}")
            return
        lead = frames.LEAD.match(piece)
        said = piece[lead.end() :] if lead else piece
        if not frames.SELF.match(said) and frames.VERB.match(said):
            said = f"I {said}" if self._self else said
        greeted = greeted or bool(lead and frames.GREETING.match(lead[0]))
        found = tuple(self._framed(said, piece, greeted=greeted))
        self.given.extend(found)
        if not found:
            if last and not frames.SELF.match(said) and frames.NOT_NOW.search(piece):
                # "I live in Rome, but only until June".
                self.given.pop()
            self._leave(said)
        self._self = bool(frames.SELF.match(said)) or (self._self and not said)

    def _framed(self, said: str, piece: str, *, greeted: bool) -> Iterator[Attribute]:
        read = said.title() if self._lower else said
        introduced = frames.INTRODUCED.fullmatch(read) if greeted else None
        if introduced:
            yield Attribute("user.name", _written(introduced["v"], piece))
            return
        for frame in ENGLISH:
            match = frame.pattern.fullmatch(read)
            if match and not _is_passing(read, frame):
                besides = match.groupdict()
                for group, name in frame.groups:
                    yield Attribute(f"user.{name}", _written(match[group], piece), frame.began)
                self._leave(" ".join(besides.get(each) or "" for each in ("tail", "with")))
                return

    def _leave(self, text: str) -> None:
        found = (word.casefold() for word in frames.WORD.findall(text))
        self.rest |= {
            word
            for word in found
            if word not in STOP_WORDS[IN_ENGLISH] and not frames.TIME.fullmatch(word)
        }


def _is_passing(said: str, frame: Frame) -> bool:
    """Tell what was, or is only for a while."""
    if frames.NOT_NOW.search(said):
        return True
    if frame.began:
        return frame.groups[0][1] == "residence" and frames.FOR_SO_LONG.search(said) is not None
    return frame.passes and frames.FOR_A_WHILE.search(said) is not None


def _written(value: str, text: str) -> str:
    """The value with the capitals that it was written with."""
    value = value.strip(_MARKS)
    at = text.casefold().find(value.casefold())
    return value if at < 0 else text[at : at + len(value)]


class _ChineseReading:
    """As the English one; subjects are left out more often, and then carry on."""

    def __init__(self, text: str) -> None:
        self.given: list[Attribute] = []
        self.rest: set[str] = set()
        self._self = True
        self._already = 0
        folded = simplify(text)
        for sentence in frames.CHINESE_SENTENCE.finditer(folded):
            if frames.CHINESE_UNSURE.search(sentence[0]):
                self._self = False
                self._leave(sentence[0])
                continue
            self._already = len(self.given)
            for piece in frames.CHINESE_PIECE.finditer(folded, *sentence.span()):
                self._read(folded, text, *piece.span())

    def _read(self, folded: str, text: str, start: int, end: int) -> None:
        piece = folded[start:end].strip(_MARKS)
        start = folded.index(piece, start)
        lead = frames.CHINESE_LEAD.match(piece)
        at, named = (lead.end(), lead["who"] is not None) if lead else (0, False)
        if at == len(piece) or (not named and frames.CHINESE_OTHERS.match(piece)):
            self._self = named or at == len(piece) > 0
            self._leave(piece[at:])
            return
        for frame in CHINESE:
            match = frame.pattern.fullmatch(piece, at) if named or self._self else None
            # "A new dish, called …": what has a name need not be the user.
            if match is None or (not named and frame.groups[0][1] == "name"):
                continue
            if _is_over(piece[: match.start("v")] + piece[match.end("v") :], frame):
                continue
            for group, name in frame.groups:
                value = text[start + match.start(group) : start + match.end(group)]
                self.given.append(Attribute(f"user.{name}", value.strip(_MARKS), frame.began))
            self._self = not frames.CHINESE_OTHERS.match(piece, at)
            return
        if len(self.given) > self._already and not named and frames.CHINESE_UNTIL.match(piece, at):
            # 我住在罗马，直到2019年.
            self.given.pop()
        self._self = named and not frames.CHINESE_INTRODUCED.match(piece, at)
        self._leave(piece[at:])

    def _leave(self, text: str) -> None:
        self.rest |= {char for char in text if has_cjk(char)} - frames.CHINESE_EMPTY
        self.rest |= {word.casefold() for word in frames.WORD.findall(text) if word.isascii()}


def _is_over(said: str, frame: Frame) -> bool:
    """Tell what was, is wished, or is only for a while, by the words around the value."""
    if frames.CHINESE_PASSING.search(said):
        return True
    past = not frame.began and frames.CHINESE_PAST.search(said) is not None
    return past and frames.CHINESE_SINCE.search(said) is None


def is_same_value(one: str, other: str) -> bool:
    """Tell whether two values are one."""
    one, other = comparable(one), comparable(other)
    if one == other:
        return True
    (counts, words), (other_counts, other_words) = take_quantities(one), take_quantities(other)
    return (
        bool(counts)
        and not counts_differ(counts, other_counts)
        and _words(words) == _words(other_words)
    )


def is_one_value(one: str, other: str, attribute: str) -> bool:
    """Tell whether two values are one, or one of them says the other more precisely."""
    return (
        is_same_value(one, other)
        or is_more_precise(one, other, attribute)
        or is_more_precise(other, one, attribute)
    )


def give_other_values(one: str, other: str, attribute: str) -> bool:
    """Tell whether two statements surely give two values of an attribute."""
    given = _values_of(one, other, attribute)
    return given is not None and not is_one_value(*given, attribute)


def give_one_value(one: str, other: str, attribute: str) -> bool:
    """Tell whether two statements surely give one value of an attribute."""
    given = _values_of(one, other, attribute)
    return given is not None and is_one_value(*given, attribute)


def _values_of(one: str, other: str, attribute: str) -> tuple[str, str] | None:
    values = [
        each.value
        for content in (one, other)
        for each in attributes_of(content)
        if each.name == attribute
    ]
    return (values[0], values[1]) if len(values) == 2 else None


def is_more_precise(longer: str, shorter: str, attribute: str) -> bool:
    """Tell whether a value says another and more: "Munich-Schwabing" and "Munich", but not
    "New York" and "York". Of Chinese places the larger stands first, of names the family's.
    """
    written, short = longer.strip(), comparable(shorter)
    long = comparable(longer)
    if len(long) <= len(short) or not short:
        return False
    (counts, words), (fewer, fewer_words) = take_quantities(long), take_quantities(short)
    if attribute != "user.name" and (counts or fewer):
        return _values(fewer) <= _values(counts) and _words(fewer_words) <= _words(words)
    if has_cjk(short):
        if len(short) < 2:
            return False
        return long.endswith(short) or (attribute != "user.name" and long.startswith(short))
    found = re.search(rf"(?<!\w){re.escape(short)}(?!\w)", written, re.IGNORECASE)
    if found is None:
        return False
    before = re.search(r"(\w+) $", written[: found.start()])
    return before is None or before[1].islower()


def _values(counts: frozenset[Quantity]) -> set[str]:
    return {value for value, _ in counts}


def _words(text: str) -> set[str]:
    # What stands between the numbers of a date is no word.
    found = re.findall(r"[^\W_年月日号]+", text)
    return set().union(*(set(word) if has_cjk(word) else {word} for word in found))
