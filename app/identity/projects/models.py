"""Tables of projects and their members."""

from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, String, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned, Timed


class Project(TenantOwned, Timed, Base):
    """A group of users who share memories."""

    __tablename__ = "projects"
    __table_args__ = (Index("projects_idx_create_time", "tenant_id", "create_time", "project_id"),)

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    project_id: Mapped[str] = mapped_column(Id, primary_key=True)
    project_name: Mapped[str] = mapped_column(String(255))
    description: Mapped[str | None] = mapped_column(Text)
    metadata_: Mapped[dict[str, Any]] = mapped_column(
        "metadata", JSONB, server_default=text("'{}'"), default=dict
    )
    creator: Mapped[str | None] = mapped_column(Id)
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class ProjectMember(TenantOwned, Timed, Base):
    """A user in a project, in one of four roles."""

    __tablename__ = "project_members"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        CheckConstraint("role IN ('owner', 'admin', 'editor', 'viewer')", name="role"),
        Index("project_members_idx_user_id", "tenant_id", "user_id"),
    )

    project_id: Mapped[str] = mapped_column(Id, primary_key=True)
    user_id: Mapped[str] = mapped_column(Id, primary_key=True)
    role: Mapped[str] = mapped_column(String(20))
