"""SQL for memories that stood in a session's context: which of them an answer drew on."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.memory.memories.models import ContextInjection


class InjectionUseRepository:
    """Shown memories of one tenant. Never begins or ends a transaction.

    Whether the caller may see the session is checked before, by its own repository.
    """

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def note(
        self, session_id: str, memory_ids: Sequence[str], at: datetime, *, estimated: bool = False
    ) -> list[str]:
        """Note since when answers of the session drew on these memories; the first time counts.

        Safe to repeat, and from two transactions at once: each memory is noted once.

        Args:
            session_id: whose context it was.
            memory_ids: those that were not shown are passed over.
            at: when.
            estimated: by the words of the answer, and not by anybody's word.

        Returns:
            Ids of the memories that were not noted before.

        """
        column = ContextInjection.used_estimated_at if estimated else ContextInjection.used_at
        # One order of locks, so that two transactions cannot wait for each other.
        chosen = (
            select(ContextInjection.memory_id)
            .where(*self._shown(session_id, memory_ids), column.is_(None))
            .order_by(ContextInjection.memory_id)
            .with_for_update()
            .cte("chosen")
        )
        rows = await self._db.scalars(
            update(ContextInjection)
            .where(
                ContextInjection.tenant_id == self._tenant_id,
                ContextInjection.session_id == session_id,
                ContextInjection.memory_id == chosen.c.memory_id,
            )
            .values({column: at})
            .returning(ContextInjection.memory_id)
            .execution_options(synchronize_session=False)
        )
        return sorted(rows.all())

    async def shown(self, session_id: str, memory_ids: Sequence[str]) -> set[str]:
        """Which of these memories stood in a context of the session."""
        rows = await self._db.scalars(
            select(ContextInjection.memory_id).where(*self._shown(session_id, memory_ids))
        )
        return set(rows.all())

    def _shown(self, session_id: str, memory_ids: Sequence[str]) -> tuple[ColumnElement[bool], ...]:
        return (
            ContextInjection.tenant_id == self._tenant_id,
            ContextInjection.session_id == session_id,
            ContextInjection.memory_id.in_(memory_ids),
        )
