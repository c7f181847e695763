"""Nobody waits for ever: for a connection, for a statement, for a database that is gone."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.platform.database.engine import ANSWER_SECONDS, Database, open_database
from app.platform.database.failures import (
    DatabaseBusyError,
    DatabaseUnavailableError,
    OutcomeUnknownError,
    translate,
)
from tests.support.api import execute
from tests.support.databases import served
from tests.support.locks import server_of, until_somebody_waits
from tests.support.patience import PATIENCE


class Line:
    """A way to PostgreSQL that can go dead: `swallow` answers, or `cut` at the next COMMIT."""

    def __init__(self) -> None:
        self.swallow = False
        self.cut_at_commit = False


@asynccontextmanager
async def line(dsn: str) -> AsyncIterator[tuple[Line, str]]:
    """A socket before the server of `dsn`; yields its switches and the way through it."""
    parts = urlsplit(dsn)
    options = parse_qs(parts.query)
    port = options["port"][0]
    switches = Line()
    tasks: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                if switches.swallow:
                    continue
                writer.write(data)
                await writer.drain()
                if switches.cut_at_commit and b"COMMIT" in data:
                    break
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_unix_connection(f"{options['host'][0]}/.s.PGSQL.{port}")
        sent = asyncio.create_task(pump(reader, forth))
        answered = asyncio.create_task(pump(back, writer))
        tasks.update((sent, answered))
        await sent
        if switches.cut_at_commit:
            answered.cancel()
            writer.close()

    with tempfile.TemporaryDirectory(prefix="kemem-line-", dir="/tmp") as folder:
        server = await asyncio.start_unix_server(connected, str(Path(folder) / f".s.PGSQL.{port}"))
        query = f"host={quote(folder, safe='')}&port={port}"
        try:
            yield switches, urlunsplit(parts._replace(query=query))
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_second_transaction_gives_up_on_a_pool_of_one(dsn: str) -> None:
    async with open_database(served(dsn), pool_size=1, statement_timeout_seconds=1.5) as database:
        async with database.begin("t"):
            with pytest.raises(DatabaseBusyError):
                async with database.begin("t"):
                    pytest.fail("there is one connection")
        async with database.begin("t") as db:
            assert await db.scalar(text("SELECT 1")) == 1


async def test_a_second_hot_read_gives_up_on_a_pool_of_one(dsn: str) -> None:
    async with open_database(served(dsn), pool_size=1, statement_timeout_seconds=2) as database:
        # Each has time enough by itself, and the last waits longer than that for its turn.
        reads = [database.fetch("t", "SELECT pg_sleep(1.2), tenant.id") for _ in range(4)]
        first, *results = await asyncio.gather(*reads, return_exceptions=True)
    assert not isinstance(first, BaseException)
    assert any(isinstance(result, DatabaseBusyError) for result in results)


async def test_a_statement_that_takes_too_long_is_ended(dsn: str) -> None:
    async with open_database(served(dsn), pool_size=1, statement_timeout_seconds=1.5) as database:
        with pytest.raises(DatabaseBusyError):
            async with database.begin("t") as db:
                await db.execute(text("SELECT pg_sleep(30)"))
        async with database.begin("t") as db:
            assert await db.scalar(text("SELECT 1")) == 1


async def test_a_lock_that_is_waited_for_in_vain_costs_no_connection(dsn: str) -> None:
    lock = "SELECT pg_advisory_xact_lock(7)"

    async def server(database: Database) -> int:
        async with database.begin("t") as db:
            return int(await db.scalar(text("SELECT pg_backend_pid()")) or 0)

    async with (
        open_database(served(dsn), pool_size=1, statement_timeout_seconds=1.5) as database,
        open_database(served(dsn), pool_size=1, statement_timeout_seconds=PATIENCE) as other,
    ):
        before = await server(database)
        async with other.begin("t", first=lock) as holding:
            with pytest.raises(DatabaseBusyError):
                async with database.begin("t", first=lock):
                    pytest.fail("it is held")
            gone = asyncio.create_task(server_behind(database, lock))
            await until_somebody_waits(dsn, await server_of(holding))
            gone.cancel()
            await asyncio.wait([gone])
        assert await server(database) == before


async def server_behind(database: Database, lock: str) -> None:
    async with database.begin("t", first=lock):
        pytest.fail("it is held")


async def test_connections_that_were_cut_are_replaced_unseen(dsn: str) -> None:
    [(began,)] = await execute(dsn, "SELECT now()")
    async with open_database(
        served(dsn), pool_size=3, statement_timeout_seconds=PATIENCE
    ) as database:

        async def busy() -> None:
            async with database.begin("t") as db:
                await db.execute(text("SELECT pg_sleep(0.05)"))

        await asyncio.gather(*(busy() for _ in range(3)))
        killer = await asyncpg.connect(dsn)
        cut = await killer.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'kemem' AND pid <> pg_backend_pid() "
            "AND datname = current_database() AND state = 'idle' AND backend_start > $1",
            began,
        )
        assert len(cut) >= 3
        await killer.close()

        await asyncio.gather(*(busy() for _ in range(3)))
        assert (await database.fetch("t", "SELECT tenant.id"))[0]["id"] == "t"


async def test_a_database_that_is_missing_does_not_open(dsn: str) -> None:
    nowhere = dsn.replace("/api?", "/missing?")
    with pytest.raises((OSError, asyncpg.PostgresError)):
        async with open_database(served(nowhere), pool_size=1, statement_timeout_seconds=1):
            pytest.fail("it must not open")


async def test_a_commit_whose_answer_is_lost_does_not_claim_that_nothing_was_written(
    dsn: str,
) -> None:
    async with (
        line(dsn) as (switches, way),
        open_database(served(way), pool_size=1, statement_timeout_seconds=PATIENCE) as database,
    ):
        with pytest.raises(OutcomeUnknownError) as raised:
            async with database.begin("t"):
                switches.cut_at_commit = True
        switches.cut_at_commit = False
        async with database.begin("t") as db:
            assert await db.scalar(text("SELECT 1")) == 1
    assert raised.value.status == 503
    assert "Idempotency-Key" in raised.value.detail
    assert "othing was written" not in raised.value.detail


async def test_a_connection_lost_before_commit_wrote_nothing(dsn: str) -> None:
    async with open_database(
        served(dsn), pool_size=1, statement_timeout_seconds=PATIENCE
    ) as database:

        async def killed() -> None:
            async with database.begin("t") as db:
                pid = await db.scalar(text("SELECT pg_backend_pid()"))
                killer = await asyncpg.connect(dsn)
                assert await killer.fetchval("SELECT pg_terminate_backend($1, 300000)", pid)
                await killer.close()

        with pytest.raises(DatabaseUnavailableError):
            await killed()


async def read(database: Database, switches: Line) -> None:
    switches.swallow = True
    await database.fetch("t", "SELECT tenant.id")


async def write(database: Database, switches: Line) -> None:
    async with database.begin("t") as db:
        switches.swallow = True
        await db.execute(text("SELECT 1"))


async def begin(database: Database, switches: Line) -> None:
    async with database.begin("t"):
        pass
    switches.swallow = True
    async with database.begin("t"):
        pytest.fail("nobody answers")


@pytest.mark.slow
@pytest.mark.parametrize("ask", [read, write, begin])
async def test_a_network_that_swallows_everything_is_given_up_on(
    dsn: str, ask: Callable[[Database, Line], Awaitable[None]]
) -> None:
    async with line(dsn) as (switches, through):
        database = open_database(served(through), pool_size=2, statement_timeout_seconds=0.2)
        async with asyncio.timeout(PATIENCE), database as opened:
            started = perf_counter()
            with pytest.raises((DatabaseBusyError, DatabaseUnavailableError)):
                await ask(opened, switches)
            seconds = perf_counter() - started
            switches.swallow = False
    assert seconds < 3 * ANSWER_SECONDS


async def test_calls_that_the_driver_was_handed_wrongly_are_bugs(dsn: str) -> None:
    async with open_database(
        served(dsn), pool_size=1, statement_timeout_seconds=PATIENCE
    ) as database:
        with pytest.raises(asyncpg.DataError):
            await database.fetch("t", "SELECT $2::int AS number", "seven")
        with pytest.raises(asyncpg.InterfaceError):
            await database.fetch("t", "SELECT tenant.id", 1, 2)
        with pytest.raises(DBAPIError):
            async with database.begin("t") as db:
                await db.execute(text("SELECT CAST(:number AS int)"), {"number": "seven"})


@pytest.mark.parametrize(
    "words",
    [
        "connection is closed",
        "cannot perform operation: connection is closed",
        "cannot perform operation: another operation is in progress",
        "pool is closing",
    ],
)
def test_a_lost_connection_is_no_bug(words: str) -> None:
    assert isinstance(translate(asyncpg.InterfaceError(words)), DatabaseUnavailableError)


def test_a_write_that_raced_with_a_delete_may_be_tried_again() -> None:
    assert isinstance(translate(asyncpg.ForeignKeyViolationError("gone")), DatabaseBusyError)
