"""The tables of checkpoints, archived checkpoints, approvals, and LangGraph's saver.

The keys of the saver's tables are LangGraph's: session (its thread), namespace, checkpoint. Values
and pieces of values are stored by their content, so that a session stores each of them once,
however many steps have it.
"""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    String,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, INT8MULTIRANGE, JSONB, Range
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned


class _Image:
    """The columns of a checkpoint, live or archived.

    Messages that are in our table are not copied: `message_seq` and `set_aside` say which the
    session had. Window, summaries and working state are copied.
    """

    checkpoint_id: Mapped[str] = mapped_column(Id, primary_key=True)
    session_id: Mapped[str] = mapped_column(Id)
    namespace: Mapped[str] = mapped_column(String(255), server_default=text("''"), default="")
    parent_id: Mapped[str | None] = mapped_column(Id)
    step: Mapped[int | None]
    source: Mapped[str | None] = mapped_column(String(50))
    reason: Mapped[str] = mapped_column(String(20), server_default=text("'manual'"))
    metadata_: Mapped[dict[str, Any]] = mapped_column(
        "metadata", JSONB, server_default=text("'{}'"), default=dict
    )
    message_seq: Mapped[int]
    set_aside: Mapped[list[Range[int]]] = mapped_column(
        INT8MULTIRANGE, server_default=text("'{}'"), default=list
    )
    in_context_from: Mapped[int]
    summary_ids: Mapped[list[str]] = mapped_column(
        ARRAY(Id), server_default=text("'{}'"), default=list
    )
    size_bytes: Mapped[int]
    creator: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())


class Checkpoint(TenantOwned, _Image, Base):
    """A full image of a session at a point in time, to which it can be restored."""

    __tablename__ = "checkpoints"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint(
            "reason IN ('manual', 'periodic', 'end', 'before_compact', 'before_restore')",
            name="reason",
        ),
        Index("checkpoints_idx_session", "tenant_id", "session_id", "create_time", "checkpoint_id"),
        Index("checkpoints_idx_create_time", "tenant_id", "create_time"),
    )

    archived: ClassVar[bool] = False
    archived_at: ClassVar[None] = None

    # The parts that are not messages: agent_state, tool_states, pending_tool_calls, and
    # messages of a caller that keeps them elsewhere.
    contents: Mapped[dict[str, Any]] = mapped_column(JSONB)
    state: Mapped[dict[str, Any]] = mapped_column(JSONB)
    state_version: Mapped[int]


class CheckpointArchive(TenantOwned, _Image, Base):
    """A checkpoint past its time, compressed."""

    __tablename__ = "checkpoint_archive"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
        Index(
            "checkpoint_archive_idx_session",
            "tenant_id", "session_id", "create_time", "checkpoint_id",
        ),
    )  # fmt: skip

    archived: ClassVar[bool] = True

    # Contents, working state and its version as compressed JSON.
    compressed: Mapped[bytes] = mapped_column(LargeBinary)
    archived_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Approval(TenantOwned, Base):
    """A call of a tool that waits for a human, and the decision.

    An id of a call may come again, in a later message, for some providers number the calls of
    every turn anew; then that is a further approval, and the decision about the first stays.
    """

    __tablename__ = "approvals"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint(
            "status IN ('pending', 'approved', 'rejected', 'modified', 'timeout')", name="status"
        ),
        Index(
            "approvals_uk_call",
            "tenant_id",
            "session_id",
            "tool_call_id",
            "sequence_no",
            unique=True,
        ),
        Index("approvals_idx_session", "tenant_id", "session_id", "create_time", "approval_id"),
        Index(
            "approvals_idx_expires_at",
            "tenant_id",
            "expires_at",
            postgresql_where=text("status = 'pending'"),
        ),
    )

    approval_id: Mapped[str] = mapped_column(Id, primary_key=True)
    session_id: Mapped[str] = mapped_column(Id)
    tool_call_id: Mapped[str] = mapped_column(String(255))
    # Null when the call came with a checkpoint of a caller that keeps messages elsewhere. No
    # foreign key: clearing a long session would cost a statement per message.
    message_id: Mapped[str | None] = mapped_column(Id)
    sequence_no: Mapped[int]
    status: Mapped[str] = mapped_column(String(20), server_default=text("'pending'"))
    call: Mapped[dict[str, Any]] = mapped_column(JSONB)
    # The arguments to use instead, of a call that was modified.
    arguments: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    comment: Mapped[str | None] = mapped_column(Text)
    actor: Mapped[str | None] = mapped_column(Id)
    expires_at: Mapped[datetime]
    decided_at: Mapped[datetime | None]
    create_time: Mapped[datetime] = mapped_column(server_default=func.now())


