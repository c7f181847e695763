"""The tables of sessions and of their working state."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, SmallInteger, String, text
from sqlalchemy.dialects.postgresql import ARRAY, INT8MULTIRANGE, JSONB, Range
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned, Timed

LINEAGE: Final = "lineage"
"""In `forked_from`: the sessions whose messages a fork has copies of, each with the last number."""


def lineage_of(forked_from: Mapping[str, Any] | None) -> list[tuple[str, int]]:
    """Which messages a session has copies of: sessions, and up to which number; none of no fork."""
    return [(session_id, upto) for session_id, upto in (forked_from or {}).get(LINEAGE, ())]


class Session(TenantOwned, Timed, Base):
    """One conversation of one user with one agent.

    The two counters never go back, so a sequence number is never used twice, not even
    after its message was deleted.
    """

    __tablename__ = "sessions"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "agent_id"], ["agents.tenant_id", "agents.agent_id"]),
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["tenant_id", "project_id"], ["projects.tenant_id", "projects.project_id"]
        ),
        CheckConstraint("status IN (0, 1)", name="status"),
        Index("sessions_idx_agent_user", "tenant_id", "agent_id", "user_id"),
        Index("sessions_idx_user_id", "tenant_id", "user_id", "create_time", "session_id"),
        Index("sessions_idx_status_create_time", "tenant_id", "status", "create_time"),
        Index("sessions_idx_create_time", "tenant_id", "create_time", "session_id"),
        Index("sessions_idx_project_id", "tenant_id", "project_id"),
    )

    session_id: Mapped[str] = mapped_column(Id, primary_key=True)
    agent_id: Mapped[str] = mapped_column(Id)
    user_id: Mapped[str] = mapped_column(Id)
    project_id: Mapped[str | None] = mapped_column(Id)
    session_name: Mapped[str | None] = mapped_column(String(255))
    session_type: Mapped[str | None] = mapped_column(String(50))
    context: Mapped[dict[str, Any]] = mapped_column(
        JSONB, server_default=text("'{}'"), default=dict
    )
    status: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"), default=1)
    end_time: Mapped[datetime | None]
    memory_enabled: Mapped[bool] = mapped_column(server_default=text("true"), default=True)
    injection_enabled: Mapped[bool] = mapped_column(server_default=text("true"), default=True)
    last_sequence_no: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    last_message_time: Mapped[datetime | None]
    # Up to here every message was read for memories; moves by compare-and-set.
    last_extracted_seq: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    # Whether what was read so far taught anything; null where that is not known.
    taught: Mapped[bool | None]
    # The window: messages above this number, but those set aside.
    in_context_from: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    # Numbers of messages on another branch than the present one, since a checkpoint was
    # restored: kept, readable, outside of the window.
    set_aside: Mapped[list[Range[int]]] = mapped_column(
        INT8MULTIRANGE, server_default=text("'{}'"), default=list
    )
    # Counts of the window, updated with every append and deletion so that no reader has to
    # add it up. They hold while `window_seq` is the newest number: an older release appends
    # without counting, and then they are counted again.
    window_tokens: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    window_messages: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    window_seq: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    # The current request: the newest message of the user that is shown, 0 where there is none.
    last_user_seq: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    # Where the window begins inside a turn, the request of that turn, which is before the window
    # and is shown and counted as if it were in it; else 0.
    opening_seq: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    # How much more a provider counted than we did, 1 to 1.25.
    token_scale: Mapped[float] = mapped_column(server_default=text("1"), default=1.0)
    # The summaries that stand for what was evicted, oldest first, and their tokens.
    summary_ids: Mapped[list[str]] = mapped_column(
        ARRAY(Id), server_default=text("'{}'"), default=list
    )
    summary_tokens: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    # What the last context had: besides messages and summaries, and of what is remembered. It is
    # written in the background, and empty before the first.
    beside_tokens: Mapped[int | None]
    memory_tokens: Mapped[int | None]
    window_policy: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    # Of a fork: the session and the place in it, and those that this one was a fork of.
    forked_from: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class SessionRow(Protocol):
    """Which session it is, and whose: a row of `sessions`, or part of one."""

    @property
    def tenant_id(self) -> str: ...
    @property
    def session_id(self) -> str: ...
    @property
    def agent_id(self) -> str: ...
    @property
    def user_id(self) -> str: ...
    @property
    def project_id(self) -> str | None: ...
    @property
    def last_extracted_seq(self) -> int: ...


class SessionState(TenantOwned, Timed, Base):
    """The working state of a running session: small key-value data, dropped at its end."""

    __tablename__ = "session_states"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
    )

    session_id: Mapped[str] = mapped_column(Id, primary_key=True)
    state: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"), default=dict)
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class SessionStateSnapshot(TenantOwned, Base):
    """A stored copy of the working state alone, and why it was made."""

    __tablename__ = "session_state_snapshot"
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
        Index(
            "session_state_snapshot_idx_session", "tenant_id", "session_id", "create_time",
            "snapshot_id",
        ),
    )  # fmt: skip

    snapshot_id: Mapped[str] = mapped_column(Id, primary_key=True)
    session_id: Mapped[str] = mapped_column(Id)
    # Number of the newest message when it was made.
    seq: Mapped[int]
    state: Mapped[dict[str, Any]] = mapped_column(JSONB)
    state_version: Mapped[int]
    reason: Mapped[str] = mapped_column(String(20))
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
