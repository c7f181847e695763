"""The tables behind LangGraph's saver: checkpoints, the values of channels, pending writes.

Their keys are LangGraph's: session (its thread), namespace, checkpoint. Below them
stands what they hold by its content, so that a session keeps every value and every piece of one
once, however many steps have it.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index, LargeBinary, String, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned

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
    """A piece of values, compressed, by the digest of what it says; gone with its last value."""

    __tablename__ = "saver_chunks"
    __table_args__ = (_session(),)

    session_id: Mapped[str] = mapped_column(Id, primary_key=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    content: Mapped[bytes] = mapped_column(LargeBinary)


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
