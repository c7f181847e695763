"""The table of receipts: what kind of subject was erased, and how many rows."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary, String, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned


class Erasure(TenantOwned, Base):
    """Receipt of an erasure: counts, and a hash by which a caller that knows the id finds it."""

    __tablename__ = "erasures"
    __table_args__ = (
        Index("erasures_idx_create_time", "tenant_id", "create_time", "erasure_id"),
        Index("erasures_idx_subject", "tenant_id", "subject_hash"),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    erasure_id: Mapped[str] = mapped_column(Id, primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    # Of kind and id, keyed by the tenant: the erased subject is not named here.
    subject_hash: Mapped[bytes] = mapped_column(LargeBinary)
    deleted: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"))
    actor: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
