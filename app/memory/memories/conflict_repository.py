"""SQL for memories that may contradict each other, and how they are shown."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Text, bindparam, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.memory.memories.models import Memory
from app.memory.memories.record_repository import MemoryChange, snapshot
from app.memory.memories.repository import bucket, current
from app.memory.memories.schemas import MemoryRead
from app.memory.memories.validity_sql import COMPUTED, conflicts

MOST: Final = 20
"""Links of one memory; the oldest give way. Whatever contradicts more says nothing."""

_COLUMNS: Final = ", ".join(
    f"{expression} AS {name}" for name, expression in conflicts(":tenant_id").items()
)

_OF: Final = text(
    f"SELECT memories.memory_id, {_COLUMNS} FROM memories "
    "WHERE memories.tenant_id = :tenant_id AND memories.memory_id = ANY (:memory_ids)"
).bindparams(bindparam("memory_ids", type_=ARRAY(Text)))


class ConflictRepository:
    """Memories of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def lock(self, row: Mapping[str, Any], memory_ids: Collection[str]) -> Sequence[Memory]:
        """Those of `memory_ids` that count now and whose readers are those of `row`, locked.

        What was deleted or archived meanwhile is not among them: nothing contradicts it any more.
        """
        wanted = list(memory_ids)[:MOST]
        if not wanted:
            return []
        rows = await self._db.scalars(
            select(Memory)
            .where(
                Memory.tenant_id == self._tenant_id,
                Memory.memory_id.in_(wanted),
                current(),
                *bucket(row),
                Memory.visibility == row["visibility"],
            )
            .order_by(Memory.memory_id)
            .with_for_update()
            .execution_options(populate_existing=True)
        )
        return rows.all()

    async def beside(self, rows: Sequence[Memory]) -> tuple[str, ...]:
        """Ids of what contradicts one of these memories and is none of them."""
        found = await self.of(rows)
        ids = [each for known in found.values() for each in known["conflicts_with"]]
        own = {row.memory_id for row in rows}
        return tuple(each for each in dict.fromkeys(ids) if each not in own)

    async def of(self, rows: Sequence[Memory]) -> dict[str, dict[str, list[str]]]:
        """By id the fields of `MemoryRead` that say what a memory is in conflict with, now.

        Asks nothing where no row names another.
        """
        ids = [row.memory_id for row in rows if row.conflict_ids]
        if not ids:
            return {}
        asked = {"tenant_id": self._tenant_id, "memory_ids": ids}
        found = await self._db.execute(_OF, asked)
        return {
            row["memory_id"]: {name: row[name] for name in COMPUTED} for row in found.mappings()
        }


async def link(
    db: AsyncSession, rows: Sequence[Memory], others: Sequence[Memory]
) -> list[MemoryChange]:
    """Let each of the locked `rows` name `others` as what it may contradict; the changes made.

    A link counts once it is named from both sides.
    """
    if not rows or not others:
        return []
    before = [snapshot(row) for row in rows]
    for row in rows:
        named = dict.fromkeys([*(row.conflict_ids or ()), *(one.memory_id for one in others)])
        row.conflict_ids = list(named)[-MOST:]
        row.version += 1
    # All at once: a run may leave much in doubt. A trigger sets the time of the change.
    await db.flush()
    ids = [row.memory_id for row in rows]
    again = select(Memory).where(Memory.tenant_id == rows[0].tenant_id, Memory.memory_id.in_(ids))
    await db.execute(again.execution_options(populate_existing=True))
    return [
        MemoryChange("UPDATE", was, snapshot(row)) for was, row in zip(before, rows, strict=True)
    ]


async def shown_memories(
    db: AsyncSession, access: Access, rows: Sequence[Memory]
) -> list[MemoryRead]:
    """Memories as they cross HTTP, with what each is in conflict with."""
    found = await ConflictRepository(db, access.tenant_id).of(rows)
    return [
        MemoryRead.model_validate(row).model_copy(update=found.get(row.memory_id)) for row in rows
    ]
