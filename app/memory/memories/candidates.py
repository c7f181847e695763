"""Statements about to be saved, each with its outcome so far. Pure."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from heapq import nlargest
from typing import Any

import numpy as np

from app.language.text.distinctions import Wording, differs
from app.language.text.normal_forms import content_hash
from app.language.text.sensitive import find_sensitive
from app.memory.memories.gate import Gate, GateReason, Proposal, Scan
from app.memory.memories.schemas import Event, MemoryCreate, SaidMessage

REMEMBERED_ROLES = ("user", "assistant")
"""Tool and system messages are never remembered."""

NEIGHBOURS = 5
"""How many near statements the guard looks at before a statement counts as new."""


@dataclass(slots=True)
class SaveCandidate:
    """One statement; `event` is None while nothing is decided."""

    index: int
    content: str
    metadata: dict[str, Any]
    source_error: str | None = None
    event: Event | None = None
    reasons: list[GateReason] = field(default_factory=list)
    content_hash: bytes = b""
    vector: Any = None
    memory_id: str | None = None
    duplicate_of: str | None = None
    similarity: float | None = None
    previous: str | None = None
    said_at: datetime | None = None

    def reject_as_duplicate(self, memory_id: str, similarity: float) -> None:
        self.event = "REJECT"
        self.memory_id = None
        self.duplicate_of = memory_id
        self.similarity = similarity
        self.reasons.append(
            GateReason(
                "duplicate",
                "It says nearly the same as a memory of the same user.",
                {"memory_id": memory_id, "similarity": round(similarity, 4)},
            )
        )

    def replaces(self, memory_id: str, similarity: float) -> None:
        self.event = "SUPERSEDE"
        self.duplicate_of = memory_id
        self.similarity = similarity

    def shares_fate_of(self, first: "SaveCandidate") -> None:
        self.event = "REJECT" if first.event == "REJECT" else "NONE"
        self.memory_id = first.memory_id
        self.duplicate_of = first.duplicate_of
        self.reasons = list(first.reasons)
        self.similarity = 1.0

    def is_known(self, memory_id: str | None, similarity: float) -> None:
        self.event = "NONE"
        self.memory_id = memory_id
        self.similarity = similarity


def characters(body: MemoryCreate) -> int:
    """How much text there is to read; what the messages share is read with each of them."""
    shared = len(body.source_error or "") + len(json.dumps(body.metadata))
    if isinstance(body.messages, str):
        return shared + len(body.messages)
    batch = body.batch
    own = sum(len(message.content) for message in batch)
    own += sum(len(json.dumps(message.metadata)) for message in batch if message.metadata)
    return own + shared * len(batch)


def candidates(body: MemoryCreate, gate: Gate, past: Collection[str] = ()) -> list[SaveCandidate]:
    """The statements of a request, judged by the gate alone and against each other.

    The second of two equal statements in one request gets the event NONE.

    Args:
        body: the request.
        gate: the rules.
        past: codes of rules that do not hold here.

    """
    # The mistake may be long, and all messages share it: it is checked once.
    error = gate.redacted(Proposal("", source_error=body.source_error)).source_error
    scan = cache(find_sensitive)
    judged = [
        _judged(index, message, body, gate, error, scan) for index, message in enumerate(body.batch)
    ]
    for candidate in judged if past else ():
        _pass(candidate, past)
    first: dict[bytes, int] = {}
    for candidate in judged:
        if (
            candidate.event is None
            and first.setdefault(candidate.content_hash, candidate.index) != candidate.index
        ):
            candidate.event = "NONE"
            candidate.similarity = 1.0
    return judged


def _pass(candidate: SaveCandidate, past: Collection[str]) -> None:
    """Take rules away from what refuses a candidate."""
    if candidate.event != "REJECT":
        return
    candidate.reasons = [reason for reason in candidate.reasons if reason.code not in past]
    if not candidate.reasons:
        candidate.event = None
        candidate.content_hash = content_hash(candidate.content)


def _judged(
    index: int, said: SaidMessage, body: MemoryCreate, gate: Gate, error: str | None, scan: Scan
) -> SaveCandidate:
    metadata = body.metadata | said.metadata
    if said.name is not None:
        metadata.setdefault("name", said.name)
    candidate = SaveCandidate(index, said.content.strip(), metadata, said_at=said.said_at)
    if said.role not in REMEMBERED_ROLES:
        candidate.event = "SKIP"
        return candidate
    redacted = gate.redacted(Proposal(candidate.content, body.confidence, None, metadata))
    proposal = Proposal(redacted.content, body.confidence, error, redacted.metadata)
    candidate.content = proposal.content
    candidate.metadata = dict(proposal.metadata)
    if not isinstance(body.messages, str):
        # Behind the gate, for which a role has nothing to read.
        candidate.metadata.setdefault("role", said.role)
    candidate.source_error = proposal.source_error
    candidate.reasons = gate.check(proposal, scan=scan)
    if candidate.reasons:
        candidate.event = "REJECT"
    else:
        candidate.content_hash = content_hash(candidate.content)
    return candidate


Neighbour = tuple[str, str, float]
"""Id, content and cosine similarity."""


def nearest_duplicate(
    candidate: SaveCandidate,
    neighbours: Sequence[Neighbour],
    threshold: Callable[[str], float],
    read: Callable[[str], Wording],
) -> Neighbour | None:
    """The nearest memory that says the same, or None.

    Similarity only nominates: a contradiction is as similar as a paraphrase, so the guard on
    numbers, negation and names decides.

    Args:
        neighbours: nearest first.
        read: remembers how the statements of a request are worded.

    """
    floor = threshold(candidate.content)
    for neighbour in neighbours:
        if neighbour[2] < floor:
            break
        if differs(candidate.content, neighbour[1], read=read) is None:
            return neighbour
    return None


def nearest_duplicates(
    fresh: Sequence[SaveCandidate],
    near: Sequence[Sequence[Neighbour]],
    threshold: Callable[[str], float],
    read: Callable[[str], Wording],
) -> list[Neighbour | None]:
    """For each statement its nearest duplicate among its own neighbours; `read` as above."""
    return [
        nearest_duplicate(candidate, neighbours, threshold, read)
        for candidate, neighbours in zip(fresh, near, strict=True)
    ]


def among_themselves(
    fresh: Sequence[SaveCandidate],
    threshold: Callable[[str], float],
    read: Callable[[str], Wording] | None = None,
) -> Mapping[int, Neighbour]:
    """For statements of one request, the earlier one that each repeats in other words.

    Comparing words is expensive, so only the few nearest earlier ones are compared, as with
    stored statements.
    """
    if len(fresh) < 2:
        return {}
    vectors = np.stack([candidate.vector for candidate in fresh])
    likeness = vectors @ vectors.T
    floors = np.array([threshold(candidate.content) for candidate in fresh])
    # Most are near to none, which shows at once for all of them.
    near = np.tril(likeness >= floors[:, np.newaxis], -1)
    read = read or cache(Wording)
    found: dict[int, Neighbour] = {}
    repeats = np.zeros(len(fresh), bool)
    for position in np.flatnonzero(near.any(axis=1)).tolist():
        candidate, row = fresh[position], likeness[position].tolist()
        new = np.flatnonzero(near[position] & ~repeats).tolist()
        earlier = [
            (fresh[other].memory_id or "", fresh[other].content, row[other])
            for other in nlargest(NEIGHBOURS, new, key=row.__getitem__)
        ]
        same = nearest_duplicate(candidate, earlier, threshold, read)
        if same is not None:
            repeats[position] = True
            found[candidate.index] = same
    return found
