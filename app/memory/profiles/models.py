"""Tables of profiles: values with where they come from."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, String, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned, Timed


class Profile(TenantOwned, Timed, Base):
    """The profile of one user, or of one project. `version` rises with every change of a value."""

    __tablename__ = "profiles"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("num_nonnulls(user_id, project_id) = 1", name="owner"),
        Index(
            "profiles_uk_user_id",
            "tenant_id",
            "user_id",
            unique=True,
            postgresql_where=text("user_id IS NOT NULL"),
        ),
        Index(
            "profiles_uk_project_id",
            "tenant_id",
            "project_id",
            unique=True,
            postgresql_where=text("project_id IS NOT NULL"),
        ),
    )

    profile_id: Mapped[str] = mapped_column(Id, primary_key=True)
    user_id: Mapped[str | None] = mapped_column(Id)
    project_id: Mapped[str | None] = mapped_column(Id)
    # Written by the user alone; no job ever touches it.
    instructions: Mapped[str | None] = mapped_column(Text)
    # Up to which change of a memory a job has derived from.
    derived_until: Mapped[datetime | None]
    # When a model was asked last, and the hash of what its answer stands on.
    model_asked_at: Mapped[datetime | None]
    derived_from: Mapped[str | None] = mapped_column(String(64))
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class ProfileValue(TenantOwned, Timed, Base):
    """One value: `attributes.profession`, `sections.work_context`, `slots.diet.allergies`."""

    __tablename__ = "profile_values"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "profile_id"],
            ["profiles.tenant_id", "profiles.profile_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("origin IN ('user', 'derived')", name="origin"),
    )

    profile_id: Mapped[str] = mapped_column(Id, primary_key=True)
    slot: Mapped[str] = mapped_column(String(200, collation="C"), primary_key=True)
    value: Mapped[Any] = mapped_column(JSONB)
    origin: Mapped[str] = mapped_column(String(10))
    # The memories it was derived from; none where a user wrote it.
    memory_ids: Mapped[list[str]] = mapped_column(
        ARRAY(Id), server_default=text("'{}'"), default=list
    )
    # What derived it: `rules/2`, `openai/gpt-4o-mini`; none where a user wrote it.
    deriver: Mapped[str | None] = mapped_column(String(255))


class ProfileHistory(TenantOwned, Base):
    """One change of one value."""

    __tablename__ = "profile_history"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "profile_id"],
            ["profiles.tenant_id", "profiles.profile_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("event IN ('SET', 'REMOVE')", name="event"),
        Index(
            "profile_history_idx_profile", "tenant_id", "profile_id", "create_time", "history_id"
        ),
    )

    history_id: Mapped[str] = mapped_column(Id, primary_key=True)
    profile_id: Mapped[str] = mapped_column(Id)
    slot: Mapped[str] = mapped_column(String(200, collation="C"))
    event: Mapped[str] = mapped_column(String(10))
    before: Mapped[Any | None] = mapped_column(JSONB(none_as_null=True))
    after: Mapped[Any | None] = mapped_column(JSONB(none_as_null=True))
    # `user` or `derived`, and the memories of the value after the change.
    origin: Mapped[str] = mapped_column(String(10))
    memory_ids: Mapped[list[str]] = mapped_column(
        ARRAY(Id), server_default=text("'{}'"), default=list
    )
    reason: Mapped[str | None] = mapped_column(Text)
    actor: Mapped[str | None] = mapped_column(Id)
    job_id: Mapped[str | None] = mapped_column(Id)
    # Of the profile, after the change.
    version: Mapped[int]
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
