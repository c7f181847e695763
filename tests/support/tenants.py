"""Tenants and keys for tests, made by the service itself."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from app.identity.tenants.schemas import KeyCreate, TenantCreate
from app.identity.tenants.service import TenantService
from app.runtime import Runtime

_made: list[str] = []
_left: list[str] = []


@dataclass(frozen=True)
class Caller:
    """A tenant and one of its keys."""

    tenant_id: str
    key: str
    key_id: str
    id_prefix: str | None = None


def tenants(runtime: Runtime) -> TenantService:
    return TenantService(runtime.work, runtime.catalogue, runtime.now)


async def make_tenant(runtime: Runtime, name: str = "Acme") -> Caller:
    """A new tenant with its first key, scope admin."""
    created = await tenants(runtime).add(TenantCreate(tenant_name=name))
    assert created.key.key is not None
    _made.append(created.tenant_id)
    return Caller(created.tenant_id, created.key.key, created.key.key_id)


@contextmanager
def made_for_one_test() -> Iterator[None]:
    """Tenants that are made meanwhile are nobody's afterwards."""
    _made.clear()
    try:
        yield
    finally:
        _left.extend(_made)


def left_behind() -> Sequence[str]:
    """Tenants of tests that are over."""
    return _left


async def make_key(
    runtime: Runtime,
    tenant_id: str,
    *scopes: str,
    agent_id: str | None = None,
    user_id: str | None = None,
    expires_at: datetime | None = None,
) -> Caller:
    """A further key of a tenant."""
    body = KeyCreate(
        scopes=list(scopes) or ["write"],
        agent_id=agent_id,
        user_id=user_id,
        expires_at=expires_at,
    )
    created = await tenants(runtime).add_key(tenant_id, body)
    assert created.key is not None
    return Caller(tenant_id, created.key, created.key_id, created.id_prefix)
