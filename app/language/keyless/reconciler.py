"""The keyless reconciler: what a new statement does to its neighbours, by attribute and by words.

Nearness only nominates. What decides is whether the two give the same attribute, say the same,
say more, or say the opposite of the same thing; in doubt a statement is added beside the others.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from app.language.keyless import english_words
from app.language.keyless.attributes import attribute_of, comparable, gives
from app.language.keyless.chinese_words import RELATIONS, simplified
from app.language.keyless.endings import ends, is_ending
from app.language.llm.extractor import Proposed
from app.language.llm.reconciler import (
    NO_AGENDA,
    Agenda,
    Neighbour,
    ReconcileDecision,
    ReconcileQuestion,
    Reconciliation,
)
from app.language.text.distinctions import differs
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk, normalise

NEAR: Final = 0.8
"""Cosine from which two statements are compared word by word though none nominated them."""
OVERLAP: Final = 0.6
"""Share of the terms of both that the opposite of a statement has in common with it."""


class RulesReconciler:
    """`rules/1`. Holds nothing, so one instance may serve every task and thread."""

    name: Final = "rules/1"
    model: Final = None

    async def reconcile(
        self, questions: Sequence[ReconcileQuestion], agenda: Agenda = NO_AGENDA
    ) -> Reconciliation:
        """One decision per question, each for itself; the same questions give the same ones.

        Whether an old statement still holds no rule can tell: the agenda is passed over.
        """
        del agenda
        return Reconciliation(tuple(decide(each) for each in questions))


def decide(question: ReconcileQuestion) -> ReconcileDecision:
    """The decision on one proposal; ADD unless a neighbour gives reason to do otherwise."""
    for step in _STEPS:
        decision = step(question.proposed, question.neighbours)
        if decision is not None:
            return decision
    return ReconcileDecision("ADD", reason="Nothing like it is remembered.")


def _said(proposed: Proposed, neighbours: Sequence[Neighbour]) -> ReconcileDecision | None:
    form = _form(proposed.content)
    if proposed.retracts and not _ENDING & set(form.split()) and not _OVER.search(form):
        # "Forget that I live in Berlin" says what is to be forgotten.
        return None
    for each in neighbours:
        if _form(each.content) == form:
            return ReconcileDecision(
                "NONE", (each.memory_id,), reason="It is remembered in these words."
            )
    return None


def _retracted(proposed: Proposed, neighbours: Sequence[Neighbour]) -> ReconcileDecision | None:
    if not proposed.retracts:
        return None
    given = _given(proposed.content, proposed.memory_type, proposed.attribute)
    for each in neighbours:
        other = _given(each.content, each.memory_type, each.attribute)
        if given and other and given[0] == other[0]:
            taken_back = _same_value(given[1], other[1])
        else:
            over = is_ending(proposed.content) and _undone(proposed.content, each.content)
            taken_back = over or _within(proposed.content, each.content) >= NEAR
        if not taken_back:
            continue
        if each.protected:
            return ReconcileDecision(
                "NONE", (each.memory_id,), reason="A person saved what it takes back."
            )
        return ReconcileDecision("DELETE", (each.memory_id,), reason="The user takes it back.")
    return ReconcileDecision("NONE", reason="Nothing that it takes back is remembered.")


def _corrected(proposed: Proposed, neighbours: Sequence[Neighbour]) -> ReconcileDecision | None:
    error = proposed.source_error
    if error is None:
        return None
    mistaken = _given(error, "fact", None)
    for each in neighbours:
        other = _given(each.content, each.memory_type, each.attribute)
        same = _form(error) == _form(each.content) or (
            bool(mistaken and other)
            and mistaken is not None
            and other is not None
            and mistaken[0] == other[0]
            and _same_value(mistaken[1], other[1])
        )
        if same or (_overlap(error, each.content) >= NEAR and differs(error, each.content) is None):
            return _replacing(each, "The user corrects it.")
    return None


def _given_already(proposed: Proposed, neighbours: Sequence[Neighbour]) -> ReconcileDecision | None:
    """Compare the values of one attribute, however far apart the two sentences are."""
    given = _given(proposed.content, proposed.memory_type, proposed.attribute)
    if given is None:
        return None
    name, value = given
    beside: ReconcileDecision | None = None
    for each in neighbours:
        other = _given(each.content, each.memory_type, each.attribute)
        if other is None or other[0] != name or each.valid_to is not None:
            continue
        decision = _compared(proposed, value, each, other[1])
        if decision.event != "ADD":
            return decision
        beside = beside or decision
    return beside


def _compared(proposed: Proposed, value: str, each: Neighbour, other: str) -> ReconcileDecision:
    new, old = comparable(value), comparable(other)
    if new == old or _includes(old, new):
        return ReconcileDecision("NONE", (each.memory_id,), reason="The same value is remembered.")
    if _includes(new, old):
        if each.protected:
            return ReconcileDecision("ADD", reason="It is more precise than what a person saved.")
        reason = "It says the same attribute more precisely."
        return ReconcileDecision("UPDATE", (each.memory_id,), proposed.content, reason)
    began, since = proposed.valid_from, each.valid_from
    if began is not None and since is not None and began < since:
        return ReconcileDecision("ADD", reason="It held before what is remembered.")
    return _replacing(each, "The same attribute has another value now.")


def _ended(proposed: Proposed, neighbours: Sequence[Neighbour]) -> ReconcileDecision | None:
    """What is done no more, or has come to its end, holds in the place of what was done."""
    over = is_ending(proposed.content)
    for each in neighbours:
        if each.valid_to is not None:
            continue
        said = over and not is_ending(each.content) and _undone(proposed.content, each.content)
        if said or ends(proposed.content, each.content):
            return _replacing(each, "It says that this has ended.")
    return None


def _undone(ending: str, other: str) -> bool:
    """Tell whether a statement says of the same people all that is said to have ended."""
    if _people(ending) != _people(other) or _NEGATED.search(other):
        return False
    gone = {_stem(each) for each in _terms(ending) - _ENDING}
    return len(gone) >= 2 and gone <= {_stem(each) for each in _terms(other)}


def _stem(word: str) -> str:
    return re.sub(r"(?:ing|e)$", "", word) if len(word) > 4 else word


def _opposed(proposed: Proposed, neighbours: Sequence[Neighbour]) -> ReconcileDecision | None:
    for each in neighbours:
        if _people(proposed.content) != _people(each.content):
            continue
        if _overlap(proposed.content, each.content) < OVERLAP:
            continue
        if differs(proposed.content, each.content) in {"negation", "antonym"}:
            return _replacing(each, "It says the opposite.")
    return None


def _paraphrased(proposed: Proposed, neighbours: Sequence[Neighbour]) -> ReconcileDecision | None:
    for each in neighbours:
        near = each.possible_duplicate or each.similarity >= NEAR
        if near and differs(proposed.content, each.content) is None:
            more = _terms(proposed.content) - _terms(each.content)
            fewer = _terms(each.content) - _terms(proposed.content)
            if (
                more
                and not fewer
                and not each.protected
                and proposed.memory_type == each.memory_type
            ):
                return _updated(proposed, each)
            return ReconcileDecision(
                "NONE", (each.memory_id,), reason="It is remembered in other words."
            )
    return None


def _extended(proposed: Proposed, neighbours: Sequence[Neighbour]) -> ReconcileDecision | None:
    """A statement that repeats another whole and adds to it, or the other way round."""
    new = _terms(proposed.content)
    for each in neighbours:
        old = _terms(each.content)
        if proposed.memory_type != each.memory_type or min(len(old), len(new)) < 2:
            continue
        if _people(proposed.content) != _people(each.content):
            continue
        if differs(proposed.content, each.content) in {"negation", "antonym"}:
            continue
        if old < new and not each.protected:
            return _updated(proposed, each)
        if new < old:
            return ReconcileDecision(
                "NONE", (each.memory_id,), reason="More is remembered already."
            )
    return None


_Step = Callable[[Proposed, Sequence[Neighbour]], ReconcileDecision | None]
_STEPS: Final[tuple[_Step, ...]] = (
    _said, _retracted, _corrected, _ended, _given_already, _opposed, _paraphrased, _extended,
)  # fmt: skip


def _updated(proposed: Proposed, each: Neighbour) -> ReconcileDecision:
    return ReconcileDecision(
        "UPDATE", (each.memory_id,), proposed.content, "It says the same and more."
    )


def _replacing(each: Neighbour, reason: str) -> ReconcileDecision:
    if each.protected:
        return ReconcileDecision(
            "ADD", reason=f"{reason} But it is protected and stays beside this."
        )
    return ReconcileDecision("SUPERSEDE", (each.memory_id,), reason=reason)


def _form(text: str) -> str:
    return normalise(text).rstrip(" .!。！")


def _given(content: str, memory_type: str, attribute: str | None) -> tuple[str, str] | None:
    """Attribute and value; none where the sentence gives another than was noted beside it."""
    found = attribute_of(content)
    if found is None or not gives(memory_type, found[0]):
        return None
    return found if attribute in {None, found[0]} else None


def _same_value(one: str, other: str) -> bool:
    one, other = comparable(one), comparable(other)
    return one == other or _includes(one, other) or _includes(other, one)


def _includes(longer: str, shorter: str) -> bool:
    """Tell whether a value is said more precisely: "munich-schwabing" of "munich"."""
    if not shorter or len(longer) <= len(shorter):
        return False
    if has_cjk(shorter):
        return shorter in longer
    return re.search(rf"(?<!\w){re.escape(shorter)}(?!\w)", longer) is not None


_STOP: Final = frozenset(
    ["the", "a", "an", "user", "users", "user's", "s", "their", "they", "them", "is", "are",
     "was", "were", "be", "been", "has", "have", "had", "do", "does", "did", "not", "no",
     "never", "any", "more", "anymore", "longer", "to", "of", "in", "on", "at", "with", "for",
     "and", "or", "that", "which", "who", "really", "very", "much", "also", "still", "now", "to",
     "it"]
)  # fmt: skip
_LIKE: Final = frozenset(
    ["likes", "liked", "love", "loves", "loved", "enjoy", "enjoys", "enjoyed", "prefer",
     "prefers", "adore", "adores", "hate", "hates", "hated", "dislike", "dislikes", "detests",
     "loathes"]
)  # fmt: skip
_CHINESE_STOP: Final = frozenset(
    "用户的了着过也都就还很不没有再是在和与、，。！,. 非常特别太一只条个有已经现在卖掉戒"
)
_CHINESE_LIKE: Final = lazy_pattern("讨厌|热爱|喜爱|厌恶|反感|爱(?!好|人|情)|偏爱|受不了")


def _terms(text: str) -> frozenset[str]:
    """The words, or Chinese signs, that a statement is about; liking and hating are one."""
    form = _form(text)
    if has_cjk(form):
        folded = _CHINESE_LIKE.sub("喜欢", simplified(form))
        latin = re.findall(r"[a-z0-9][\w.+#-]*", folded)
        return frozenset(latin) | {sign for sign in folded if has_cjk(sign)} - _CHINESE_STOP
    found = re.findall(r"\w[\w.+#'-]*", form.replace("cannot stand", "hate"))
    return frozenset(
        "like" if word in _LIKE else word[:-1] if len(word) > 3 and word[-1] == "s" else word
        for word in (each.rstrip(".'") for each in found)
        if word not in _STOP
    )


def _overlap(one: str, other: str) -> float:
    terms, others = _terms(one), _terms(other)
    return len(terms & others) / max(len(terms | others), 1)


def _within(one: str, other: str) -> float:
    """How much of the shorter statement the other one shares."""
    if _people(one) != _people(other):
        return 0.0
    terms, others = _terms(one) - _ENDING, _terms(other)
    return len(terms & others) / max(min(len(terms), len(others)), 1)


_ENDING: Final = frozenset({"stopped", "quit", "gave", "given", "up", "sold", "got", "rid"})
_OVER = lazy_pattern(
    r"\b(?:not|no longer|never|any ?more|has no|longer)\b|不|没|戒|卖|离|停|分手|去世"
)
_NEGATED = lazy_pattern(
    r"\b(?:not|never|no longer|hates?|dislikes?|wants to|used to)\b", re.IGNORECASE
)
_KIN = lazy_pattern(rf"\b(?:{english_words.RELATIONS})\b|{RELATIONS}", re.IGNORECASE)


def _people(text: str) -> frozenset[str]:
    """Whom besides the user a statement is about."""
    return frozenset(each.casefold() for each in _KIN.findall(simplified(text)))
