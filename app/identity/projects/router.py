"""/v1/projects and their members."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.errors import ConfirmationRequiredError, IdTakenError, VersionConflictError
from app.identity.projects.schemas import (
    InsufficientRoleError,
    LastOwnerError,
    MemberNotFoundError,
    MemberPut,
    MemberRead,
    ProjectCreate,
    ProjectNotFoundError,
    ProjectPatch,
    ProjectQuery,
    ProjectRead,
    ProjectTransfer,
    ProjectTransferred,
)
from app.identity.projects.service import ProjectService
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ManagerDep,
    ReaderDep,
)
from app.identity.tenants.schemas import Eraser, ErasureQuery, Receipt
from app.identity.users.schemas import UserNotFoundError
from app.platform.http.dependencies import VersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import OwnId
from app.platform.values.pagination import InvalidCursorError, Page, PageQuery

router = APIRouter(prefix="/v1/projects", tags=["projects"], responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[ProjectService, provided(ProjectService)]
ErasureDep = Annotated[Eraser, provided(Eraser)]


@router.post(
    "",
    status_code=201,
    responses=responses_for(IdTakenError, UserNotFoundError, *IDEMPOTENCY_ERRORS),
)
async def add_project(
    body: ProjectCreate, principal: ManagerDep, service: ServiceDep, key: IdempotencyKeyDep
) -> ProjectRead:
    """Create a project."""
    return await service.add(principal, body, key=key)


@router.get("", responses=responses_for(InvalidCursorError))
async def list_projects(
    query: Annotated[ProjectQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[ProjectRead]:
    """List projects, newest first."""
    return await service.list_projects(principal, query)


@router.get("/{project_id}", responses=responses_for(ProjectNotFoundError))
async def get_project(project_id: OwnId, principal: ReaderDep, service: ServiceDep) -> ProjectRead:
    """Get one project."""
    return await service.get(principal, project_id)


@router.patch(
    "/{project_id}",
    responses=responses_for(ProjectNotFoundError, InsufficientRoleError, VersionConflictError),
)
async def update_project(
    project_id: OwnId,
    body: ProjectPatch,
    principal: ManagerDep,
    service: ServiceDep,
    version: VersionDep,
) -> ProjectRead:
    """Change a project; omitted fields stay."""
    return await service.patch(principal, project_id, body, expected=version)


@router.get(
    "/{project_id}/members", responses=responses_for(ProjectNotFoundError, InvalidCursorError)
)
async def list_project_members(
    project_id: OwnId,
    query: Annotated[PageQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[MemberRead]:
    """List the members of a project, oldest first."""
    return await service.list_members(principal, project_id, query)


@router.put(
    "/{project_id}/members/{user_id}",
    responses=responses_for(
        ProjectNotFoundError, UserNotFoundError, InsufficientRoleError, LastOwnerError
    ),
)
async def put_project_member(
    project_id: OwnId, user_id: OwnId, body: MemberPut, principal: ManagerDep, service: ServiceDep
) -> MemberRead:
    """Make a user a member, or give a member another role."""
    return await service.put_member(principal, project_id, user_id, body)


@router.delete(
    "/{project_id}/members/{user_id}",
    status_code=204,
    responses=responses_for(
        ProjectNotFoundError, MemberNotFoundError, InsufficientRoleError, LastOwnerError
    ),
)
async def remove_project_member(
    project_id: OwnId, user_id: OwnId, principal: ManagerDep, service: ServiceDep
) -> None:
    """Remove a user from a project, or leave it; what the user saved there stays."""
    await service.remove_member(principal, project_id, user_id)


@router.post(
    "/{project_id}/transfer",
    responses=responses_for(
        ProjectNotFoundError, UserNotFoundError, InsufficientRoleError, *IDEMPOTENCY_ERRORS
    ),
)
async def transfer_project(
    project_id: OwnId,
    body: ProjectTransfer,
    principal: ManagerDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
) -> ProjectTransferred:
    """Transfer a project to another owner; the previous owner becomes an admin."""
    return await service.transfer(principal, project_id, body, key=key)


@router.delete(
    "/{project_id}",
    responses=responses_for(ProjectNotFoundError, InsufficientRoleError, ConfirmationRequiredError),
)
async def delete_project(
    project_id: OwnId,
    query: Annotated[ErasureQuery, Query()],
    principal: ManagerDep,
    erasure: ErasureDep,
) -> Receipt:
    """Delete a project with its members and what was shared there, for good."""
    return await erasure.delete(principal, "project", project_id, query)
