"""/v1/agents"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from app.agents.errors import AgentNotFoundError, InvalidConfigError
from app.agents.schemas import AgentCreate, AgentPatch, AgentQuery, AgentRead
from app.agents.service import AgentService
from app.errors import IdTakenError, VersionConflictError
from app.llm.errors import UnknownEmbedderError, UnknownModelError
from app.tenants.principal import KEY_ERRORS, ONCE_ERRORS, OnceDep, ReaderDep, WriterDep
from app.web.dependencies import RuntimeDep, VersionDep
from app.web.fields import Id
from app.web.pagination import InvalidCursorError, Page
from app.web.problems import responses_for

router = APIRouter(prefix="/v1/agents", tags=["agents"], responses=responses_for(*KEY_ERRORS))


async def get_service(runtime: RuntimeDep) -> AgentService:
    return AgentService(runtime.database, runtime.catalogue, runtime.models)


ServiceDep = Annotated[AgentService, Depends(get_service)]


@router.post(
    "",
    status_code=201,
    responses=responses_for(
        IdTakenError, UnknownEmbedderError, UnknownModelError, InvalidConfigError, *ONCE_ERRORS
    ),
)
async def add_agent(
    body: AgentCreate, principal: WriterDep, service: ServiceDep, once: OnceDep
) -> AgentRead:
    """Create an agent."""
    return await service.add(principal, body, once=once)


@router.get("", responses=responses_for(InvalidCursorError))
async def list_agents(
    query: Annotated[AgentQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[AgentRead]:
    """List agents, newest first."""
    return await service.list(principal, query)


@router.get("/{agent_id}", responses=responses_for(AgentNotFoundError))
async def get_agent(agent_id: Id, principal: ReaderDep, service: ServiceDep) -> AgentRead:
    """One agent."""
    return await service.get(principal, agent_id)


@router.patch(
    "/{agent_id}",
    responses=responses_for(
        AgentNotFoundError,
        VersionConflictError,
        UnknownEmbedderError,
        UnknownModelError,
        InvalidConfigError,
    ),
)
async def patch_agent(
    agent_id: Id,
    body: AgentPatch,
    principal: WriterDep,
    service: ServiceDep,
    version: VersionDep,
) -> AgentRead:
    """Change an agent; what is left out stays."""
    return await service.patch(principal, agent_id, body, expected=version)
