"""What a reconciler asks for, held to what is allowed. Pure.

Limits are enforced here, after a model has answered, and never trusted to it: it may name only
memories it was shown, may not touch what is protected, and may end only so many.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.language.keyless.attributes import give_one_value, give_other_values
from app.language.llm.reconciler import Neighbour, ReconcileDecision
from app.memory.extraction.drafts import Draft

MOST_REMOVALS = 10
"""How many memories one run may end, where it brings few statements."""

REMOVALS_A_STATEMENT = 3
"""How many it may end for each of its statements, where that is more: one that tells of a move may
end the rent, the flatmate and the plan to move.
"""

_NEEDED = {"UPDATE": (1, 1), "SUPERSEDE": (1, 20), "MERGE": (1, 20), "DELETE": (1, 20)}
"""How many memories each event names."""

_ENDS = {"SUPERSEDE", "MERGE", "DELETE"}
_REPLACES = {"SUPERSEDE", "DELETE"}
_REWORDS = {"UPDATE", "MERGE"}

SAID_LATER = "that memory was said later"
ENDED = "it held until a later value that is remembered"


@dataclass(frozen=True, slots=True)
class DecisionLimits:
    """What one run may still do, and what it has done to memories so far.

    Args:
        left: how many more memories it may end.
        changed: memories that a decision of the run ends or changes.

    """

    left: int = MOST_REMOVALS
    changed: frozenset[str] = frozenset()

    @classmethod
    def of_run(cls, statements: int) -> "DecisionLimits":
        """What a run of so many statements may do."""
        return cls(max(MOST_REMOVALS, REMOVALS_A_STATEMENT * statements))

    def allow(self, removals: int) -> bool:
        """Whether so many memories may still be ended."""
        return removals <= self.left

    def after(self, memory_ids: Sequence[str], *, removed: bool) -> "DecisionLimits":
        """What is left once these memories are changed, or removed."""
        spent = len(memory_ids) if removed else 0
        return DecisionLimits(self.left - spent, self.changed | set(memory_ids))


def decide(
    drafts: Sequence[Draft], decisions: Sequence[ReconcileDecision], limits: DecisionLimits
) -> tuple[list[Draft], DecisionLimits]:
    """The drafts, each with the nearest decision that is allowed, and what is left after them.

    Args:
        decisions: one per draft, in order.

    """
    decided = []
    for draft, wanted in zip(drafts, decisions, strict=True):
        decision, limits = permitted(draft, wanted, limits)
        decided.append(draft.decided(decision))
    return decided, limits


def permitted(
    draft: Draft, decision: ReconcileDecision, limits: DecisionLimits
) -> tuple[ReconcileDecision, DecisionLimits]:
    """The decision, or the nearest one that loses and destroys nothing."""
    wanted = tuple(dict.fromkeys(decision.memory_ids))
    if decision.event in _REPLACES:
        # What an earlier statement of the run has ended is over already.
        wanted = tuple(each for each in wanted if each not in limits.changed) or wanted
    if decision.event == "SUPERSEDE" and wanted:
        wanted = (*wanted, *_other_values(draft, (*wanted, *decision.conflicts), limits))
    if draft.proposed.retracts and decision.event not in {"DELETE", "NONE"}:
        decision = replace(decision, event="DELETE")
    if decision.event == "ADD":
        conflicts = _conflicts(draft, decision, limits)
        return ReconcileDecision("ADD", reason=decision.reason, conflicts=conflicts), limits
    objection = _objection(draft, replace(decision, memory_ids=wanted), limits)
    removed = decision.event in _ENDS
    if objection is None and removed and not limits.allow(len(wanted)):
        objection = "the run has ended as many memories as it may"
    if objection is not None:
        # A statement is kept beside what may not be touched, which it contradicts where it was to
        # take its place; a retraction changes nothing.
        if draft.proposed.retracts:
            return ReconcileDecision("NONE", reason=objection), limits
        against = (*wanted, *decision.conflicts) if decision.event in _REPLACES else ()
        conflicts = _conflicts(draft, replace(decision, conflicts=against), limits)
        return ReconcileDecision("ADD", reason=objection, conflicts=conflicts), limits
    if decision.event == "NONE":
        return ReconcileDecision("NONE", wanted[:1], reason=decision.reason), limits
    conflicts = _conflicts(draft, decision, limits) if decision.event == "SUPERSEDE" else ()
    kept = replace(
        decision,
        memory_ids=wanted,
        conflicts=conflicts,
        keeps_start=decision.event == "SUPERSEDE" and _keeps_start(draft, decision, wanted),
    )
    return kept, limits.after(wanted, removed=removed)


def ended_by_later(draft: Draft) -> Draft:
    """A statement that is added beside a later value of its attribute: it held until that began.

    An attribute has one value at a time, and what was said before another does not replace it, as
    in old conversations that are read late. It is found as of its time.
    """
    proposed = draft.proposed
    if draft.event != "ADD" or proposed.attribute is None or proposed.valid_to is not None:
        return draft
    later = [
        near.valid_from or near.said
        for near in draft.neighbours
        if near.attribute == proposed.attribute
        and _is_later(near, draft)
        and not near.is_by_another(proposed)
    ]
    ends = min((time for time in later if time is not None), default=None)
    begins = proposed.begins or proposed.said_at
    if ends is None or begins is None or ends <= begins:
        return draft
    return replace(draft, proposed=replace(proposed, valid_to=ends), conflicts=(), reason=ENDED)


def _other_values(draft: Draft, named: Sequence[str], limits: DecisionLimits) -> list[str]:
    """Further memories that give another value of its attribute: only one can hold.

    What gives the same value says something else besides, and stays.
    """
    attribute = draft.proposed.attribute
    return [
        near.memory_id
        for near in draft.neighbours
        if attribute is not None
        and not draft.proposed.is_past
        and near.attribute == attribute
        and near.memory_id not in named
        and near.memory_id not in limits.changed
        and not _protected(near, draft, ends=False)
        and not _is_later(near, draft)
        and not near.is_by_another(draft.proposed)
        and give_other_values(draft.proposed.content, near.content, attribute)
    ]


def _keeps_start(draft: Draft, decision: ReconcileDecision, wanted: Sequence[str]) -> bool:
    """Whether it says what all of them say: where one lives, since nobody knows when."""
    if decision.keeps_start:
        return wanted == decision.memory_ids
    attribute = draft.proposed.attribute
    return attribute is not None and all(
        near.attribute == attribute
        and give_one_value(draft.proposed.content, near.content, attribute)
        for near in draft.neighbours
        if near.memory_id in wanted
    )


def _conflicts(
    draft: Draft, decision: ReconcileDecision, limits: DecisionLimits
) -> tuple[str, ...]:
    """Those of the memories it contradicts that it was shown, and that this run has not ended.

    What was over when it was said contradicts nothing that holds.
    """
    if draft.proposed.is_past:
        return ()
    left = {near.memory_id for near in draft.neighbours} - limits.changed
    return tuple(each for each in dict.fromkeys(decision.conflicts) if each in left)


def _objection(draft: Draft, decision: ReconcileDecision, limits: DecisionLimits) -> str | None:
    """Why a decision may not be carried out."""
    known = {neighbour.memory_id: neighbour for neighbour in draft.neighbours}
    wanted = decision.memory_ids
    if any(memory_id not in known for memory_id in wanted):
        return "the decision named a memory it was not shown"
    if decision.event == "NONE":
        return None
    named = [known[memory_id] for memory_id in wanted]
    least, most = _NEEDED[decision.event]
    replaces = decision.event in _REPLACES
    objections = {
        "the decision did not fit the memories it named": not least <= len(wanted) <= most,
        "the decision brought no text": decision.event in _REWORDS
        and not (decision.content or "").strip(),
        "that memory is protected: a person saved it, or it is a correction": any(
            _protected(near, draft, ends=replaces) for near in named
        ),
        SAID_LATER: replaces and any(_is_later(near, draft) for near in named),
        "another statement of this run changed that memory": not limits.changed.isdisjoint(wanted),
    }
    return next((why for why, holds in objections.items() if holds), None)


def _is_later(neighbour: Neighbour, draft: Draft) -> bool:
    """Whether a memory was said after the statement, as in conversations that are imported."""
    before, after = draft.proposed.said_at, neighbour.said
    return before is not None and after is not None and after > before


def _protected(neighbour: Neighbour, draft: Draft, *, ends: bool) -> bool:
    """What a person saved is not changed. An extracted correction is mended by another one, and
    ends when what it says is over, but nothing else rewords it.
    """
    if not neighbour.protected:
        return False
    if neighbour.memory_type != "correction" or neighbour.saved_by_person:
        return True
    return not ends and draft.proposed.memory_type != "correction"
