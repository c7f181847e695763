"""What a model wishes of old memories, held to what is allowed. Pure.

As in `planning.py`: it may name only what it was shown, may not touch what is protected, and
takes what it ends from the one allowance of the run, after the run's statements.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.language.llm.extractor import LONGEST_VALID_DAYS, Proposed
from app.language.llm.reconciler import (
    NO_AGENDA,
    Agenda,
    AgendaMemory,
    Join,
    Reconciliation,
    Review,
    ReviewVerdict,
)
from app.language.text.injections import addresses_model
from app.language.text.normal_forms import content_hash
from app.memory.extraction.drafts import Draft, Words
from app.memory.extraction.planning import MOST_REMOVALS, Agreement
from app.memory.memories.gate import Gate, GateReason, Proposal
from app.memory.memories.owner import MemoryOwner

VALID_DAYS = 90
"""How long a memory is taken to hold where nobody said for how long."""

STALE = GateReason("stale", "Nobody has spoken of it for as long as it was thought to hold.", {})


@dataclass(frozen=True, slots=True)
class Seen:
    """A memory on the agenda, and what of it must not have changed when it is acted on."""

    standing: AgendaMemory
    place: MemoryOwner
    version: int
    protected: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model is shown of old memories; by id."""

    agenda: Agenda = NO_AGENDA
    due: Mapping[str, Seen] = field(default_factory=dict)
    parts: Mapping[str, Seen] = field(default_factory=dict)


@dataclass(slots=True)
class Reviewed:
    """What is to become of a memory that was due; `reasons` say what spoke against more."""

    seen: Seen
    verdict: ReviewVerdict
    reason: str
    reasons: list[GateReason]

    @property
    def memory_id(self) -> str:
        return self.seen.standing.memory_id


@dataclass(slots=True)
class Upkeep:
    """What came of an agenda.

    Args:
        left: how many memories the run may still end.
        shown: None where no model is there to look.
        merges: each with event MERGE, or REJECT and every rule that it broke.

    """

    left: int
    shown: Shown | None = None
    reviews: list[Reviewed] = field(default_factory=list)
    merges: list[Draft] = field(default_factory=list)
    unknown: int = 0

    @property
    def granted(self) -> list[Draft]:
        return [merge for merge in self.merges if merge.event == "MERGE"]

    def counted(self, done: Counter[str]) -> dict[str, Any]:
        """What the log of runs keeps of it: ids, codes and numbers.

        Args:
            done: how many memories became what.

        """
        if self.shown is None or not self.shown.agenda:
            return {}
        counts: dict[str, Any] = {"reviewed": len(self.shown.due), **done}
        if self.unknown:
            counts["unknown"] = self.unknown
        if self.shown.parts:
            first = next(iter(self.shown.parts.values()))
            counts["category"] = category(first.place, first.standing.memory_type) | {
                "shown": len(self.shown.parts)
            }
        return counts


def category(place: MemoryOwner, memory_type: str) -> dict[str, Any]:
    """By which a category is known again in the log of runs, beside its user."""
    return {
        "scope": place.scope,
        "scope_id": place.scope_id,
        "agent_id": place.agent_id,
        "memory_type": memory_type,
    }


def settle(
    shown: Shown | None,
    answer: Reconciliation | None,
    agreement: Agreement,
    drafts: Sequence[Draft],
    gate: Gate,
) -> Upkeep:
    """What is granted of an answer, after the statements of the run were decided about.

    Args:
        shown: None where no model is there to look.
        answer: None when nobody was asked: then nothing was looked at.
        agreement: what the statements end and how much they leave.
        drafts: the run's; what one of them repeats is not stale.
        gate: judges the words of a merge like any other.

    """
    if shown is None or answer is None:
        return Upkeep(agreement.allowance.left, None if shown is None else Shown())
    said_again = {draft.memory_id for draft in drafts if draft.event == "NONE"}
    upkeep = Upkeep(0, shown)
    upkeep.unknown = sum(one.memory_id not in shown.due for one in answer.reviews)
    given = {one.memory_id: one for one in reversed(answer.reviews)}
    for memory_id, seen in shown.due.items():
        if memory_id not in agreement.ended and memory_id not in said_again:
            upkeep.reviews.append(_reviewed(seen, given.get(memory_id), agreement))
    joined: set[str] = set()
    # Whoever was shown nothing has nothing to join.
    for number, join in enumerate(answer.joins if shown.parts else ()):
        upkeep.merges.append(_merge(number, join, shown, agreement, joined, gate))
    upkeep.left = agreement.allowance.left
    return upkeep


