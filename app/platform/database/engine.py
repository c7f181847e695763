"""Access to PostgreSQL: one transaction per unit of work, or one statement per hot read.

`begin` opens a transaction and names its tenant in one round trip. `fetch` runs a single
statement for a tenant in one round trip altogether, over the driver beneath SQLAlchemy, or in a
transaction of three where a setting says so; `docs/decisions/0003` and `0017` have the figures.
Nothing else in the service opens a transaction.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime
from functools import partial
from math import inf
from time import monotonic
from typing import Any

import asyncpg
import structlog
from pgvector.asyncpg import register_vector
from pydantic_core import from_json
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from app.errors import DomainError
from app.platform.database.base import send_in_binary
from app.platform.database.connections import DriverConnections, UnitConnections, UnitSession
from app.platform.database.failures import (
    DatabaseReadOnlyError,
    DatabaseUnavailableError,
    DiskReserve,
    is_lost,
    translate,
)
from app.platform.database.roles import APP, DISPATCH, refuse_powerful_role
from app.platform.database.transactions import (
    ONE_PLAN,
    Query,
    checked_tenant_id,
    commit,
    in_one_statement,
    in_transaction,
    name_tenant,
    opened_for,
)
from app.platform.database.turns import MOST_WAITING, PoolTurns, turns_of
from app.platform.observability.spans import tracing
from app.settings import DISPATCH_POOL_SIZE

log = structlog.get_logger()

CACHED_CHARACTERS = 65_536
"""Longest statement that a connection keeps prepared. The driver's own limit, 15 KiB, is less than
the first statement of a context has, and what is not kept costs a round trip and its planning."""

STATEMENT_SECONDS = 15.0
"""Longest a statement may take: a search takes milliseconds, an erasure seconds."""
CONNECT_SECONDS = 10
ANSWER_SECONDS = 5
"""How much longer than PostgreSQL's own timeout an answer may take, before the server counts
as gone: a network that drops packets reports no error."""

AT_END = "at_end"
"""In `AsyncSession.info`: functions to await with the session before it commits, by name."""


_IS_READ_ONLY = (
    "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only"
)
_RENEWAL_SECONDS = 1.0


async def driver_of(db: AsyncSession) -> asyncpg.Connection:
    """The driver's connection of a transaction, for constant statements that are sent often.

    Building a statement with SQLAlchemy takes a millisecond of Python each time. Pending changes
    of the session are flushed first.

    Raises InterfaceError.
    """
    if isinstance(db, UnitSession):
        if db.is_changed:
            await db.flush()
        return db.driver
    await db.flush()
    connection = await (await db.connection()).get_raw_connection()
    if connection.driver_connection is None:
        raise asyncpg.InterfaceError("connection is closed")
    return connection.driver_connection


async def clock_of(db: AsyncSession) -> datetime:
    """The time of PostgreSQL's clock, as a parameter for a statement that changes a row.

    The servers' own clocks differ, and a statement that read the clock itself could not be sent
    to several nodes.
    """
    now: datetime = await (await driver_of(db)).fetchval("SELECT clock_timestamp()")
    return now


class Database:
    """Engine for units of work, driver pools for hot reads and for key look-up."""

    def __init__(
        self,
        units: UnitConnections,
        reads: DriverConnections,
        dispatch: DriverConnections,
        *,
        read_in_transactions: bool,
        turns: PoolTurns,
        reserve: DiskReserve | None = None,
    ) -> None:
        """Use `open_database`."""
        self._reserve = reserve
        self._turns = turns
        self._renewed_at = -inf
        self._hot_read = in_transaction if read_in_transactions else in_one_statement
        # A PostgreSQL that spreads tenants over servers plans for the values of each call.
        self._plans_once = not read_in_transactions
        self._units = units
        self._reads = reads
        self._dispatch = dispatch

    @asynccontextmanager
    async def begin(
        self,
        tenant_id: str,
        *,
        snapshot: bool = False,
        hot: bool = False,
        first: str | None = None,
    ) -> AsyncIterator[AsyncSession]:
        """A transaction that sees one tenant; commits at the end, rolls back on any error.

        Args:
            tenant_id: the tenant.
            snapshot: read one snapshot throughout, without a time limit; nothing may be written.
            hot: its statements are constant texts that are sent often: each is planned once.
            first: a statement to send in the round trip that begins, such as one of `locks.py`.

        Raises:
            DatabaseUnavailableError, DatabaseBusyError: nothing was written; safe to retry.
            OutcomeUnknownError: the connection was lost during COMMIT.

        """
        opening = opened_for(
            tenant_id, snapshot=snapshot, hot=hot and self._plans_once, first=first
        )
        try:
            # A snapshot is read for minutes; those who open them limit how many there are.
            async with nullcontext() if snapshot else self._turns.units.turn(tenant_id):
                taken = await self._units.take(opening)
                db = taken.session()
                try:
                    yield db
                    # By name, so that two transactions cannot deadlock in what they do last.
                    for _, last in sorted(db.info.get(AT_END, {}).items()):
                        await last(db)
                    if db.is_changed:
                        await db.flush()
                    await commit(taken.driver)
                except BaseException:
                    await self._units.roll_back(taken, db)
                    raise
                await self._units.give_back(taken, db)
        except DomainError:
            raise
        except Exception as error:
            known = translate(error)
            if known is None:
                raise
            if isinstance(known, DatabaseReadOnlyError):
                await self._renew_connections()
            raise known from error

    async def fetch(self, tenant_id: str, statement: str, *args: object) -> list[asyncpg.Record]:
        """Rows of one SELECT for one tenant, in as few round trips as the settings allow.

        Args:
            tenant_id: the tenant; it is parameter `$1` of the statement.
            statement: a constant text, prepared once per connection; every table in it is
                reached through `tenant.id`, its other parameters start at `$2`.
            args: values for `$2` and up.

        """
        hot_read = self._hot_read(checked_tenant_id(tenant_id), statement, args)
        async with self._turns.reads.turn(tenant_id):
            return await self._run(self._reads, hot_read)

    async def look_up(
        self, statement: str, *args: object, repeatable: bool = True
    ) -> list[asyncpg.Record]:
        """Rows read as `kemem_dispatch`: across tenants, of a few columns only.

        Args:
            statement: a constant text.
            args: its values.
            repeatable: whether it may run twice when its answer is lost.

        """

        async def query(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            return list(await connection.fetch(statement, *args))

        return await self._run(self._dispatch, query, tries=2 if repeatable else 1)

    async def _run(
        self,
        connections: DriverConnections,
        query: Query,
        *,
        tries: int = 2,
    ) -> list[asyncpg.Record]:
        """Raises DatabaseUnavailableError."""
        for attempt in range(tries):
            try:
                return await connections.use(query)
            except Exception as error:
                if is_lost(error) and not isinstance(error, OSError) and attempt + 1 < tries:
                    # The connection had died; these statements are safe to repeat.
                    continue
                known = translate(error)
                if known is None:
                    raise
                if isinstance(known, DatabaseReadOnlyError):
                    await self._renew_connections()
                raise known from error
        raise DatabaseUnavailableError

    async def _renew_connections(self) -> None:
        """Open all anew before they are used again, once in a while.

        A connection of a server that was demoted, or one opened while the database was read-only,
        would stay so; a new one may reach the server that takes writes.
        """
        if monotonic() - self._renewed_at < _RENEWAL_SECONDS:
            return
        self._renewed_at = monotonic()
        self._units.renew()
        for connections in (self._reads, self._dispatch):
            await connections.renew()

    def refuse_full(self) -> None:
        """For what would store something.

        Raises:
            DatabaseDiskFullError: the disk of the database has little room left.

        """
        if self._reserve is not None:
            self._reserve.refuse_touched()

    async def refuse_unwritable(self) -> None:
        """Ask the database whether it takes writes now.

        Raises:
            DatabaseUnavailableError: it does not answer.
            DatabaseReadOnlyError, DatabaseDiskFullError: it can only be read.

        """
        if (await self.look_up(_IS_READ_ONLY))[0]["read_only"]:
            await self._renew_connections()
            raise DatabaseReadOnlyError
        self.refuse_full()


async def enter_tenant(db: AsyncSession, tenant_id: str) -> None:
    """Let the rest of the transaction see `tenant_id`; only for operators' commands."""
    await (await driver_of(db)).execute(name_tenant(tenant_id))