Key = String(255, collation="C")
Type = String(100)


def _session() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", "session_id"],
        ["sessions.tenant_id", "sessions.session_id"],
        ondelete="CASCADE",
    )


class SaverCheckpoint(TenantOwned, Base):
    """One step of a graph: the checkpoint without the values of its channels."""

    __tablename__ = "saver_checkpoints"
    __table_args__ = (
        _session(),
        Index(
            "saver_checkpoints_idx_run_id",
            "tenant_id",
            "run_id",
            postgresql_where=text("run_id IS NOT NULL"),
        ),
        # The newest of all sessions.
        Index(
            "saver_checkpoints_idx_checkpoint_id",
            "tenant_id",
            "checkpoint_id",
            "session_id",
            "namespace",
        ),
    )

    session_id: Mapped[str] = mapped_column(Id, primary_key=True)
    namespace: Mapped[str] = mapped_column(Key, primary_key=True)
    checkpoint_id: Mapped[str] = mapped_column(Id, primary_key=True)
    # LangGraph's id of the thread, where it cannot be that of the session.
    thread_id: Mapped[str | None] = mapped_column(String(255))
    parent_id: Mapped[str | None] = mapped_column(Id)
    run_id: Mapped[str | None] = mapped_column(Key)
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata", JSONB)
    # Channel to the digest of its value, in hexadecimal digits.
    channels: Mapped[dict[str, Any]] = mapped_column(JSONB)
    type: Mapped[str] = mapped_column(Type)
    # As it was sent: it may hold what JSONB cannot, such as NUL.
    checkpoint: Mapped[bytes] = mapped_column(LargeBinary)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))


class SaverValue(TenantOwned, Base):
    """What a channel held, by the digest of its type and its chunks."""

    __tablename__ = "saver_values"
    __table_args__ = (_session(),)

    session_id: Mapped[str] = mapped_column(Id, primary_key=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    type: Mapped[str] = mapped_column(Type)
    # Digests, in the order of the content.
    chunks: Mapped[list[bytes]] = mapped_column(ARRAY(LargeBinary))


class SaverChunk(TenantOwned, Base):
    """A compressed chunk of values, by the digest of its content; deleted with its last value."""

    __tablename__ = "saver_chunks"
    __table_args__ = (
        _session(),
        Index(
            "saver_chunks_idx_staged_at",
            "tenant_id",
            "session_id",
            "staged_at",
            postgresql_where=text("staged_at IS NOT NULL"),
        ),
    )

    session_id: Mapped[str] = mapped_column(Id, primary_key=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    content: Mapped[bytes] = mapped_column(LargeBinary)
    # When it came ahead of the checkpoint or the writes that will have it; null once they do.
    staged_at: Mapped[datetime | None]


class SaverWrite(TenantOwned, Base):
    """What a task has written before its step was over; never without its checkpoint."""

    __tablename__ = "saver_writes"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "session_id", "namespace", "checkpoint_id"],
            [
                f"saver_checkpoints.{column}"
                for column in ("tenant_id", "session_id", "namespace", "checkpoint_id")
            ],
            ondelete="CASCADE",
        ),
    )

    session_id: Mapped[str] = mapped_column(Id, primary_key=True)
    namespace: Mapped[str] = mapped_column(Key, primary_key=True)
    checkpoint_id: Mapped[str] = mapped_column(Id, primary_key=True)
    task_id: Mapped[str] = mapped_column(Key, primary_key=True)
    idx: Mapped[int] = mapped_column(primary_key=True)
    task_path: Mapped[str] = mapped_column(Text)
    channel: Mapped[str] = mapped_column(Key)
    type: Mapped[str] = mapped_column(Type)
    value: Mapped[bytes] = mapped_column(LargeBinary)
    # Digests of the chunks of a large value, which `value` then does not hold.
    chunks: Mapped[list[bytes] | None] = mapped_column(ARRAY(LargeBinary))
