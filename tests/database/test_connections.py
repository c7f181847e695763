"""Connections that are kept at hand: one is used again, a dead or disturbed one is replaced."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from app.platform.database.connections import DriverConnections
from tests.support.locks import until_asleep
from tests.support.patience import PATIENCE

MOST = 2


async def backend(connection: asyncpg.Connection) -> int:
    return int(await connection.fetchval("SELECT pg_backend_pid()"))


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[asyncpg.Pool]:
    async with asyncpg.create_pool(dsn, min_size=1, max_size=MOST) as pool:
        yield pool


@pytest.fixture
async def connections(pool: asyncpg.Pool) -> AsyncIterator[DriverConnections]:
    connections = DriverConnections(pool, acquire_seconds=PATIENCE)
    yield connections
    await connections.close()


async def test_last_used_connection_is_used_again(connections: DriverConnections) -> None:
    assert len({await connections.use(backend) for _ in range(3)}) == 1


async def test_at_most_the_pool_is_used_at_once_and_all_are_served(
    connections: DriverConnections,
) -> None:
    now = most = 0
    all_in_use = asyncio.Event()

    async def query(connection: asyncpg.Connection) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == MOST:
            all_in_use.set()
        # Until then one connection could serve all while another is being opened.
        await all_in_use.wait()
        found = await backend(connection)
        now -= 1
        return found

    found = await asyncio.gather(*(connections.use(query) for _ in range(4 * MOST)))
    assert len(set(found)) == MOST == most


async def test_waiting_for_a_connection_ends(pool: asyncpg.Pool) -> None:
    connections = DriverConnections(pool, acquire_seconds=0.05)
    held, done = asyncio.Event(), asyncio.Event()

    async def hold(_connection: asyncpg.Connection) -> None:
        held.set()
        await done.wait()

    holders = [asyncio.create_task(connections.use(hold)) for _ in range(MOST)]
    await held.wait()
    with pytest.raises(TimeoutError):
        await connections.use(backend)
    done.set()
    await asyncio.gather(*holders)
    assert await connections.use(backend)
    await connections.close()


async def test_connection_of_a_failed_or_cancelled_query_works_again(
    connections: DriverConnections, dsn: str
) -> None:
    pid: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def sleep(connection: asyncpg.Connection) -> None:
        pid.set_result(await backend(connection))
        await connection.execute("SELECT pg_sleep(600)")

    with pytest.raises(asyncpg.UndefinedTableError):
        await connections.use(lambda connection: connection.fetch("SELECT * FROM nothing"))
    sleeping = asyncio.create_task(connections.use(sleep))
    await until_asleep(dsn, await pid)
    sleeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeping
    async with asyncio.timeout(PATIENCE):
        for _ in range(2 * MOST):
            assert await connections.use(backend)


async def test_connection_that_died_at_hand_is_replaced(
    connections: DriverConnections, dsn: str
) -> None:
    killed = await connections.use(backend)
    other = await asyncpg.connect(dsn)
    try:
        await other.execute("SELECT pg_terminate_backend($1, 10000)", killed)
    finally:
        await other.close()
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                found = await connections.use(backend)
            except asyncpg.PostgresError:
                # The driver had not read that the server is gone.
                continue
            break
    assert found != killed


async def test_pool_closes_after_a_query_under_way(dsn: str) -> None:
    asked, done = asyncio.Event(), asyncio.Event()

    async def query(connection: asyncpg.Connection) -> int:
        asked.set()
        await done.wait()
        return await backend(connection)

    async with asyncio.timeout(PATIENCE):
        async with asyncpg.create_pool(dsn, min_size=1, max_size=MOST) as pool:
            connections = DriverConnections(pool, acquire_seconds=PATIENCE)
            await connections.use(backend)
            under_way = asyncio.create_task(connections.use(query))
            await asked.wait()
            await connections.close()
            asyncio.get_running_loop().call_soon(done.set)
        assert await under_way
