"""The table of users."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, SmallInteger, String, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned, Timed


class User(TenantOwned, Timed, Base):
    """A person or organisation an agent talks to.

    `agent_id` is the home agent; sessions may be held with other agents too.
    """

    __tablename__ = "users"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "agent_id"], ["agents.tenant_id", "agents.agent_id"]),
        CheckConstraint("status IN (0, 1)", name="status"),
        Index("users_idx_agent_id", "tenant_id", "agent_id", "create_time", "user_id"),
        Index("users_idx_agent_status", "tenant_id", "agent_id", "status"),
        Index("users_idx_last_active_time", "tenant_id", "last_active_time"),
        Index("users_idx_create_time", "tenant_id", "create_time", "user_id"),
        Index(
            "users_idx_user_name",
            "tenant_id",
            "user_name",
            postgresql_ops={"user_name": "varchar_pattern_ops"},
        ),
        Index("users_uk_external_id", "tenant_id", "agent_id", "external_id", unique=True),
    )

    user_id: Mapped[str] = mapped_column(Id, primary_key=True)
    agent_id: Mapped[str] = mapped_column(Id)
    user_name: Mapped[str | None] = mapped_column(String(255))
    user_type: Mapped[str | None] = mapped_column(String(50))
    external_id: Mapped[str | None] = mapped_column(String(255))
    profile: Mapped[dict[str, Any]] = mapped_column(
        JSONB, server_default=text("'{}'"), default=dict
    )
    status: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"), default=1)
    last_active_time: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)
