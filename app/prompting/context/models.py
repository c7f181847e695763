"""The table of contexts that were shown."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index, String, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned

_IDS = ARRAY(Id)


class InjectedContext(TenantOwned, Base):
    """A content that contexts of a session had, and what was put into it; only ids and counts."""

    __tablename__ = "injected_contexts"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
        Index("injected_contexts_idx_first_at", "tenant_id", "session_id", "first_at",
              "content_sha256"),
        Index("injected_contexts_idx_last_at", "tenant_id", "last_at"),
    )  # fmt: skip

    session_id: Mapped[str] = mapped_column(Id, primary_key=True)
    content_sha256: Mapped[str] = mapped_column(String(64, collation="C"), primary_key=True)
    memory_ids: Mapped[list[str]] = mapped_column(_IDS, server_default=text("'{}'"))
    passage_ids: Mapped[list[str]] = mapped_column(_IDS, server_default=text("'{}'"))
    # Of whose messages it had excerpts.
    message_ids: Mapped[list[str]] = mapped_column(_IDS, server_default=text("'{}'"))
    tokens: Mapped[int]
    memory_tokens: Mapped[int]
    first_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_at: Mapped[datetime] = mapped_column(server_default=func.now())
