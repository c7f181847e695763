"""How Alembic reaches the database: as `kemem_owner`, impatient about locks, one at a time.

Each migration is a transaction of its own. The advisory lock keeps two deploys from
migrating at once; the lock timeout keeps a migration from standing in front of live
traffic: it fails instead, and is run again.
"""

import asyncio
from typing import Any

import asyncpg
from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from app.governance.tables import metadata
from app.platform.database.roles import OWNER, prepare_cluster

ADVISORY_LOCK = 4_750_311_907_622_105_731
LOOK_SECONDS = 0.1


def _run(connection: Connection) -> None:
    connection.execute(text("SET lock_timeout = '4s'"))
    connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        transaction_per_migration=True,
        compare_type=True,
        compare_server_default=False,
    )
    with context.begin_transaction():
        context.run_migrations()


async def _take_turns(connection: asyncpg.Connection) -> None:
    # Asked again and again: a statement that waits has a snapshot, which an index that is built
    # concurrently waits for, while we wait for whoever builds it.
    asking = f"SELECT pg_try_advisory_lock({ADVISORY_LOCK})"
    while not await connection.fetchval(asking):  # noqa: ASYNC110 (another process holds it)
        await asyncio.sleep(LOOK_SECONDS)


async def _migrate(dsn: str) -> None:
    async def connect() -> Any:
        connection = await asyncpg.connect(dsn)
        try:
            # Before the first GRANT: two at once would trip over the same catalogue rows.
            await _take_turns(connection)
            await prepare_cluster(connection)
            await connection.execute(f"SET ROLE {OWNER}")
        except BaseException:
            await connection.close()
            raise
        return connection

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, pool_size=1)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(_run)
    finally:
        await engine.dispose()


if context.is_offline_mode():
    raise SystemExit("Offline migrations are not offered: roles and locks need the database.")
asyncio.run(_migrate(context.config.attributes["dsn"]))
