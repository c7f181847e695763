"""The table of feedback on memories."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned


class MemoryFeedback(TenantOwned, Base):
    """One caller's opinion of one memory."""

    __tablename__ = "memory_feedback"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "memory_id"],
            ["memories.tenant_id", "memories.memory_id"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        CheckConstraint("rating IN ('helpful', 'wrong', 'outdated')", name="rating"),
        Index(
            "memory_feedback_idx_memory_id", "tenant_id", "memory_id", "create_time", "feedback_id"
        ),
        Index("memory_feedback_idx_user_id", "tenant_id", "user_id"),
        Index(
            "memory_feedback_idx_author_id",
            "tenant_id",
            "author_id",
            postgresql_where=text("author_id IS NOT NULL"),
        ),
    )

    feedback_id: Mapped[str] = mapped_column(Id, primary_key=True)
    memory_id: Mapped[str] = mapped_column(Id)
    # Whose memory it is, so that an erasure finds it.
    user_id: Mapped[str | None] = mapped_column(Id)
    # Whose key gave it, so that an erasure finds a user's comments on other users' memories. No
    # foreign key: a key may be made before its user.
    author_id: Mapped[str | None] = mapped_column(Id)
    rating: Mapped[str] = mapped_column(String(20))
    comment: Mapped[str | None] = mapped_column(Text)
    # The version it was given for.
    version: Mapped[int]
    actor: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
