"""Proposals on their way into memory, each with what became of it so far. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.language.llm.extractor import Proposed, Scope
from app.language.llm.reconciler import Neighbour, ReconcileDecision, ReconcileQuestion
from app.memory.memories.gate import GateReason
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.schemas import Event


@dataclass(slots=True)
class Words:
    """A text, what it is known by, and where it lies among others; made in this order."""

    text: str
    content_hash: bytes = b""
    vector: Any = None


@dataclass(slots=True)
class Draft:
    """One proposal; `event` is None while nothing is decided.

    Args:
        evidence: ids of stored messages that say so.
        own: the proposal's words: what neighbours are looked up by.
        new: the words of an UPDATE or MERGE.
        reasons: every rule it broke.
        target_ids: memories that it changes, ends or repeats.
        memory_id: the memory that holds it in the end.
        base: columns of its memory in the place of those that the request gave.

    """

    index: int
    proposed: Proposed
    place: MemoryOwner
    evidence: tuple[str, ...] = ()
    own: Words = field(default_factory=lambda: Words(""))
    new: Words | None = None
    event: Event | None = None
    reasons: list[GateReason] = field(default_factory=list)
    neighbours: Sequence[Neighbour] = ()
    target_ids: tuple[str, ...] = ()
    memory_id: str | None = None
    previous: str | None = None
    reason: str | None = None
    decision_id: str | None = None
    base: Mapping[str, Any] | None = None

    @property
    def open(self) -> bool:
        return self.event is None

    @property
    def sensitive(self) -> bool:
        """Whether its words may not be kept anywhere."""
        return any(reason.code == "sensitive" for reason in self.reasons)

    @property
    def words(self) -> Words:
        """What is stored when it is."""
        return self.new or self.own

    def reject(self, reasons: Sequence[GateReason]) -> None:
        self.event = "REJECT"
        self.reasons = [*self.reasons, *reasons]

    def repeats(self, memory_id: str | None, reason: str) -> None:
        """It is known already."""
        self.event = "NONE"
        self.memory_id = memory_id
        self.target_ids = () if memory_id is None else (memory_id,)
        self.reason = reason

    def question(self) -> ReconcileQuestion:
        """What a reconciler is asked about it."""
        return ReconcileQuestion(self.proposed, self.neighbours)

    def settle(self, decision: ReconcileDecision) -> None:
        """Take over a checked decision."""
        self.event = decision.event
        self.target_ids = decision.memory_ids
        self.reason = decision.reason or None
        self.new = None
        if decision.event in {"UPDATE", "MERGE"} and decision.content is not None:
            text = decision.content.strip()
            self.new = Words(text) if text != self.own.text else None
        if decision.event == "NONE" and decision.memory_ids:
            self.memory_id = decision.memory_ids[0]

    def reopen(self) -> None:
        """Forget what was decided among neighbours that have changed since."""
        self.event = None
        self.new = None
        self.target_ids = ()
        self.memory_id = None
        self.reason = None


Buckets = dict[MemoryOwner, list[Draft]]


def by_place(drafts: Sequence[Draft]) -> Buckets:
    """Open drafts by where they would be stored, in one order for all, so that two runs
    cannot wait for each other's locks.
    """
    found: Buckets = {}
    for draft in drafts:
        if draft.open:
            found.setdefault(draft.place, []).append(draft)
    return dict(sorted(found.items(), key=lambda one: (one[0].scope, one[0].scope_id)))


def bar(drafts: Sequence[Draft], scopes: Sequence[Scope]) -> None:
    """Refuse what is of another scope than these, whatever was decided about it."""
    for draft in drafts:
        draft.reopen()
        if draft.place.scope not in scopes:
            draft.reject([not_allowed(draft.place.scope, scopes)])


def not_allowed(scope: str, scopes: Sequence[Scope]) -> GateReason:
    return GateReason(
        "scope_not_allowed",
        f"Nothing of scope {scope} may be stored from here.",
        {"scope": scope, "allowed": ", ".join(scopes)},
    )
