"""Where an agent at work stands: working state, checkpoints, and calls that wait for a human."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.reading import Answer, Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class State(Answer):
    """The working state of a session: small data, dropped at its end."""

    session_id: str
    state: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0
    """For the next change; 0 while nothing was ever written."""
    update_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Answer):
    """A copy of the working state, and why it was made; in a list without the state itself."""

    snapshot_id: str
    session_id: str
    seq: int = 0
    """Number of the session's newest message when it was made."""
    state_version: int = 0
    reason: str = ""
    create_time: datetime | None = None
    state: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Snapshots(Listing[Snapshot]):
    """Copies of the working state, newest first."""

    results: tuple[Snapshot, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents(Answer):
    """What a checkpoint holds beside what the session has."""

    messages: tuple[Mapping[str, Any], ...] | None = None
    agent_state: Mapping[str, Any] = field(default_factory=dict)
    tool_states: Mapping[str, Any] = field(default_factory=dict)
    pending_tool_calls: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Answer):
    """A session as it was at a moment.

    In a list, and fresh from `checkpoint`, it has no `contents` and no `state`: `get_checkpoint`
    brings them.
    """

    checkpoint_id: str
    session_id: str
    namespace: str = ""
    parent_id: str | None = None
    step: int | None = None
    source: str | None = None
    reason: str = "manual"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    message_seq: int = 0
    in_context_from: int = 0
    summary_ids: tuple[str, ...] = ()
    size_bytes: int = 0
    creator: str | None = None
    create_time: datetime | None = None
    archived: bool = False
    archived_at: datetime | None = None
    contents: Contents | None = None
    state: Mapping[str, Any] | None = None
    state_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Checkpoints(Listing[Checkpoint]):
    """Checkpoints without their contents, newest first."""

    results: tuple[Checkpoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRestored(Answer):
    """Where a session stands after it was put back."""

    checkpoint_id: str
    session_id: str
    before_restore_id: str = ""
    """A checkpoint of how it stood before."""
    message_seq: int = 0
    """What is appended next follows this message."""
    last_sequence_no: int = 0
    in_context_from: int = 0
    summary_ids: tuple[str, ...] = ()
    window_messages: int = 0
    window_tokens: int = 0
    state_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(Answer):
    """A call of a tool that a human is asked about: `status` is pending, approved, rejected,
    modified or timeout.
    """

    approval_id: str
    session_id: str
    tool_call_id: str
    status: str = "pending"
    message_id: str | None = None
    sequence_no: int = 0
    answered: bool = False
    """Whether a tool message has brought the call's result."""
    call: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] | None = None
    """To be used instead of the call's own, when it was modified."""
    comment: str | None = None
    actor: str | None = None
    expires_at: datetime | None = None
    decided_at: datetime | None = None
    create_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Approvals(Listing[Approval]):
    """Calls that a human is or was asked about, newest first."""

    results: tuple[Approval, ...] = ()
