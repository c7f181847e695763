"""/v1/projects/{project_id}/memories"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from app.memories.record_schemas import ProjectItemQuery, ProjectItemRead
from app.memories.service import MemoryService
from app.projects.errors import InsufficientRoleError, ProjectNotFoundError
from app.tenants.principal import KEY_ERRORS, ReaderDep
from app.web.dependencies import RuntimeDep
from app.web.fields import Id
from app.web.pagination import InvalidCursorError, Page
from app.web.problems import responses_for

router = APIRouter(
    prefix="/v1/projects/{project_id}/memories",
    tags=["projects"],
    responses=responses_for(*KEY_ERRORS),
)


async def get_service(runtime: RuntimeDep) -> MemoryService:
    return MemoryService(runtime.database)


@router.get(
    "", responses=responses_for(ProjectNotFoundError, InsufficientRoleError, InvalidCursorError)
)
async def list_project_memories(
    project_id: Id,
    query: Annotated[ProjectItemQuery, Query()],
    principal: ReaderDep,
    service: Annotated[MemoryService, Depends(get_service)],
) -> Page[ProjectItemRead]:
    """List what a project holds, without what it says, newest first; for owners and admins."""
    return await service.held(principal, project_id, query)
