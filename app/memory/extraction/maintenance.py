"""What a model asks for of old memories, held to what is allowed. Pure.

As in `decisions.py`: it may name only what it was shown, may not touch what is protected, and
takes what it ends from the one limit of the run, after the run's statements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from app.language.text.normal_forms import content_hash
from app.memory.extraction.decisions import MOST_REMOVALS, DecisionLimits
from app.memory.extraction.drafts import Draft, EmbeddedText
from app.memory.extraction.shared_words import spoken_of
from app.memory.memories.gate import Gate, GateReason, Proposal
from app.memory.memories.owner import MemoryOwner

VALID_DAYS = 90
"""How long a memory is taken to hold where nobody said for how long."""

_PASSING = frozenset({"context", "goal"})
"""What is over by itself, sooner or later, whether or not a day was said."""

STALE = GateReason("stale", "Nobody has spoken of it for as long as it was thought to hold.", {})


@dataclass(frozen=True, slots=True)
class AgendaEntry:
    """A memory on the agenda, and what of it must not have changed when it is acted on."""

    memory: AgendaMemory
    owner: MemoryOwner
    version: int
    protected: bool = False


@dataclass(frozen=True, slots=True)
class AgendaSnapshot:
    """What a model is shown of old memories; by id."""

    agenda: Agenda = NO_AGENDA
    due: Mapping[str, AgendaEntry] = field(default_factory=dict)
    parts: Mapping[str, AgendaEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReviewDecision:
    """What is to become of a memory that was due; `reasons` say what spoke against more."""

    entry: AgendaEntry
    verdict: ReviewVerdict
    reason: str
    reasons: tuple[GateReason, ...]

    @property
    def memory_id(self) -> str:
        """Of the memory that was reviewed."""
        return self.entry.memory.memory_id


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """What is to become of an agenda.

    Args:
        left: how many memories the run may still end.
        shown: None where no model is there to look.
        merges: each with event MERGE, or REJECT and every rule that it broke.
        unknown: how many reviews named a memory that was not shown.

    """

    left: int
    shown: AgendaSnapshot | None = None
    reviews: tuple[ReviewDecision, ...] = ()
    merges: tuple[Draft, ...] = ()
    unknown: int = 0

    @property
    def granted(self) -> list[Draft]:
        """Merges that are carried out."""
        return [merge for merge in self.merges if merge.event == "MERGE"]

    def with_merges(self, merges: Sequence[Draft]) -> "MaintenancePlan":
        """With the same merges as they are after another step; each is known by its index."""
        later = {merge.index: merge for merge in merges}
        return replace(self, merges=tuple(later.get(merge.index, merge) for merge in self.merges))

    def counted(self, done: Mapping[str, int]) -> dict[str, Any]:
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
            counts["category"] = category(first.owner, first.memory.memory_type) | {
                "shown": len(self.shown.parts)
            }
        return counts


def category(owner: MemoryOwner, memory_type: str) -> dict[str, Any]:
    """By which a category is known again in the log of runs, beside its user."""
    return {
        "scope": owner.scope,
        "scope_id": owner.scope_id,
        "agent_id": owner.agent_id,
        "memory_type": memory_type,
    }


def plan_maintenance(
    shown: AgendaSnapshot | None,
    answer: Reconciliation | None,
    limits: DecisionLimits,
    drafts: Sequence[Draft],
    gate: Gate,
) -> MaintenancePlan:
    """What is granted of an answer, after the statements of the run were decided about.

    Args:
        shown: None where no model is there to look.
        answer: None when nobody was asked: then nothing was looked at.
        limits: what the statements change and how much they leave.
        drafts: the run's; what one of them repeats is not stale.
        gate: judges the words of a merge like any other.

    """
    if shown is None or answer is None:
        return MaintenancePlan(limits.left, None if shown is None else AgendaSnapshot())
    limits = replace(limits, left=min(limits.left, MOST_REMOVALS))
    told = spoken_of(
        {each: entry.memory.content for each, entry in {**shown.parts, **shown.due}.items()},
        (draft.proposed.content for draft in drafts if draft.event != "REJECT"),
    )
    said_again = {draft.memory_id for draft in drafts if draft.event == "NONE"}
    unknown = sum(review.memory_id not in shown.due for review in answer.reviews)
    given = {review.memory_id: review for review in reversed(answer.reviews)}
    reviews: list[ReviewDecision] = []
    for memory_id, entry in shown.due.items():
        if memory_id not in limits.changed and memory_id not in said_again:
            over = memory_id in told or _passes(entry.memory)
            review, limits = _reviewed(entry, given.get(memory_id), limits, may_be_over=over)
            reviews.append(review)
    named: frozenset[str] = frozenset()
    merges: list[Draft] = []
    # Whoever was shown nothing has nothing to join.
    for number, join in enumerate(answer.joins if shown.parts else ()):
        merge, limits = _merge(number, join, shown, limits, named, gate)
        named |= frozenset(join.memory_ids)
        merges.append(merge)
    return MaintenancePlan(limits.left, shown, tuple(reviews), tuple(merges), unknown)


def _reviewed(
    entry: AgendaEntry, review: Review | None, limits: DecisionLimits, *, may_be_over: bool
) -> tuple[ReviewDecision, DecisionLimits]:
    if review is None:
        # Kept, so that it is not shown in every run to a model that passes it over.
        return ReviewDecision(entry, "KEEP", "The model gave no verdict.", (STALE,)), limits
    reasons = [STALE]
    verdict = review.verdict
    if verdict == "REMOVE":
        if entry.protected:
            reasons.append(_PROTECTED)
        elif not may_be_over:
            reasons.append(_UNSAID)
        elif not limits.allow(1):
            reasons.append(_LIMIT)
        if len(reasons) > 1:
            verdict = "KEEP"
        else:
            limits = limits.after([entry.memory.memory_id], removed=True)
    return ReviewDecision(entry, verdict, review.reason, tuple(reasons)), limits


def _passes(memory: AgendaMemory) -> bool:
    """Whether it may be over though nobody has said so: what passes, or has had its day."""
    return memory.memory_type in _PASSING or memory.expected_valid_days is not None


def _merge(
    number: int,
    join: Join,
    shown: AgendaSnapshot,
    limits: DecisionLimits,
    named: frozenset[str],
    gate: Gate,
) -> tuple[Draft, DecisionLimits]:
    """The draft of a merge; refused when a rule is broken, and then nothing is taken.

    Args:
        named: memories that earlier merges of the answer name.

    """
    ids = tuple(dict.fromkeys(join.memory_ids))
    parts = [shown.parts[memory_id] for memory_id in ids if memory_id in shown.parts]
    sure = [part.memory.confidence for part in parts] or [1.0]
    given = min(sure) if join.confidence is None else join.confidence
    confidence = min(given, max(sure))
    judged = gate.redacted(Proposal(join.content, confidence, extracted=True))
    text = judged.content.strip()
    first = parts[0] if parts else next(iter(shown.parts.values()))
    draft = Draft(
        number,
        Proposed(text, first.memory.memory_type, confidence, ()),
        first.owner,
        own=EmbeddedText(text),
        target_ids=ids,
        reason=join.reason or None,
    )
    reasons = [*_broken(ids, parts, limits, named), *gate.check(judged)]
    if not reasons and not limits.allow(len(ids)):
        reasons = [_LIMIT]
    if reasons:
        return draft.rejected(reasons), limits
    draft = replace(draft, event="MERGE", own=EmbeddedText(text, content_hash(text)))
    return draft, limits.after(ids, removed=True)


def _broken(
    ids: Sequence[str],
    parts: Sequence[AgendaEntry],
    limits: DecisionLimits,
    named: frozenset[str],
) -> list[GateReason]:
    """Every rule about its sources that a merge breaks."""
    kinds = {(part.owner, part.memory.memory_type) for part in parts}
    rules = [
        (len(parts) == len(ids) and len(ids) > 0, _UNKNOWN),
        (len(ids) != 1, _TOO_FEW),
        (len(kinds) <= 1, _MIXED),
        (not any(part.protected for part in parts), _PROTECTED),
        (named.isdisjoint(ids), _OVERLAP),
        (limits.changed.isdisjoint(ids), SOURCE_CHANGED),
    ]
    return [reason for kept, reason in rules if not kept]


def extended(expected_valid_days: int | None) -> int | None:
    """For how many days a memory holds that holds for longer than was thought.

    None where nobody has said for how long: a number would make it one that passes.
    """
    return expected_valid_days and min(2 * expected_valid_days, LONGEST_VALID_DAYS)


_PROTECTED = GateReason("protected", "A person saved it, or it is a correction.", {})
_UNSAID = GateReason(
    "not_spoken_of", "It is not over by itself, and no new statement speaks of it.", {}
)
_LIMIT = GateReason(
    "removal_limit", f"A run ends at most {MOST_REMOVALS} memories.", {"limit": MOST_REMOVALS}
)
_UNKNOWN = GateReason("unknown_memory", "It names a memory that was not shown.", {})
_TOO_FEW = GateReason("too_few_sources", "It takes two memories to merge.", {"minimum": 2})
_MIXED = GateReason("scope_mismatch", "Its memories are of several scopes or types.", {})
_OVERLAP = GateReason("overlap", "Another merge names one of its memories.", {})
SOURCE_CHANGED = GateReason("source_changed", "One of its memories was changed or ended.", {})
