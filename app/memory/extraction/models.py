"""The table of extraction runs: which model read what, when, and what came of it."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, String, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned


class ExtractionRun(TenantOwned, Base):
    """One reading of some messages. Written right after the extractor answered, apart from
    the results, so that tokens spent are counted whatever happens next.
    """

    __tablename__ = "extraction_runs"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("status IN ('extracted', 'committed', 'failed')", name="status"),
        Index("extraction_runs_idx_session_id", "tenant_id", "session_id", "create_time"),
        Index("extraction_runs_idx_user_id", "tenant_id", "user_id"),
        Index("extraction_runs_idx_create_time", "tenant_id", "create_time", "run_id"),
        Index("extraction_runs_idx_job_id", "tenant_id", "job_id"),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    extraction_id: Mapped[str] = mapped_column("run_id", Id, primary_key=True)
    job_id: Mapped[str | None] = mapped_column(Id)
    # Why it was read: `Trigger` in `run_state.py`.
    trigger: Mapped[str] = mapped_column(String(20))
    status: Mapped[str] = mapped_column(String(20))
    error_code: Mapped[str | None] = mapped_column(String(50))
    agent_id: Mapped[str | None] = mapped_column(Id)
    user_id: Mapped[str | None] = mapped_column(Id)
    session_id: Mapped[str | None] = mapped_column(Id)
    first_sequence_no: Mapped[int | None]
    last_sequence_no: Mapped[int | None]
    messages: Mapped[int] = mapped_column(server_default=text("0"))
    extractor: Mapped[str] = mapped_column(String(255))
    model: Mapped[str | None] = mapped_column(String(255))
    prompt_version: Mapped[str | None] = mapped_column(String(40))
    reached_model: Mapped[bool] = mapped_column(server_default=text("false"))
    calls: Mapped[int] = mapped_column(server_default=text("0"))
    input_tokens: Mapped[int] = mapped_column(server_default=text("0"))
    output_tokens: Mapped[int] = mapped_column(server_default=text("0"))
    latency_ms: Mapped[int] = mapped_column(server_default=text("0"))
    proposals: Mapped[int] = mapped_column(server_default=text("0"))
    # How many of each event: {"ADD": 2, "REJECT": 1}.
    outcomes: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"))
    # What was looked at besides: {"reviewed": 3, "KEEP": 2, "REMOVE": 1}.
    upkeep: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"))
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
    finish_time: Mapped[datetime | None]
