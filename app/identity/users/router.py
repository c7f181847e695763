"""/v1/users."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.errors import ConfirmationRequiredError, IdTakenError, VersionConflictError
from app.identity.agents.errors import AgentNotFoundError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    AdminDep,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.tenants.schemas import Eraser, Receipt, UserErasureQuery
from app.identity.users.schemas import UserCreate, UserNotFoundError, UserPatch, UserQuery, UserRead
from app.identity.users.service import UserService
from app.platform.http.dependencies import VersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import OwnId
from app.platform.values.pagination import InvalidCursorError, Page

router = APIRouter(prefix="/v1/users", tags=["users"], responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[UserService, provided(UserService)]
ErasureDep = Annotated[Eraser, provided(Eraser)]


@router.post(
    "",
    status_code=201,
    responses=responses_for(IdTakenError, AgentNotFoundError, *IDEMPOTENCY_ERRORS),
)
async def add_user(
    body: UserCreate, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> UserRead:
    """Create a user with a home agent."""
    return await service.add(principal, body, key=key)


@router.get("", responses=responses_for(InvalidCursorError))
async def list_users(
    query: Annotated[UserQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[UserRead]:
    """List users, newest first."""
    return await service.list_users(principal, query)


@router.get("/{user_id}", responses=responses_for(UserNotFoundError))
async def get_user(user_id: OwnId, principal: ReaderDep, service: ServiceDep) -> UserRead:
    """Get one user."""
    return await service.get(principal, user_id)


@router.patch(
    "/{user_id}",
    responses=responses_for(
        UserNotFoundError, AgentNotFoundError, VersionConflictError, IdTakenError
    ),
)
async def update_user(
    user_id: OwnId,
    body: UserPatch,
    principal: WriterDep,
    service: ServiceDep,
    version: VersionDep,
) -> UserRead:
    """Change a user; omitted fields stay."""
    return await service.patch(principal, user_id, body, expected=version)


@router.delete(
    "/{user_id}",
    responses=responses_for(UserNotFoundError, ConfirmationRequiredError),
)
async def delete_user(
    user_id: OwnId,
    query: Annotated[UserErasureQuery, Query()],
    principal: AdminDep,
    erasure: ErasureDep,
) -> Receipt:
    """Delete a user with all content, for good."""
    return await erasure.delete(principal, "user", user_id, query)
