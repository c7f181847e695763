"""Connections of units of work stay at hand; a session is made when it is used."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, cast

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.platform.database.connections import REST_SECONDS, UnitConnections, UnitSession
from app.platform.database.engine import Database, driver_of, open_database
from tests.support.databases import served
from tests.support.locks import until_asleep
from tests.support.patience import PATIENCE

TENANT = "tnt_any"
BACKEND = "SELECT pg_backend_pid()"


@pytest.fixture
async def single(dsn: str) -> AsyncIterator[Database]:
    async with open_database(
        served(dsn), pool_size=1, statement_timeout_seconds=PATIENCE
    ) as database:
        yield database


async def test_unit_over_the_driver_makes_no_session(single: Database) -> None:
    backends = set()
    for _ in range(3):
        async with single.begin(TENANT) as db:
            backends.add(await (await driver_of(db)).fetchval(BACKEND))
            assert isinstance(db, UnitSession)
            assert not db.is_made
    assert len(backends) == 1


async def test_unit_with_a_session_gives_its_connection_back(single: Database) -> None:
    backends = set()
    for _ in range(3):
        async with single.begin(TENANT) as db:
            backends.add((await db.execute(text(BACKEND))).scalar_one())
            assert await (await driver_of(db)).fetchval(BACKEND) in backends
    assert len(backends) == 1


async def test_session_names_no_attribute_that_it_lacks(single: Database) -> None:
    async with single.begin(TENANT) as db:
        with pytest.raises(AttributeError, match="no_such_thing"):
            _ = db.no_such_thing  # type: ignore[attr-defined]


async def test_snapshot_gets_the_connection_that_a_unit_gives_back(single: Database) -> None:
    asked = asyncio.Event()

    async def read() -> int:
        asked.set()
        async with single.begin(TENANT, snapshot=True) as db:
            return int(await (await driver_of(db)).fetchval(BACKEND))

    async with single.begin(TENANT) as db:
        backend = await (await driver_of(db)).fetchval(BACKEND)
        reading = asyncio.create_task(read())
        await asked.wait()
    assert await reading == backend


async def cancelled_at_each_step(task: asyncio.Task[None]) -> None:
    """As a group of tasks of anyio does."""
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    assert task.cancelled()


async def backend_of_a_unit(database: Database) -> int:
    async with database.begin(TENANT) as db:
        return int(await (await driver_of(db)).fetchval(BACKEND))


async def test_connection_of_a_unit_cancelled_again_and_again_is_kept_when_it_has_rolled_back(
    single: Database, dsn: str
) -> None:
    backend = await backend_of_a_unit(single)

    async def sleep() -> None:
        async with single.begin(TENANT) as db:
            await (await driver_of(db)).execute("SELECT pg_sleep(600)")

    sleeping = asyncio.create_task(sleep())
    await until_asleep(dsn, backend)
    await cancelled_at_each_step(sleeping)
    assert await backend_of_a_unit(single) == backend


async def test_connection_of_an_opening_cancelled_again_and_again_is_kept(
    single: Database, dsn: str
) -> None:
    backend = await backend_of_a_unit(single)

    async def sleep() -> None:
        async with single.begin(TENANT, first="SELECT pg_sleep(600)"):
            pytest.fail("opened")

    sleeping = asyncio.create_task(sleep())
    await until_asleep(dsn, backend)
    await cancelled_at_each_step(sleeping)
    assert await backend_of_a_unit(single) == backend


class DeadConnection:
    """One that died while the engine gave it out."""

    is_closed = False

    async def get_raw_connection(self) -> Any:
        raise asyncpg.InterfaceError("connection is closed")

    async def invalidate(self) -> None:
        pass

    async def close(self) -> None:
        self.is_closed = True


class EngineWithADeadConnection:
    """Gives out a dead connection first."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.pool = engine.pool
        self.dead = DeadConnection()
        self._engine = engine

    async def connect(self) -> Any:
        return await self._engine.connect() if self.dead.is_closed else self.dead


@pytest.fixture
async def engine(dsn: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=partial(asyncpg.connect, dsn),
        isolation_level="AUTOCOMMIT",
        pool_size=2,
    )
    yield engine
    await engine.dispose()


async def test_connection_that_died_while_it_was_given_out_is_replaced(engine: AsyncEngine) -> None:
    opening = EngineWithADeadConnection(engine)
    connections = UnitConnections(cast("AsyncEngine", opening))
    taken = await connections.take("BEGIN")
    assert opening.dead.is_closed
    assert await taken.driver.fetchval("SELECT 1") == 1
    await connections.roll_back(taken, taken.session())
    await connections.close()


async def test_connection_that_was_not_used_for_long_is_replaced(engine: AsyncEngine) -> None:
    now = 0.0
    connections = UnitConnections(engine, clock=lambda: now)

    async def backend() -> int:
        taken = await connections.take("BEGIN")
        found = await taken.driver.fetchval(BACKEND)
        await connections.roll_back(taken, taken.session())
        return int(found)

    first = await backend()
    now += REST_SECONDS
    assert await backend() == first
    now += REST_SECONDS + 1
    assert await backend() != first
    await connections.close()
