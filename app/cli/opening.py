"""What commands need before they can work: settings, quiet logs, the database."""

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import SecretStr

from app.deployment import open_catalogue
from app.errors import ConfigurationError
from app.identity.tenants.service import TenantService
from app.platform.database.engine import Database, open_database
from app.platform.database.migrate import check_schema, migration_dsn
from app.platform.embedded.attachment import open_embedded
from app.platform.embedded.data_folder import (
    default_data_dir,
    ensure_secret_key,
    is_data_folder,
    open_data_folder,
)
from app.platform.observability.logging import configure_logging
from app.platform.work.unit import Work
from app.runtime import utc_now
from app.settings import Settings, load_settings

POOL_SIZE = 2

DataDirOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of the embedded PostgreSQL; MEMORY_DATA_DIR, else the user's data folder, "
        "when left out.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def settings_with(**options: Any) -> Settings:
    """The settings, with the options somebody gave on top.

    Raises:
        ConfigurationError: one sentence says what to mend.

    """
    given = {name: value for name, value in options.items() if value is not None}
    settings = load_settings(**given)
    if "data_dir" in given and not settings.embedded:
        raise ConfigurationError(
            "--data-dir is for the embedded PostgreSQL, and DATABASE_URL names another: leave "
            "one of them out."
        )
    if given.get("data_dir") == Path():
        # An unset shell variable would spread a database over the current folder.
        raise ConfigurationError("--data-dir needs a folder of its own, such as ./kemem-data.")
    return settings


def data_dir_of(settings: Settings) -> Path:
    """Where the embedded service keeps everything."""
    return settings.data_dir or default_data_dir()


def with_kept_key(settings: Settings) -> Settings:
    """Settings of the embedded service: the key of its folder decrypts, and encrypts if
    MEMORY_SECRET_KEY is not set.
    """
    kept = ensure_secret_key(open_data_folder(data_dir_of(settings)))
    keys = ",".join([*settings.secret_keys, kept])
    return settings.model_copy(update={"secret_key": SecretStr(keys)})


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a command to its end, with warnings alone between its lines."""
    configure_logging("warning", pretty=sys.stderr.isatty())
    asyncio.run(work)


@asynccontextmanager
async def open_dsn(settings: Settings, *, migrating: bool = False) -> AsyncIterator[str]:
    """Where the database is; the embedded one is joined, or run for the time of the block."""
    if settings.database_url is None:
        async with open_embedded(data_dir_of(settings), share=True) as dsn:
            yield dsn
        return
    yield migration_dsn(settings) if migrating else settings.database_url.get_secret_value()


@asynccontextmanager
async def open_console_database(settings: Settings) -> AsyncIterator[Database]:
    """The database as the service sees it, under row-level security.

    Raises:
        ConfigurationError: there is no database yet, or its schema is not the one of this
            release.

    """
    async with (
        open_console_dsn(settings) as dsn,
        open_database(dsn, pool_size=POOL_SIZE) as database,
    ):
        yield database


@asynccontextmanager
async def open_console_dsn(settings: Settings) -> AsyncIterator[str]:
    """Where that database is; raises as `open_console_database` does."""
    _refuse_missing(settings)
    async with open_dsn(settings) as dsn:
        await check_schema(dsn)
        yield dsn


def _refuse_missing(settings: Settings) -> None:
    """Looking something up makes no database. Raises ConfigurationError."""
    if settings.embedded and not is_data_folder(data_dir_of(settings)):
        raise ConfigurationError(
            f"There is no KeMem database in {data_dir_of(settings)}: start it once with "
            "`kemem serve`, or name its folder with --data-dir."
        )


@asynccontextmanager
async def open_tenant_service(settings: Settings) -> AsyncIterator[TenantService]:
    """Tenants and keys, as somebody at the machine's console manages them."""
    async with (
        open_console_database(settings) as database,
        open_catalogue(settings) as catalogue,
    ):
        yield TenantService(Work(database, enabled=settings.enabled), catalogue, utc_now)