async def _prepare(connection: asyncpg.Connection, role: str) -> None:
    await connection.execute(f"SET ROLE {role}")
    await refuse_powerful_role(connection, role=role)
    if (traces := tracing()) is not None:
        traces.watch_connection(connection)


async def _connect(dsn: str, **options: Any) -> asyncpg.Connection:
    connection = await asyncpg.connect(dsn, **options)
    try:
        await _prepare(connection, APP)
        await send_in_binary(connection)
    except BaseException:
        await connection.close()
        raise
    return connection


async def _prepare_reads(connection: asyncpg.Connection) -> None:
    await _prepare(connection, APP)
    await register_vector(connection)
    await connection.set_type_codec(
        "jsonb", encoder=json.dumps, decoder=from_json, schema="pg_catalog"
    )


async def _keep(_connection: asyncpg.Connection) -> None:
    """Nothing to reset: hot reads leave no trace, and a reset costs a round trip."""


@asynccontextmanager
async def open_database(
    dsn: str,
    *,
    pool_size: int,
    statement_timeout_seconds: float = STATEMENT_SECONDS,
    read_in_transactions: bool = False,
    reserve: DiskReserve | None = None,
    most_waiting: int = MOST_WAITING,
) -> AsyncIterator[Database]:
    """Pools to the database at `dsn`, closed on exit.

    Args:
        dsn: its address.
        pool_size: connections for units of work, and again for hot reads.
        statement_timeout_seconds: longest a statement may take.
        read_in_transactions: whether a hot read opens a transaction; slower, and what a
            distributed PostgreSQL needs.
        reserve: room that stays free on its disk, where that can be watched.
        most_waiting: for a connection of units of work, and twice as many for one of hot reads.

    Raises:
        ConfigurationError: the effective role could bypass row-level security.
        OSError: nothing listens there.

    """
    settings = _server_settings(statement_timeout_seconds)
    limits = _limits(statement_timeout_seconds)
    pool = _pool(dsn, settings, limits)
    connect = partial(_connect, dsn, server_settings=settings, **limits)
    engine = _engine(connect, pool_size, statement_timeout_seconds)
    if (traces := tracing()) is not None:
        traces.watch_engine(engine)
    try:
        async with (
            pool(max_size=pool_size, init=_prepare_reads) as reads,
            pool(max_size=DISPATCH_POOL_SIZE, init=partial(_prepare, role=DISPATCH)) as dispatch,
        ):
            units = UnitConnections(engine)
            kept = [
                DriverConnections(each, acquire_seconds=statement_timeout_seconds)
                for each in (reads, dispatch)
            ]
            try:
                yield Database(
                    units,
                    *kept,
                    read_in_transactions=read_in_transactions,
                    reserve=reserve,
                    turns=turns_of(pool_size, most_waiting, statement_timeout_seconds),
                )
            finally:
                await units.close()
                for each in kept:
                    await each.close()
    finally:
        await engine.dispose()


