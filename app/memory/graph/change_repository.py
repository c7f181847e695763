"""SQL for merges and splits: the rows around entities, replaced by others, and compared.

Rows travel as PostgreSQL writes them in JSON and are compared as PostgreSQL reads them, so that an
undo restores them to the byte. They name no tenant: it is always the caller's, also of what was
imported from another.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from sqlalchemy import CursorResult, bindparam, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.memory.graph.errors import ChangeNotFoundError, InvalidChangeError
from app.memory.graph.models import GraphAlias, GraphChange, GraphMention, GraphRelation
from app.memory.graph.relation_repository import visible
from app.memory.graph.statements import GraphOwner
from app.platform.database.base import after
from app.platform.database.failures import origin

Row = dict[str, Any]
Rows = dict[str, list[Row]]

ALIASES: Final = "graph_aliases"
ENTITIES: Final = "graph_entities"
MENTIONS: Final = "graph_mentions"
RELATIONS: Final = "graph_relations"

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    ALIASES: ("entity_id", "alias_key"),
    MENTIONS: ("memory_id", "entity_id"),
    RELATIONS: ("relation_id", "version"),
}
"""What names a row, beside the tenant. Of entities only `merged_into` is ever changed here."""

COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    str(table.__tablename__): frozenset(table.__table__.columns.keys())
    for table in (GraphAlias, GraphMention, GraphRelation)
} | {ENTITIES: frozenset(("tenant_id", "entity_id", "version", "merged_into"))}
"""What a row may hold; the tenant in rows of older exports is ignored."""

_AROUND: Final = {
    ALIASES: "t.entity_id = ANY(:ids)",
    MENTIONS: "t.entity_id = ANY(:ids)",
    RELATIONS: "(t.source_id = ANY(:ids) OR t.destination_id = ANY(:ids))",
}

_READ = """
SELECT to_jsonb(t) - 'tenant_id' AS row FROM {table} t
WHERE t.tenant_id = :tenant_id AND {condition} ORDER BY {key} LIMIT :most
"""

_DELETE = """
DELETE FROM {table} t USING jsonb_populate_recordset(NULL::{table}, :rows) a
WHERE t.tenant_id = :tenant_id AND {same}
"""

_HELD = """
SELECT memory_id FROM memories WHERE tenant_id = :tenant_id AND memory_id = ANY(:ids)
ORDER BY memory_id FOR KEY SHARE
"""

_INSERT = """
INSERT INTO {table} (tenant_id, {columns})
SELECT CAST(:tenant_id AS text), {columns} FROM jsonb_populate_recordset(NULL::{table}, :rows)
"""

# Both composites are of the table's own type, so that every column is compared as what it is.
_DIFFERENT = """
SELECT {key} FROM jsonb_populate_recordset(NULL::{table}, :rows) a
WHERE NOT EXISTS (
    SELECT FROM {table} t
    WHERE t.tenant_id = :tenant_id AND {same} AND t IS NOT DISTINCT FROM a
)
"""

_THERE = """
SELECT {key} FROM jsonb_populate_recordset(NULL::{table}, :rows) a
WHERE EXISTS (SELECT FROM {table} t WHERE t.tenant_id = :tenant_id AND {same})
"""

_MERGED_INTO = """
UPDATE graph_entities t SET merged_into = a.merged_into
FROM jsonb_to_recordset(:rows) AS a(entity_id text, merged_into text)
WHERE t.tenant_id = :tenant_id AND t.entity_id = a.entity_id
"""

_ENTITY_DIFFERENT = """
SELECT a.entity_id FROM jsonb_to_recordset(:rows)
    AS a(entity_id text, merged_into text, version bigint)
WHERE NOT EXISTS (
    SELECT FROM graph_entities t
    WHERE t.tenant_id = :tenant_id AND t.entity_id = a.entity_id AND t.version = a.version
        AND t.merged_into IS NOT DISTINCT FROM a.merged_into
)
"""

_OUTSIDE = """
SELECT named.entity_id FROM unnest(CAST(:ids AS text[])) AS named(entity_id)
WHERE NOT EXISTS (
    SELECT FROM graph_entities t
    WHERE t.tenant_id = :tenant_id AND t.entity_id = named.entity_id
        AND t.scope = :scope AND t.scope_id = :scope_id
        AND t.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
        AND t.agent_id IS NOT DISTINCT FROM CAST(:agent_id AS text)
        AND t.project_id IS NOT DISTINCT FROM CAST(:project_id AS text)
)
ORDER BY named.entity_id
"""

_NAME_TAKEN = """
SELECT taken.entity_id FROM graph_entities t JOIN graph_entities taken
    ON taken.tenant_id = :tenant_id AND taken.scope_id = t.scope_id AND taken.scope = t.scope
    AND taken.name_key = t.name_key AND taken.user_id IS NOT DISTINCT FROM t.user_id
    AND taken.agent_id IS NOT DISTINCT FROM t.agent_id AND taken.merged_into IS NULL
