"""Who is calling, as a route asks for it; one alias per scope."""

import hashlib
import re
from collections.abc import Callable
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Header, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from fastapi.security.utils import get_authorization_scheme_param

from app.errors import IdNotAllowedError
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import (
    ActingUserMismatchError,
    ExpiredKeyError,
    InsufficientScopeError,
    InvalidActingUserError,
    KeyRestrictedError,
    MissingKeyError,
    RevokedKeyError,
    TenantDisabledError,
    UnknownKeyError,
)
from app.identity.tenants.service import Identification
from app.platform.http.dependencies import (
    refuse_encoded_slash,
    refuse_unknown_parameters,
    service_of,
)
from app.platform.http.openapi import ACTING_USER
from app.platform.http.rates import HEADERS, RateLimits, RequestClass
from app.platform.values.fields import composed, is_own_id
from app.platform.values.pagination import note_list
from app.platform.work.idempotency import (
    IdempotencyKey,
    IdempotencyKeyReusedError,
    RequestInProgressError,
)

KEY_ERRORS = (
    IdNotAllowedError,
    MissingKeyError,
    UnknownKeyError,
    ExpiredKeyError,
    RevokedKeyError,
    TenantDisabledError,
    InsufficientScopeError,
    KeyRestrictedError,
    ActingUserMismatchError,
    InvalidActingUserError,
)
IDEMPOTENCY_ERRORS = (IdempotencyKeyReusedError, RequestInProgressError)

_ENCODED = re.compile(r"(?:[A-Za-z0-9._:@|+=~!*'()-]|%[0-9A-Fa-f]{2})+")
"""An id in a header: what encoders leave as it is, and escapes. A comma is none of it, with which
proxies join two headers.
"""


async def identified(request: Request) -> Principal:
    """Who sent the request; asked once, however many dependencies want to know.

    Raises MissingKeyError.
    """
    known: Principal | None = request.scope.get("kemem.principal")
    if known is None:
        scheme, key = get_authorization_scheme_param(request.headers.get("Authorization"))
        if scheme.lower() != "bearer" or not key:
            raise MissingKeyError
        identification = service_of(request, Identification)
        known = _acting(request, await identification.identify(key))
        request.scope["kemem.principal"] = known
        whose = (known.tenant_id, known.access.user_id or "", request.scope["path"])
        note_list(request.scope["query_string"].decode("latin-1"), *whose)
    return known


def _acting(request: Request, principal: Principal) -> Principal:
    """The caller as the user named in `KeMem-User`, if one is.

    Raises:
        InvalidActingUserError: it names no user, or a proxy added another.
        ActingUserMismatchError: the key is another user's.

    """
    named = request.headers.getlist(ACTING_USER)
    if not named:
        return principal
    user_id = _decoded(named[0]) if len(named) == 1 else None
    if user_id is None:
        raise InvalidActingUserError
    if principal.access.user_id not in {None, user_id}:
        raise ActingUserMismatchError
    return principal.acting_as(user_id)


def _decoded(header: str) -> str | None:
    """The id in a header, which is percent-encoded UTF-8; None where it is none."""
    if not _ENCODED.fullmatch(header):
        return None
    try:
        user_id = composed(unquote(header, errors="strict"))
    except UnicodeDecodeError:
        return None
    return user_id if is_own_id(user_id) else None


class _Holder(SecurityBase):
    """Whoever holds the request's key, if the key has a scope.

    Dependency and security scheme in one, because each node of FastAPI's dependency tree
    costs every request 0.04 ms: with three of them the key check took longer in Python than
    in PostgreSQL.
    """

    model = HTTPBearer(description="Your API key.")
    scheme_name = "key"

    def __init__(
        self, scope: str, *, of_a_user: str | None = None, kind: RequestClass | None = None
    ) -> None:
        """Require `scope`, and `of_a_user` of a key that acts for a user; count the request among
        those that read or write, or among `kind`.
        """
        self._scope = scope
        self._kind = kind or ("read" if scope == "read" else "write")
        self._of_a_user = of_a_user or scope

    async def __call__(self, request: Request) -> Principal:
        """Raises InsufficientScopeError, SlashInIdError, UnknownParameterError,
        RateLimitedError.
        """
        principal = await identified(request)
        scope = self._scope if principal.access.user_id is None else self._of_a_user
        if not principal.may(scope):
            raise InsufficientScopeError(scope, acting=principal.acting)
        refuse_encoded_slash(request)
        refuse_unknown_parameters(request)
        charge(request, principal, "read" if request.method == "GET" else self._kind)
        return principal


def charge(
    request: Request, principal: Principal, kind: RequestClass, *, count: int = 1, counted: int = 0
) -> None:
    """Count a request, whose answer says what is left. One that counts in two classes is charged
    twice, and its answer tells of both.

    Args:
        count: how many requests it stands for.
        counted: how many of these were counted before; the answer tells only of now.

    Raises RateLimitedError.
    """
    before = request.scope.pop(HEADERS, ())
    headers = {} if counted else dict(before)
    limits = service_of(request, RateLimits)
    left = limits.charge(
        principal.tenant_id, principal.key_id, principal.config, kind, count=count, counted=counted
    )
    for name, value in left.items():
        key = name.lower().encode()
        headers[key] = (
            b"%b, %b" % (headers[key], value.encode()) if key in headers else value.encode()
        )
    if headers:
        request.scope[HEADERS] = list(headers.items())


async def _more_count(request: Request) -> Callable[[RequestClass, int], None]:
    def count_more(kind: RequestClass, count: int) -> None:
        charge(request, request.scope["kemem.principal"], kind, count=count, counted=1)

    return count_more


MoreCountDep = Annotated[Callable[[RequestClass, int], None], Depends(_more_count)]
"""Beside another of these: called, it counts the request, in the class in which it is counted, as
so many in all."""


async def _model_count(request: Request) -> Callable[[], None]:
    return lambda: charge(request, request.scope["kemem.principal"], "model")


ModelCountDep = Annotated[Callable[[], None], Depends(_model_count)]
"""Beside another of these: called, it counts the request among those that ask a model too."""
ReaderDep = Annotated[Principal, Depends(_Holder("read"))]
ModelUserDep = Annotated[Principal, Depends(_Holder("write", kind="model"))]
"""Writes by asking a model while the caller waits, where the tenant has one."""
WriterDep = Annotated[Principal, Depends(_Holder("write"))]
AdminDep = Annotated[Principal, Depends(_Holder("admin"))]
ManagerDep = Annotated[Principal, Depends(_Holder("admin", of_a_user="write"))]
"""Of a user the role in the project decides; of the application itself the key."""
OwnReaderDep = Annotated[Principal, Depends(_Holder("admin", of_a_user="read"))]
"""A user reads what is its own; what is everybody's takes an admin's key."""
OperatorDep = Annotated[Principal, Depends(_Holder("operator"))]


async def get_idempotency_key(
    request: Request,
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
) -> IdempotencyKey | None:
    if idempotency_key is None:
        return None
    principal = await identified(request)
    digest = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode())
    digest.update(await request.body())
    return IdempotencyKey(
        principal.tenant_id,
        principal.key_id,
        idempotency_key,
        digest.digest(),
        acting_user=principal.access.user_id,
    )


IdempotencyKeyDep = Annotated[IdempotencyKey | None, Depends(get_idempotency_key)]
