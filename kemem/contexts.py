"""What goes to the model: contexts, the window they are chosen from, and its summaries."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.conversations import Message, Pressure
from kemem.memories import ScoreParts
from kemem.reading import Answer, Listing
from kemem.rendering import escape_line


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPolicy(Answer):
    """What holds for a window: what the session says, else its agent, else the deployment."""

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
    checkpoint_every: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Answer):
    """The part of a session that goes to the model: the messages above `in_context_from`."""

    session_id: str
    in_context_from: int = 0
    messages: int = 0
    tokens: int = 0
    """Of these messages, without summaries."""
    current_request: int | None = None
    """Number of the user's newest message."""
    summary_ids: tuple[str, ...] = ()
    summary_tokens: int = 0
    token_scale: float = 1.0
    set_aside: int = 0
    policy: WindowPolicy = field(default_factory=WindowPolicy)
    pressure: Pressure = field(default_factory=Pressure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed(Answer):
    """Messages of the window for one call, always a valid conversation."""

    session_id: str
    strategy: str = ""
    messages: tuple[Message, ...] = ()
    tokens: int = 0
    max_tokens: int = 0
    starts_with_user: bool = True
    fits: bool = True
    waiting: tuple[str, ...] = ()
    """Ids of calls among them that have no result."""
    left_out: int = 0
    counter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPart(Answer):
    """One part of a context, and what it took of its budget."""

    name: str
    tokens: int = 0
    budget: int | None = None
    """None: it always stands whole."""
    shown: int = 0
    dropped: int = 0
    """Items that were found and are not in it, for `reason`."""
    reason: str | None = None
    text: str | None = None
    """With `render="parts"`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedMemory(Answer):
    """A memory in a context, and why it is there."""

    memory_id: str
    part: str = "memories"
    memory_type: str = "fact"
    scope: str = "user"
    score: float = 0.0
    similarity: float | None = None
    tokens: int = 0
    version: int = 1
    explain: ScoreParts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedPassage(Answer):
    """A passage of a document in a context, and where it is from."""

    passage_id: str
    folder_id: str = ""
    file_id: str | None = None
    file_name: str | None = None
    page: int | None = None
    score: float = 0.0
    similarity: float | None = None
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownWindow(Answer):
    """Which messages of the window a context shows."""

    messages: int = 0
    tokens: int = 0
    from_sequence_no: int | None = None
    to_sequence_no: int | None = None
    left_out: int = 0
    """Messages of the window that are not shown; all of them are stored."""
    fits: bool = True
    """False when the present request alone is longer than the budget."""
    waiting: tuple[str, ...] = ()
    """Ids of calls shown that have no result."""
    cleared: int = 0
    """Results of tools that `clear_tool_results` left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionState(Answer):
    """Whether what is remembered goes into the context, and who says that it does not."""

    enabled: bool = True
    off_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuery(Answer):
    """What the memories of a context were searched by."""

    source: str = "none"
    embedding_models: tuple[str, ...] = ()
    degraded: bool = False
    reranker: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(Answer):
    """What the model should see next: hand it `messages`, and `prompt` where its provider wants
    the system section apart. `str()` is the prompt.
    """

    session_id: str
    render: str = "openai"
    prompt: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    summary: str | None = None
    parts: tuple[ContextPart, ...] = ()
    used: tuple[UsedMemory, ...] = ()
    used_passages: tuple[UsedPassage, ...] = ()
    window: ShownWindow = field(default_factory=ShownWindow)
    starts_with_user: bool = True
    pressure: Pressure = field(default_factory=Pressure)
    tokens: int = 0
    memory_tokens: int = 0
    counter: str = ""
    """What counted the tokens."""
    content_sha256: str = ""
    """The same content has the same hash."""
    query: AskedQuery = field(default_factory=AskedQuery)
    injection: InjectionState = field(default_factory=InjectionState)

    def __str__(self) -> str:
        return self.prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Answer):
    """A text that stands for messages which left the window, or for summaries of such."""

    summary_id: str
    content: str = ""
    session_id: str | None = None
    level: int = 0
    """0 stands for messages; a higher one for several of the level below."""
    parent_id: str | None = None
    from_seq: int = 0
    to_seq: int = 0
    tokens: int = 0
    evicted_messages: int = 0
    evicted_tokens: int = 0
    model: str = ""
    """Who wrote it."""
    shortened: bool = False
    """It was too long, and was cut at the end of a sentence."""
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
    """What left the window, and stays stored."""

    messages: int = 0
    tokens: int = 0
    from_seq: int = 0
    to_seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction(Answer):
    """What a compaction did, or in `why_not` why it did nothing."""

    session_id: str
    compacted: bool = False
    why_not: str | None = None
    evicted: Evicted | None = None
    """With `dry_run`, what would leave."""
    more: bool = False
    """Whether more has to leave, which takes another one."""
    summary: Summary | None = None
    folded: tuple[Summary, ...] = ()
    """Summaries of summaries that came with it."""
    model: str | None = None
    rescue_job_id: str | None = None
    """The job that reads for memories what left; `wait` takes it."""
    snapshot_id: str | None = None
    checkpoint_id: str | None = None
    pressure_before: Pressure = field(default_factory=Pressure)
    pressure_after: Pressure | None = None
