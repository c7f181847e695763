"""Answers about sessions (conversations) and their messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar
from unicodedata import normalize

from kemem.answers import Answer, Listing, RequestWarning, escape_line
from kemem.errors import ConflictError


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Answer):
    """One stored message. `str()` is an escaped line."""

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
        return f"{self.role}: {escape_line(self.said)}"

    @property
    def said(self) -> str:
        """All that it says: its content and the texts of its parts; others are `[their type]`."""
        texts = [
            str(part.get("text", "")) if _is_text(part) else f"[{part['type']}]"
            for part in self.content_parts
        ]
        own = [] if self.content in texts else [self.content]
        return "\n".join(filter(None, own + texts))


def _is_text(part: Mapping[str, Any]) -> bool:
    return part.get("type", "text") in {"text", "input_text", "output_text"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSlice(Message):
    """A message, or a stretch of its text in `content`."""

    offset: int = 0
    total_length: int = 0
    """Characters of the whole text."""
    next_offset: int | None = None
    """Where to read on; None at the end."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Messages(Listing[Message]):
    """Messages in the requested order."""

    results: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageScoreParts(Answer):
    """How a score was computed; `boosts` is what each context signal added to the whole message,
    `pieces` what each signal of its best piece added, where that decided.
    """

    cosine: float | None = None
    lexical: float | None = None
    fused: float = 0.0
    boosts: Mapping[str, float] = field(default_factory=dict)
    pieces: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HitPiece(Answer):
    """The piece of a long message that fits a query best, with those beside it."""

    number: int = 0
    of: int = 1
    text: str = ""
    similarity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageHit(Message):
    """A message that a search found."""

    score: float = 0.0
    """0 to 1; hits are ordered by it."""
    relevance: float = 0.0
    similarity: float | None = None
    """Cosine similarity of query and message, 0 to 1; None if they were not compared."""
    lexical: float | None = None
    """Keyword match, 0 to 1; None in semantic mode."""
    said_at: datetime | None = None
    said_ago: str = ""
    """For example `3 days ago`."""
    said_ago_seconds: int = 0
    piece: HitPiece | None = None
    explain: MessageScoreParts | None = None

    def __str__(self) -> str:
        return f"[{self.said_ago}] {self.role}: {escape_line(self.said)}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MessageHits(Listing[MessageHit]):
    """Hits, best first; `next_cursor` fetches the next page and is None on the last one."""

    rows_key: ClassVar[str] = "items"
    results: tuple[MessageHit, ...] = ()
    next_cursor: str | None = None
    embedding_models: tuple[str, ...] = ()
    waiting: int = 0
    """How many messages could not be compared by meaning, or not yet."""
    searched: int = 0
    """How many messages were compared."""
    left_out: bool = False
    """Whether there are older messages that were not compared."""
    degraded: bool = False
    """Whether an embedder failed, so that the result may be worse."""
    mode: str = "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled(Answer):
    """Whether and when memories are extracted from a session, or the `reason` why not."""

    scheduled: bool = False
    reason: str | None = None
    job_id: str | None = None
    due_at: datetime | None = None
    signals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure(Answer):
    """How full the window of a session is; `level` is ok, warn or flush."""

    level: str = "ok"
    tokens: int = 0
    """All that is sent: messages, summaries, instructions, tools, blocks, what is remembered."""
    budget_tokens: int = 0
    share: float = 0.0
    """`tokens` as a share of the budget; may exceed 1."""
    notice: str | None = None
    """A text for the model, from level warn on."""
    counter: str = ""
    compaction_job_id: str | None = None
    """The job that will compact the session, while it is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended(Answer):
    """What an append stored, and the work that it scheduled."""

    session_id: str
    created: int = 0
    existing: int = 0
    """Messages whose `message_id` was stored before."""
    dropped: int = 0
    """Messages that a processor dropped."""
    messages: tuple[Message, ...] = ()
    sensitive: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By `message_id`, the kinds of sensitive data found in it, without the data."""
    warnings: tuple[RequestWarning, ...] = ()
    """What of the request was not used, such as a `client_time` that is no time."""
    extraction: Scheduled = field(default_factory=Scheduled)
    pressure: Pressure | None = None
    state_version: int | None = None
    """The new version of the working state, if it was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkOrigin(Answer):
    """Where a fork began."""

    session_id: str
    sequence_no: int = 0
    """The last message that was copied; messages keep their numbers."""
    message_id: str | None = None
    checkpoint_id: str | None = None


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
    """The window policy of the session alone; `window` returns the one in force."""
    last_sequence_no: int = 0
    last_message_time: datetime | None = None
    last_extracted_seq: int = 0
    """Memories have been extracted from messages up to this number."""
    forked_from: ForkOrigin | None = None
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None


def refuse_others(session_id: str, row: Message | Session, owner: Mapping[str, str | None]) -> None:
    """Refuse what is not of the `user_id` and the `agent_id` that `owner` names, if it does.

    Raises:
        ConflictError: it is that of another.

    """
    for name, value in (("user_id", row.user_id), ("agent_id", row.agent_id)):
        named = owner.get(name)
        if named and value != normalize("NFC", named):
            detail = f"The session {session_id} was opened with another {name}."
            raise ConflictError(409, "session_mismatch", detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionForked(Session):
    """A new session that goes on from a place in another one."""

    copied_messages: int = 0
    window_messages: int = 0
    window_tokens: int = 0
    state_version: int = 0
    """Of its working state; 0 without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction(Answer):
    """The progress of extraction in a session."""

    session_id: str
    scheduled: bool = False
    """False if there was nothing new to extract from."""
    done: bool = False
    """Whether all messages before this request have been processed."""
    job_id: str | None = None
    status: str | None = None
    due_at: datetime | None = None
    deferred_reason: str | None = None
    """Why the job waits until `due_at`: for a quota (`daily_calls`), for one."""
    last_extracted_seq: int = 0
    result: Mapping[str, Any] | None = None
