"""The table of jobs: pending, running, or ended."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    SmallInteger,
    String,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned, Timed

LIVE = "status IN ('pending', 'running')"

LANE_BUSY = "lane_busy"
"""Reason of a job that is due, and waits for another of its lane."""


class Job(TenantOwned, Timed, Base):
    """A job. `(kind, key)` is live at most once in a tenant.

    An order made while it runs is kept in `run_again` and the columns beside it, and
    the row goes back to pending when the run ends: a unique index on pending rows alone would
    break there. `lease_token` is the right to finish it: a worker whose lease was taken over
    changes nothing any more.

    Of the jobs of a lane one runs at a time, and of those that are due the first by `lane_order`.
    The others are `LANE_BUSY` until it ends, and meanwhile no claim reads them.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint(
            "status IN ('pending', 'running', 'succeeded', 'dead', 'cancelled')", name="status"
        ),
        Index("jobs_uk_live", "tenant_id", "kind", "key", unique=True, postgresql_where=text(LIVE)),
        # The next job of each tenant, one look per tenant.
        Index(
            "jobs_idx_due",
            "tenant_id",
            "priority",
            "due_at",
            postgresql_where=text("status = 'pending'"),
        ),
        # All that runs anywhere, which is little; without the lease, which every heartbeat moves.
        Index(
            "jobs_idx_running",
            "tenant_id",
            "job_id",
            postgresql_where=text("status = 'running'"),
        ),
        Index(
            "jobs_uk_lane_running",
            "tenant_id",
            "lane",
            unique=True,
            postgresql_where=text("status = 'running'"),
        ),
        Index(
            "jobs_idx_lane_due",
            "tenant_id",
            "lane",
            "due_at",
            postgresql_where=text("status = 'pending' AND lane IS NOT NULL"),
        ),
        Index(
            "jobs_idx_lane_busy",
            "tenant_id",
            "lane",
            "lane_order",
            "job_id",
            postgresql_where=text(f"status = 'pending' AND deferred_reason = '{LANE_BUSY}'"),
        ),
        Index("jobs_idx_create_time", "tenant_id", "create_time", "job_id"),
        Index("jobs_idx_user_id", "tenant_id", "user_id"),
        Index("jobs_idx_session_id", "tenant_id", "session_id"),
        Index(
            "jobs_idx_finished_at",
            "tenant_id",
            "kind",
            "finished_at",
            postgresql_where=text("finished_at IS NOT NULL"),
        ),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    job_id: Mapped[str] = mapped_column(Id, primary_key=True)
    kind: Mapped[str] = mapped_column(String(40))
    key: Mapped[str] = mapped_column(String(255, collation="C"))
    status: Mapped[str] = mapped_column(String(20), server_default=text("'pending'"))
    # Smaller goes first within a tenant.
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    lane: Mapped[str | None] = mapped_column(String(255, collation="C"))
    lane_order: Mapped[datetime | None]
    agent_id: Mapped[str | None] = mapped_column(Id)
    user_id: Mapped[str | None] = mapped_column(Id)
    session_id: Mapped[str | None] = mapped_column(Id)
    signals: Mapped[list[str]] = mapped_column(ARRAY(String(40)), server_default=text("'{}'"))
    payload: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"))
    creator: Mapped[str | None] = mapped_column(Id)
    due_at: Mapped[datetime] = mapped_column(server_default=text("now()"))
    # Since when it is pending: limits how long the debounce may last.
    waiting_since: Mapped[datetime] = mapped_column(server_default=text("now()"))
    deferred_reason: Mapped[str | None] = mapped_column(String(40))
    run_again: Mapped[bool] = mapped_column(server_default=text("false"))
    again_due_at: Mapped[datetime | None]
    again_since: Mapped[datetime | None]
    again_signals: Mapped[list[str]] = mapped_column(ARRAY(String(40)), server_default=text("'{}'"))
    again_lane_order: Mapped[datetime | None]
    again_payload: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    generation: Mapped[int] = mapped_column(server_default=text("1"))
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    max_attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("8"))
    lease_token: Mapped[str | None] = mapped_column(Id)
    lease_expires_at: Mapped[datetime | None]
    worker: Mapped[str | None] = mapped_column(String(255))
    error_code: Mapped[str | None] = mapped_column(String(50))
    # A fixed sentence, never content of a provider or a user.
    error_detail: Mapped[str | None] = mapped_column(Text)
    result: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
