"""What commands need before they can work: quiet logs, the database."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from app.cli.options import data_dir_of
from app.deployment import COMMAND_WAIT, open_catalogue
from app.errors import ConfigurationError
from app.identity.tenants.service import TenantService
from app.platform.database.engine import Database, open_database
from app.platform.database.logins import DatabaseUrls
from app.platform.database.migrate import check_schema, migration_dsn
from app.platform.embedded.attachment import open_embedded
from app.platform.embedded.data_folder import (
    is_data_folder,
)
from app.platform.observability.logging import configure_logging
from app.platform.work.unit import Work
from app.runtime import utc_now
from app.settings import Settings
from kemem.running_services import recorded_services

POOL_SIZE = 2


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a command to its end, with warnings alone between its lines."""
    configure_logging("warning", pretty=sys.stderr.isatty())
    asyncio.run(work)


@asynccontextmanager
async def open_urls(settings: Settings) -> AsyncIterator[DatabaseUrls]:
    """Where the database is; the embedded one is joined, or run for the time of the block."""
    if settings.database_url is None:
        async with open_embedded(data_dir_of(settings), share=True) as urls:
            yield urls
        return
    yield DatabaseUrls(
        migration=migration_dsn(settings), serving=settings.database_url.get_secret_value()
    )


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
    async with open_urls(settings) as urls:
        await check_schema(urls.serving)
        yield urls.serving


def _refuse_missing(settings: Settings) -> None:
    """Looking something up makes no database. Raises ConfigurationError."""
    if settings.embedded and not is_data_folder(data_dir_of(settings)):
        running = [
            str(service.data_dir) for service in recorded_services(os.environ) if service.is_running
        ]
        which = f" Services run on {', '.join(running)}." if running else ""
        raise ConfigurationError(
            f"There is no KeMem database in {data_dir_of(settings)}: start it once with "
            f"`kemem serve`, or name its folder with --data-dir.{which}"
        )


@asynccontextmanager
async def open_tenant_service(settings: Settings) -> AsyncIterator[TenantService]:
    """Tenants and keys, as somebody at the machine's console manages them."""
    async with (
        open_console_database(settings) as database,
        open_catalogue(settings, longest_wait=COMMAND_WAIT) as catalogue,
    ):
        yield TenantService(Work(database, enabled=settings.enabled), catalogue, utc_now)
