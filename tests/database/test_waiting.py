"""Nobody waits for ever: for a connection, for a statement, for a database that is gone."""

import asyncio

import asyncpg
import pytest
from sqlalchemy import text

from app.database.engine import open_database
from app.database.failures import DatabaseBusyError


async def test_a_second_transaction_gives_up_on_a_pool_of_one(dsn: str) -> None:
    async with open_database(dsn, pool_size=1, statement_timeout_seconds=0.3) as database:
        async with database.begin("t"):
            with pytest.raises(DatabaseBusyError):
                async with database.begin("t"):
                    pytest.fail("there is one connection")
        async with database.begin("t") as db:
            assert await db.scalar(text("SELECT 1")) == 1


async def test_a_second_hot_read_gives_up_on_a_pool_of_one(dsn: str) -> None:
    async with open_database(dsn, pool_size=1, statement_timeout_seconds=0.5) as database:
        slow = asyncio.create_task(database.fetch("t", "SELECT pg_sleep(0.4), tenant.id"))
        await asyncio.sleep(0.05)
        held = [database.fetch("t", "SELECT pg_sleep(0.4), tenant.id") for _ in range(3)]
        results = await asyncio.gather(*held, return_exceptions=True)
        await slow
    assert any(isinstance(result, DatabaseBusyError) for result in results)


async def test_a_statement_that_takes_too_long_is_ended(dsn: str) -> None:
    async with open_database(dsn, pool_size=1, statement_timeout_seconds=0.2) as database:
        with pytest.raises(DatabaseBusyError):
            async with database.begin("t") as db:
                await db.execute(text("SELECT pg_sleep(5)"))
        async with database.begin("t") as db:
            assert await db.scalar(text("SELECT 1")) == 1


async def test_connections_that_were_cut_are_replaced_unseen(dsn: str) -> None:
    async with open_database(dsn, pool_size=3, statement_timeout_seconds=5) as database:

        async def busy() -> None:
            async with database.begin("t") as db:
                await db.execute(text("SELECT pg_sleep(0.05)"))

        await asyncio.gather(*(busy() for _ in range(3)))
        killer = await asyncpg.connect(dsn)
        await killer.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'kemem' AND pid <> pg_backend_pid() "
            "AND datname = current_database() AND state = 'idle' AND backend_start > "
            "now() - interval '5 seconds'"
        )
        await killer.close()

        await asyncio.gather(*(busy() for _ in range(3)))
        assert (await database.fetch("t", "SELECT tenant.id"))[0]["id"] == "t"


async def test_a_database_that_is_missing_does_not_open(dsn: str) -> None:
    nowhere = dsn.replace("/api?", "/missing?")
    with pytest.raises((OSError, asyncpg.PostgresError)):
        async with open_database(nowhere, pool_size=1, statement_timeout_seconds=1):
            pytest.fail("it must not open")
