"""kemem migrate and kemem openapi: what the database and the document look like."""

import asyncio
import shutil
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from alembic import command

from app.cli.opening import open_urls, run
from app.cli.options import DataDirOption, settings_with
from app.console import REFUSED, err, print_json
from app.governance.tables import TABLES
from app.main import create_app
from app.platform.database.logins import (
    DatabaseUrls,
    ensure_serving_login,
    login_of,
    serving_faults,
)
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
        typer.Option(
            "--check",
            help="Change nothing; exit code 1 when a migration or a right of the service is "
            "missing.",
        ),
    ] = False,
    data_dir: DataDirOption = None,
) -> None:
    """Bring the database schema to this release; safe to repeat.

    Logs in with MEMORY_MIGRATION_URL, and creates the login of DATABASE_URL, with which the
    service logs in, where it is missing. Without DATABASE_URL it runs on the embedded PostgreSQL,
    which `kemem serve` migrates automatically.
    """
    settings = settings_with(data_dir=data_dir)
    run(_migrate(settings, check=check))


async def _migrate(settings: Settings, *, check: bool) -> None:
    expected = head()
    async with open_urls(settings) as urls:
        current = await current_revision(urls.migration)
        refuse_unknown(current)
        if check and current != expected:
            print(f"The schema is at {current or 'nothing'}; this release needs {expected}.")
            raise typer.Exit(1)
        if not check:
            # Also when nothing is missing: rights that somebody took away are granted again.
            await upgrade(urls.migration)
        if current == expected:
            print(f"The schema is at {expected}, as this release needs it.")
        else:
            print(f"The schema was at {current or 'nothing'} and is at {expected} now.")
        if not check and _has_two_logins(urls):
            await ensure_serving_login(urls)
        names = [table.__tablename__ for table in TABLES]
        faults = await serving_faults(urls.serving, names, waived=settings.allow_owner_login)
    for fault in faults:
        err.print(fault)
    if faults:
        raise typer.Exit(REFUSED)
    print(f"The service can log in as {login_of(urls.serving).name}.")


def _has_two_logins(urls: DatabaseUrls) -> bool:
    return login_of(urls.serving).name != login_of(urls.migration).name


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
    async with open_embedded(data_dir, share=False) as urls:
        await upgrade(urls.migration)
        # Alembic runs an event loop of its own.
        await asyncio.to_thread(
            command.revision, alembic_config(urls.migration), message=name, autogenerate=True
        )


def openapi_command() -> None:
    """Print the OpenAPI document, which the service also answers at /openapi.json."""
    print_json(create_app(nullcontext()).openapi())  # type: ignore[arg-type]  # never opened
