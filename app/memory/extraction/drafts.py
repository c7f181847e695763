"""Proposals on their way into memory, each with what became of it so far. Pure values: every
step returns another draft, so a step that is undone leaves nothing behind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from app.identity.agents.embedders import embed
from app.language.llm.embedder import Embedder
from app.language.llm.extractor import Proposed, Scope
from app.language.llm.reconciler import Neighbour, ReconcileDecision, ReconcileQuestion
from app.memory.memories.gate import GateReason
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.schemas import Event

PENDING = "draft:"
"""Begins the id of a neighbour that is not stored yet; no stored id does."""

STORED: frozenset[Event] = frozenset({"ADD", "UPDATE", "SUPERSEDE", "MERGE"})
"""Events that write the words of a draft into a memory."""


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """A text, the hash it is compared by, and its vector; made in this order."""

    text: str
    content_hash: bytes = b""
    vector: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DraftRemainder:
    """What else a memory says that a draft ends, and still holds, as `Remainder` has it."""

    memory_id: str
    text: EmbeddedText
    attribute: str | None = None
    inherits: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """One proposal; `event` is None while nothing is decided.

    Args:
        evidence: ids of stored messages that say so.
        own: the proposal's text: what neighbours are looked up by.
        new: the text of an UPDATE or MERGE.
        remainders: what else the memories say that it ends, and still holds.
        speaker: whose words `own` is; None in the third person.
        reasons: every rule it broke.
        target_ids: memories that it changes, ends or repeats.
        conflicts: memories that it may contradict and that stay beside it.
        memory_id: the memory that holds it in the end.
        base: columns of its memory in the place of those that the request gave.
        keeps_start: it says what its targets say and more, and holds for as long as they did.

    """

    index: int
    proposed: Proposed
    owner: MemoryOwner
    evidence: tuple[str, ...] = ()
    own: EmbeddedText = field(default_factory=lambda: EmbeddedText(""))
    new: EmbeddedText | None = None
    remainders: tuple[DraftRemainder, ...] = ()
    speaker: str | None = None
    event: Event | None = None
    reasons: tuple[GateReason, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    target_ids: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    memory_id: str | None = None
    previous: str | None = None
    reason: str | None = None
    decision_id: str | None = None
    base: Mapping[str, Any] | None = None
    keeps_start: bool = False

    @property
    def open(self) -> bool:
        """Whether nothing is decided yet."""
        return self.event is None

    @property
    def sensitive(self) -> bool:
        """Whether its words may not be kept anywhere."""
        return any(reason.code == "sensitive" for reason in self.reasons)

    @property
    def content(self) -> EmbeddedText:
        """What is stored when it is."""
        return self.new or self.own

    @property
    def brought(self) -> list[EmbeddedText]:
        """The words that its decision brought."""
        own = [] if self.new is None else [self.new]
        return [*own, *(rest.text for rest in self.remainders)]

    def with_brought(self, texts: Iterator[EmbeddedText]) -> Self:
        """With the next of `texts` in the places of the words that its decision brought."""
        new = None if self.new is None else next(texts)
        remainders = tuple(replace(rest, text=next(texts)) for rest in self.remainders)
        return replace(self, new=new, remainders=remainders)

    @property
    def quotes(self) -> str | None:
        """Whose words are stored when it is; nobody's where a reconciler worded them."""
        return None if self.new is not None else self.speaker

    @property
    def pending_id(self) -> str:
        """Its id as a neighbour of later drafts, while it is not stored."""
        return f"{PENDING}{self.index}"

    @property
    def question(self) -> ReconcileQuestion:
        """What a reconciler is asked about it."""
        return ReconcileQuestion(self.proposed, self.neighbours, self.pending_id)

    def rejected(self, reasons: Sequence[GateReason]) -> Self:
        """It broke rules."""
        return replace(self, event="REJECT", reasons=(*self.reasons, *reasons))

    def repeating(self, memory_id: str | None, reason: str) -> Self:
        """It is known already; `memory_id` is None where the caller may not see by what."""
        targets = () if memory_id is None else (memory_id,)
        return replace(self, event="NONE", memory_id=memory_id, target_ids=targets, reason=reason)

    def decided(self, decision: ReconcileDecision) -> Self:
        """With a checked decision."""
        new = None
        if decision.event in {"UPDATE", "MERGE"} and decision.content is not None:
            text = decision.content.strip()
            new = EmbeddedText(text) if text != self.own.text else None
        kept = decision.remainders if decision.event in {"SUPERSEDE", "DELETE"} else ()
        known = decision.event == "NONE" and decision.memory_ids
        return replace(
            self,
            event=decision.event,
            target_ids=decision.memory_ids,
            conflicts=decision.conflicts,
            reason=decision.reason or None,
            new=new,
            keeps_start=decision.keeps_start,
            remainders=tuple(
                DraftRemainder(
                    rest.memory_id, EmbeddedText(rest.content), rest.attribute, rest.inherits
                )
                for rest in kept
                if rest.memory_id in decision.memory_ids
            ),
            memory_id=decision.memory_ids[0] if known else self.memory_id,
        )


Buckets = Mapping[MemoryOwner, tuple[Draft, ...]]


def by_owner(drafts: Iterable[Draft]) -> Buckets:
    """Drafts by where they would be stored, in one order for all runs, so that two of them
    cannot wait for each other's locks; each bucket in the order of what was said.
    """
    found: dict[MemoryOwner, tuple[Draft, ...]] = {}
    for draft in sorted(drafts, key=lambda draft: draft.index):
        found[draft.owner] = (*found.get(draft.owner, ()), draft)
    return dict(sorted(found.items(), key=lambda item: (item[0].scope, item[0].scope_id)))


def barred(drafts: Iterable[Draft], scopes: Sequence[Scope]) -> tuple[Draft, ...]:
    """Open drafts of another scope than these refused, the others as they are."""
    return tuple(
        draft.rejected([not_allowed(draft.owner.scope, scopes)])
        if draft.open and draft.owner.scope not in scopes
        else draft
        for draft in drafts
    )


def not_allowed(scope: str, scopes: Sequence[Scope]) -> GateReason:
    """Why nothing of a scope is stored here, and which scopes are allowed."""
    return GateReason(
        "scope_not_allowed",
        f"Nothing of scope {scope} may be stored from here.",
        {"scope": scope, "allowed": ", ".join(scopes)},
    )


async def embedded(embedder: Embedder, texts: Sequence[EmbeddedText]) -> list[EmbeddedText]:
    """The texts with their vectors, in order; asks nobody where there are none.

    Raises:
        EmbeddingUnavailableError: nothing was written; safe to retry.

    """
    if not texts:
        return []
    vectors = await embed(embedder, [text.text for text in texts])
    return [replace(text, vector=vector) for text, vector in zip(texts, vectors, strict=True)]
