"""The first key: made with the first tenant, kept in the data folder.

`kemem serve` makes that of the embedded service; `kemem keys first` that of any database.
"""

from pathlib import Path
from typing import Annotated

import typer

from app.builders.factory import Factory
from app.cli.opening import open_console_dsn, run
from app.cli.options import DataDirOption, data_dir_of, settings_with
from app.console import err
from app.identity.tenants.errors import (
    ExpiredKeyError,
    RevokedKeyError,
    TenantDisabledError,
    TenantIdTakenError,
    TenantNotFoundError,
    UnknownKeyError,
)
from app.identity.tenants.schemas import KeyCreate, ScopeName, TenantCreate
from app.identity.tenants.service import TenantService
from app.platform.embedded.data_folder import open_data_folder, write_private
from app.runtime import Runtime, open_runtime
from app.settings import Settings

TENANT = "default"
SCOPES: tuple[ScopeName, ...] = ("admin", "operator")


def first_key_command(
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print nothing; the key is in the data folder.")
    ] = False,
    data_dir: DataDirOption = None,
) -> None:
    """Print the admin key of this machine, and make it with its tenant when there is none.

    It is kept in the data folder, mode 0600; a second call prints the same.
    """
    run(_print_first_key(settings_with(data_dir=data_dir), quiet=quiet))


async def _print_first_key(settings: Settings, *, quiet: bool) -> None:
    async with open_console_dsn(settings) as dsn, open_runtime(settings, dsn) as runtime:
        key, note = await ensure_key(runtime, open_data_folder(data_dir_of(settings)).root)
    if note:
        err.print(note)
    if not quiet:
        print(key)


def key_file(data_dir: Path) -> Path:
    """Where the key is kept, mode 0600."""
    return data_dir.expanduser() / "key"


def read_key(data_dir: Path) -> str | None:
    """The kept key, or None when there is none."""
    try:
        return key_file(data_dir).read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


async def ensure_key(runtime: Runtime, data_dir: Path) -> tuple[str, str | None]:
    """The key that people at this machine use, made when there is none.

    Returns:
        The key, and a sentence when something about it should be known.

    """
    kept = read_key(data_dir)
    if kept is not None:
        try:
            await runtime.identification.identify(kept)
        except UnknownKeyError:
            note = "The kept key was made for another database, so there is a new one."
        except (RevokedKeyError, ExpiredKeyError) as error:
            return kept, (
                f"{error.detail} Make another with "
                f"`kemem keys create --tenant {TENANT} --scope admin`."
            )
        except TenantDisabledError:
            return kept, (
                f"The tenant of this key is disabled: enable it with "
                f"`kemem tenants enable {TENANT}`."
            )
        else:
            return kept, None
    else:
        note = "The file with the key was gone, so there is a new one. Revoke the old one."
    key, first = await _make_key(runtime)
    write_private(key_file(data_dir), f"{key}\n")
    return key, None if first else note


async def _make_key(runtime: Runtime) -> tuple[str, bool]:
    """A new key, and whether its tenant is new too."""
    service = Factory(runtime).get(TenantService)
    try:
        await service.get(TENANT)
    except TenantNotFoundError:
        body = TenantCreate(tenant_id=TENANT, tenant_name=TENANT)
        try:
            created = await service.add(body, first_scopes=SCOPES)
        except TenantIdTakenError:
            pass
        else:
            return created.key.key or "", True
    made = await service.add_key(TENANT, KeyCreate(key_name="first key", scopes=list(SCOPES)))
    return made.key or "", False
