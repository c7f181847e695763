"""Databases of their own on a server that is running."""

import asyncpg

from app.platform.database.migrate import upgrade
from app.platform.embedded.server import EmbeddedPostgres


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
    """A database of its own with all tables, for tests that others' rows or jobs would disturb."""
    url = await new_database(server, name)
    await upgrade(url)
    return url
