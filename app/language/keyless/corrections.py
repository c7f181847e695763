"""When somebody sets something right: what they put in the place of what, in both languages."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from app.language.keyless import english
from app.language.keyless.attributes import attribute_of
from app.language.keyless.chinese_corrections import chinese_corrected
from app.language.keyless.english_forms import plain
from app.language.keyless.mending import Correction, replaced, restated
from app.language.keyless.patterns import compiled, exact
from app.language.keyless.statements import CORRECTED, Statement

_DENIAL: Final = compiled(
    r"""
    (?:
        (?:
            no|nope|nah|no no|not quite|not exactly|not really|wrong|incorrect|correction|typo|
            oops|whoops|ups|my bad|my mistake|i misspoke|i mistyped|scratch that|strike that|
            (?:actually,? )?(?:that is|that's|thats|this is|it is|it's) (?:
                wrong|not right|not correct|incorrect|not true|a mistake|outdated|
                not what i said|false|not quite right|a typo|not accurate|inaccurate|an error
            )|
            (?:i think )?(?:you are|you're) (?:wrong|mistaken|confusing \w+ with \w+)|
            you (?:got|have|had) (?:that|it|this|my \w+) (?:wrong|mixed up|backwards|confused)|
            you (?:misheard|misunderstood|misread|mixed (?:that|it|me) up)|
            (?:that is |that's )?not (?:me|mine|true|right)|
            let me (?:correct|fix|rephrase) (?:that|myself|you)|
            i need to correct (?:that|myself)|to correct (?:that|myself)|small correction|
            quick correction|one correction
        )(?: (?:there|though|actually|sorry|about (?:that|me|my \w+)))?[,.:;!\-– ]+
    )+(?:sorry[,.]? |actually[,.]? |but |it is |it's |wait[,.]? )*
    """
)
_WEAK: Final = compiled(
    r"""
    (?:(?:sorry|actually|wait|hold on|hmm|ah|oh|i mean|pardon|apologies|well)[,.!:]* )+
    """
)
_MEANT: Final = compiled(
    r"""
    (?:(?:sorry|oops|actually|wait|ah|oh|no|hmm|i)[,.!]* )*(?:i )?(?:
        meant|mean to say|should be|should have said|it should be|should say|make that|
        meant to say|it is|it's|that should be|that was supposed to be|was supposed to say|
        it was
    )(?: (?:to say|to write|to type))? (?P<new>[^,.;!?]{1,40}?)
    (?:,? (?:and )?(?:not|instead of|rather than) (?P<old>[^,.;!?]{1,40}))?[.!]*$
    """
)
# "No, I meant I live in Bern": a whole statement.
_MEANT_THAT: Final = compiled(
    r"^(?:i )?(?:meant|mean|wanted)(?: to (?:say|write|type))?(?: that)?,? (?=(?:i|we|my|our)\b)"
)
_NOT: Final = compiled(
    r"""
    ^(?P<new>(?!(?:i|we|my|our|it|this|that)\b)[^,.;!?]{1,30}?),? (?:and )?not (?P<old>
        [^,.;!?]{1,30}
    )[.!]*$
    """
)
_NOT_TAIL: Final = compiled(
    r"""
    (?<!do)(?<!does)(?<!did)(?<!is)(?<!are)(?<!am)(?<!was)(?<!can)(?<!will)(?<!have)(?<!has)
    (?<!could)(?<!would)(?<!had)(?<!were)(?<!should)(?<!or)
    ,? (?:and )?not (?:in |at |for |with |from |a |an |the |on )?(?P<old>[^,.;!?]{1,40}?)
    (?: any ?more)?[.!]*$
    """
)
_SPELLED: Final = exact(
    r"""
    (?i:
        (?:no,? |actually,? )?(?:
            it's|it is|that's|that is|my name is|i am|i'm|the name is|spelled|it is spelled|
            it's spelled
        )
    ) (?P<new>[A-ZÀ-Þ][\w'-]+),?(?i: (?:
            with (?:a|an|one|two) [\w ]{1,12}|without (?:a|an|the) [\w ]{1,12}|
            not (?P<old>[A-ZÀ-Þ][\w'-]+)|actually|by the way|spelled .{1,20}
        )
    )[.!]*$
    """
)
_NAMED_NOT: Final = exact(
    r"""
    (?:(?i:it is|my name is|name is) |^)(?P<new>[A-ZÀ-Þ][\w'-]+),? (?i:and )?not (?P<old>
        [A-ZÀ-Þ][\w'-]+
    )$
    """
)


def corrected(text: str, known: Sequence[Statement], *, is_chinese: bool) -> Correction | None:
    """What a message sets right, given what was said before it, newest last; None if nothing."""
    return chinese_corrected(text, known) if is_chinese else _english(text, known)


def _english(text: str, known: Sequence[Statement]) -> Correction | None:
    said = plain(text)
    denial = _DENIAL.match(said)
    body, rest = _first_sentence(said[denial.end() :] if denial else said)
    spelled = _SPELLED.match(body)
    if spelled and (denial or known):
        found = _spelled(spelled, known)
        if found:
            return Correction((found[0],), (found[1],), rest)
    weak = _WEAK.match(body)
    bare = body[weak.end() :] if weak else body
    for pattern in (_MEANT, _NOT):
        match = pattern.match(bare)
        if match and (denial or weak or pattern is _NOT or "meant" in bare):
            found = replaced(match["new"], match.groupdict().get("old"), known)
            if found:
                return Correction((found[0],), (found[1],), rest)
    bare = _MEANT_THAT.sub("", bare) if denial or weak else bare
    named = _NAMED_NOT.search(bare)
    if named and re.search(r"(?<!'s )\bname\b", said, re.IGNORECASE):
        error = f"The user is called {named['old']}."
        mended = Statement(f"The user is called {named['new']}.", "correction", CORRECTED)
        return Correction((mended,), (error,), rest)
    tail = _NOT_TAIL.search(bare)
    if not denial and not tail:
        return None
    stem = bare[: tail.start()] if tail else bare
    statements = [each for each in english.read(stem) if not each.retracts]
    if not statements and denial and tail and re.match(r"(?:my|our|the) ", bare, re.IGNORECASE):
        statements = list(english.remembered(stem, text))
    old = tail["old"] if tail else None
    heard = old is not None and any(
        old.casefold() in each.content.casefold() for each in known[-8:]
    )
    return restated(statements, old, known, certain=denial is not None or heard, rest=rest)


def _first_sentence(said: str) -> tuple[str, str]:
    parts = re.split(r"(?<=[^.\s][.!?])\s+", said, maxsplit=1)
    return parts[0].rstrip(".!"), parts[1] if len(parts) > 1 else ""


def _spelled(
    match: re.Match[str], known: Sequence[Statement]
) -> tuple[Statement, str | None] | None:
    """A name said again in another spelling."""
    new, old = match["new"], match["old"]
    for other in reversed(known[-8:]):
        given = attribute_of(other.content)
        if (
            given
            and given[0] == "user.name"
            and SequenceMatcher(None, given[1], new).ratio() >= 0.5
        ):
            error = f"The user is called {old or given[1]}."
            return Statement(f"The user is called {new}.", "correction", CORRECTED), error
    return None
