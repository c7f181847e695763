"""Answers about memories: memories, search results, outcomes of `add`, history, feedback."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.answers import (
    HEADER,
    Answer,
    Listing,
    RequestWarning,
    escape_line,
    memory_line,
    period,
    quoted,
)
from kemem.deprecated import OldExtractionName


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem(Answer):
    """One memory. `str()` is an escaped line for a prompt."""

    memory_id: str
    content: str
    memory_type: str = "fact"
    attribute: str | None = None
    tier: str = "long"
    scope: str = "user"
    scope_id: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    project_id: str | None = None
    source: str | None = None
    source_id: str | None = None
    source_deleted_at: datetime | None = None
    """When the file or session it was extracted from was deleted."""
    source_error: str | None = None
    evidence: tuple[str, ...] = ()
    speaker: str | None = None
    """Whose words the content is, where it is somebody's own."""
    said_at: datetime | None = None
    """When the newest message that says it was said."""
    confidence: float = 1.0
    visibility: str | None = None
    status: str = "active"
    superseded_by: str | None = None
    conflicts_with: tuple[str, ...] = ()
    """Ids of memories that it may contradict, newest first; see the list option `in_conflict`."""
    newer_conflicts: tuple[str, ...] = ()
    """Those of `conflicts_with` that were said later."""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expected_valid_days: int | None = None
    reviewed_at: datetime | None = None
    expires_at: datetime | None = None
    external_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    embedding_model: str | None = None
    creator: str | None = None
    use_count: int = 0
    last_used_at: datetime | None = None
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None

    def __str__(self) -> str:
        said = quoted(self.content, self.speaker, self.said_at)
        line = memory_line(self.memory_type, said, self.source_error)
        if self.conflicts_with:
            age = "a newer" if self.newer_conflicts else "an older"
            line = f"{line} (in conflict with {age} statement)"
        event = self.memory_type == "event"
        return f"{line}{period(self.valid_from, self.valid_to, event=event)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreParts(Answer):
    """How a score was computed: the first three, already weighted, add up to it."""

    relevance: float = 0.0
    confidence: float = 0.0
    scope: float = 0.0
    cosine: float | None = None
    """Similarity of query and memory, 0 to 1; None in lexical mode."""
    lexical: float | None = None
    """Keyword match, 0 to 1; None in semantic mode."""
    fused: float = 0.0
    """Keywords, vectors and context combined, 0 to 1."""
    boosts: Mapping[str, float] = field(default_factory=dict)
    """What each context signal added."""
    rerank: float | None = None
    """The score of the reranker, if one was used."""
    path: str | None = None
    """The path in the graph from an entity that the query names, if the graph was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(MemoryItem):
    """A memory that a search found."""

    score: float = 0.0
    """0 to 1; hits are ordered by it, but of two in conflict the newer comes first."""
    relevance: float = 0.0
    """0 to 1, from keywords, vectors and context; part of `score`."""
    similarity: float | None = None
    """Cosine similarity of query and memory, 0 to 1; `threshold` applies to it. None in lexical
    mode."""
    explain: ScoreParts | None = None
    annotations: Mapping[str, Any] | None = None
    """Notes of processors on this hit; not stored."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SearchResults(Listing[Hit]):
    """Hits, best first. `str()` has one escaped line per hit and is empty without hits."""

    results: tuple[Hit, ...] = ()
    next_cursor: str | None = None
    """Fetches the next page; None on the last one."""
    embedding_models: tuple[str, ...] = ()
    waiting: int = 0
    """How many memories could not be compared yet: they have no vector of this embedder."""
    degraded: bool = False
    """Whether an embedder or the reranker failed, so that the result may be worse."""
    mode: str = "hybrid"
    reranker: str | None = None
    """The reranker that ordered the hits, if any."""

    @property
    def prompt(self) -> str:
        """`str()` under a header that declares the lines as data; empty without hits."""
        return f"{HEADER}\n{self}" if self.results else ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Memories(Listing[MemoryItem]):
    """Memories, newest first unless another order was requested."""

    results: tuple[MemoryItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason(Answer):
    """One reason why a memory was rejected."""

    code: str
    detail: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Answer):
    """The outcome for one statement.

    `event` is ADD, UPDATE, SUPERSEDE, MERGE, DELETE, NONE (already known), REJECT (see `reasons`)
    or SKIP.
    """

    index: int = 0
    """Number of the message; with `infer`, of the proposed memory."""
    event: str
    memory_id: str | None = None
    memory: MemoryItem | None = None
    content: str | None = None
    """The proposed text; None if it is sensitive, and without `infer`."""
    previous: str | None = None
    """The text it replaced."""
    replaced: tuple[str, ...] = ()
    """Ids of the memories that it superseded or merged."""
    reason: str | None = None
    similarity: float | None = None
    """Similarity to the nearest duplicate."""
    reasons: tuple[Reason, ...] = ()
    decision_id: str | None = None

    def __str__(self) -> str:
        text = self.content if self.memory is None else self.memory.content
        codes = ", ".join(reason.code for reason in self.reasons)
        parts = (self.event, codes and f"({codes})", escape_line(text or ""))
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Added(OldExtractionName, Listing[Outcome]):
    """One outcome per message in order; with `infer`, one per proposed memory."""

    results: tuple[Outcome, ...] = ()
    extractor: str | None = None
    """What extracted the memories; None without `infer`."""
    extraction_id: str | None = None
    """The run in the log; None without `infer`."""
    warnings: tuple[RequestWarning, ...] = ()
    """With `infer`: what of the request was not used; of a job in `raw`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(Answer):
    """A memory after it was restored."""

    memory: MemoryItem
    superseded_by: str | None = None
    """Id of the memory that superseded it; that one is not changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry(Answer):
    """One change of a memory."""

    history_id: str
    memory_id: str
    event: str
    reason: str | None = None
    actor: str | None = None
    """Id of the key that made the change."""
    job_id: str | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    version: int = 0
    create_time: datetime | None = None

    def __str__(self) -> str:
        when = "" if self.create_time is None else self.create_time.isoformat(timespec="seconds")
        why = escape_line(self.reason or "")
        return " ".join(part for part in (self.history_id, when, self.event, why) if part)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class History(Listing[HistoryEntry]):
    """Changes of a memory, oldest first."""

    results: tuple[HistoryEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted(Answer):
    """How many memories were deleted, or with `dry_run` would be.

    More than 10,000 are deleted by a job: then `deleted` is 0, `selected` is their number, and
    `wait` accepts this answer.
    """

    deleted: int = 0
    dry_run: bool = False
    selected: int | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedStored(Answer):
    """A memory that was stored by hand, and the verdict that had refused its text."""

    decision_id: str
    memory: MemoryItem


@dataclass(frozen=True, slots=True, kw_only=True)
class UseReported(Answer):
    """What a report of used memories changed."""

    session_id: str
    used: int = 0
    repeated: int = 0
    not_shown: tuple[str, ...] = ()
    """Ids that no context of the session had, or that it had within the last second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback(Answer):
    """Feedback on a memory, without its comment."""

    feedback_id: str
    memory_id: str
    rating: str
    version: int = 0
    """The version of the memory that it is about."""
    create_time: datetime | None = None
