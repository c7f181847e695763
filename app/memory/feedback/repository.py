"""The table of feedback on memories, and its SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    ForeignKeyConstraint,
    Index,
    String,
    Text,
    and_,
    func,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.identity.tenants.access import Access
from app.identity.users.repository import visible_user_ids
from app.memory.memories.errors import MemoryNotFoundError
from app.memory.memories.models import Memory
from app.memory.memories.visibility_sql import visible
from app.platform.database.base import Base, Id, TenantOwned, after
from app.platform.database.failures import conflicts


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


class FeedbackRepository:
    """Feedback a caller may see. Never begins or ends a transaction.

    Readers of a shared memory may not read everyone's feedback on it: a restricted key sees
    feedback on the memories of its users, and feedback that its users gave. An agent's key also
    sees feedback without a user on that agent's knowledge.
    """

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    def _mine(self) -> ColumnElement[bool]:
        return and_(MemoryFeedback.tenant_id == self._access.tenant_id, self._readable())

    def _readable(self) -> ColumnElement[bool]:
        if not self._access.restricted:
            return true()
        users = visible_user_ids(self._access)
        own = or_(MemoryFeedback.user_id.in_(users), MemoryFeedback.author_id.in_(users))
        if self._access.user_id is not None:
            return own
        without_user = and_(MemoryFeedback.user_id.is_(None), MemoryFeedback.author_id.is_(None))
        return or_(own, without_user)

    async def add(self, feedback: MemoryFeedback) -> None:
        """Insert `feedback`.

        Raises:
            MemoryNotFoundError: its memory was removed meanwhile.

        """
        feedback.tenant_id = self._access.tenant_id
        self._db.add(feedback)
        gone = MemoryNotFoundError(feedback.memory_id)
        with conflicts({"memory_feedback_fk_memories": gone, "memory_feedback_fk_users": gone}):
            await self._db.flush()
        await self._db.refresh(feedback)

    async def list_feedback(
        self, memory_id: str, *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[MemoryFeedback]:
        """Newest first, one more than `limit` when another page follows.

        Access to the memory itself is checked before, by its own repository.
        """
        statement = select(MemoryFeedback).where(
            self._mine(), MemoryFeedback.memory_id == memory_id
        )
        rows = await self._db.scalars(
            after(
                statement,
                (MemoryFeedback.create_time, MemoryFeedback.feedback_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def counts(self, equal: Mapping[str, Any]) -> tuple[dict[str, int], int]:
        """Feedback by rating, and how many memories it is about; deleted ones never.

        Args:
            equal: column of the memories to the value it must have.

        """
        chosen = (
            select(MemoryFeedback.rating, MemoryFeedback.memory_id)
            .join(
                Memory,
                and_(
                    Memory.tenant_id == self._access.tenant_id,
                    Memory.memory_id == MemoryFeedback.memory_id,
                ),
            )
            .where(
                self._mine(),
                Memory.status != "deleted",
                visible(self._access),
                *(getattr(Memory, name) == value for name, value in equal.items()),
            )
            .subquery()
        )
        rows = await self._db.execute(
            select(chosen.c.rating, func.count()).group_by(chosen.c.rating)
        )
        by_rating = {row[0]: int(row[1]) for row in rows}
        memories = await self._db.scalar(select(func.count(chosen.c.memory_id.distinct())))
        return by_rating, int(memories or 0)
