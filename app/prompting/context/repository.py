"""The table of contexts that were shown, and its SQL."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index, String, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.identity.tenants.access import Access
from app.platform.database.base import Base, Id, TenantOwned, after

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


class InjectionRepository:
    """Contents that contexts of a session had. Never begins or ends a transaction.

    Whether the caller may see the session is `SessionRepository`'s to say, first.
    """

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    async def list_contexts(
        self,
        session_id: str,
        *,
        content_sha256: str | None,
        start: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[InjectedContext]:
        """Contents of a session, newest first; one more than `limit` if a further page follows."""
        statement = select(InjectedContext).where(
            InjectedContext.tenant_id == self._access.tenant_id,
            InjectedContext.session_id == session_id,
        )
        if content_sha256 is not None:
            statement = statement.where(InjectedContext.content_sha256 == content_sha256)
        columns = (InjectedContext.first_at, InjectedContext.content_sha256)
        rows = await self._db.scalars(
            after(statement, columns, start=start, descending=True, limit=limit)
        )
        return rows.all()
