"""/v1/tenants and /v1/keys."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.errors import VersionConflictError
from app.identity.tenants.errors import (
    ExpiryInPastError,
    KeyNotFoundError,
    OwnTenantError,
    TenantIdTakenError,
    TenantNotFoundError,
)
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    AdminDep,
    IdempotencyKeyDep,
    OperatorDep,
)
from app.identity.tenants.schemas import (
    KeyCreate,
    KeyCreated,
    KeyRead,
    TenantCreate,
    TenantCreated,
    TenantPatch,
    TenantRead,
)
from app.identity.tenants.service import TenantService
from app.language.llm.errors import UnknownEmbedderError
from app.platform.http.dependencies import VersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.plugins.runner import InvalidProcessorsError
from app.platform.values.fields import Id
from app.platform.values.pagination import InvalidCursorError, Page, PageQuery

tenants_router = APIRouter(
    prefix="/v1/tenants", tags=["tenants"], responses=responses_for(*KEY_ERRORS)
)
keys_router = APIRouter(prefix="/v1/keys", tags=["keys"], responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[TenantService, provided(TenantService)]


@tenants_router.post(
    "",
    status_code=201,
    responses=responses_for(
        TenantIdTakenError, UnknownEmbedderError, InvalidProcessorsError, *IDEMPOTENCY_ERRORS
    ),
)
async def add_tenant(
    body: TenantCreate, principal: OperatorDep, service: ServiceDep, key: IdempotencyKeyDep
) -> TenantCreated:
    """Create a tenant; the answer holds its first key."""
    return await service.add(body, actor=principal, key=key)


@tenants_router.get("", responses=responses_for(InvalidCursorError))
async def list_tenants(
    query: Annotated[PageQuery, Query()], _principal: OperatorDep, service: ServiceDep
) -> Page[TenantRead]:
    """List tenants, newest first."""
    return await service.list_tenants(cursor=query.cursor, limit=query.limit)


@tenants_router.get("/{tenant_id}", responses=responses_for(TenantNotFoundError))
async def get_tenant(tenant_id: Id, _principal: OperatorDep, service: ServiceDep) -> TenantRead:
    """Get one tenant."""
    return await service.get(tenant_id)


@tenants_router.patch(
    "/{tenant_id}",
    responses=responses_for(
        TenantNotFoundError,
        VersionConflictError,
        OwnTenantError,
        UnknownEmbedderError,
        InvalidProcessorsError,
    ),
)
async def update_tenant(
    tenant_id: Id,
    body: TenantPatch,
    principal: OperatorDep,
    service: ServiceDep,
    version: VersionDep,
) -> TenantRead:
    """Rename, configure, disable or enable a tenant; its keys stop working while disabled."""
    return await service.patch(tenant_id, body, expected=version, actor=principal)


@tenants_router.post(
    "/{tenant_id}/keys",
    status_code=201,
    responses=responses_for(TenantNotFoundError, ExpiryInPastError, *IDEMPOTENCY_ERRORS),
)
async def add_tenant_key(
    tenant_id: Id,
    body: KeyCreate,
    principal: OperatorDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
) -> KeyCreated:
    """Create a key for a tenant; the key is shown once."""
    return await service.add_key(tenant_id, body, actor=principal, key=key)


@tenants_router.get(
    "/{tenant_id}/keys", responses=responses_for(TenantNotFoundError, InvalidCursorError)
)
async def list_tenant_keys(
    tenant_id: Id,
    query: Annotated[PageQuery, Query()],
    _principal: OperatorDep,
    service: ServiceDep,
) -> Page[KeyRead]:
    """List a tenant's keys, newest first."""
    return await service.list_keys(tenant_id, cursor=query.cursor, limit=query.limit)


@tenants_router.delete(
    "/{tenant_id}/keys/{key_id}", responses=responses_for(TenantNotFoundError, KeyNotFoundError)
)
async def revoke_tenant_key(
    tenant_id: Id, key_id: Id, _principal: OperatorDep, service: ServiceDep
) -> KeyRead:
    """Revoke a tenant's key at once."""
    return await service.revoke_key(tenant_id, key_id)


@keys_router.post(
    "", status_code=201, responses=responses_for(ExpiryInPastError, *IDEMPOTENCY_ERRORS)
)
async def add_key(
    body: KeyCreate, principal: AdminDep, service: ServiceDep, key: IdempotencyKeyDep
) -> KeyCreated:
    """Create a key, perhaps restricted to one agent or user; the key is shown once."""
    return await service.add_key(principal.tenant_id, body, actor=principal, key=key)


@keys_router.get("", responses=responses_for(InvalidCursorError))
async def list_keys(
    query: Annotated[PageQuery, Query()], principal: AdminDep, service: ServiceDep
) -> Page[KeyRead]:
    """List keys, newest first, revoked and expired ones too."""
    return await service.list_keys(principal.tenant_id, cursor=query.cursor, limit=query.limit)


@keys_router.delete("/{key_id}", responses=responses_for(KeyNotFoundError))
async def revoke_key(key_id: Id, principal: AdminDep, service: ServiceDep) -> KeyRead:
    """Revoke a key: the next request that carries it is refused."""
    return await service.revoke_key(principal.tenant_id, key_id)
