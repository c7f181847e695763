"""SQL for what mem0's clients ask by page number, and for the entities that have memories."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, and_, func, literal, or_, select, union_all
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.integrations.mem0.filters import APP_KEY
from app.memory.memories.models import Memory
from app.memory.memories.repository import compiled, current, existing


class Place(NamedTuple):
    """Where memories are: a scope, and whose it is."""

    scope: str
    scope_id: str


class ListedMemories:
    """Memories that a caller may see, by page number."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    def _chosen(self, filters: Mapping[str, Any], *, expired: bool) -> list[Any]:
        counts: ColumnElement[bool] = current()
        if expired:
            past = and_(Memory.status.in_(["active", "archived"]), Memory.expires_at <= func.now())
            counts = or_(counts, past)
        return [existing(self._access), counts, *([compiled(filters)] if filters else [])]

    async def page(
        self, filters: Mapping[str, Any], *, expired: bool, page: int, size: int
    ) -> tuple[Sequence[Memory], int]:
        """One page, newest first, and how many there are on all pages.

        Args:
            filters: the grammar of `filters.py` of memories.
            expired: also what has expired.
            page: from 1.
            size: of a page.

        """
        chosen = self._chosen(filters, expired=expired)
        rows = await self._db.scalars(
            select(Memory)
            .where(*chosen)
            .order_by(Memory.create_time.desc(), Memory.memory_id.desc())
            .limit(size)
            .offset((page - 1) * size)
        )
        count = await self._db.scalar(select(func.count()).select_from(Memory).where(*chosen))
        return rows.all(), count or 0

    async def places(self, filters: Mapping[str, Any], limit: int) -> Sequence[Place]:
        """Where the chosen memories are; at most `limit` places."""
        rows = await self._db.execute(
            select(Memory.scope, Memory.scope_id)
            .where(*self._chosen(filters, expired=False))
            .distinct()
            .order_by(Memory.scope, Memory.scope_id)
            .limit(limit)
        )
        return [Place(*row) for row in rows]

    async def predecessors(self, memory_ids: Sequence[str]) -> Sequence[str]:
        """Ids of what the given memories replaced."""
        rows = await self._db.scalars(
            select(Memory.memory_id)
            .where(existing(self._access), Memory.superseded_by.in_(memory_ids))
            .order_by(Memory.memory_id)
        )
        return rows.all()

    async def entities(
        self, kinds: Sequence[str], *, page: int, size: int
    ) -> tuple[Sequence[Any], dict[str, int]]:
        """Entities that have memories, and how many there are of each kind.

        A row has `kind`, `name`, and when its `first` memory was stored and its `last` changed.
        Apps, runs and agents come before users: deleted in this order, each is still there.
        """
        parts = [
            select(
                literal(kind).label("kind"),
                literal(place).label("place"),
                column.label("name"),
                func.min(Memory.create_time).label("first"),
                func.max(Memory.update_time).label("last"),
            )
            .where(existing(self._access), column.is_not(None))
            .group_by(column)
            for place, (kind, column) in enumerate(_ENTITIES.items())
            if kind in kinds
        ]
        every = union_all(*parts).subquery()
        rows = await self._db.execute(
            select(every)
            .order_by(every.c.place, every.c.name)
            .limit(size)
            .offset((page - 1) * size)
        )
        counts = await self._db.execute(
            select(every.c.kind, func.count().label("found")).group_by(every.c.kind)
        )
        return rows.all(), {row.kind: row.found for row in counts}


_ENTITIES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "app": Memory.metadata_[APP_KEY].astext,
        "run": Memory.session_id,
        "agent": Memory.agent_id,
        "user": Memory.user_id,
    }
)
