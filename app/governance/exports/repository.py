"""Rows of an export as text, page by page, out of one snapshot; and written as they were: one
statement for many, no trigger, no default.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic_core import from_json, to_json
from sqlalchemy import (
    Column,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Table,
    and_,
    any_,
    case,
    cast,
    func,
    literal,
    null,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON, asyncpg, insert
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.types import LargeBinary, Text

from app.governance.exports.columns_sql import as_stored, written
from app.governance.exports.scope_sql import (
    DERIVED,
    NO_MODEL,
    RECEIPTS,
    TABLES,
    TENANT,
    ExportScope,
    columns_of,
    key_of,
    reference_columns,
    references_of,
    self_reference,
    stub_columns,
)
from app.memory.memories.bucket_repository import BucketRepository
from app.platform.database.base import subject_hash
from app.platform.database.failures import origin, violated_constraint

PAGE: Final = 100
BULKY_PAGE: Final = 4
"""Rows held at a time: of ordinary tables, and of those with bytes, a mebibyte each."""

FETCH_TIMEOUT_SECONDS: Final = 600
"""How long PostgreSQL may sort before the first row of a table; the default is for requests."""

_LAST: Final = 2**31 - 1


class ExportRepository:
    """Reads rows of a scope. Never begins or ends the transaction, which must be a snapshot."""

    def __init__(self, db: AsyncSession, scope: ExportScope) -> None:
        self._db = db
        self._scope = scope

    async def rows(
        self, table: Table, *, vectors: bool, stubs: bool = False
    ) -> AsyncIterator[list[str]]:
        """Rows of the scope as JSON, a page at a time; rows precede those that refer to them."""
        size = BULKY_PAGE if _is_bulky(table) else PAGE
        # In a thread: putting them together takes up to 60 ms for a table.
        for statement in await asyncio.to_thread(self._texts, table, vectors=vectors, stubs=stubs):
            async for page in self._read(statement, size):
                yield page

    def _texts(self, table: Table, *, vectors: bool, stubs: bool) -> list[str]:
        dialect = asyncpg.dialect()  # type: ignore[no-untyped-call] # not annotated there
        return [
            str(statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
            for statement in self._statements(table, vectors=vectors, stubs=stubs)
        ]

    async def _read(self, statement: str, size: int) -> AsyncIterator[list[str]]:
        # A cursor of PostgreSQL's: the client holds one page, the server what it has to sort.
        connection = await (await self._db.connection()).get_raw_connection()
        driver = connection.driver_connection
        assert driver is not None  # noqa: S101 (the transaction is open)
        await driver.execute(f"DECLARE export NO SCROLL CURSOR FOR {statement}")
        while page := await driver.fetch(
            f"FETCH {size} FROM export", timeout=FETCH_TIMEOUT_SECONDS
        ):
            yield [row[0] for row in page]
        await driver.execute("CLOSE export")

    def _statements(self, table: Table, *, vectors: bool, stubs: bool) -> Iterator[Select[Any]]:
        if stubs:
            shown = [column.label(column.name) for column in stub_columns(table)]
            yield _lines(table, shown).where(self._scope.stubs(table)).order_by(*key_of(table))
            return
        shown = [
            self._kept(table, column).label(column.name)
            for column in columns_of(table, vectors=vectors)
        ]
        lines = _lines(table, shown).where(self._scope.rows(table))
        reference = self_reference(table)
        if reference is None:
            yield lines.order_by(*key_of(table))
            return
        target = self._kept(table, reference)
        yield lines.where(target.is_(None)).order_by(*key_of(table))
        [key] = key_of(table)
        chain = self._chain(table, key, target)
        yield (
            lines.join(chain, chain.c.key == key, isouter=True)
            .where(target.is_not(None))
            .order_by(func.coalesce(chain.c.depth, _LAST), key)
        )

    def _chain(self, table: Table, key: Column[Any], target: ColumnElement[Any]) -> Any:
        """Depth of each row in its chain of references."""
        inside = (
            select(key.label("key"), target.label("target"))
            .where(self._scope.rows(table), or_(target.is_not(None), key.in_(self._targets(table))))
            .cte("inside")
        )
        chain = (
            select(inside.c.key, cast(literal(0), Integer).label("depth"))
            .where(inside.c.target.is_(None))
            .cte("chain", recursive=True)
        )
        return chain.union_all(
            select(inside.c.key, (chain.c.depth + 1).label("depth")).join(
                chain, inside.c.target == chain.c.key
            )
        )

    def _targets(self, table: Table) -> Select[Any]:
        reference = self_reference(table)
        assert reference is not None  # noqa: S101 (only asked of such tables)
        other = table.alias("other")
        return select(other.c[reference.name]).where(
            other.c[TENANT] == self._scope.tenant_id, other.c[reference.name].is_not(None)
        )

    def _kept(self, table: Table, column: Column[Any]) -> ColumnElement[Any]:
        """A column; a reference that leads out of the export is left out, where it may be."""
        if self._scope.kind != "tenant" and column.nullable:
            for key in references_of(table):
                if column.name in reference_columns(key):
                    return case((self._scope.holds(key), column), else_=null())
        return written(column)


def _lines(table: Table, shown: list[Any]) -> Select[Any]:
    row = select(*shown).correlate(table).lateral("r")
    return select(cast(func.row_to_json(row.table_valued()), Text)).select_from(table, row)


def _is_bulky(table: Table) -> bool:
    return any(
        isinstance(column.type, LargeBinary)
        and not column.name.endswith(("_hash", "digest", "sha256"))
        for column in table.columns
    )


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
        written_now = {tuple(from_json(key)) for key in written_keys}
        if written_now and "code" in shown:
            await BucketRepository(self._db, self._tenant_id).note_codes()
        return written_now

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
