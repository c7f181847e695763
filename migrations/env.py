"""How Alembic reaches the database: as `kemem_owner`, with a short lock timeout, one at a time.

Each migration is a transaction of its own. The advisory lock keeps two deploys from
migrating at once; the lock timeout keeps a migration from blocking live traffic: it fails
instead, and is run again.

The service names the database itself. The `alembic` command takes the one of the settings, as
`kemem migrate` does, and what only reads takes neither locks nor the owner's role.
"""

import asyncio
import logging
from typing import Any

import asyncpg
from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from app.cli.failures import sentence_for
from app.governance.tables import metadata
from app.platform.database.migrate import migration_dsn
from app.platform.database.roles import OWNER, prepare_cluster
from app.settings import load_settings
from migrations import first_statistics, first_version

ADVISORY_LOCK = 4_750_311_907_622_105_731
POLL_SECONDS = 0.1
CHANGING = {"upgrade", "downgrade", "stamp"}


def _run(connection: Connection, *, changing: bool) -> None:
    if changing:
        connection.execute(text("SET lock_timeout = '4s'"))
        connection.commit()
        first_version.bring_over(connection)
    else:
        first_version.refuse(connection)
    context.configure(
        connection=connection,
        target_metadata=metadata,
        transaction_per_migration=True,
        compare_type=True,
        compare_server_default=False,
        # Whoever only reads makes no table of revisions.
        dont_mutate=not changing,
    )
    with context.begin_transaction():
        context.run_migrations()
    if changing:
        first_statistics.assume(connection)


async def _take_turns(connection: asyncpg.Connection) -> None:
    # Asked again and again: a statement that waits has a snapshot, which an index that is built
    # concurrently waits for, while we wait for whoever builds it.
    asking = f"SELECT pg_try_advisory_lock({ADVISORY_LOCK})"
    while not await connection.fetchval(asking):  # noqa: ASYNC110 (another process holds it)
        await asyncio.sleep(POLL_SECONDS)


async def _migrate(dsn: str, *, changing: bool) -> None:
    async def connect() -> Any:
        connection = await asyncpg.connect(dsn)
        if not changing:
            return connection
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
            await connection.run_sync(_run, changing=changing)
    finally:
        await engine.dispose()


def _as_command(name: str) -> None:
    """What the `alembic` command asks for; a failure is said in one sentence."""
    logging.basicConfig(format="%(message)s")
    logging.getLogger("alembic").setLevel(logging.INFO)
    # Alembic prints a refusal itself, after FAILED, and logs it as well.
    logging.getLogger("alembic.util.messaging").setLevel(logging.CRITICAL)
    try:
        dsn = migration_dsn(load_settings())
        asyncio.run(_migrate(dsn, changing=name in CHANGING))
    except CommandError:
        raise
    except Exception as error:
        known = sentence_for(error)
        if known is None:
            raise
        raise CommandError(known[0]) from error


if context.is_offline_mode():
    raise CommandError("Offline migrations are not offered: roles and locks need the database.")
if context.config.cmd_opts is None:
    asyncio.run(_migrate(context.config.attributes["dsn"], changing=True))
else:
    _as_command(context.config.cmd_opts.cmd[0].__name__)
