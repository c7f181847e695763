"""The table of kept results of evaluations."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary, String, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned


class EvaluationResult(TenantOwned, Base):
    """What one evaluation measured, on what, how, and with which release."""

    __tablename__ = "evaluation_results"
    __table_args__ = (
        Index("evaluation_results_idx_create_time", "tenant_id", "create_time", "evaluation_id"),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    evaluation_id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    dataset: Mapped[str] = mapped_column(String(255))
    release: Mapped[str] = mapped_column(String(40))
    settings: Mapped[dict[str, Any]] = mapped_column(JSONB)
    # Of data set and settings: results with the same one may be compared.
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary)
    metrics: Mapped[dict[str, Any]] = mapped_column(JSONB)
    actor: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