WHERE t.tenant_id = :tenant_id AND t.entity_id = ANY(:ids) AND t.merged_into IS NOT NULL
"""

_UNFIT: Final = {"22", "23"}
"""Classes of SQLSTATE that say something about a value."""

_ROWS = bindparam("rows", type_=JSONB)

_LOCK = """
SELECT entity_id FROM graph_entities WHERE tenant_id = :tenant_id AND entity_id = ANY(:ids)
ORDER BY entity_id FOR UPDATE
"""

_CLEAR_MERGED_INTO = """
UPDATE graph_entities SET merged_into = NULL
WHERE tenant_id = :tenant_id AND merged_into = ANY(:ids) AND entity_id <> ALL(:ids)
"""

_REMOVE = "DELETE FROM graph_entities WHERE tenant_id = :tenant_id AND entity_id = ANY(:ids)"


class ChangeRepository:
    """Merges and splits a caller may see. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access
        self._tenant = {"tenant_id": access.tenant_id}

    async def around(self, entity_ids: Sequence[str], *, most: int) -> Rows:
        """Aliases, mentions and relations of entities, all versions; `most` + 1 of each kind."""
        found: Rows = {}
        for table, condition in _AROUND.items():
            key = ", ".join(f"t.{name}" for name in KEYS[table])
            statement = text(_READ.format(table=table, condition=condition, key=key))
            rows = await self._db.scalars(
                statement.columns(row=JSONB), self._tenant | {"ids": list(entity_ids), "most": most}
            )
            found[table] = list(rows)
        return found

    async def swap(self, old: Rows, new: Rows) -> None:
        """Replace `old` rows by `new` ones; entities are made and removed elsewhere."""
        # Memories are locked first, in the order that a deletion of memories locks.
        mentioned = {str(row["memory_id"]) for rows in (old, new) for row in rows.get(MENTIONS, [])}
        await self._db.execute(text(_HELD), self._tenant | {"ids": sorted(mentioned)})
        await self._with_rows(_MERGED_INTO, new.get(ENTITIES, []))
        for table in KEYS:
            await self._each(_DELETE, table, old)
        for table in KEYS:
            await self._each(_INSERT, table, new)

    async def different(self, rows: Rows) -> list[str]:
        """Which of these are there no longer as they were, as words for people."""
        found = [
            f"entity {row[0]}"
            for row in await self._with_rows(_ENTITY_DIFFERENT, rows.get(ENTITIES, []))
        ]
        for table in KEYS:
            found += _described(table, await self._each(_DIFFERENT, table, rows))
        return found

    async def there(self, rows: Rows) -> list[str]:
        """Which keys of these are there, as words for people."""
        found: list[str] = []
        for table in KEYS:
            found += _described(table, await self._each(_THERE, table, rows))
        return found

    async def outside(self, owner: GraphOwner, entity_ids: Collection[str]) -> list[str]:
        """Which of these are no entities of this bucket, as words for people."""
        rows = await self._db.scalars(
            text(_OUTSIDE), self._tenant | asdict(owner) | {"ids": sorted(entity_ids)}
        )
        return [f"entity {entity_id}" for entity_id in rows]

    async def names_taken(self, entity_ids: Sequence[str]) -> list[str]:
        """Entities that have the names of merged ones by now, as words for people."""
        rows = await self._db.scalars(text(_NAME_TAKEN), self._tenant | {"ids": list(entity_ids)})
        return [f"entity {entity_id}" for entity_id in rows]

    async def remove_entities(self, entity_ids: Sequence[str]) -> None:
        """Remove entities; those that were merged into one of them are independent again."""
        # Locked first, so that none is merged into them before they are gone.
        for statement in (_LOCK, _CLEAR_MERGED_INTO, _REMOVE):
            await self._db.execute(text(statement), self._tenant | {"ids": list(entity_ids)})

    async def add(self, change: GraphChange) -> GraphChange:
        change.tenant_id = self._access.tenant_id
        self._db.add(change)
        await self._db.flush()
        await self._db.refresh(change)
        return change

    async def get(self, change_id: str, *, lock: bool = False) -> GraphChange:
        """One change that the caller may see.

        Raises:
            ChangeNotFoundError: there is none for this caller.

        """
        statement = select(GraphChange).where(
            visible(self._access, GraphChange), GraphChange.change_id == change_id
        )
        if lock:
            statement = statement.with_for_update().execution_options(populate_existing=True)
        row = await self._db.scalar(statement)
        if row is None:
            raise ChangeNotFoundError(change_id)
        return row

    async def list_changes(
        self, *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[GraphChange]:
        """Newest first, one more than `limit` when another page follows."""
        rows = await self._db.scalars(
            after(
                select(GraphChange).where(visible(self._access, GraphChange)),
                (GraphChange.create_time, GraphChange.change_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def _each(self, statement: str, table: str, rows: Rows) -> Sequence[Any]:
        same = " AND ".join(f"t.{name} = a.{name}" for name in KEYS[table])
        key = ", ".join(f"a.{name}" for name in KEYS[table])
        columns = ", ".join(sorted(COLUMNS[table] - {"tenant_id"}))
        return await self._with_rows(
            statement.format(table=table, same=same, key=key, columns=columns), rows.get(table, [])
        )

    async def _with_rows(self, statement: str, rows: Sequence[Row]) -> Sequence[Any]:
        if not rows:
            return []
        typed = text(statement).bindparams(_ROWS)
        values: dict[str, Any] = {"rows": [row | self._tenant for row in rows]}
        if ":tenant_id" in statement:
            values |= self._tenant
        result = await self._db.execute(typed, values)
        return result.all() if isinstance(result, CursorResult) and result.returns_rows else []


@contextmanager
def fitting(change_id: str) -> Iterator[None]:
    """Raise InvalidChangeError where PostgreSQL cannot read a value, or it breaks a rule.

    Raises InvalidChangeError.
    """
    try:
        yield
    except DBAPIError as error:
        if str(getattr(origin(error), "sqlstate", ""))[:2] not in _UNFIT:
            raise
        raise InvalidChangeError(change_id) from error


def _described(table: str, keys: Sequence[Any]) -> list[str]:
    kind = {ALIASES: "alias of", MENTIONS: "mention in", RELATIONS: "relation"}[table]
    return sorted({f"{kind} {key[0]}" for key in keys})
