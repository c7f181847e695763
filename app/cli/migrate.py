"""kemem migrate and kemem openapi: what the database and the document look like."""

import asyncio
import shutil
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from alembic import command

from app.cli.opening import open_dsn, run
from app.cli.options import DataDirOption, settings_with
from app.console import print_json
from app.main import create_app
from app.platform.database.migrate import (
    alembic_config,
    current_revision,
    head,
    refuse_unknown,
    upgrade,
)
from app.platform.embedded.attachment import open_embedded
from app.settings import Settings


def migrate_command(
    check: Annotated[
        bool,
        typer.Option("--check", help="Change nothing; exit code 1 when a migration is missing."),
    ] = False,
    data_dir: DataDirOption = None,
) -> None:
    """Bring the database schema to this release; safe to repeat.

    Runs on the database of DATABASE_URL, logging in with MEMORY_MIGRATION_URL if that is set
    beside it; without DATABASE_URL on the embedded PostgreSQL, which `kemem serve` migrates
    automatically.
    """
    settings = settings_with(data_dir=data_dir)
    run(_migrate(settings, check=check))


async def _migrate(settings: Settings, *, check: bool) -> None:
    expected = head()
    async with open_dsn(settings, migrating=True) as dsn:
        current = await current_revision(dsn)
        refuse_unknown(current)
        if current == expected:
            print(f"The schema is at {expected}, as this release needs it.")
            return
        if check:
            print(f"The schema is at {current or 'nothing'}; this release needs {expected}.")
            raise typer.Exit(1)
        await upgrade(dsn)
    print(f"The schema was at {current or 'nothing'} and is at {expected} now.")


def draft_migration_command(
    name: Annotated[str, typer.Argument(help="What the migration does, in a few words.")],
) -> None:
    """Write a migration that brings the schema to the tables as the code has them now.

    For work on KeMem itself: the draft is made on a PostgreSQL that is thrown away, and is to
    be read before it is kept.
    """
    folder = Path(tempfile.mkdtemp(prefix="kemem-"))
    # PostgreSQL may run as another account, which must be able to pass through.
    folder.chmod(0o755)
    try:
        run(_draft(name, folder / "data"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _draft(name: str, data_dir: Path) -> None:
    async with open_embedded(data_dir, share=False) as dsn:
        await upgrade(dsn)
        # Alembic runs an event loop of its own.
        await asyncio.to_thread(
            command.revision, alembic_config(dsn), message=name, autogenerate=True
        )


def openapi_command() -> None:
    """Print the OpenAPI document, which the service also answers at /openapi.json."""
    print_json(create_app(nullcontext()).openapi())  # type: ignore[arg-type]  # never opened
