"""Corrections of a word or two: "no, Lyon", after a turn that names another place."""

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Final

from app.language.keyless import english
from app.language.keyless.assistant import claim_of
from app.language.keyless.english_forms import others, owned, plain, predicate, sentence
from app.language.keyless.mending import Correction, replaced
from app.language.keyless.patterns import compiled, exact
from app.language.keyless.sentences import without_foreign_words
from app.language.keyless.statements import CORRECTED, Statement

_MOST_WORDS: Final = 5
_NUMBERS: Final = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    "|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
)
# "No", "actually", "wrong company", "scratch that": what makes the next words a correction.
_CUE: Final = compiled(
    r"""
    (?:(?:no|nope|nah|not quite|wrong(?: [\w ]{2,20})?|incorrect|correction|typo|oops|whoops|sorry|
    actually|wait|hold on|scratch that|strike that|make that|my bad|my mistake|i misspoke|close|
    almost|i meant|i mean|meant|that is (?:wrong|not right|outdated|old|not it|incorrect)|
    it should be|should be|there is an? \w+ in (?:there|it))(?:[,.:;!\-– ]+|$))+
    """
)
_CUE_BEHIND: Final = compiled(
    r"""
    [,.!]? (?:actually|sorry|in fact|now|i meant|please|you are (?:mixing|confusing)\b.*|
    you (?:mixed|misheard|misread|got)\b.*|you must be thinking of\b.*|that is (?:wrong|not right))
    [ .!:)]*$
    """
)
# "It is", "I am in", "make it": what may stand before the value.
_BEFORE: Final = compiled(
    r"""
    ^(?:
        (?:
            it is|it was|that is|that was|i am|we are|i live|we live|i work|make (?:it|that)|
            more like|i said|i meant|my name is|they are|she is|he is|there are|i have|
            we have|spelled|at|in|for|on|to|from|with|called|only|just|by|of|about|now|a|an|
            the
        )(?: |$)
    )+
    """
)
_BUT: Final = compiled(
    r"""
    (?:,? (?:and )?(?:not|instead of|rather than)(?: in| at| on| a| an| the| for)? (?P<old>
    [\w' .:-]{1,30}))$
    """
)
# What is being told of the user, and not of the world: "so your …", "got it, …".
_ABOUT_USER: Final = compiled(
    r"""
    \b(?:you|your|you're|you've)\b|
    (?:
        so|got it|noted|ok|okay|understood|great|perfect|sure|done|right|alright|i will|
        booked|saved
    )\b
    """
)
_SPEAKS: Final = compiled(r"(?:i|we|my|our|it|this|that|he|she|they|you|not|never|please|what)\b")
_OPEN: Final = compiled(r"(?:what|where|who|how|when|why|which)\b")
_DAY: Final = compiled(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b")
_MONTH: Final = exact(
    r"""
    \b(?:January|February|March|April|May|June|July|August|September|October|November|December)
    (?: [0-9]{1,2}(?:st|nd|rd|th)?)?\b
    """
)
_HOUR: Final = compiled(r"\b[0-9]{1,2}(?::[0-9]{2})? ?(?:am|pm)\b|\b[0-9]{1,2}:[0-9]{2}\b")
_NUMBER: Final = compiled(rf"(?<![\w.])(?:[0-9][0-9.,]*[0-9]|[0-9]|{_NUMBERS})(?![\w])")
_TITLE: Final = exact(r"\b(?:Mr|Mrs|Ms|Mx|Miss|Dr|Prof)\b\.?")
_NAME: Final = exact(r"(?<![.!?] )(?<!^)\b[A-ZÀ-Þ][\w'-]+(?: [A-ZÀ-Þ][\w'-]+)*")
_CLASSES: Final = (_DAY, _MONTH, _HOUR, _NUMBER, _TITLE)
_STATES: Final = compiled(
    r"""
    (?:
        the user (?:
            is|has|was|lives|works|moved|started|starts|leaves|flies|owns|speaks|drives|plays|
            studies|teaches|uses|prefers|needs|arrives|weighs|pays|earns|runs|graduated|got|
            meets|turns
        )\b|
        the user's [\w' -]{2,40}? (?:
            is|are|was|has|starts|ends|lands|leaves|arrives|runs|uses|lives|works|departs|
            takes|costs|turns|begins
        )\b
    )
    """
)


def spoken_by_user(content: str) -> list[str]:
    """What a turn of the user states, in the third person, whether or not it lasts."""
    found = []
    for each in re.split(r"(?<=[.!])\s+|\n", content)[:6]:
        said = plain(each.strip().rstrip(".!"))
        if "?" in said or len(said) > 200:
            continue
        own = re.match(r"(?:i|we) (.+)", said, re.IGNORECASE)
        text = sentence(f"the user {predicate(own[1])}" if own else owned(said))
        if _STATES.match(text):
            found.append(text)
    return found


def spoken_by_assistant(content: str) -> list[str]:
    """What a turn of the assistant says of the user, in the third person."""
    found = []
    for each in re.split(r"(?<=[.!?])\s+|\n", content)[:6]:
        if not _ABOUT_USER.search(each) or _OPEN.match(each) or len(each) > 200:
            continue
        said = claim_of(each)
        own = re.match(r"i (.+)", said, re.IGNORECASE)
        text = f"the user {predicate(own[1])}" if own else owned(said)
        found.append(sentence(others(text) if own is None else text))
    return found


def elliptical(text: str, lines: Sequence[str]) -> Correction | None:
    """The newest line with what a short turn puts in its place; None when it does not fit.

    `lines` are what was said last, newest last.
    """
    first, rest = _first_words(plain(text))
    cue = _CUE.match(first)
    body = first[cue.end() :] if cue else first
    behind = _CUE_BEHIND.search(body)
    body = body[: behind.start()] if behind else body
    body, _, more = body.partition(", I ")
    but = _BUT.search(body)
    old = but["old"] if but else None
    value = _BEFORE.sub("", body[: but.start()] if but else body, count=1).strip(" .,!:)(")
    if not value or len(value.split()) > _MOST_WORDS or not (cue or behind or old):
        return None
    for line in reversed(lines):
        target = _target(line, value, old)
        if target is None or target.casefold() == value.casefold():
            continue
        start = line.rindex(target)
        mended = sentence(line[:start] + _fitting(value, target) + line[start + len(target) :])
        return Correction(
            (Statement(mended, "correction", CORRECTED),),
            (line,),
            f"I {more}. {rest}" if more else rest,
        )
    return None


# "Tea, no wait, coffee" within a sentence; "I am 30. Sorry, 31." after it.
_SLIP: Final = compiled(
    r"""
    (?:
        (?P<sure>[,;.!]? ?(?:-+|–|—)? ?\b(?:
            (?:oh |ah |oops )?(?:no,? wait|wait,? no|scratch that|strike that|correction|make that|
            i misspoke|no,? sorry|sorry,? no|no,? i (?:mean|meant)|or rather|i mean to say|
            sorry,? i (?:mean|meant))
            (?:,? (?:actually|sorry|i meant|i mean|it is|make that))?
        ))|
        (?P<soft>[.!,;-]+ (?:sorry|oops|whoops|i mean|i meant|wait)|[.!;] no(?=,))
    )(?:[,:!.]| -+| –| —)* ?
    (?P<new>(?:(?:in|at|a|an|the|on|for|to) )?[\w'][\w'.:-]*(?: [\w'][\w':-]*){0,2}?)
    (?P<end>[.!,;]|$)
    """
)


def slip(text: str) -> Correction | None:
    """What somebody says and sets right in one breath: "I am 30. Sorry, 31."."""
    lines = without_foreign_words(text).split("\n")
    for number, line in enumerate(lines):
        found = _slip_in(plain(line))
        if found:
            rest = "\n".join((*lines[:number], found.rest, *lines[number + 1 :]))
            return Correction(found.statements, found.errors, rest)
    return None


def _slip_in(said: str) -> Correction | None:
    found = _SLIP.search(said)
    if found is None or "?" in said[: found.end()] or _SPEAKS.match(found["new"]):
        return None
    before = re.split(r"(?<=[.!?])\s+", said[: found.start()])
    head = re.sub(r"[ ,]+(?:and|but|or)?$", "", before.pop())
    value = _BEFORE.sub("", found["new"], count=1).strip(" .")
    known = english.read(head)
    if not known or not value:
        return None
    mended = _set_right(known, value)
    if mended is None and found["sure"]:
        mended = _last_word_right(head, value, known)
    if mended is None:
        return None
    rest = " ".join((*before, said[found.end() :].lstrip(" ,;")))
    return Correction(mended.statements, mended.errors, rest)


def _set_right(known: Sequence[Statement], value: str) -> Correction | None:
    """What was just said, with the value where one like it stands."""
    mended = replaced(value, None, known)
    if mended is None:
        return elliptical(f"sorry, {value}", [each.content for each in known])
    beside = [each for each in known if each.content != mended[1]]
    return Correction((*beside, mended[0]), (*(None for _ in beside), mended[1]), "")


def _last_word_right(head: str, value: str, known: Sequence[Statement]) -> Correction:
    """The sentence with the value for its last word; nothing where that does not fit."""
    nothing = Correction((), (), "")
    wrong = re.search(r"[\w'-]+$", head)
    if wrong is None or " " in value or value[0].isupper() != wrong[0][0].isupper():
        return nothing
    right = english.read(head[: wrong.start()] + value)
    if len(right) != len(known):
        return nothing
    statements, errors = [], []
    for each, error in zip(right, known, strict=True):
        same = each.content == error.content
        statements.append(
            each if same else replace(each, memory_type="correction", confidence=CORRECTED)
        )
        errors.append(None if same else error.content)
    return Correction(tuple(statements), tuple(errors), "")


def _first_words(said: str) -> tuple[str, str]:
    """The first sentence, with the denials before it: "No. It is Lyon"."""
    cue = _CUE.match(said)
    start = cue.end() if cue else 0
    end = re.search(r"[.!?](?=\s|$)|\n", said[start:].rstrip(" .!:)"))
    if not end:
        return said.rstrip(" .!"), ""
    return said[: start + end.start()], said[start + end.end() :].strip()


def _target(line: str, value: str, old: str | None) -> str | None:
    """The words of the line that the value takes the place of."""
    if old:
        place = line.casefold().rfind(old.strip(" .").casefold())
        return line[place : place + len(old.strip(" ."))] if place >= 0 else None
    for pattern in _CLASSES:
        if pattern.search(value):
            found = pattern.findall(line)
            return found[-1] if len(set(found)) == 1 else None
    if not value[:1].isupper():
        return None
    names = [each for each in _NAME.findall(line) if not _DAY.search(each)]
    alike = [each for each in names if SequenceMatcher(None, each, value).ratio() >= 0.6]
    if alike:
        return str(alike[-1])
    return str(names[-1]) if len(set(names)) == 1 else None


def _fitting(value: str, target: str) -> str:
    """Of the value, the part that is of the target's kind: "Thursday" of "Thursday evening"."""
    for pattern in _CLASSES:
        if pattern.fullmatch(target):
            found = pattern.search(value)
            return found[0] if found else value
    return re.sub(r"^(?:in|at|a|an|the|on|for) (?=\w)", "", value)
