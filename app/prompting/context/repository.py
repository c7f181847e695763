"""SQL for contexts that were shown."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.platform.database.keyset import after
from app.prompting.context.models import InjectedContext


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
