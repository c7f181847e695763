"""Connections that are kept at hand between two uses: of a driver's pool, and of units of work with
the session that a unit has.

The pool makes a task and a timer for each use, which cost the process more than sending a small
statement; SQLAlchemy takes a task and a greenlet to give a connection out and to take it back, and
most hot writes send their statements over the driver. What was used without an error is taken again
as it is; everything else goes through the pool, which waits for what was cancelled and replaces
what is dead. A unit's session is made when it is first used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any, TypeVar

import asyncpg
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from typing_extensions import override

from app.platform.database.failures import DatabaseUnavailableError
from app.platform.database.transactions import roll_back

R = TypeVar("R")

REST_SECONDS = 200.0
"""How long a connection of units may be unused. What stands between, such as the translation of
addresses, forgets silent connections after four minutes or more, and a statement sent over one of
them would wait for its timeout."""


class DriverConnections:
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


log = structlog.get_logger()

_OPENED_AT = "opened_at"


class UnitSession(AsyncSession):
    """A session in a transaction that is open already."""

    def __init__(self, connection: AsyncConnection, driver: asyncpg.Connection) -> None:
        self.driver = driver
        self._connection = connection
        self._info: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        """Be made now: what a session sets when it is made was asked for."""
        if self.is_made or name.startswith("__"):
            raise AttributeError(name)
        super().__init__(self._connection, expire_on_commit=False)
        return getattr(self, name)

    @property
    def is_made(self) -> bool:
        """Whether anybody has used it."""
        return "sync_session" in vars(self)

    @property
    @override
    def info(self) -> dict[Any, Any]:
        return self._info

    @property
    def is_changed(self) -> bool:
        """Whether it has changes that were not sent."""
        return self.is_made and bool(self.new or self.dirty or self.deleted)

    async def end(self) -> None:
        """Let go of the connection, which goes on to be used."""
        if not self.is_made:
            return
        # One that sent nothing has nothing to end, and closing takes a task and a greenlet.
        if self.in_transaction():
            await asyncio.shield(self.close())
        else:
            self.sync_session.close()


@dataclass(frozen=True, slots=True)
class UnitConnection:
    """A connection, and the driver's beneath it."""

    connection: AsyncConnection
    driver: asyncpg.Connection
    opened_at: float

    def session(self) -> UnitSession:
        """A session for the open transaction."""
        return UnitSession(self.connection, self.driver)


class UnitConnections:
    """The connections of an engine. Belongs to one event loop."""

    def __init__(self, engine: AsyncEngine, *, clock: Callable[[], float] = monotonic) -> None:
        """`clock` says for how long a connection was not used."""
        self.engine = engine
        self._clock = clock
        self._at_hand: list[tuple[UnitConnection, float]] = []
        self._waiting = 0
        self._renewed_at = -inf
        self._closed = False

    def renew(self) -> None:
        """Use none again that is open now."""
        self._renewed_at = monotonic()

    async def take(self, opening: str) -> UnitConnection:
        """A connection in an open transaction; those that died are replaced.

        Args:
            opening: what opens the transaction.

        Raises DatabaseUnavailableError.
        """
        for _ in range(self.engine.pool.size() + 1):  # type: ignore[attr-defined]  # a queue
            now = self._clock()
            taken, used_at = self._at_hand.pop() if self._at_hand else (await self._opened(), now)
            if taken is None:
                continue
            driver = taken.driver
            rested = now - used_at > REST_SECONDS
            try:
                if not (rested or driver.is_closed()) and taken.opened_at > self._renewed_at:
                    await driver.execute(opening)
                    return taken
                if rested:
                    # Nobody may be there to answer a farewell.
                    driver.terminate()
            except TimeoutError:
                # The connection is alive: another would be as slow.
                await _discard(taken.connection)
                raise
            except (
                asyncpg.PostgresConnectionError,
                asyncpg.InterfaceError,
                # The driver was just being told that the server had cut the connection.
                asyncpg.InternalClientError,
                OSError,
            ):
                log.info("database_connection_replaced")
            except (asyncpg.PostgresError, asyncio.CancelledError):
                # A lock waited for in vain, or a caller that has gone: it is as good as before.
                await self.roll_back(taken, taken.session())
                raise
            except BaseException:
                await _discard(taken.connection)
                raise
            await _discard(taken.connection)
        raise DatabaseUnavailableError

    async def give_back(self, taken: UnitConnection, db: UnitSession) -> None:
        """Take a connection back whose transaction has ended; its session ends here."""
        try:
            await db.end()
        finally:
            await self._keep(taken)

    async def roll_back(self, taken: UnitConnection, db: UnitSession) -> None:
        """End what failed, and take its connection back then, also of a caller that is cancelled
        again meanwhile.
        """
        await asyncio.shield(self._rolled_back(taken, db))

    async def _rolled_back(self, taken: UnitConnection, db: UnitSession) -> None:
        try:
            await roll_back(taken.driver)
        finally:
            await self.give_back(taken, db)

    async def _keep(self, taken: UnitConnection) -> None:
        if self._waiting or self._closed or taken.connection.invalidated:
            # Whoever waits does so for the engine's pool.
            await asyncio.shield(taken.connection.close())
        else:
            self._at_hand.append((taken, self._clock()))

    async def close(self) -> None:
        """Give all back to the engine; those in use follow after their units."""
        self._closed = True
        while self._at_hand:
            await self._at_hand.pop()[0].connection.close()

    async def _opened(self) -> UnitConnection | None:
        """One from the engine, which opens it or waits for one; none where it died meanwhile."""
        self._waiting += 1
        try:
            connection = await self.engine.connect()
        finally:
            self._waiting -= 1
        try:
            driver = (await connection.get_raw_connection()).driver_connection
            if driver is not None:
                info = connection.sync_connection.info  # type: ignore[union-attr]  # it is open
                return UnitConnection(connection, driver, info.setdefault(_OPENED_AT, monotonic()))
        except (asyncpg.InterfaceError, ConnectionError):
            pass
        except BaseException:
            await _discard(connection)
            raise
        log.info("database_connection_replaced")
        await _discard(connection)
        return None


async def _discard(connection: AsyncConnection) -> None:
    """Close it for good: the pool opens another in its place."""
    await connection.invalidate()
    await connection.close()
