"""Rows of an export as text, page by page, out of one snapshot."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Integer,
    Select,
    Table,
    case,
    cast,
    func,
    literal,
    null,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.types import LargeBinary, Text

from app.governance.exports.columns_sql import written
from app.governance.exports.exported_tables import (
    TENANT,
    columns_of,
    key_of,
    reference_columns,
    references_of,
    self_reference,
    stub_columns,
)
from app.governance.exports.scope_sql import ExportScope

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