def _pool(dsn: str, settings: dict[str, str], limits: dict[str, float]) -> Callable[..., Any]:
    return partial(
        asyncpg.create_pool,
        dsn,
        min_size=1,
        reset=_keep,
        server_settings=settings | ONE_PLAN,
        max_inactive_connection_lifetime=0,
        max_cacheable_statement_size=CACHED_CHARACTERS,
        **limits,
    )


def _limits(statement_timeout_seconds: float) -> dict[str, float]:
    return {
        "timeout": CONNECT_SECONDS,
        "command_timeout": statement_timeout_seconds + ANSWER_SECONDS,
    }


def _server_settings(statement_timeout_seconds: float) -> dict[str, str]:
    return {
        "application_name": "kemem",
        "timezone": "UTC",
        # Statements here take milliseconds; compiling them would take longer.
        "jit": "off",
        "statement_timeout": str(int(statement_timeout_seconds * 1000)),
        "idle_in_transaction_session_timeout": "60000",
    }


def _engine(
    connect: Callable[[], Awaitable[asyncpg.Connection]], pool_size: int, acquire_seconds: float
) -> AsyncEngine:
    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        # `begin` speaks BEGIN and COMMIT itself, to save a round trip.
        isolation_level="AUTOCOMMIT",
        # The values of a failed statement are content.
        hide_parameters=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=acquire_seconds,
    )
