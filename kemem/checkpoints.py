"""Answers about a running agent: working state, snapshots, checkpoints and approvals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.answers import Answer, Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class State(Answer):
    """The working state of a session: small data, deleted when the session ends."""

    session_id: str
    state: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0
    """To pass to the next change; 0 if nothing was ever written."""
    update_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Answer):
    """A copy of the working state and why it was made. In lists `state` is None."""

    snapshot_id: str
    session_id: str
    seq: int = 0
    """Sequence number of the newest message when it was made."""
    state_version: int = 0
    reason: str = ""
    create_time: datetime | None = None
    state: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Snapshots(Listing[Snapshot]):
    """Snapshots of the working state, newest first."""

    results: tuple[Snapshot, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents(Answer):
    """What the agent itself put into a checkpoint."""

    messages: tuple[Mapping[str, Any], ...] | None = None
    agent_state: Mapping[str, Any] = field(default_factory=dict)
    tool_states: Mapping[str, Any] = field(default_factory=dict)
    pending_tool_calls: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Answer):
    """A saved state of a session.

    Only `get_checkpoint` fills `contents` and `state`; `checkpoint` and lists leave them None.
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
    """The state of a session after a checkpoint was restored."""

    checkpoint_id: str
    session_id: str
    before_restore_id: str = ""
    """A checkpoint of the session before it was restored."""
    message_seq: int = 0
    """The next appended message follows this one."""
    last_sequence_no: int = 0
    in_context_from: int = 0
    summary_ids: tuple[str, ...] = ()
    window_messages: int = 0
    window_tokens: int = 0
    state_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(Answer):
    """A tool call that needs a human decision: `status` is pending, approved, rejected, modified
    or timeout.
    """

    approval_id: str
    session_id: str
    tool_call_id: str
    status: str = "pending"
    message_id: str | None = None
    sequence_no: int = 0
    answered: bool = False
    """Whether a tool message with the result was appended."""
    call: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] | None = None
    """Use these instead of those of the call if it was modified."""
    comment: str | None = None
    actor: str | None = None
    expires_at: datetime | None = None
    decided_at: datetime | None = None
    create_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Approvals(Listing[Approval]):
    """Tool calls that need or needed a human decision, newest first."""

    results: tuple[Approval, ...] = ()
