"""Sessions, what is said in them, and the work that reads it."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, ClassVar

from kemem.reading import Answer, Listing
from kemem.rendering import escape_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Answer):
    """One message as it is stored."""

    message_id: str
    role: str
    content: str = ""
    session_id: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    content_type: str = "text"
    content_parts: tuple[Mapping[str, Any], ...] = ()
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parent_message_id: str | None = None
    sequence_no: int = 0
    create_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.role}: {escape_line(self.content)}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Messages(Listing[Message]):
    """Messages in the order asked for."""

    results: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageScoreParts(Answer):
    """How a message came to its place; `boosts` is what each signal of the context added."""

    cosine: float | None = None
    lexical: float | None = None
    fused: float = 0.0
    boosts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageHit(Message):
    """A message that a search found."""

    score: float = 0.0
    """0 to 1: what the hits are ordered by."""
    relevance: float = 0.0
    similarity: float | None = None
    """Cosine of query and message, 0 to 1; None where nothing was compared."""
    lexical: float | None = None
    """How well its words fit, 0 to 1; None in semantic mode."""
    said_at: datetime | None = None
    said_ago: str = ""
    """Such as `3 days ago`."""
    said_ago_seconds: int = 0
    explain: MessageScoreParts | None = None

    def __str__(self) -> str:
        return f"[{self.said_ago}] {self.role}: {escape_line(self.content)}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MessageHits(Listing[MessageHit]):
    """Hits, best first; `next_cursor` is for those after them, and None on the last page."""

    rows_key: ClassVar[str] = "items"
    results: tuple[MessageHit, ...] = ()
    next_cursor: str | None = None
    embedding_models: tuple[str, ...] = ()
    waiting: int = 0
    """Messages that could not be compared by meaning, or not yet."""
    searched: int = 0
    """How many messages were looked at."""
    left_out: bool = False
    """Whether there are older ones, which nobody looked at."""
    degraded: bool = False
    """Whether an embedder did not answer."""
    mode: str = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled(Answer):
    """Whether and when a session is read for memories, or the `reason` why not."""

    scheduled: bool = False
    reason: str | None = None
    job_id: str | None = None
    due_at: datetime | None = None
    signals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure(Answer):
    """How full the window of a session is: `level` is ok, warn or flush."""

    level: str = "ok"
    tokens: int = 0
    """Of the input: messages in the window, summaries and what is reserved."""
    budget_tokens: int = 0
    share: float = 0.0
    """Of the budget; may be above 1."""
    notice: str | None = None
    """What to tell the model, from the level warn on."""
    counter: str = ""
    compaction_job_id: str | None = None
    """The job that will compact the session, ordered by this append."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended(Answer):
    """What an append stored, and what follows from it."""

    session_id: str
    created: int = 0
    existing: int = 0
    """Messages that were there before, by their `message_id`."""
    dropped: int = 0
    """Messages that a processor kept from being stored."""
    messages: tuple[Message, ...] = ()
    sensitive: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By message_id, the names of what was seen in it; no values."""
    extraction: Scheduled = field(default_factory=Scheduled)
    pressure: Pressure | None = None
    state_version: int | None = None
    """Of the working state, when it was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(Answer):
    """One conversation."""

    session_id: str
    agent_id: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    session_name: str | None = None
    session_type: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    status: str = "running"
    end_time: datetime | None = None
    memory_enabled: bool = True
    injection_enabled: bool = True
    window_policy: Mapping[str, Any] | None = None
    """What it says of its window itself; `window` tells what holds."""
    last_sequence_no: int = 0
    last_message_time: datetime | None = None
    last_extracted_seq: int = 0
    """Messages up to this number have been read for memories."""
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction(Answer):
    """How far a session is read."""

    session_id: str
    scheduled: bool = False
    """False when everything was read already."""
    done: bool = False
    """Whether everything said before the request is read."""
    job_id: str | None = None
    status: str | None = None
    due_at: datetime | None = None
    last_extracted_seq: int = 0
    result: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Answer):
    """Work in the queue: what came of it, or why it failed.

    `status` is pending, running, succeeded, dead or cancelled. Fresh from `add` it has its id,
    status and due time only.
    """

    job_id: str
    status: str
    kind: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    signals: tuple[str, ...] = ()
    creator: str | None = None
    due_at: datetime | None = None
    waiting_since: datetime | None = None
    deferred_reason: str | None = None
    run_again: bool = False
    attempts: int = 0
    max_attempts: int = 0
    error_code: str | None = None
    error_detail: str | None = None
    result: Mapping[str, Any] | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    create_time: datetime | None = None
    update_time: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self.status in {"succeeded", "dead", "cancelled"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(Answer):
    """Calls of models and what they took."""

    calls: int = 0
    failures: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageOfDay(Figures):
    """Figures of one day, operation and model."""

    day: date
    operation: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance(Answer):
    """One limit of a day; `limit` and `remaining` are None when there is none."""

    limit: int | None = None
    used: int = 0
    remaining: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Today(Answer):
    """Today (UTC) against its quota."""

    day: date
    calls: Allowance = field(default_factory=Allowance)
    tokens: Allowance = field(default_factory=Allowance)
    exhausted: str | None = None
    resets_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Usage(Listing[UsageOfDay]):
    """The ledger, newest day first, with totals and what is left of today."""

    rows_key: ClassVar[str] = "items"
    results: tuple[UsageOfDay, ...] = ()
    since: date
    until: date
    totals: Figures = field(default_factory=Figures)
    today: Today
