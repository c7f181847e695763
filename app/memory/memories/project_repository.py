"""SQL for the items of a project as its owners and admins see them: without what they say."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.memory.memories.models import Memory
from app.memory.memories.visibility_sql import removable
from app.platform.database.keyset import after


class ProjectItemRepository:
    """Items that a caller may remove. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    async def list_items(
        self,
        project_id: str,
        *,
        equal: Mapping[str, Any],
        start: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[Any]:
        """Newest first, one more than `limit` when another page follows.

        Args:
            equal: column to the value it must have.

        """
        columns: list[Any] = [
            Memory.memory_id,
            Memory.user_id,
            Memory.visibility,
            Memory.status,
            Memory.create_time,
            Memory.update_time,
        ]
        statement = select(*columns).where(
            Memory.tenant_id == self._access.tenant_id,
            Memory.project_id == project_id,
            Memory.scope == "project",
            Memory.status != "deleted",
            removable(self._access),
            *(getattr(Memory, name) == value for name, value in equal.items()),
        )
        rows = await self._db.execute(
            after(
                statement,
                (Memory.create_time, Memory.memory_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()
