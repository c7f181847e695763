"""kemem tenants and kemem keys: who may call, managed at the machine's console."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal

import typer

from app.cli.first_key import first_key_command
from app.cli.opening import open_tenant_service, run
from app.cli.options import DataDirOption, JsonOption, settings_with
from app.console import print_json, print_record, print_table
from app.identity.tenants.schemas import (
    KeyCreate,
    KeyCreated,
    KeyRead,
    TenantCreate,
    TenantPatch,
    TenantRead,
)
from app.runtime import utc_now
from app.settings import Settings

PAGE = 100

tenants_cli = typer.Typer(
    help="Owners of data and keys.", no_args_is_help=True, add_completion=False
)
keys_cli = typer.Typer(
    help="Who may call: make, list and revoke keys.", no_args_is_help=True, add_completion=False
)


keys_cli.command("first")(first_key_command)


class Scope(StrEnum):
    """What a key may do; each word includes the one before it, but for `operator`."""

    read = "read"
    write = "write"
    admin = "admin"
    operator = "operator"


TenantArgument = Annotated[
    str, typer.Argument(help="Id of the tenant, as `kemem tenants list` shows it.")
]
TenantOption = Annotated[str, typer.Option("--tenant", help="Id of the tenant.")]


@tenants_cli.command("create")
def create_tenant(
    name: Annotated[str, typer.Argument(help="Name for people.")],
    tenant_id: Annotated[
        str | None,
        typer.Option("--id", help="Your own id; generated when left out.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Create a tenant and its first admin key, which is printed once."""
    body = TenantCreate(tenant_id=tenant_id, tenant_name=name)
    run(_create_tenant(settings_with(data_dir=data_dir), body, as_json=as_json))


async def _create_tenant(settings: Settings, body: TenantCreate, *, as_json: bool) -> None:
    async with open_tenant_service(settings) as service:
        created = await service.add(body)
    if as_json:
        print_json(created.model_dump(mode="json"))
        return
    print_record({"tenant": created.tenant_id, "name": created.tenant_name})
    _print_key(created.key)


@tenants_cli.command("list")
def list_tenants(as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """List all tenants, newest first."""
    run(_list_tenants(settings_with(data_dir=data_dir), as_json=as_json))


async def _list_tenants(settings: Settings, *, as_json: bool) -> None:
    tenants: list[TenantRead] = []
    cursor = None
    async with open_tenant_service(settings) as service:
        while True:
            page = await service.list_tenants(cursor=cursor, limit=PAGE)
            tenants += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
    if as_json:
        print_json([tenant.model_dump(mode="json") for tenant in tenants])
        return
    columns = ("tenant id", "name", "status", "embedding models", "created")
    rows = [
        (
            tenant.tenant_id,
            tenant.tenant_name,
            tenant.status,
            ", ".join(tenant.embedding_models),
            _minute(tenant.create_time),
        )
        for tenant in tenants
    ]
    print_table("Tenants", columns, rows)


@tenants_cli.command("enable")
def enable_tenant(
    tenant_id: TenantArgument, as_json: JsonOption = False, data_dir: DataDirOption = None
) -> None:
    """Let the keys of a disabled tenant work again."""
    settings = settings_with(data_dir=data_dir)
    run(_set_status(settings, tenant_id, "enabled", as_json=as_json))


@tenants_cli.command("disable")
def disable_tenant(
    tenant_id: TenantArgument, as_json: JsonOption = False, data_dir: DataDirOption = None
) -> None:
    """Refuse all keys of a tenant from the next request on; its data stays."""
    settings = settings_with(data_dir=data_dir)
    run(_set_status(settings, tenant_id, "disabled", as_json=as_json))


async def _set_status(
    settings: Settings, tenant_id: str, status: Literal["enabled", "disabled"], *, as_json: bool
) -> None:
    async with open_tenant_service(settings) as service:
        tenant = await service.patch(tenant_id, TenantPatch(status=status))
    if as_json:
        print_json(tenant.model_dump(mode="json"))
    else:
        print(f"The tenant {tenant_id} is {tenant.status}.")


@keys_cli.command("create")
def create_key(
    tenant: TenantOption,
    name: Annotated[
        str | None, typer.Option(help="Name for people, to tell keys apart.", show_default=False)
    ] = None,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="May be given several times; `write` when left out.", show_default=False),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="Restrict the key to this agent.", show_default=False)
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Restrict the key to this user.", show_default=False)
    ] = None,
    expires_in_days: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=36500,
            help="Days until it expires; never, when left out.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Create a key, which is printed once and kept nowhere."""
    expiry = None if expires_in_days is None else utc_now() + timedelta(days=expires_in_days)
    body = KeyCreate.model_validate(
        {
            "key_name": name,
            "scopes": [granted.value for granted in scope or [Scope.write]],
            "agent_id": agent,
            "user_id": user,
            "expires_at": expiry,
        }
    )
    run(_create_key(settings_with(data_dir=data_dir), tenant, body, as_json=as_json))


async def _create_key(settings: Settings, tenant: str, body: KeyCreate, *, as_json: bool) -> None:
    async with open_tenant_service(settings) as service:
        created = await service.add_key(tenant, body)
    if as_json:
        print_json(created.model_dump(mode="json"))
    else:
        _print_key(created)


@keys_cli.command("list")
def list_keys(
    tenant: TenantOption, as_json: JsonOption = False, data_dir: DataDirOption = None
) -> None:
    """List the keys of a tenant, newest first, revoked and expired ones too."""
    run(_list_keys(settings_with(data_dir=data_dir), tenant, as_json=as_json))


async def _list_keys(settings: Settings, tenant: str, *, as_json: bool) -> None:
    keys: list[KeyRead] = []
    cursor = None
    async with open_tenant_service(settings) as service:
        while True:
            page = await service.list_keys(tenant, cursor=cursor, limit=PAGE)
            keys += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
    if as_json:
        print_json([key.model_dump(mode="json") for key in keys])
        return
    columns = ("key id", "name", "scopes", "only for", "state", "last used")
    rows = [
        (
            key.key_id,
            key.key_name,
            ", ".join(key.scopes),
            ", ".join(filter(None, (key.agent_id, key.user_id))),
            _state(key),
            _minute(key.last_used_at),
        )
        for key in keys
    ]
    print_table(f"Keys of {tenant}", columns, rows)


@keys_cli.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(help="Id of the key, as `kemem keys list` shows it.")],
    tenant: TenantOption,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Revoke a key; the next request that carries it is refused."""
    run(_revoke_key(settings_with(data_dir=data_dir), tenant, key_id, as_json=as_json))


async def _revoke_key(settings: Settings, tenant: str, key_id: str, *, as_json: bool) -> None:
    async with open_tenant_service(settings) as service:
        revoked = await service.revoke_key(tenant, key_id)
    if as_json:
        print_json(revoked.model_dump(mode="json"))
    else:
        print(f"The key {key_id} is revoked since {revoked.revoked_at}.")


def _print_key(created: KeyCreated) -> None:
    print_record(
        {
            "key id": created.key_id,
            "scopes": ", ".join(created.scopes),
            "expires": created.expires_at or "never",
            **({"its ids begin with": created.id_prefix} if created.id_prefix else {}),
            "key": created.key,
        }
    )
    print("\nKeep the key now: it is shown this once.")


def _state(key: KeyRead) -> str:
    if key.revoked_at is not None:
        return f"revoked {_minute(key.revoked_at)}"
    if key.expires_at is None:
        return "valid"
    word = "expired" if key.expires_at < utc_now() else "expires"
    return f"{word} {_minute(key.expires_at)}"


def _minute(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"
