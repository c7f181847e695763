"""The table of sessions (K-56)."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, SmallInteger, String, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.database.base import Base, Id, TenantOwned, Timed


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
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            ondelete="SET NULL (project_id)",
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
    # Up to here every message was read for memories; moves by compare-and-set (B-31).
    last_extracted_seq: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)
