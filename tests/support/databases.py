"""Databases of their own on a server that is running."""

import asyncpg

from app.platform.database.migrate import upgrade
from app.platform.embedded.server import EmbeddedPostgres

_MIGRATED = "migrated_template"


async def new_database(server: EmbeddedPostgres, name: str, template: str = "template0") -> str:
    """Create a database with pgvector and return its URL, as the service logs in."""
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
