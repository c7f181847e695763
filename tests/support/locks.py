"""Rows that somebody else has locked: what stops a job at a step."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from tests.support.api import execute
from tests.support.patience import PATIENCE


@asynccontextmanager
async def holding(dsn: str, statement: str) -> AsyncIterator[int]:
    """Rows locked by somebody else while the block runs; the id of who holds them."""
    connection = await asyncpg.connect(dsn)
    await connection.execute("SET ROLE kemem_owner")
    transaction = connection.transaction()
    await transaction.start()
    await connection.fetch(statement)
    try:
        yield connection.get_server_pid()
    finally:
        await transaction.rollback()
        await connection.close()


@asynccontextmanager
async def committing(dsn: str, statement: str) -> AsyncIterator[int]:
    """A statement that another connection has run and commits after the block; its server."""
    connection = await asyncpg.connect(dsn)
    await connection.execute("SET ROLE kemem_owner")
    transaction = connection.transaction()
    await transaction.start()
    assert (await connection.execute(statement)).endswith(" 1")
    try:
        yield connection.get_server_pid()
    finally:
        await transaction.commit()
        await connection.close()


async def server_of(session: AsyncSession) -> int:
    """Who holds what this session has locked, for `until_somebody_waits`."""
    return int(await session.scalar(text("SELECT pg_backend_pid()")) or 0)


async def until_somebody_waits(dsn: str, holder: int) -> int:
    """Wait until somebody waits for what `holding` holds; who that is."""
    waiting = "SELECT pid FROM pg_locks WHERE NOT granted AND $1 = ANY(pg_blocking_pids(pid))"
    async with asyncio.timeout(PATIENCE):
        while not (found := await execute(dsn, waiting, holder)):  # noqa: ASYNC110 (only the table says so)
            await asyncio.sleep(0.02)
    return int(found[0]["pid"])


async def until_asleep(dsn: str, pid: int) -> None:
    """Until a backend sleeps; a query that has not begun there cannot be cancelled."""
    asked = "SELECT wait_event FROM pg_stat_activity WHERE pid = $1"
    other = await asyncpg.connect(dsn)
    try:
        while await other.fetchval(asked, pid) != "PgSleep":
            await other.execute("SELECT pg_sleep(0.02)")
    finally:
        await other.close()