def _reviewed(seen: Seen, review: Review | None, agreement: Agreement) -> Reviewed:
    if review is None:
        # Kept, so that it is not shown in every run to a model that passes it over.
        return Reviewed(seen, "KEEP", "The model gave no verdict.", [STALE])
    reasons = [STALE]
    verdict = review.verdict
    if verdict == "REMOVE":
        if seen.protected:
            reasons.append(_PROTECTED)
        elif not agreement.allowance.take(1):
            reasons.append(_LIMIT)
        if len(reasons) > 1:
            verdict = "KEEP"
        else:
            agreement.ended.add(seen.standing.memory_id)
    return Reviewed(seen, verdict, review.reason, reasons)


def _merge(
    number: int,
    join: Join,
    shown: Shown,
    agreement: Agreement,
    joined: set[str],
    gate: Gate,
) -> Draft:
    """The draft of a merge; refused when a rule is broken, and then nothing is taken."""
    ids = tuple(dict.fromkeys(join.memory_ids))
    parts = [shown.parts[one] for one in ids if one in shown.parts]
    sure = [one.standing.confidence for one in parts] or [1.0]
    given = min(sure) if join.confidence is None else join.confidence
    confidence = min(given, max(sure))
    judged = gate.redacted(Proposal(join.content, confidence))
    words = Words(judged.content.strip())
    kinds = {(one.place, one.standing.memory_type) for one in parts}
    first = parts[0] if parts else next(iter(shown.parts.values()))
    draft = Draft(
        number,
        Proposed(words.text, first.standing.memory_type, confidence, ()),
        first.place,
        own=words,
        target_ids=ids,
        reason=join.reason or None,
    )
    rules = [
        (len(parts) == len(ids) and len(ids) > 0, _UNKNOWN),
        (len(ids) != 1, _TOO_FEW),
        (len(kinds) <= 1, _MIXED),
        (not any(one.protected for one in parts), _PROTECTED),
        (joined.isdisjoint(ids), _OVERLAP),
        (agreement.ended.isdisjoint(ids), _CHANGED),
    ]
    reasons = [reason for kept, reason in rules if not kept] + gate.check(judged)
    if rule := addresses_model(words.text):
        reasons.append(GateReason("injection", "It addresses the model.", {"rule": rule}))
    joined.update(ids)
    if not reasons and not agreement.allowance.take(len(ids)):
        reasons = [_LIMIT]
    if reasons:
        draft.reject(reasons)
        return draft
    agreement.ended.update(ids)
    words.content_hash = content_hash(words.text)
    draft.event = "MERGE"
    return draft


def extended(expected_valid_days: int | None) -> int:
    """For how many days a memory holds that holds for longer than was thought."""
    return min(2 * (expected_valid_days or VALID_DAYS), LONGEST_VALID_DAYS)


_PROTECTED = GateReason("protected", "A person saved it, or it is a correction.", {})
_LIMIT = GateReason(
    "removal_limit", f"A run ends at most {MOST_REMOVALS} memories.", {"limit": MOST_REMOVALS}
)
_UNKNOWN = GateReason("unknown_memory", "It names a memory that was not shown.", {})
_TOO_FEW = GateReason("too_few_sources", "It takes two memories to merge.", {"minimum": 2})
_MIXED = GateReason("scope_mismatch", "Its memories are of several scopes or types.", {})
_OVERLAP = GateReason("overlap", "Another merge names one of its memories.", {})
_CHANGED = GateReason("source_changed", "One of its memories was changed or ended.", {})
SOURCE_CHANGED = _CHANGED
