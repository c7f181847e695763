"""The keyless reconciler: what a new statement does to its neighbours, by attribute and by words.

Nearness only nominates. Values, numbers and times are compared as values. A statement takes the
place of another only if it surely says more, the opposite, or another value of the same thing, and
was not said before it; what may contradict it and does not surely, stays beside it in conflict.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Final

from app.language.keyless.attributes import Attribute, is_more_precise, is_one_value, is_same_value
from app.language.keyless.comparand import Comparand
from app.language.keyless.endings import Ending
from app.language.llm.extractor import Proposed
from app.language.llm.reconciler import (
    NO_AGENDA,
    Agenda,
    Neighbour,
    ReconcileDecision,
    ReconcileQuestion,
    Reconciliation,
)
from app.language.text.distinctions import Difference, Wording, describes, differs
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import normalise, simplify

NEAR: Final = 0.8
"""Cosine from which two statements that no guard parts say the same."""
OVERLAP: Final = 0.6
"""Share of their words from which two statements may be about the same thing."""

MOST_COMPARED: Final = 20
"""Nearest neighbours that are compared, a millisecond each, besides those with an attribute."""
SLOT: Final = 0.75
"""Share of words, and cosine, from which two statements are one with another word in one place."""


class RulesReconciler:
    """`rules/2`. Holds nothing, so one instance may serve every task and thread."""

    name: Final = "rules/2"
    model: Final = None
    prompt_version: Final = None

    async def reconcile(
        self,
        questions: Sequence[ReconcileQuestion],
        agenda: Agenda = NO_AGENDA,
        besides: Sequence[Neighbour] = (),
    ) -> Reconciliation:
        """One decision per question, each for itself; the same questions give the same ones.

        Whether an old statement still holds no rule can tell: the agenda is passed over, and what
        is near to no question.
        """
        del agenda, besides
        return Reconciliation(tuple(decide(each) for each in questions))


class Relation(Enum):
    """What a new statement is to an old one."""

    REPEATS = auto()
    SAYS_MORE = auto()
    REPLACES = auto()
    MAY_CONTRADICT = auto()


def decide(question: ReconcileQuestion) -> ReconcileDecision:
    """The decision on one proposal; ADD unless a neighbour gives reason to do otherwise."""
    proposed = question.proposed
    new = Comparand.of_proposed(proposed)
    found: dict[Relation, list[str]] = {each: [] for each in Relation}
    for rank, near in enumerate(question.neighbours):
        if near.is_by_another(proposed) or (rank >= MOST_COMPARED and near.attribute is None):
            continue
        old = Comparand.of_neighbour(near)
        if proposed.retracts:
            relation = Relation.REPLACES if _is_taken_back(new, old) else None
        elif near.valid_to is not None and new.form != old.form:
            continue
        else:
            relation = _mended(proposed, old) or _relation(new, old)
        stays = near.protected or proposed.presupposed
        if relation in {Relation.REPLACES, Relation.SAYS_MORE} and stays:
            relation = Relation.MAY_CONTRADICT if relation is Relation.REPLACES else None
        if relation is not None:
            found[relation].append(near.memory_id)
    return _retraction(found[Relation.REPLACES]) if proposed.retracts else _decision(found)


def _decision(found: Mapping[Relation, list[str]]) -> ReconcileDecision:
    replaced = tuple(found[Relation.REPLACES])
    conflicts = tuple(found[Relation.MAY_CONTRADICT])
    if not replaced and found[Relation.REPEATS]:
        return ReconcileDecision("NONE", (found[Relation.REPEATS][0],), reason="It is remembered.")
    over = (*replaced, *found[Relation.SAYS_MORE])
    if over:
        reason = "Another value holds now." if replaced else "It says the same and more."
        return ReconcileDecision(
            "SUPERSEDE", over, reason=reason, conflicts=conflicts, keeps_start=not replaced
        )
    if conflicts:
        reason = "It may contradict what is remembered; nothing tells which holds."
        return ReconcileDecision("ADD", reason=reason, conflicts=conflicts)
    return ReconcileDecision("ADD", reason="Nothing like it is remembered.")


def _retraction(gone: Sequence[str]) -> ReconcileDecision:
    if gone:
        return ReconcileDecision("DELETE", (gone[0],), reason="The user takes it back.")
    return ReconcileDecision("NONE", reason="Nothing that it takes back may be ended.")


def _relation(new: Comparand, old: Comparand) -> Relation | None:
    if new.form == old.form:
        return Relation.REPEATS
    shared = [name for name in new.given if name in old.given]
    if shared:
        return _by_attribute(new, old, shared)
    if any(_ends(ending, old) for ending in new.endings):
        return None if _is_earlier(new, old) else Relation.REPLACES
    if new.gone and not old.gone and new.gone <= old.words and old.people <= new.people | new.gone:
        most = len(new.gone) * 2 >= len(old.words) and not _is_earlier(new, old)
        sure = most and new.is_surely_gone and (new.is_switch or old.is_of_one_thing)
        return Relation.REPLACES if sure else Relation.MAY_CONTRADICT
    noted = new.noted is not None and new.noted == old.noted and not new.given and not old.given
    if noted or _is_other_job(new, old) or _is_other_job(old, new):
        return _by_words(new, old) or Relation.MAY_CONTRADICT
    return None if _denies_less(new, old) else _by_words(new, old)


def _is_taken_back(new: Comparand, old: Comparand) -> bool:
    """Tell whether a retraction is about a statement, which it repeats or denies: "forget that I
    live in Berlin", "I have no dog any more".
    """
    shared = [name for name in new.given if name in old.given]
    if shared:
        return all(_same(new.given[name], old.given[name]) for name in shared)
    if any(_ends(ending, old) for ending in new.endings):
        return True
    return _by_words(new, old) in {Relation.REPEATS, Relation.REPLACES}


def _by_attribute(new: Comparand, old: Comparand, shared: Sequence[str]) -> Relation | None:
    other = [name for name in shared if not _same(new.given[name], old.given[name])]
    if not other:
        if _covers(old, new):
            return Relation.REPEATS
        more = _covers(new, old) and not _is_earlier(new, old)
        return Relation.SAYS_MORE if more else None
    around = new.form
    for name in other:
        around = around.replace(normalise(new.given[name].value), "")
    changed = _CHANGED.search(around) is not None
    several = _SEVERAL if changed else _SEVERAL | _CHANGEABLE
    # Of Munich, Germany and Schwabing nothing tells which lies in which, but who moved left.
    places = {name for name in other if name == "user.residence" and not new.given[name].began}
    several |= set() if changed or _CORRECTS.search(around) else places
    # What else is told of a home or a job may be that it is one on the side, for how long or what
    # for, that one came back, or who said so.
    left = set().union(*(normalise(old.given[name].value).split() for name in other))
    plain = not (_BESIDES.search(new.form) or any(new.given[name].rest - left for name in other))
    # A street says nothing of the town.
    kinds = {_has_number(new.given[name]) is _has_number(old.given[name]) for name in other}
    sure = plain and several.isdisjoint(other) and kinds == {True}
    lost = old.given.keys() - new.given.keys() or not new.has(old.given[other[0]].rest)
    if sure and not lost and not any(_is_earlier(new, old, name) for name in other):
        return Relation.REPLACES
    return Relation.MAY_CONTRADICT


def _is_other_job(began: Comparand, other: Comparand) -> bool:
    """Tell whether a job began, and another workplace was told: 跳槽到字节, 在腾讯工作."""
    place = other.given.get("user.workplace")
    if place is None or not began.tells_beginning("user.employer"):
        return False
    return not is_one_value(began.given["user.employer"].value, place.value, "user.employer")


def _has_number(given: Attribute) -> bool:
    return any(char.isdigit() for char in given.value)


def _same(new: Attribute, old: Attribute) -> bool:
    return is_one_value(new.value, old.value, new.name)


def _covers(comparand: Comparand, other: Comparand) -> bool:
    """Tell whether a statement says all that another one says, by attributes, words and counts."""
    for name, their in other.given.items():
        mine = comparand.given.get(name)
        if mine is None or not (
            is_same_value(mine.value, their.value) or is_more_precise(mine.value, their.value, name)
        ):
            return False
        if not comparand.has(their.rest):
            return False
    return comparand.counts_all_of(other)


def _ends(ending: Ending, old: Comparand) -> bool:
    for name in ending.attributes & old.given.keys():
        value = old.given[name].value
        if ending.value is None:
            return True
        if is_same_value(ending.value, value) or is_more_precise(value, ending.value, name):
            return True
    return False


def _is_earlier(new: Comparand, old: Comparand, attribute: str | None = None) -> bool:
    """Tell whether the new statement was said, or holds, before the old one."""
    if new.said and old.said and new.said < old.said:
        return True
    if new.since and old.since and new.since < old.since:
        return True
    held, holds = new.holds_at(attribute), old.holds_at(attribute)
    if held is None or holds is None or held >= holds:
        return False
    # Of a move long ago nothing tells whether it came before the home that was told since, nor of
    # any move whether it came before another one.
    return old.tells_beginning(attribute) or not new.is_news(attribute)


def _by_words(new: Comparand, old: Comparand) -> Relation | None:
    difference = differs(new.content, old.content)
    shared = len(new.words & old.words) / max(len(new.words | old.words), 1)
    if new.mode != old.mode:
        was = new.mode[0] == old.mode[0] and new.people == old.people and shared >= OVERLAP
        return Relation.MAY_CONTRADICT if was else None
    opposite = new.wording.negative != old.wording.negative
    if opposite and difference is not None and new.people == old.people:
        return _by_polarity(new, old, shared)
    if difference in {"antonym", "negation", "order"}:
        # Who sold a car to buy a boat may sell the boat to buy a car: both have happened.
        both = difference == "order" and new.memory_type == old.memory_type == "event"
        close = new.people == old.people and shared >= OVERLAP and not both
        return Relation.MAY_CONTRADICT if close else None
    within = None if _describes(new, old) else _by_inclusion(new, old)
    if within is not None:
        return within
    if difference is None and not _describes(new, old):
        # What has more words of its own than both share says something else besides, and so does
        # what has a part with more: 我爸爸是医生，我是独生子.
        parts = map(Wording, _PART.split(new.content))
        own = (frozenset(part.content) for part in parts)
        same = all(len(words - old.words) <= len(words & old.words) for words in (new.words, *own))
        return Relation.REPEATS if same and old.nearness >= NEAR else None
    other = difference is not None and _is_other_value(new, old, difference)
    return Relation.MAY_CONTRADICT if other else None


def _denies_less(new: Comparand, old: Comparand) -> bool:
    """Tell whether two denials are of more and of less, of which more words say less: no red meat,
    no meat.
    """
    nested = new.words < old.words or old.words < new.words
    return nested and new.wording.negative and old.wording.negative


def _by_polarity(new: Comparand, old: Comparand, shared: float) -> Relation | None:
    """Two statements of which one denies something: surely what the other says, if it denies no
    more than that, and that is most of the other.
    """
    if _describes(new, old):
        return None
    denied, said = (new, old) if new.wording.negative else (old, new)
    most = len(denied.words) * 2 >= len(said.words)
    if denied.words <= said.words and said.counts_all_of(denied) and most:
        return Relation.MAY_CONTRADICT if _is_earlier(new, old) else Relation.REPLACES
    close = denied.words <= said.words or shared >= OVERLAP or old.nearness >= NEAR
    return Relation.MAY_CONTRADICT if close else None


def _describes(new: Comparand, old: Comparand) -> bool:
    return any(
        describes(short.wording, long.wording, short.spared)
        for short, long in ((new, old), (old, new))
    )


def _by_inclusion(new: Comparand, old: Comparand) -> Relation | None:
    """One statement that says all that the other says, of the same subject."""
    first = new.wording.content[:1] == old.wording.content[:1]
    if not first or min(len(new.words), len(old.words)) < 2:
        return None
    if new.wording.negative != old.wording.negative:
        return None
    if new.words <= old.words and old.counts_all_of(new):
        return Relation.REPEATS
    more = old.words <= new.words and new.counts_all_of(old) and old.people <= new.people
    if more and new.memory_type == old.memory_type and not _is_earlier(new, old):
        return Relation.SAYS_MORE
    return None


def _is_other_value(new: Comparand, old: Comparand, difference: Difference) -> bool:
    """Tell whether one thing has two values: a number, or what "my … is" says."""
    if difference == "number" and not _LABEL.search(new.form):
        # Two events are two, unless they are told in the same words.
        least = NEAR if new.memory_type == old.memory_type == "event" else OVERLAP
        if old.nearness >= NEAR and new.people == old.people:
            return new.counts_otherwise(old, near=True)
        close = new.alike(old) >= least and new.is_of_same(old)
        return close and new.counts_otherwise(old)
    if min(new.alike(old), old.nearness) >= SLOT:
        return new.memory_type != "event" and len(new.words & old.words) > 2
    mine, other = (_MY_IS.match(simplify(statement.form)) for statement in (new, old))
    if new.people == old.people and mine and other and mine[0] == other[0]:
        return True
    named = all(_NAMED.search(simplify(statement.form)) for statement in (new, old))
    # "A friend called Tom" may have company; "my cat" and 微信名 have not.
    named = named and bool(new.people or "名" in new.form) and not _SOME.search(new.form)
    return named and new.is_of_same(old) and (new.alike(old) >= OVERLAP or old.nearness >= NEAR)


def _mended(proposed: Proposed, old: Comparand) -> Relation | None:
    """A correction replaces what says the mistake."""
    if proposed.source_error is None:
        return None
    error = Comparand(proposed.source_error, "fact", None, None, None)
    given = [name for name in error.given if name in old.given]
    same = error.form == old.form or (
        any(_same(error.given[name], old.given[name]) for name in given)
        if given
        else error.words == old.words and differs(error.content, old.content) is None
    )
    return Relation.REPLACES if same else None


_SEVERAL: Final = frozenset({"user.workplace", "user.origin", "user.language"})
"""Attributes that may have two values at a time: 在北京工作 and 在百度工作."""
_CHANGEABLE: Final = frozenset({"user.occupation", "user.school", "user.name"})
"""As those, unless the new statement says that something changed."""
_BESIDES: Final = lazy_pattern(
    r"\b(?:also|as well|too|besides|sometimes|part[- ]time|weekends?|winters?|summers?"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days)\b|[还也兼]|周末|[春夏秋冬][天季]"
)
_PART: Final = lazy_pattern(r"[，,；;]\s*(?=我|用户|(?:(?:the )?user|i|my)\b)", re.IGNORECASE)
_CHANGED: Final = lazy_pattern(r"\b(?:now|these days|new|became)\b|现在|如今|改行|转行|换")
_CORRECTS: Final = lazy_pattern(r"\b(?:actually|correction)\b|其实|更正|纠正")
_NAMED: Final = lazy_pattern(r"\b(?:named|called|name)\b|名")
# A number that is part of a name counts nothing.
_LABEL: Final = lazy_pattern(r"[a-z]{2,}[0-9]")
_SOME: Final = lazy_pattern(r"\b(?:has|have|got) an?\b|有[一几两三]?[个只位条]")
# "My locker is A12" has one value; one may be allergic to this and to that, and be doing both.
_MY_IS: Final = lazy_pattern(
    r"(?:my|our|the user's) [\w' ]+? (?:is called|lives in|works at"
    r"|is(?! \w+ (?:to|of|with|at|in|on|about|for|from)\b| \w+ing\b))\b"
    r"|(?:我|用户)(?:的|家)?[^，是叫住在有]{1,6}(?:是|叫|住在)"
)
