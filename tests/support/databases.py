"""Databases of their own on a server that is running."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from app.platform.database.logins import ensure_serving_login
from app.platform.database.migrate import upgrade
from app.platform.database.roles import prepare_cluster
from app.platform.embedded.cluster import MIGRATION_LOGIN, SERVING_LOGIN, SUPERUSER
from app.platform.embedded.server import EmbeddedPostgres

_MIGRATED = "migrated_template"
_SERVING: dict[str, str] = {}
"""Name and password of the login that serves, by those of the one that owns the database."""


@asynccontextmanager
async def throwaway_server(data_dir: Path) -> AsyncIterator[EmbeddedPostgres]:
    """A server whose data nobody reads again: at its end they are not written to the disk."""
    async with EmbeddedPostgres(data_dir) as server:
        await _trust_logins(server)
        yield server
        if server.pid is not None:
            os.kill(server.pid, signal.SIGQUIT)


async def _trust_logins(server: EmbeddedPostgres) -> None:
    """Ask the service's own logins for no password: that takes a quarter of each connection."""
    admin = await asyncpg.connect(server.superuser_dsn)
    try:
        _write_access(Path(await admin.fetchval("SHOW hba_file")))
        await admin.execute("SELECT pg_reload_conf()")
    finally:
        await admin.close()


def _write_access(file: Path) -> None:
    logins = f"{SUPERUSER},{MIGRATION_LOGIN},{SERVING_LOGIN}"
    file.write_text(f"local all {logins} trust\nlocal all all scram-sha-256\n")


async def make_logins(server: EmbeddedPostgres) -> None:
    """Let `served` know the server, and its login have the roles that it serves with."""
    owner, serves = (urlsplit(one) for one in (server.urls.migration, server.urls.serving))
    _SERVING[owner.netloc] = serves.netloc
    connection = await asyncpg.connect(server.dsn)
    try:
        await prepare_cluster(connection)
    finally:
        await connection.close()
    await ensure_serving_login(server.urls)
    admin = await asyncpg.connect(server.superuser_dsn)
    try:
        # What tests look at, and whom they cut off, are sessions of the login that serves.
        await admin.execute("GRANT pg_monitor, pg_signal_backend TO kemem_service")
    finally:
        await admin.close()


async def spare_the_disk(server: EmbeddedPostgres) -> None:
    """Wait for the disk at no commit, as only a server may that is killed in no test.

    A commit takes a third of the CPU, and none of the wait.
    """
    admin = await asyncpg.connect(server.superuser_dsn)
    try:
        for login in (MIGRATION_LOGIN, SERVING_LOGIN):
            await admin.execute(f"ALTER ROLE {login} SET synchronous_commit = off")
    finally:
        await admin.close()


def served(dsn: str) -> str:
    """The same database for the login that serves requests; `dsn` is the owner's."""
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=_SERVING.get(parts.netloc, parts.netloc)))


async def new_database(server: EmbeddedPostgres, name: str, template: str = "template0") -> str:
    """Create a database with pgvector and return its URL, as migrations log in."""
    admin = await asyncpg.connect(server.superuser_dsn)
    try:
        await admin.execute(f'CREATE DATABASE "{name}" OWNER kemem_service TEMPLATE "{template}"')
    finally:
        await admin.close()
    if template == "template0":
        inside = await asyncpg.connect(server.superuser_dsn, database=name)
        try:
            await inside.execute("CREATE EXTENSION IF NOT EXISTS vector")
        finally:
            await inside.close()
    return server.dsn.replace("/kemem?", f"/{name}?")


async def migrated_database(server: EmbeddedPostgres, name: str) -> str:
    """A database of its own with all tables, for tests that others' rows or jobs would disturb.

    Each is a copy of one that is migrated at the first call: copying takes a tenth of the time.
    """
    admin = await asyncpg.connect(server.superuser_dsn)
    try:
        there = "SELECT 1 FROM pg_database WHERE datname = $1"
        is_there = await admin.fetchval(there, _MIGRATED)
    finally:
        await admin.close()
    if not is_there:
        await upgrade(await new_database(server, _MIGRATED))
    return await new_database(server, name, _MIGRATED)
