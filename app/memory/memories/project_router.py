"""/v1/projects/{project_id}/memories"""

from typing import Annotated

from fastapi import APIRouter, Query

from app.identity.projects.errors import InsufficientRoleError, ProjectNotFoundError
from app.identity.tenants.principal import KEY_ERRORS, ReaderDep
from app.memory.memories.record_schemas import ProjectItemQuery, ProjectItemRead
from app.memory.memories.service import MemoryService
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id
from app.platform.values.pagination import InvalidCursorError, Page

router = APIRouter(
    prefix="/v1/projects/{project_id}/memories",
    tags=["projects"],
    responses=responses_for(*KEY_ERRORS),
)


@router.get(
    "", responses=responses_for(ProjectNotFoundError, InsufficientRoleError, InvalidCursorError)
)
async def list_project_memories(
    project_id: Id,
    query: Annotated[ProjectItemQuery, Query()],
    principal: ReaderDep,
    service: Annotated[MemoryService, provided(MemoryService)],
) -> Page[ProjectItemRead]:
    """List what a project holds, without what it says, newest first; for owners and admins."""
    return await service.held(principal, project_id, query)
