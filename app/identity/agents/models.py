"""The table of agents."""

from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, SmallInteger, String, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned, Timed


class Agent(TenantOwned, Timed, Base):
    """An application that uses memory. Disabled: it reads, and writes nothing."""

    __tablename__ = "agents"
    __table_args__ = (
        CheckConstraint("status IN (0, 1)", name="status"),
        Index("agents_idx_status", "tenant_id", "status"),
        Index("agents_idx_create_time", "tenant_id", "create_time", "agent_id"),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    agent_id: Mapped[str] = mapped_column(Id, primary_key=True)
    agent_name: Mapped[str] = mapped_column(String(255))
    agent_type: Mapped[str | None] = mapped_column(String(50))
    description: Mapped[str | None] = mapped_column(Text)
    config: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"), default=dict)
    status: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"), default=1)
    memory_enabled: Mapped[bool] = mapped_column(server_default=text("true"), default=True)
    injection_enabled: Mapped[bool] = mapped_column(server_default=text("true"), default=True)
    window_policy: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    creator: Mapped[str | None] = mapped_column(Id)
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)
