"""The connections of a driver's pool, kept at hand between two uses.

The pool makes a task and a timer for each use, which cost the process more than sending a small
statement. What was used without an error is taken again as it is; everything else goes through the
pool, which waits for what was cancelled and replaces what is dead.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

R = TypeVar("R")


class Connections:
    """Connections of one pool. Belongs to one event loop."""

    def __init__(self, pool: asyncpg.Pool, *, acquire_seconds: float) -> None:
        """`acquire_seconds` is how long to wait for a connection."""
        self._pool = pool
        self._acquire_seconds = acquire_seconds
        self._at_hand: list[asyncpg.Connection] = []
        self._free = asyncio.Semaphore(pool.get_max_size())
        self._closed = False
        self._renewals = 0

    async def use(self, query: Callable[[asyncpg.Connection], Awaitable[R]]) -> R:
        """The result of a query on a connection that nobody else uses meanwhile.

        Raises:
            TimeoutError: all were in use for too long.

        """
        await self._turn()
        try:
            connection, renewals = await self._take(), self._renewals
            try:
                result = await query(connection)
            except BaseException:
                await self._pool.release(connection)
                raise
            if self._closed or renewals != self._renewals:
                await self._pool.release(connection)
            else:
                self._at_hand.append(connection)
            return result
        finally:
            self._free.release()

    async def renew(self) -> None:
        """Open all anew, those in use after their query."""
        self._renewals += 1
        await self._pool.expire_connections()
        while self._at_hand:
            await self._pool.release(self._at_hand.pop())

    async def close(self) -> None:
        """Give all back to the pool, so that it can close; a query under way ends first."""
        self._closed = True
        while self._at_hand:
            await self._pool.release(self._at_hand.pop())

    async def _turn(self) -> None:
        if self._free.locked():
            async with asyncio.timeout(self._acquire_seconds):
                await self._free.acquire()
        else:
            await self._free.acquire()

    async def _take(self) -> asyncpg.Connection:
        while self._at_hand:
            # The last used first: its statements are prepared, and the others may rest.
            connection = self._at_hand.pop()
            try:
                if not connection.is_closed():
                    return connection
            except asyncpg.InterfaceError:
                # The server was gone, and the pool has taken it back.
                continue
            await self._pool.release(connection)
        return await self._pool.acquire(timeout=self._acquire_seconds)
