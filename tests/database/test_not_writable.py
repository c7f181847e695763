"""A database that takes no writes: refused by name, while reads go on, until it passes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest
from httpx import AsyncClient
from sqlalchemy import text

from app.platform.database.engine import open_database
from app.platform.database.failures import DatabaseDiskFullError, DiskReserve
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import open_runtime
from app.worker import working
from tests.support.api import append, execute, found, ok, problem, save
from tests.support.application import started
from tests.support.databases import migrated_database, served
from tests.support.patience import PATIENCE
from tests.support.service import USAGE_FLUSH, client_of, settings_of
from tests.support.tenants import make_tenant

RESERVE = 1_000_000


@dataclass
class Disk:
    """Free room, as a test says."""

    free: int = 10 * RESERVE
    asked: int = 0

    def __call__(self) -> int:
        self.asked += 1
        return self.free


@asynccontextmanager
async def running(dsn: str, disk: Disk, *, debounce_seconds: int = 1) -> AsyncIterator[AsyncClient]:
    """A service with its worker, as an admin of a new tenant sees it."""
    settings = settings_of(disk_reserve_bytes=RESERVE, debounce_seconds=debounce_seconds)
    where = served(dsn)
    async with (
        open_runtime(settings, where, usage_flush=USAGE_FLUSH, free_bytes=disk) as runtime,
        working(runtime, where),
    ):
        owner = await make_tenant(runtime)
        async with (
            started(open_runtime(settings, where, free_bytes=disk)) as app,
            client_of(app, owner.key) as client,
        ):
            yield client


async def until(condition: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110 (only the service says so)
            await asyncio.sleep(0.1)


async def writes(client: AsyncClient) -> str:
    return ok(await client.get("http://test/readyz"))["writes"]


async def saved(client: AsyncClient, words: str) -> Any:
    body = {"messages": words, "user_id": "ana", "infer": False}
    return await client.post("/memories", json=body)


@asynccontextmanager
async def administered(postgres: EmbeddedPostgres) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres.superuser_dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def test_read_only_database_is_named_and_recovered_from(postgres: EmbeddedPostgres) -> None:
    dsn = await migrated_database(postgres, "read_only")
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = 'read_only' AND application_name LIKE 'kemem%'"
    )
    async with administered(postgres) as admin, running(dsn, Disk()) as client:
        await save(client, "She drinks green tea.")
        await append(client, "talk", "I live in Lisbon.")
        # A server that is demoted cuts its connections, and new ones can only read.
        await admin.execute("ALTER DATABASE read_only SET default_transaction_read_only = on")
        await admin.execute(cut)

        refused = await saved(client, "She drinks coffee.")
        problem(refused, 503, "database_read_only")
        assert int(refused.headers["Retry-After"]) > 0
        for _ in range(3):
            assert len(await found(client)) == 1
        # They would have pending refreshes done at once.
        for read in ("/graph/relations", "/users/ana/profile"):
            ok(await client.get(read))
        assert await writes(client) == "database_read_only"
        problem(await saved(client, "She drinks coffee."), 503, "database_read_only")

        # Nobody cuts what was opened meanwhile.
        await admin.execute("ALTER DATABASE read_only RESET default_transaction_read_only")

        async def is_saved() -> bool:
            return (await saved(client, "She drinks coffee.")).status_code in {200, 201}

        await until(is_saved)

        # Connections that were opened before are replaced as they are met, at most once a second.
        async def is_ready() -> bool:
            return await writes(client) == "ok"

        await until(is_ready)

        async def is_read() -> bool:
            return len(await found(client, "Lisbon", user_id="ana")) > 0

        # What was ordered before is done, and the uses that were counted are written.
        await until(is_read)

        async def is_counted() -> bool:
            rows = ok(await client.get("/memories", params={"user_id": "ana"}))["items"]
            return max(row["use_count"] for row in rows) >= 3

        await until(is_counted)


async def test_nearly_full_disk_stores_nothing_and_is_read(postgres: EmbeddedPostgres) -> None:
    dsn, disk = await migrated_database(postgres, "full_disk"), Disk()
    async with running(dsn, disk) as client:
        kept = await save(client, "She drinks green tea.")
        disk.free = RESERVE
        await save(client, "She drinks black tea.")
        disk.free = RESERVE - 1

        refused = await saved(client, "She drinks coffee.")
        problem(refused, 503, "database_disk_full")
        assert int(refused.headers["Retry-After"]) > 0
        assert await writes(client) == "database_disk_full"
        assert len(await found(client, "tea", user_id="ana")) == 2
        assert (await client.delete(f"/memories/{kept['memory_id']}")).status_code == 204
        assert len(await found(client, "tea", user_id="ana")) == 1

        disk.free = RESERVE + 1
        await save(client, "She drinks coffee.")
        assert await writes(client) == "ok"


async def test_jobs_wait_while_the_disk_is_nearly_full(postgres: EmbeddedPostgres) -> None:
    dsn, disk = await migrated_database(postgres, "full_disk_jobs"), Disk()
    async with running(dsn, disk, debounce_seconds=300) as client:
        await append(client, "talk", "I live in Lisbon.")
        disk.free = 0
        await execute(dsn, "UPDATE jobs SET due_at = now() WHERE kind = 'extract'")
        before = disk.asked

        async def has_looked() -> bool:
            return disk.asked > before + 1

        # The worker looks for work, and takes none.
        await until(has_looked)
        [job] = await execute(dsn, "SELECT status, attempts FROM jobs WHERE kind = 'extract'")
        assert tuple(job) == ("pending", 0)

        disk.free = RESERVE

        async def is_read() -> bool:
            return len(await found(client, "Lisbon", user_id="ana")) > 0

        await until(is_read)


@pytest.mark.parametrize(
    ("free", "reserve", "touched"), [(0, 0, False), (9, 10, True), (10, 10, False)]
)
def test_reserve(free: int, reserve: int, touched: bool) -> None:
    assert DiskReserve(lambda: free, reserve).is_touched is touched


async def test_full_disk_of_another_server_is_named(dsn: str) -> None:
    async with open_database(served(dsn), pool_size=1) as database:
        with pytest.raises(DatabaseDiskFullError):
            async with database.begin("t") as db:
                await db.execute(
                    text("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = 'disk_full'; END $$")
                )
