"""What a reconciler wishes, held to what is allowed. Pure.

Limits are enforced here, after a model has answered, and never trusted to it: it may name
only memories it was shown, may not touch what is protected, and may end only so many.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.language.llm.reconciler import Neighbour, ReconcileDecision
from app.memory.extraction.drafts import Draft

MOST_REMOVALS = 10
"""How many memories one run may end."""

_NEEDED = {"UPDATE": (1, 1), "SUPERSEDE": (1, 20), "MERGE": (1, 20), "DELETE": (1, 1)}
"""How many memories each event names."""

_ENDS = {"SUPERSEDE", "MERGE", "DELETE"}
_REWORDS = {"UPDATE", "MERGE"}


class Allowance:
    """What is left of the removals of one run."""

    def __init__(self, most: int = MOST_REMOVALS) -> None:
        self.left = most

    def take(self, count: int) -> bool:
        """Whether `count` more are allowed; then they are taken."""
        if count > self.left:
            return False
        self.left -= count
        return True


def allowed(
    draft: Draft, decision: ReconcileDecision, allowance: Allowance, ended: set[str]
) -> ReconcileDecision:
    """The decision, or the nearest one that loses and destroys nothing.

    Args:
        ended: memories that earlier drafts of the run end or change; those of this one are
            added.

    """
    wanted = tuple(dict.fromkeys(decision.memory_ids))
    if decision.event == "SUPERSEDE" and wanted:
        wanted = (*wanted, *_other_values(draft, wanted, ended))
    if draft.proposed.retracts and decision.event not in {"DELETE", "NONE"}:
        decision = replace(decision, event="DELETE")
    if decision.event == "ADD":
        return ReconcileDecision("ADD", reason=decision.reason)
    objection = _objection(draft, replace(decision, memory_ids=wanted), ended)
    if objection is None and decision.event in _ENDS and not allowance.take(len(wanted)):
        objection = f"a run ends at most {MOST_REMOVALS} memories"
    if objection is not None:
        # A statement is kept beside what may not be touched; a retraction changes nothing.
        return ReconcileDecision("NONE" if draft.proposed.retracts else "ADD", reason=objection)
    if decision.event == "NONE":
        return ReconcileDecision("NONE", wanted[:1], reason=decision.reason)
    ended.update(wanted)
    return replace(decision, memory_ids=wanted)


def _other_values(draft: Draft, wanted: Sequence[str], ended: set[str]) -> list[str]:
    """Further memories that give a value of the same attribute: only one value can hold."""
    attribute = draft.proposed.attribute
    return [
        one.memory_id
        for one in draft.neighbours
        if attribute is not None
        and one.attribute == attribute
        and one.memory_id not in wanted
        and one.memory_id not in ended
        and not _protected(one, draft)
    ]


def _objection(draft: Draft, decision: ReconcileDecision, ended: set[str]) -> str | None:
    """Why a decision may not be carried out."""
    known = {neighbour.memory_id: neighbour for neighbour in draft.neighbours}
    wanted = decision.memory_ids
    if any(memory_id not in known for memory_id in wanted):
        return "the decision named a memory it was not shown"
    if decision.event == "NONE":
        return None
    least, most = _NEEDED[decision.event]
    if not least <= len(wanted) <= most:
        return "the decision did not fit the memories it named"
    if decision.event in _REWORDS and not (decision.content or "").strip():
        return "the decision brought no text"
    if any(_protected(known[memory_id], draft) for memory_id in wanted):
        return "that memory is protected: a person saved it, or it is a correction"
    taken = ended & set(wanted)
    return "another statement of this run changed that memory" if taken else None


def _protected(neighbour: Neighbour, draft: Draft) -> bool:
    """A correction may be mended by another one; what a person saved may not."""
    if not neighbour.protected:
        return False
    return not (
        neighbour.memory_type == "correction"
        and draft.proposed.memory_type == "correction"
        and not neighbour.saved_by_person
    )


class Agreement:
    """Settles the drafts of one run, wave by wave, under one allowance."""

    def __init__(self) -> None:
        self.allowance = Allowance()
        self.ended: set[str] = set()
        """Memories that a statement of the run ends or changes."""

    def settle(self, drafts: Sequence[Draft], decisions: Sequence[ReconcileDecision]) -> None:
        """Settle each open draft with its decision, in order."""
        for draft, decision in zip(drafts, decisions, strict=True):
            draft.settle(allowed(draft, decision, self.allowance, self.ended))
