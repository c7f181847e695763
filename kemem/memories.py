"""What is remembered, and what became of what was to be remembered."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.reading import Answer, Listing
from kemem.rendering import HEADER, escape_line, memory_line


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem(Answer):
    """One memory. `str()` is a line for a prompt, escaped."""

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
    """When the file or session it was read from was deleted."""
    source_error: str | None = None
    evidence: tuple[str, ...] = ()
    confidence: float = 1.0
    visibility: str | None = None
    status: str = "active"
    superseded_by: str | None = None
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
        return memory_line(self.memory_type, self.content, self.source_error)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreParts(Answer):
    """How a hit came to its place: the first three are shares of its score, weights applied."""

    relevance: float = 0.0
    confidence: float = 0.0
    scope: float = 0.0
    cosine: float | None = None
    """Of query and memory, 0 to 1; None in lexical mode."""
    lexical: float | None = None
    """How well its words fit, 0 to 1; None in semantic mode."""
    fused: float = 0.0
    """Words, vectors and context together, 0 to 1."""
    boosts: Mapping[str, float] = field(default_factory=dict)
    """What each signal of the context added."""
    rerank: float | None = None
    """The reranker's score, where it was asked."""
    path: str | None = None
    """How it hangs together with what the query names, if the graph was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(MemoryItem):
    """A memory that a search found."""

    score: float = 0.0
    """0 to 1: what the hits are ordered by."""
    relevance: float = 0.0
    """0 to 1: what words, vectors and context made of it; part of `score`."""
    similarity: float | None = None
    """Cosine of query and memory, 0 to 1: what `threshold` applies to; None in lexical mode."""
    explain: ScoreParts | None = None
    annotations: Mapping[str, Any] | None = None
    """What processors noted on this hit; stored nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SearchResults(Listing[Hit]):
    """Hits, best first. `str()` has one escaped line per hit, and is empty without any."""

    results: tuple[Hit, ...] = ()
    embedding_models: tuple[str, ...] = ()
    waiting: int = 0
    """Memories of other embedders, which this search could not compare."""
    degraded: bool = False
    """Whether an embedder or the reranker did not answer."""
    mode: str = "hybrid"
    reranker: str | None = None
    """What reordered the hits, if anything did."""

    @property
    def prompt(self) -> str:
        """The lines under a header that says they are data; empty without a hit."""
        return f"{HEADER}\n{self}" if self.results else ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Memories(Listing[MemoryItem]):
    """Memories in the order asked for."""

    results: tuple[MemoryItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason(Answer):
    """One rule of the gate that was broken."""

    code: str
    detail: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Answer):
    """What became of one statement.

    `event` is ADD, UPDATE, SUPERSEDE, MERGE, DELETE, NONE (it was known), REJECT (the gate, see
    `reasons`) or SKIP.
    """

    index: int = 0
    """Which message; with `infer`, which proposal."""
    event: str
    memory_id: str | None = None
    memory: MemoryItem | None = None
    content: str | None = None
    """What was proposed; None when it is sensitive, and without `infer`."""
    previous: str | None = None
    """The text it replaced."""
    replaced: tuple[str, ...] = ()
    """Ids of the memories that ended for it, or that it merged."""
    reason: str | None = None
    similarity: float | None = None
    """To the nearest duplicate."""
    reasons: tuple[Reason, ...] = ()
    decision_id: str | None = None

    def __str__(self) -> str:
        said = self.content if self.memory is None else self.memory.content
        codes = ", ".join(one.code for one in self.reasons)
        parts = (self.event, codes and f"({codes})", escape_line(said or ""))
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Added(Listing[Outcome]):
    """One outcome per message, in order; with `infer`, one per proposal."""

    results: tuple[Outcome, ...] = ()
    extractor: str | None = None
    """What read the messages; None without `infer`."""
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(Answer):
    """A memory as it is again."""

    memory: MemoryItem
    superseded_by: str | None = None
    """The successor it had; that one stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry(Answer):
    """One thing that happened to a memory."""

    history_id: str
    memory_id: str
    event: str
    reason: str | None = None
    actor: str | None = None
    """Id of the key that did it."""
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
    """What happened to a memory, oldest first."""

    results: tuple[HistoryEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted(Answer):
    """How many memories were deleted, or with `dry_run` would be.

    Beyond 10,000 a job deletes them: then `deleted` is 0, `selected` says how many it will be,
    and the job can be waited for.
    """

    deleted: int = 0
    dry_run: bool = False
    selected: int | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback(Answer):
    """What was said of a memory, without the comment."""

    feedback_id: str
    memory_id: str
    rating: str
    version: int = 0
    """The version of the memory it was given for."""
    create_time: datetime | None = None
