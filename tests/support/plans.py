"""The plan of a hot read, as the service's role gets it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import numpy as np
import pytest
from pgvector import SparseVector
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncSession

from app.platform.database.roles import APP
from app.platform.database.transactions import FRAME
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import execute
from tests.support.databases import migrated_database, served
from tests.support.patience import PATIENCE
from tests.support.tenants import make_tenant

PEOPLE = """
WITH homes AS (
    INSERT INTO agents (tenant_id, agent_id, agent_name)
    SELECT $1, 'agent' || n, 'A' FROM generate_series(1, 20) AS n RETURNING agent_id
), crowd AS (
    INSERT INTO users (tenant_id, user_id, agent_id)
    SELECT $1, agent_id || '-user' || n, agent_id FROM homes, generate_series(1, 10) AS n
    RETURNING user_id, agent_id
)"""
"""The beginning of a statement: 200 users of 20 agents of the tenant $1, as `crowd`."""


@dataclass(frozen=True)
class Crowd:
    """A tenant of a database where nobody else is: others' rows would change what a plan costs."""

    tenant_id: str
    dsn: str
    runtime: Runtime


@asynccontextmanager
async def new_crowd(
    postgres: EmbeddedPostgres, settings: Settings, name: str
) -> AsyncIterator[Crowd]:
    """An empty crowd in the database `name`, which is made."""
    dsn = await migrated_database(postgres, name)
    async with open_runtime(settings, served(dsn)) as runtime:
        yield Crowd((await make_tenant(runtime)).tenant_id, dsn, runtime)


@asynccontextmanager
async def filled_crowd(
    postgres: EmbeddedPostgres,
    settings: Settings,
    name: str,
    tables: Sequence[str],
    fill: str,
    *values: object,
) -> AsyncIterator[Crowd]:
    """A crowd after the statement `fill`, of the tenant $1 and `values`.

    The planner knows `tables` as after some time; without any, it knows none, as on the first day.
    """
    async with new_crowd(postgres, settings, name) as crowd:
        if not tables:
            await never_analysed(crowd.dsn)
        await execute(crowd.dsn, fill, crowd.tenant_id, *values)
        for table in tables:
            await vacuumed(crowd.dsn, table)
        yield crowd


async def vacuumed(dsn: str, table: str) -> None:
    """Wait until every page of a table is known to be visible to all.

    Whoever still reads an older state keeps pages from it; an index alone is no cheap read then.
    """
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET ROLE kemem_owner")
        async with asyncio.timeout(PATIENCE):
            while True:
                await connection.execute(f"VACUUM ANALYZE {table}")
                if await connection.fetchval(
                    "SELECT relallvisible >= relpages FROM pg_class WHERE oid = $1::regclass", table
                ):
                    return
                await asyncio.sleep(0.05)
    finally:
        await connection.close()


async def never_analysed(dsn: str) -> None:
    """Keep every table as it is in the first minutes of a new installation."""
    connection = await asyncpg.connect(dsn)
    try:
        if connection.get_server_version().major < 18:
            pytest.skip("takes no statistics that nobody has gathered")
        for table in await connection.fetch(
            "SELECT relname FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace = CAST('public' AS regnamespace)"
        ):
            await connection.execute(f"ALTER TABLE {table[0]} SET (autovacuum_enabled = off)")
    finally:
        await connection.close()


def literal(value: Any) -> str:
    """A value as it stands in EXECUTE."""
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, np.ndarray | SparseVector | bytes):
        return _in_binary(value)
    if isinstance(value, list):
        return _array(value)
    if isinstance(value, asyncpg.BitString):
        text = value.as_string().replace(" ", "")
    else:
        text = value.isoformat() if isinstance(value, datetime) else str(value)
    return "'" + text.replace("'", "''") + "'"


def _in_binary(value: Any) -> str:
    if isinstance(value, bytes):
        return f"decode('{value.hex()}', 'hex')"
    if isinstance(value, SparseVector):
        return f"'{value.to_text()}'"
    return f"CAST('[{','.join(map(str, value.tolist()))}]' AS vector)"


def _array(values: list[Any]) -> str:
    if all(each is None for each in values):
        # Of any type, where an ARRAY of nothing else would be of texts.
        return f"'{{{', '.join(['NULL'] * len(values))}}}'"
    return f"ARRAY[{', '.join(map(literal, values))}]"


async def plan_of(
    dsn: str, tenant_id: str, text: str, values: list[object], *, buffers: bool = False
) -> dict[str, Any]:
    """The generic plan of a statement for `Database.fetch`, run under row-level security."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            f"SET ROLE {APP}; SET jit = off; SET plan_cache_mode = force_generic_plan; "
            f"PREPARE search AS {FRAME.format(statement=text)}"
        )
        arguments = ", ".join(literal(value) for value in (tenant_id, *values))
        async with connection.transaction():
            rows = await connection.fetch(
                f"EXPLAIN (ANALYZE, BUFFERS {buffers}, FORMAT JSON) EXECUTE search({arguments})"
            )
        return json.loads(rows[0][0])[0]["Plan"]
    finally:
        await connection.close()


Sent = list[tuple[str, tuple[Any, ...]]]


@contextmanager
def sent_by(connection: Any) -> Iterator[Sent]:
    """The statements of a connection of SQLAlchemy's while the block runs, and their values."""
    found: Sent = []

    def note(_conn: Any, _cursor: Any, text: str, values: Any, *_: Any) -> None:
        found.append((text, tuple(values)))

    event.listen(connection, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(connection, "before_cursor_execute", note)


async def generic_plans(db: AsyncSession, sent: Sent) -> list[dict[str, Any]]:
    """The generic plans of statements of a transaction, run once more in it as its role."""
    driver = (await (await db.connection()).get_raw_connection()).driver_connection
    assert driver is not None
    await driver.execute("SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_generic_plan")
    plans = []
    for text, values in sent:
        await driver.execute(f"PREPARE once_more AS {text}")
        arguments = ", ".join(literal(value) for value in values)
        call = f"EXECUTE once_more({arguments})" if values else "EXECUTE once_more"
        rows = await driver.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {call}")
        await driver.execute("DEALLOCATE once_more")
        plans.append(rows[0][0][0]["Plan"])
    return plans


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Every node of a plan, the outermost first."""
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]
