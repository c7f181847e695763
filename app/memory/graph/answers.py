"""Rows of the graph as the API shows them, in a transaction of the caller's."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.memory.graph.models import GraphChange, GraphEntity, GraphRelation
from app.memory.graph.repository import EntityRepository
from app.memory.graph.schemas import ChangeRead, EntityRead, EntityShort, RelationRead


async def entities_shown(
    db: AsyncSession, access: Access, rows: Sequence[GraphEntity]
) -> list[EntityRead]:
    """Entities with their aliases."""
    aliases = await EntityRepository(db, access).aliases(row.entity_id for row in rows)
    return [
        EntityRead.model_validate(row).model_copy(
            update={"aliases": list(aliases.get(row.entity_id, ()))}
        )
        for row in rows
    ]


async def relations_shown(
    db: AsyncSession, access: Access, rows: Sequence[GraphRelation]
) -> list[RelationRead]:
    """Relations with the names that their two sides have now.

    One whose side was erased since it was read is left out, as it was erased with it.
    """
    ends = await EntityRepository(db, access).get_all(
        {one for row in rows for one in (row.source_id, row.destination_id)}
    )
    return [
        _relation_shown(row, ends[row.source_id], ends[row.destination_id])
        for row in rows
        if {row.source_id, row.destination_id} <= ends.keys()
    ]


def _relation_shown(
    row: GraphRelation, source: GraphEntity, destination: GraphEntity
) -> RelationRead:
    columns = {
        name: getattr(row, name)
        for name in RelationRead.model_fields
        if name not in {"source", "destination"}
    }
    return RelationRead(
        **columns,
        source=EntityShort.model_validate(source),
        destination=EntityShort.model_validate(destination),
    )


def change_shown(row: GraphChange) -> ChangeRead:
    before, after = _counted(row.before), _counted(row.after)
    return ChangeRead(
        change_id=row.change_id,
        event=row.event,
        entity_ids=row.entity_ids,
        rows={
            table.removeprefix("graph_"): max(before.get(table, 0), after.get(table, 0))
            for table in sorted({*before, *after})
        },
        reason=row.reason,
        actor=row.actor,
        create_time=row.create_time,
        undone_at=row.undone_at,
    )


def _counted(rows: Any) -> dict[str, int]:
    """How many of each table; what an import made of them is shown, whatever it is."""
    if not isinstance(rows, dict):
        return {}
    return {table: len(each) for table, each in rows.items() if isinstance(each, list)}
