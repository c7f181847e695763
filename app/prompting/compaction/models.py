"""The table of summaries."""

from datetime import datetime

from sqlalchemy import (
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    SmallInteger,
    String,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned


class SessionSummary(TenantOwned, Base):
    """The summary of evicted messages; never changed, and only deleted with its session.

    Level 0 covers one eviction; a higher level merges several of the level below.
    `sessions.summary_ids` lists those that are in the context now.
    """

    __tablename__ = "session_summaries"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("level >= 0", name="level"),
        CheckConstraint("from_seq <= to_seq", name="range"),
        Index("session_summaries_idx_session", "tenant_id", "session_id", "create_time",
              "summary_id"),
    )  # fmt: skip

    summary_id: Mapped[str] = mapped_column(Id, primary_key=True)
    session_id: Mapped[str] = mapped_column(Id)
    level: Mapped[int] = mapped_column(SmallInteger)
    # The summary before it, which was read together with the messages.
    parent_id: Mapped[str | None] = mapped_column(Id)
    from_seq: Mapped[int]
    to_seq: Mapped[int]
    content: Mapped[str] = mapped_column(Text)
    tokens: Mapped[int]
    # What it replaced: messages of the range, and their tokens.
    evicted_messages: Mapped[int]
    evicted_tokens: Mapped[int]
    # Who wrote it: a summariser's name.
    model: Mapped[str] = mapped_column(String(255))
    # It was longer than allowed and was cut at the end of a sentence.
    shortened: Mapped[bool] = mapped_column(server_default=text("false"), default=False)
    reason: Mapped[str] = mapped_column(String(20))
    creator: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
