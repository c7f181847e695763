"""The key of the embedded service: made on first start, kept beside the data."""

from pathlib import Path

from app.factory import Factory
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
from app.platform.embedded.data_folder import write_private
from app.runtime import Runtime

TENANT = "default"
SCOPES: tuple[ScopeName, ...] = ("admin", "operator")


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
