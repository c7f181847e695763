"""Answers about the context of a model call: the window of a session, summaries, contexts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.answers import Answer, Listing, escape_line
from kemem.memories import ScoreParts
from kemem.sessions import Message, Pressure


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPolicy(Answer):
    """The policy in force: that of the session, else of its agent, else of the deployment."""

    budget_tokens: int = 0
    warn: float = 0.0
    flush: float = 0.0
    evict_fraction: float = 0.0
    keep_messages: int = 0
    triggers: tuple[Mapping[str, Any], ...] = ()
    automatic: bool = True
    reserved_tokens: int = 0
    summary_words: int = 0
    approval_hours: int = 0
    checkpoint_every: int = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Answer):
    """The part of a session that is sent to the model: messages after `in_context_from`."""

    session_id: str
    in_context_from: int = 0
    messages: int = 0
    tokens: int = 0
    """Tokens of these messages, without summaries."""
    current_request: int | None = None
    """Sequence number of the user's newest message."""
    summary_ids: tuple[str, ...] = ()
    summary_tokens: int = 0
    token_scale: float = 1.0
    set_aside: int = 0
    policy: WindowPolicy = field(default_factory=WindowPolicy)
    pressure: Pressure = field(default_factory=Pressure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed(Answer):
    """Messages of the window for one model call; always a valid conversation."""

    session_id: str
    strategy: str = ""
    messages: tuple[Message, ...] = ()
    tokens: int = 0
    max_tokens: int = 0
    starts_with_user: bool = True
    fits: bool = True
    waiting: tuple[str, ...] = ()
    """Ids of tool calls among them without a result."""
    left_out: int = 0
    left_out_ranges: tuple[Mapping[str, Any], ...] = ()
    """Their numbers: `from_sequence_no` and `to_sequence_no` of each range."""
    shortened: tuple[str, ...] = ()
    """Ids of those that are cut or replaced by a line, which says where the rest is."""
    counter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPart(Answer):
    """One part of a context and its share of the budget."""

    name: str
    tokens: int = 0
    budget: int | None = None
    """None: the part is always included whole."""
    shown: int = 0
    dropped: int = 0
    """Items that were found but left out because of `reason`."""
    reason: str | None = None
    text: str | None = None
    """Set with `render="parts"`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedMemory(Answer):
    """A memory in a context and why it was chosen."""

    memory_id: str
    part: str = "memories"
    memory_type: str = "fact"
    scope: str = "user"
    score: float = 0.0
    similarity: float | None = None
    validity: str = "current"
    """`upcoming` begins later, `ended` held until lately."""
    tokens: int = 0
    version: int = 1
    explain: ScoreParts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedPassage(Answer):
    """A passage in a context and the document it is from."""

    passage_id: str
    folder_id: str = ""
    file_id: str | None = None
    file_name: str | None = None
    page: int | None = None
    score: float = 0.0
    similarity: float | None = None
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedExcerpt(Answer):
    """A message of which pieces are in a context, and why."""

    message_id: str
    session_id: str = ""
    role: str = "user"
    sequence_no: int = 0
    said_at: datetime | None = None
    pieces: tuple[int, ...] = ()
    """Which of its pieces are shown, from 0."""
    of_pieces: int = 1
    score: float = 0.0
    similarity: float | None = None
    tokens: int = 0
    explain: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcerptSource(Answer):
    """What excerpts were looked for in."""

    searched: int = 0
    """Messages looked at."""
    left_out: bool = False
    """Whether there are older ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownWindow(Answer):
    """Which messages of the window a context includes."""

    messages: int = 0
    tokens: int = 0
    from_sequence_no: int | None = None
    to_sequence_no: int | None = None
    left_out: int = 0
    """Messages of the window that are not included; they stay stored."""
    left_out_ranges: tuple[Mapping[str, Any], ...] = ()
    """Their numbers: `from_sequence_no` and `to_sequence_no` of each range."""
    fits: bool = True
    """Always true: what cannot fit is refused (`window_too_small`)."""
    waiting: tuple[str, ...] = ()
    """Ids of included tool calls without a result."""
    cleared: int = 0
    """Tool results in whose place a line is shown."""
    shortened: tuple[Mapping[str, Any], ...] = ()
    """Messages that are cut or replaced by a line, which says where the rest is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionState(Answer):
    """Whether memories are put into the context, and which setting turned that off."""

    enabled: bool = True
    off_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuery(Answer):
    """The query by which the memories of a context were searched."""

    source: str = "none"
    embedding_models: tuple[str, ...] = ()
    degraded: bool = False
    reranker: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(Answer):
    """What to send to the model: `messages`, and `prompt` if the provider takes the system prompt
    separately. `str()` is the prompt.
    """

    session_id: str
    render: str = "openai"
    prompt: str = ""
    messages: tuple[Any, ...] = ()
    """Dictionaries as the SDK of the provider takes them. `render` chooses the form, so a type
    checker sees `Any`, which fits the `messages` of every SDK."""
    summary: str | None = None
    parts: tuple[ContextPart, ...] = ()
    used: tuple[UsedMemory, ...] = ()
    used_passages: tuple[UsedPassage, ...] = ()
    used_excerpts: tuple[UsedExcerpt, ...] = ()
    excerpt_source: ExcerptSource | None = None
    window: ShownWindow = field(default_factory=ShownWindow)
    starts_with_user: bool = True
    pressure: Pressure = field(default_factory=Pressure)
    tokens: int = 0
    memory_tokens: int = 0
    counter: str = ""
    """The token counter that was used."""
    content_sha256: str = ""
    """Hash of the content; equal contexts have equal hashes."""
    query: AskedQuery = field(default_factory=AskedQuery)
    injection: InjectionState = field(default_factory=InjectionState)

    def __str__(self) -> str:
        return self.prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedContext(Answer):
    """A content that contexts of a session had, and what was put into it."""

    content_sha256: str
    memory_ids: tuple[str, ...] = ()
    passage_ids: tuple[str, ...] = ()
    message_ids: tuple[str, ...] = ()
    """Of the messages of which it had excerpts."""
    tokens: int = 0
    memory_tokens: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class InjectedContexts(Listing[InjectedContext]):
    """What contexts of a session had, newest first."""

    results: tuple[InjectedContext, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Answer):
    """A text that replaces messages in the window, or several older summaries."""

    summary_id: str
    content: str = ""
    session_id: str | None = None
    level: int = 0
    """0 summarises messages; a higher level summarises summaries of the level below."""
    parent_id: str | None = None
    from_seq: int = 0
    to_seq: int = 0
    tokens: int = 0
    evicted_messages: int = 0
    evicted_tokens: int = 0
    model: str = ""
    """The model that wrote it."""
    shortened: bool = False
    """Whether it was too long and was cut at the end of a sentence."""
    reason: str = ""
    creator: str | None = None
    create_time: datetime | None = None
    in_context: bool = False

    def __str__(self) -> str:
        return escape_line(self.content)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Summaries(Listing[Summary]):
    """Summaries of a session, newest first."""

    results: tuple[Summary, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted(Answer):
    """Messages that left the window; they stay stored."""

    messages: int = 0
    tokens: int = 0
    from_seq: int = 0
    to_seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction(Answer):
    """The result of a compaction; `why_not` says why nothing was done."""

    session_id: str
    compacted: bool = False
    why_not: str | None = None
    evicted: Evicted | None = None
    """With `dry_run`, the messages that would leave the window."""
    more: bool = False
    """Whether another compaction is needed."""
    summary: Summary | None = None
    folded: tuple[Summary, ...] = ()
    """Summaries of summaries that were written too."""
    model: str | None = None
    rescue_job_id: str | None = None
    """The job that extracts memories from the messages that left; `wait` accepts its id."""
    snapshot_id: str | None = None
    checkpoint_id: str | None = None
    pressure_before: Pressure = field(default_factory=Pressure)
    pressure_after: Pressure | None = None
