"""Connections of units of work stay at hand; a session is made when it is used."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from app.platform.database.connections import UnitSession
from app.platform.database.engine import Database, driver_of, open_database
from tests.support.databases import served
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
