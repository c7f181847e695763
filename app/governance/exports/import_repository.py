"""Writing rows of an export as they were: one statement for many, no trigger, no default."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic_core import from_json, to_json
from sqlalchemy import FromClause, Table, and_, any_, cast, func, literal, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, JSON, insert
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.types import LargeBinary, Text

from app.governance.exports.columns_sql import as_stored, written
from app.governance.exports.exported_tables import (
    DERIVED,
    NO_MODEL,
    RECEIPTS,
    TABLES,
    TENANT,
    columns_of,
    key_of,
)
from app.platform.database.base import subject_hash
from app.platform.database.failures import origin, violated_constraint

Row = Mapping[str, Any]
Key = tuple[Any, ...]

MESSAGES: Final = TABLES["messages"]
SESSIONS: Final = TABLES["sessions"]

_REFUSALS: Final = {"22", "23", "54"}
"""Classes of SQLSTATE about a value: it cannot be read, it breaks a rule, it is larger than
PostgreSQL can hold."""


class RefusedRowsError(Exception):
    """PostgreSQL refuses the rows; the transaction goes on without them."""


class ImportRepository:
    """Rows of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def insert(self, table: Table, names: Sequence[str], rows: Sequence[bytes]) -> set[Key]:
        """Write the rows whose keys are not taken; the keys of the written rows.

        Args:
            table: whose rows.
            names: the columns that all rows have.
            rows: checked, as JSON.

        Raises:
            RefusedRowsError: PostgreSQL does not take one of them; none was written.

        """
        given = _given(table, names, b"[" + b",".join(rows) + b"]")
        shown = {name: as_stored(table.c[name], given.c[name]) for name in names}
        if table.name == "memories" and "embedding_model" not in shown:
            shown["embedding_model"] = literal(NO_MODEL)
        statement = (
            insert(table)
            .from_select(
                [TENANT, *shown],
                select(literal(self._tenant_id), *shown.values()),
                include_defaults=False,
            )
            .on_conflict_do_nothing()
            .returning(_key(table))
        )
        await self._db.execute(text("SAVEPOINT rows"))
        try:
            written_keys = await self._db.scalars(statement)
        except DBAPIError as error:
            if _class_of(error) not in _REFUSALS:
                raise
            await self._db.execute(text("ROLLBACK TO SAVEPOINT rows"))
            raise RefusedRowsError(_why(error)) from error
        await self._db.execute(text("RELEASE SAVEPOINT rows"))
        return {tuple(from_json(key)) for key in written_keys}

    async def existing(self, table: Table, rows: Sequence[Row]) -> dict[Key, Row]:
        """What stands under the keys of rows, as an export would show it, by key."""
        keys = [column.name for column in key_of(table)]
        columns = [column for column in columns_of(table) if column.name not in DERIVED]
        shown = select(*(written(column).label(column.name) for column in columns))
        row = shown.correlate(table).lateral("r")
        given = _given(table, keys, to_json([{name: row[name] for name in keys} for row in rows]))
        found = await self._db.execute(
            select(_key(table), cast(func.row_to_json(row.table_valued()), Text))
            .select_from(table.join(given, _same(table, given, keys)))
            .join(row, literal(True))
            .where(table.c[TENANT] == self._tenant_id)
        )
        return {tuple(from_json(key)): from_json(row) for key, row in found}

    async def present(self, table: Table, names: Sequence[str], rows: Sequence[Row]) -> set[Key]:
        """Those of the given values of some columns that are stored."""
        given = _given(table, names, to_json([dict(row) for row in rows]))
        found = await self._db.scalars(
            select(cast(func.json_build_array(*(written(table.c[name]) for name in names)), Text))
            .select_from(table.join(given, _same(table, given, names)))
            .where(table.c[TENANT] == self._tenant_id)
        )
        return {tuple(from_json(key)) for key in found}

    async def raise_counters(self, session_ids: Collection[str]) -> None:
        """Raise the counters of sessions, so that no number of a stored message is given again.

        A session that was skipped may be older than its imported messages.
        """
        newest = (
            select(MESSAGES.c.session_id, func.max(MESSAGES.c.sequence_no).label("number"))
            .where(
                MESSAGES.c[TENANT] == self._tenant_id,
                MESSAGES.c.session_id == any_(literal(list(session_ids), ARRAY(Text))),
            )
            .group_by(MESSAGES.c.session_id)
            .subquery()
        )
        await self._db.execute(
            update(SESSIONS)
            .values(last_sequence_no=newest.c.number)
            .where(
                SESSIONS.c[TENANT] == self._tenant_id,
                SESSIONS.c.session_id == newest.c.session_id,
                SESSIONS.c.last_sequence_no < newest.c.number,
            )
        )

    async def erased(self, user_ids: Collection[str], since: datetime | None) -> list[str]:
        """Users of these that were erased since then, sorted; at any time when `since` is None."""
        hashes = {subject_hash(self._tenant_id, "user", user_id): user_id for user_id in user_ids}
        statement = select(RECEIPTS.c.subject_hash).where(
            RECEIPTS.c[TENANT] == self._tenant_id,
            RECEIPTS.c.subject_hash == any_(literal(list(hashes), ARRAY(LargeBinary))),
        )
        if since is not None:
            statement = statement.where(RECEIPTS.c.create_time >= since)
        found = await self._db.scalars(statement)
        return sorted({hashes[digest] for digest in found})


def _given(table: Table, names: Sequence[str], rows: bytes) -> FromClause:
    """A list of rows as a table, read by PostgreSQL with the types of a stored one."""
    return func.json_populate_recordset(
        text(f"CAST(NULL AS {table.name})"), cast(literal(rows.decode(), Text), JSON)
    ).table_valued(*names, name="given")


def _same(table: Table, given: FromClause, names: Sequence[str]) -> Any:
    return and_(*(table.c[name] == as_stored(table.c[name], given.c[name]) for name in names))


def _key(table: Table) -> Any:
    return cast(func.json_build_array(*(written(column) for column in key_of(table))), Text)


def _class_of(error: DBAPIError) -> str:
    return str(getattr(origin(error), "sqlstate", None) or "")[:2]


def _why(error: DBAPIError) -> str:
    """The violated rule; never the value, which is content."""
    constraint = violated_constraint(error) if isinstance(error, IntegrityError) else None
    return (
        "holds a value that its column cannot hold"
        if constraint is None
        else f"breaks the rule {constraint}"
    )
