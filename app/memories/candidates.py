"""Statements on their way into memory, each with what became of it so far. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.memories.gate import Gate, Proposal, Reason
from app.memories.schemas import Event, MemoryCreate, SaidMessage
from app.text.distinctions import differs
from app.text.normalise import content_hash

REMEMBERED_ROLES = ("user", "assistant")
"""Tool and system messages are never remembered (B-35)."""


@dataclass(slots=True)
class Candidate:
    """One statement; `event` is None while nothing is decided."""

    index: int
    content: str
    metadata: dict[str, Any]
    source_error: str | None = None
    event: Event | None = None
    reasons: list[Reason] = field(default_factory=list)
    content_hash: bytes = b""
    vector: Any = None
    memory_id: str | None = None
    duplicate_of: str | None = None
    similarity: float | None = None
    previous: str | None = None

    def reject_as_duplicate(self, memory_id: str, similarity: float) -> None:
        self.event = "REJECT"
        self.memory_id = None
        self.duplicate_of = memory_id
        self.similarity = similarity
        self.reasons.append(
            Reason(
                "duplicate",
                "It says nearly the same as a memory of the same user.",
                {"memory_id": memory_id, "similarity": round(similarity, 4)},
            )
        )

    def replaces(self, memory_id: str, similarity: float) -> None:
        self.event = "SUPERSEDE"
        self.duplicate_of = memory_id
        self.similarity = similarity

    def shares_fate_of(self, first: "Candidate") -> None:
        self.event = "REJECT" if first.event == "REJECT" else "NONE"
        self.memory_id = first.memory_id
        self.duplicate_of = first.duplicate_of
        self.reasons = list(first.reasons)
        self.similarity = 1.0

    def is_known(self, memory_id: str, similarity: float) -> None:
        self.event = "NONE"
        self.memory_id = memory_id
        self.similarity = similarity


def characters(body: MemoryCreate) -> int:
    """How much text there is to read."""
    said = body.messages
    if isinstance(said, list):
        return sum(len(one.content) for one in said)
    return len(said if isinstance(said, str) else said.content)


def candidates(body: MemoryCreate, gate: Gate) -> list[Candidate]:
    """The statements of a request, judged by the gate alone and against each other.

    The second of two equal statements in one request is nothing new (C-03).
    """
    said = body.messages
    if isinstance(said, str):
        said = SaidMessage(content=said)
    batch = [said] if isinstance(said, SaidMessage) else said
    judged = [_judged(index, one, body, gate) for index, one in enumerate(batch)]
    first: dict[bytes, int] = {}
    for one in judged:
        if one.event is None and first.setdefault(one.content_hash, one.index) != one.index:
            one.event = "NONE"
            one.similarity = 1.0
    return judged


def _judged(index: int, said: SaidMessage, body: MemoryCreate, gate: Gate) -> Candidate:
    metadata = body.metadata | said.metadata
    if not isinstance(body.messages, str):
        metadata["role"] = said.role
        if said.name is not None:
            metadata["name"] = said.name
    candidate = Candidate(index, said.content.strip(), metadata)
    if said.role not in REMEMBERED_ROLES:
        candidate.event = "SKIP"
        return candidate
    proposal = gate.redacted(
        Proposal(candidate.content, body.confidence, body.source_error, metadata)
    )
    candidate.content = proposal.content
    candidate.metadata = dict(proposal.metadata)
    candidate.source_error = proposal.source_error
    candidate.reasons = gate.check(proposal)
    if candidate.reasons:
        candidate.event = "REJECT"
    else:
        candidate.content_hash = content_hash(candidate.content)
    return candidate


Neighbour = tuple[str, str, float]
"""Id, content and cosine similarity."""


def nearest_duplicate(
    candidate: Candidate,
    neighbours: Sequence[Neighbour],
    threshold: Callable[[str], float],
) -> Neighbour | None:
    """The nearest memory that says the same, or None.

    Nearness only nominates: a contradiction is as near as a paraphrase (B-01), so the guard
    on numbers, negation and names decides.
    """
    floor = threshold(candidate.content)
    for neighbour in neighbours:
        if neighbour[2] >= floor and differs(candidate.content, neighbour[1]) is None:
            return neighbour
    return None


def among_themselves(
    fresh: Sequence[Candidate], threshold: Callable[[str], float]
) -> Mapping[int, Neighbour]:
    """For statements of one request, the earlier one that each repeats in other words."""
    found: dict[int, Neighbour] = {}
    for place, one in enumerate(fresh):
        earlier = [
            (other.memory_id or "", other.content, float(one.vector @ other.vector))
            for other in fresh[:place]
            if other.index not in found
        ]
        earlier.sort(key=lambda neighbour: -neighbour[2])
        same = nearest_duplicate(one, earlier, threshold)
        if same is not None:
            found[one.index] = same
    return found
