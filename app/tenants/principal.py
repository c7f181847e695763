"""Who is calling, as a route asks for it; one alias per scope."""

import hashlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.tenants.access import Principal
from app.tenants.errors import (
    ExpiredKeyError,
    InsufficientScopeError,
    KeyRestrictedError,
    MissingKeyError,
    RevokedKeyError,
    TenantDisabledError,
    UnknownKeyError,
)
from app.web.dependencies import RuntimeDep
from app.web.idempotency import (
    NEVER,
    IdempotencyKeyReusedError,
    Once,
    RequestInProgressError,
)

# A missing header is our error to report, as a problem document.
bearer = HTTPBearer(auto_error=False, scheme_name="key", description="Your API key.")

KEY_ERRORS = (
    MissingKeyError,
    UnknownKeyError,
    ExpiredKeyError,
    RevokedKeyError,
    TenantDisabledError,
    InsufficientScopeError,
    KeyRestrictedError,
)
ONCE_ERRORS = (IdempotencyKeyReusedError, RequestInProgressError)


async def get_principal(
    runtime: RuntimeDep,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> Principal:
    if credentials is None:
        raise MissingKeyError
    return await runtime.identification.identify(credentials.credentials)


def _needing(scope: str) -> Callable[..., Awaitable[Principal]]:
    async def principal_with_scope(
        principal: Annotated[Principal, Depends(get_principal)],
    ) -> Principal:
        if not principal.may(scope):
            raise InsufficientScopeError(scope)
        return principal

    return principal_with_scope


ReaderDep = Annotated[Principal, Depends(_needing("read"))]
WriterDep = Annotated[Principal, Depends(_needing("write"))]
AdminDep = Annotated[Principal, Depends(_needing("admin"))]
OperatorDep = Annotated[Principal, Depends(_needing("operator"))]


async def get_once(
    request: Request,
    runtime: RuntimeDep,
    principal: Annotated[Principal, Depends(get_principal)],
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="Any text of yours: the request has one effect however often it is sent.",
            min_length=1,
            max_length=255,
            pattern=r"^[\x20-\x7e]+$",
        ),
    ] = None,
) -> Once:
    if idempotency_key is None:
        return NEVER
    digest = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode())
    digest.update(await request.body())
    return Once(
        principal.tenant_id,
        principal.key_id,
        idempotency_key,
        digest.digest(),
        timedelta(hours=runtime.settings.idempotency_hours),
    )


OnceDep = Annotated[Once, Depends(get_once)]
