"""kemem migrate and kemem openapi: what the database and the document look like."""

from contextlib import nullcontext
from typing import Annotated

import typer

from app.cli.console import print_json
from app.cli.opening import DataDirOption, open_dsn, run, settings_with
from app.database.migrate import current_revision, head, refuse_newer, upgrade
from app.main import create_app
from app.settings import Settings


def migrate_command(
    check: Annotated[
        bool,
        typer.Option("--check", help="Change nothing; exit code 1 when a migration is missing."),
    ] = False,
    data_dir: DataDirOption = None,
) -> None:
    """Bring the database schema to this release; safe to repeat.

    Runs at MEMORY_MIGRATION_URL, else DATABASE_URL, else on the embedded PostgreSQL, which
    `kemem serve` migrates by itself.
    """
    settings = settings_with(data_dir=data_dir)
    run(_migrate(settings, check=check))


async def _migrate(settings: Settings, *, check: bool) -> None:
    expected = head()
    async with open_dsn(settings, migrating=True) as dsn:
        current = await current_revision(dsn)
        refuse_newer(current)
        if current == expected:
            print(f"The schema is at {expected}, as this release needs it.")
            return
        if check:
            print(f"The schema is at {current or 'nothing'}; this release needs {expected}.")
            raise typer.Exit(1)
        await upgrade(dsn)
    print(f"The schema was at {current or 'nothing'} and is at {expected} now.")


def openapi_command() -> None:
    """Print the OpenAPI document, which the service also answers at /openapi.json."""
    print_json(create_app(nullcontext()).openapi())  # type: ignore[arg-type]
