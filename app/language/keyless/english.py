"""What English says about the speaker: clauses, their subjects, and what frames they fill."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from app.language.keyless import english_words as words
from app.language.keyless.english_choices import CHOICES
from app.language.keyless.english_cutting import TRAILING, clauses, predicates, without_markers
from app.language.keyless.english_exclusions import (
    english_clause_excluded,
    english_opens_text,
    is_english_question,
    is_english_task,
    is_sarcasm,
)
from app.language.keyless.english_forms import others, owned, plain, predicate, sentence
from app.language.keyless.english_frames import DENIED_AGAIN, Frame, starts_of
from app.language.keyless.english_people import of_people, person_in, put_for_pronoun
from app.language.keyless.english_predicates import FRAMES
from app.language.keyless.english_things import MY_FRAMES, OWN_PROJECT, PROJECT_FRAMES
from app.language.keyless.english_whole_frames import FIRM_FRAMES, WHOLE_FRAMES
from app.language.keyless.english_wholes import first_of
from app.language.keyless.english_wishes import is_bare_wish, is_own, unwished_in, wish_in
from app.language.keyless.patterns import compiled
from app.language.keyless.sentences import (
    sentences,
    with_titles,
    without_foreign_words,
    without_titles,
)
from app.language.keyless.statements import ASKED, IMPLIED, Statement

_LEAD: Final = compiled(
    r"""
    (
        (?:
            in|on|at|come|since|for|every|during|after|before|last|next|until|from|most|
            within|over|around|back in|by|this|these|when|whenever|while|with|due to|
            because of|thanks to|as of|ever since|once|twice|three|two|a (?:few|couple)|
            yesterday|tomorrow|today|nowadays|lately|usually|normally|generally|typically|
            sometimes|currently|recently|at first|[0-9]+|
            a (?:fortnight|week|month|year|decade|day)|mornings|evenings|weekends|
            (?:mon|tues|wednes|thurs|fri|satur|sun)days|some ?day|one day|growing up|
            back home|outside|unlike|instead of|between|apart from|besides|originally|
            right now|now|days?|weeks?|months?|years? ago|
            (?:one|four|five|six|seven|eight|nine|ten) (?:days?|weeks?|months?|years?) ago
        )\b[^;:?]{0,60}?
    ),? (?=(?:i|we)\b (?!.*\bthat i\b))
    """
)


_AS: Final = compiled(
    r"""
    (?:as|being|speaking as|speaking as someone who is) (?P<what>
        an? (?!
            kid|child|teen|teenager|test|result|rule|side|first|beginner|gift|present|reminder|
            follow|next|last|matter|backup|start|fallback|joke|general|note|reference|way|user|
            bonus|young|boy|girl|baby|whole|workaround|consequence|reward|small|favou?r|
            customer|client|consumer|visitor|reader|buyer|shopper|guest|subscriber|human|person|
            paying|registered|logged|admin|administrator|moderator|product owner
        )[\w' -]{2,50}?
    ),? (?=(?:i|my|we)\b)
    """
)
# "Speaking as a midwife, that advice is dangerous".
_SPEAKING_AS: Final = compiled(r"speaking as (?P<what>an? [\w' -]{3,40})(?:,|$)")


# "Being fluent in Farsi, I …": a state that is given as the reason.
_BEING: Final = compiled(
    r"""
    being (?P<what>(?!an? |honest|able|that|said|there|here|new|[0-9])[\w' ]{4,50})
    (?:,[ ](?=(?:i|my|we)\b)|$)
    """
)
_NOW: Final = compiled(words.TODAY)


_LATELY: Final = {"rn", "right now", "at the moment", "atm"}


# "In the game, I am a wizard": a lead that leaves the real world.
# "Just kidding!": what was said last is not meant.
_IN_JEST: Final = compiled(
    r"""
    (?:(?:no|nah|nope|ha(?:ha)*|lol|ok|okay|well|oh|but|i am)[,.! ]+)*
    (?:
        (?:(?:just|only) )?(?:kidding|joking|jk|a joke|messing with you|pulling your leg)|
        actually,? no|scratch that|strike that|(?:that is )?not true|that was a lie
    )
    (?:[,!. ]+(?:of course|obviously|lol|haha|sorry|about that))*[.! )]*
    """
)
# "As a developer, I want to see the logs": what software is to do.
_USER_STORY: Final = compiled(
    r"""
    as an? [\w -]{3,40}?,? i (?:want|need|would like|wish|should be able|can) (?:to )?
    (?:be able to|see|view|filter|export|import|log|sign|click|search|edit|upload|download|
    receive|manage|create|delete|add|reset|access|assign|browse)\b
    """
)
# "Since I am diabetic, sugar is out": the reason is what lasts.
_REASON: Final = compiled(
    r"""
    (?:since|because|as|given that),?[ ](?P<why>(?:i|we)[ ](?:am|have|cannot|do[ ]not)\b[^,]{2,60}),
    [ ](?!and\b|or\b|but\b|i\b|we\b|my\b|please\b)
    [\w' -]{2,40}\b(?:is|are)[ ](?:out|off|not|no|a[ ]no|bad|forbidden|taboo)\b.*
    """
)
_IN_FICTION: Final = compiled(
    r"""
    in (?:the|my|a|this|that|our) (?:\w+ )?
    (?:game|movie|film|novel|story|dream|book|play|series|show|scenario|campaign)\b
    """
)
_TODAY_WELCOME: Final = {"event", "decision", "goal", "correction"}


# "Could you always …": an order that is put as a question.
_POLITELY: Final = compiled(
    r"""
    (?:please )?(?:can|could|would|will) you (?:please )?
    (?=(?:always|never|from now on|in (?:the )?future|stop \w+ing|only ever)\b)
    """
)
_LABELLED: Final = compiled(r"((?:my|our) [\w -]{2,30}): (?=\S)")
# "It is lactose I cannot have": I cannot have lactose.
_CLEFT: Final = compiled(
    r"it is (?P<what>(?!(?:that|this|just|not|so|like)\b)[\w' -]{3,30}?) (?:that |who |which )?"
    r"(?P<said>i (?:cannot|love|hate|prefer|need|want|use|am allergic|work|live)\b[\w' ]{0,30})$"
)
_SUPPOSES: Final = compiled(r"(?:if|unless|suppose|imagine|when you)\b")
_SUBJECT: Final = compiled(r"(?:i|we|both of us|me and my \w+|my \w+ and i)\b ")
_OURS: Final = compiled(r"\b(?:we|our|us)\b")
_YOU: Final = compiled(r"\byour?\b")
_AT_HAND: Final = compiled(words.AT_HAND)
_TECHNICAL: Final = compiled(words.TECHNICAL)
_PERSONAL: Final = compiled(words.PERSONAL)
_DENIED_EVENT: Final = compiled(r"(?:\w+ )?(?:never|not|no longer|almost|nearly)\b")
_OFTEN: Final = compiled(
    rf"""
    (?=.*\b(?:{words.FREQUENCY})(?!\w))(?:(?:{words.ADVERBS}) )*
    (?:work|study|drive|use|speak|ride|sleep|teach)\b(?!.* as an? )
    """
)
_ARE: Final = compiled(rf"^((?:(?:{words.ADVERBS}) )*)(are|were)\b")
_SINGULAR: Final = {"are": "am", "were": "was"}
_ONE_SENTENCE: Final = ({"habit"}, {"preference"}, {"goal"})


def read(text: str, person: str | None = None) -> list[Statement]:
    """Statements of one message, in order; never raises, linear in the length of the text.

    `person` is whom "he", "she" or "it" means before the message names somebody: "my son".
    """
    found: list[Statement] = []
    last: list[Statement] = []
    wished = False
    text, titles = without_titles(without_foreign_words(text))
    for each in sentences(text, chinese=False):
        said = plain(each.text)
        if _IN_JEST.fullmatch(said):
            found = found[: len(found) - len(last)]
            continue
        if english_opens_text(said):
            break
        if is_bare_wish(said):
            wished = True
            continue
        read_so_far = list(_sentence(said, question=each.question, whole=text, person=person))
        if wished and is_own(said) and not each.question:
            read_so_far = list(remembered(said, text))
        last = [replace(each, content=with_titles(each.content, titles)) for each in read_so_far]
        found += last
        wished = False
        person = person_in(said) or person
    return _unique(found)


def _unique(found: Sequence[Statement]) -> list[Statement]:
    kept: dict[str, Statement] = {}
    for each in found:
        if each.content and each.content not in kept:
            kept[each.content] = each
    return list(kept.values())


def _sentence(said: str, *, question: bool, whole: str, person: str | None) -> Iterator[Statement]:
    unwished = unwished_in(said)
    if unwished is not None:
        for clause in clauses(without_markers(unwished)):
            for each in _clause(TRAILING.sub("", clause), whole):
                yield replace(each, confidence=ASKED, retracts=True)
        return
    wish = wish_in(said)
    if wish is not None:
        yield from remembered(wish, whole)
        return
    if is_sarcasm(said):
        return
    if _USER_STORY.match(said):
        return
    said = _REASON.sub(r"\g<why>", without_markers(said))
    polite = _POLITELY.match(said)
    said = said[polite.end() :] if polite else said
    if is_english_question(said):
        return
    if not question or polite:
        chosen = first_of(CHOICES, TRAILING.sub("", said))
        if chosen is not None:
            yield from chosen
            return
    cleft = _CLEFT.match(said)
    found = clauses(f"{cleft['said']} {cleft['what']}" if cleft else _LABELLED.sub(r"\1 is ", said))
    yield from _stand(found[:-1] if question and not polite else found, whole, person)


def _stand(found: Sequence[str], whole: str, person: str | None) -> Iterator[Statement]:
    """What the clauses of a sentence say up to a supposition."""
    for clause in found:
        firm = first_of(FIRM_FRAMES, clause)
        if firm is not None:
            yield from firm
        elif is_english_task(clause) and first_of(WHOLE_FRAMES, clause) is None:
            continue
        elif not english_clause_excluded(clause):
            yield from _clause(put_for_pronoun(clause, person) if person else clause, whole)
        elif _SUPPOSES.match(clause):
            return


def remembered(said: str, whole: str) -> Iterator[Statement]:
    """What somebody asks to be remembered: read as ever, else kept as it was said."""
    said = without_markers(said)
    if (
        is_english_question(said)
        or len(said) < 8
        or re.match(r"(?:to|if|your|you|me)\b", said, re.IGNORECASE)
    ):
        return
    statements = [
        each for clause in clauses(said) for each in _clause(TRAILING.sub("", clause), whole)
    ]
    if statements:
        for each in statements:
            yield Statement(
                each.content, each.memory_type, ASKED, each.retracts, each.past, each.project
            )
        return
    if _YOU.search(said):
        return
    if re.match(r"(?:i|we) ", said, re.IGNORECASE):
        yield Statement(sentence("the user " + predicate(said.split(" ", 1)[1])), "fact", ASKED)
    else:
        yield Statement(sentence(owned(said)), "fact", ASKED)


def _clause(clause: str, whole: str) -> Iterator[Statement]:
    lead_as = _AS.match(clause) or _SPEAKING_AS.match(clause)
    being = _BEING.match(clause)
    if being:
        yield from _own(f"am {being['what']}", "", "I")
        clause = clause[being.end() :]
    if lead_as:
        yield Statement(sentence(f"the user is {lead_as['what']}"), "fact", IMPLIED)
        clause = clause[lead_as.end() :]
    framed = first_of(WHOLE_FRAMES, clause)
    if framed is not None:
        yield from framed
        return
    own = _SUBJECT.match(clause)
    if own:
        yield from _own(clause[own.end() :], "", own[0].strip())
        return
    lead = _LEAD.match(clause)
    if lead:
        subject, _, rest = clause[lead.end() :].partition(" ")
        if not _IN_FICTION.match(lead[1]):
            yield from _own(rest, lead[1], subject)
        return
    yield from _of_mine(clause, whole)


def _own(rest: str, lead: str, subject: str) -> Iterator[Statement]:
    """What "I …" says; "and" may join a second predicate of another kind."""
    rest = _ARE.sub(lambda match: match[1] + _SINGULAR[match[2].casefold()], rest)
    parts = predicates(rest)
    frames = [_framed(part, lead if n == 0 else "", subject) for n, part in enumerate(parts)]
    kinds = {each.memory_type if each else None for each in frames}
    if len(parts) > 1 and (None in kinds or kinds in _ONE_SENTENCE):
        parts, frames = [rest], [_framed(rest, lead, subject)]
    for part, frame in zip(parts, frames, strict=True):
        if frame is not None:
            yield from _stated(part, frame, lead if part is parts[0] else "", subject)


def _framed(rest: str, lead: str, subject: str) -> Frame | None:
    starts = starts_of(rest)
    for frame in FRAMES:
        if frame.lead is not None and not frame.lead.search(f"{lead} {rest}"):
            continue
        if frame.team and subject.casefold() != "we":
            continue
        if frame.fits(rest, starts):
            return frame if _lasts(rest, frame.memory_type) else None
    return None


def _lasts(rest: str, memory_type: str | None) -> bool:
    """Tell what holds for longer than today."""
    if memory_type is None or _is_at_hand(rest, memory_type):
        return False
    if memory_type == "event" and _DENIED_EVENT.match(rest):
        return False
    now = _NOW.search(rest)
    if not now or memory_type in _TODAY_WELCOME:
        return True
    return memory_type in {"preference", "fact", "habit"} and now[0].casefold() in _LATELY


def _is_at_hand(rest: str, memory_type: str) -> bool:
    """Tell what is about this conversation, this file, this error."""
    if _AT_HAND.search(rest) and not (memory_type == "constraint" and not _YOU.search(rest)):
        return True
    return memory_type in words.CONCRETE and bool(_TECHNICAL.search(rest))


def _stated(rest: str, frame: Frame, lead: str, subject: str) -> Iterator[Statement]:
    kind = frame.memory_type or "fact"
    if kind == "fact" and _OFTEN.match(rest):
        kind = "habit"
    team = frame.project and subject.casefold() == "we" and not _PERSONAL.search(rest)
    who = "the user's team" if team else "the user"
    company = re.search(r"(?:my|our) [\w ]+", subject, re.IGNORECASE)
    if company:
        whom = re.sub(r" and i$", "", company[0].strip(), flags=re.IGNORECASE)
        who = f"the user and {others(whom)}"
    body = predicate(re.sub(r"^married to (?=\w)", "married ", rest, flags=re.IGNORECASE))
    for part in frame.split(body) if frame.split else [body]:
        text = f"{others(lead)}, {who} {part}" if lead else f"{who} {part}"
        yield Statement(
            sentence(text),
            kind,
            frame.confidence,
            retracts=bool(DENIED_AGAIN.search(rest)) and frame.may_retract,
            past=frame.past,
            project=team,
        )


def _of_mine(clause: str, whole: str) -> Iterator[Statement]:
    """What "my …" and "our …" say: things of the user, people of the user, the project."""
    for frame in MY_FRAMES:
        if frame.pattern.match(clause):
            kind = frame.memory_type
            if kind is not None and not _NOW.search(clause) and not _is_at_hand(clause, kind):
                yield Statement(sentence(owned(clause)), kind, frame.confidence, past=frame.past)
            return
    people = of_people(clause)
    if people is not None:
        if people.content and not _NOW.search(clause):
            yield people
    elif _OURS.search(whole) or OWN_PROJECT.match(clause):
        yield from _of_project(clause)


def _of_project(clause: str) -> Iterator[Statement]:
    for frame in PROJECT_FRAMES:
        if not frame.pattern.match(clause):
            continue
        if frame.memory_type and not _NOW.search(clause) and not _AT_HAND.search(clause):
            by_user = re.sub(r"(?<!\w)our\b", "the user's", clause, count=1, flags=re.IGNORECASE)
            yield Statement(
                sentence(others(by_user)), frame.memory_type, frame.confidence, project=True
            )
        return
