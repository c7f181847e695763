"""Schema and code, side by side: bring the schema up, or say why the service cannot start."""

import asyncio
from pathlib import Path

import asyncpg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

import migrations
from app.errors import ConfigurationError

_FOLDER = Path(migrations.__file__).parent


def alembic_config(dsn: str = "") -> Config:
    """Alembic, told where the migrations are and which database is meant."""
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.set_main_option(
        "file_template", "%%(year)d%%(month).2d%%(day).2d_%%(hour).2d%%(minute).2d_%%(slug)s"
    )
    config.set_main_option("timezone", "UTC")
    config.attributes["dsn"] = dsn
    return config


def head() -> str:
    """The revision this code was written for."""
    revision = ScriptDirectory.from_config(alembic_config()).get_current_head()
    if revision is None:
        raise ConfigurationError("The installation holds no migrations: install kemem again.")
    return revision


async def upgrade(dsn: str, revision: str = "head") -> None:
    """Bring the schema at `dsn` up to `revision`; safe to repeat, one at a time.

    Raises:
        ConfigurationError: the login may not create roles, or the server is too old.

    """
    await asyncio.to_thread(command.upgrade, alembic_config(dsn), revision)


async def current_revision(dsn: str) -> str | None:
    """The revision of the schema at `dsn`; None when there is no schema yet.

    Raises:
        ConfigurationError: the login may not look.

    """
    connection = await asyncpg.connect(dsn)
    try:
        exists = await connection.fetchval("SELECT to_regclass('public.alembic_version')")
        if not exists:
            return None
        revision: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
    except asyncpg.InsufficientPrivilegeError:
        raise ConfigurationError(
            "The login of DATABASE_URL may not read alembic_version: run `kemem migrate` once "
            "with MEMORY_MIGRATION_URL."
        ) from None
    finally:
        await connection.close()
    return revision


def refuse_newer(current: str | None) -> None:
    """Raises ConfigurationError when a newer release has migrated the schema."""
    script = ScriptDirectory.from_config(alembic_config())
    known = {revision.revision for revision in script.walk_revisions()}
    if current is not None and current not in known:
        raise ConfigurationError(
            f"The database schema ({current}) is newer than this release ({head()}): start a "
            "newer release of kemem."
        )


async def check_schema(dsn: str) -> None:
    """Refuse a schema older or newer than the code.

    Raises:
        ConfigurationError: the message says what to run.

    """
    current = await current_revision(dsn)
    expected = head()
    if current == expected:
        return
    refuse_newer(current)
    raise ConfigurationError(
        f"The database schema is older ({current or 'empty'}) than this release needs "
        f"({expected}): run `kemem migrate`, then start again."
    )
