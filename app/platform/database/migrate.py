"""Migrations: upgrade the schema, or report why the service cannot start with it."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

import migrations
from app.errors import ConfigurationError
from app.settings import Settings

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

_FOLDER = Path(migrations.__file__).parent

FIRST_VERSION = "0.1.0"
FIRST_VERSION_HEAD = "0007"
FIRST_VERSION_REVISIONS = {f"000{number}" for number in range(1, 8)}
"""Of version 0.1; one squashed revision has replaced them (`migrations/first_version.py`)."""


def alembic_config(dsn: str = "") -> "Config":
    """Alembic's configuration: the folder of the migrations and the database."""
    from alembic.config import Config

    # An image has no such file; it only sets the names of new revisions.
    config = Config(_FOLDER.parent / "alembic.ini")
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.attributes["dsn"] = dsn
    return config


def migration_dsn(settings: Settings) -> str:
    """Where migrations log in: MEMORY_MIGRATION_URL, else DATABASE_URL.

    Raises:
        ConfigurationError: DATABASE_URL is not set.

    """
    url = settings.migration_url or settings.database_url
    if url is None:
        raise ConfigurationError(
            "DATABASE_URL is not set: name the database there, and in MEMORY_MIGRATION_URL when "
            "migrations need another login. For the embedded PostgreSQL run `kemem migrate`."
        )
    return url.get_secret_value()


def _scripts() -> "ScriptDirectory":
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(alembic_config())


def head() -> str:
    """The revision this code was written for. Raises ConfigurationError."""
    revision = _scripts().get_current_head()
    if revision is None:
        raise ConfigurationError("The installation holds no migrations: install kemem again.")
    return revision


async def upgrade(dsn: str, revision: str = "head") -> None:
    """Upgrade the schema at `dsn` to `revision`; safe to repeat, one process at a time.

    Raises:
        ConfigurationError: the login may not create roles, or the server is too old.

    """
    from alembic import command

    await asyncio.to_thread(command.upgrade, alembic_config(dsn), revision)


async def current_revision(dsn: str) -> str | None:
    """The revision of the schema at `dsn`; None when there is no schema yet.

    Raises:
        ConfigurationError: the login may not read it.

    """
    try:
        connection = await asyncpg.connect(dsn)
    except asyncpg.InvalidAuthorizationSpecificationError as error:
        raise ConfigurationError(
            f"PostgreSQL refuses the login ({error}). Check name and password: those of "
            "MEMORY_MIGRATION_URL must exist already; for those of DATABASE_URL run "
            "`kemem migrate`, which creates them."
        ) from None
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


def refuse_unknown(current: str | None) -> None:
    """Refuse a schema that this release cannot bring to its own.

    Raises:
        ConfigurationError: a newer release has migrated it, or it is from before version
            0.1 was finished; the message says what to do.

    """
    known = {revision.revision for revision in _scripts().walk_revisions()}
    if current is None or current == FIRST_VERSION_HEAD or current in known:
        return
    if current in FIRST_VERSION_REVISIONS:
        raise ConfigurationError(
            f"The database schema ({current}) was made before version {FIRST_VERSION} was "
            f"finished. Start kemem {FIRST_VERSION} on it once (`kemem migrate`, or `kemem serve` "
            "for the embedded database), then this release; or write its contents to a file "
            "there with `kemem export`, and read that into an empty database here with "
            "`kemem import`."
        )
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
    refuse_unknown(current)
    raise ConfigurationError(
        f"The database schema is older ({current or 'empty'}) than this release needs "
        f"({expected}): run `kemem migrate`, then start again."
    )
