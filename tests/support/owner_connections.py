"""Connections as the owner of the tables, for what no route shows.

A few are kept open between the looks of the tests: a look over a new one costs 8 ms of CPU, over a
kept one 0.3 ms.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import asyncpg

from app.platform.database.roles import OWNER

MOST_KEPT: Final = 4


class _Kept:
    """Idle connections by database, those used last at the end. They belong to one event loop."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.idle: list[tuple[str, asyncpg.Connection]] = []

    def take(self, dsn: str) -> asyncpg.Connection | None:
        for each in reversed(self.idle):
            if each[0] == dsn:
                self.idle.remove(each)
                if not each[1].is_closed():
                    return each[1]
        return None

    async def put(self, dsn: str, connection: asyncpg.Connection) -> None:
        if connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
        elif self.loop is not asyncio.get_running_loop():
            await connection.close()
        else:
            self.idle.append((dsn, connection))
            if len(self.idle) > MOST_KEPT:
                await self.idle.pop(0)[1].close()


_kept = _Kept()


async def _answers(connection: asyncpg.Connection) -> bool:
    """Whether nobody has ended it, as tests do that cut off whom they find."""
    try:
        await connection.execute("SELECT")
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        connection.terminate()
        return False
    return True


@asynccontextmanager
async def kept_connections() -> AsyncIterator[None]:
    """Keep connections between the tests of this event loop, and close them at the end."""
    _kept.loop = asyncio.get_running_loop()
    try:
        yield
    finally:
        _kept.loop = None
        for _, connection in _kept.idle:
            await connection.close()
        _kept.idle.clear()


@asynccontextmanager
async def owner_connection(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection as the owner, of this block alone. It may change no setting of the session."""
    connection = None
    if _kept.loop is asyncio.get_running_loop():
        connection = _kept.take(dsn)
        if connection is not None and not await _answers(connection):
            connection = None
    if connection is None:
        connection = await asyncpg.connect(dsn)
        await connection.execute(f"SET ROLE {OWNER}")
    try:
        yield connection
    except asyncpg.PostgresError:
        await _kept.put(dsn, connection)
        raise
    except BaseException:
        connection.terminate()
        raise
    else:
        await _kept.put(dsn, connection)
