"""/v1/agents and /v1/processors."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.errors import ConfirmationRequiredError, IdTakenError, VersionConflictError
from app.identity.agents.config import Processing
from app.identity.agents.errors import (
    AgentInUseError,
    AgentNotFoundError,
    BlockLimitError,
    BlockNotFoundError,
    BlockOfSessionError,
    InvalidConfigError,
    LabelTakenError,
    TemplateBoundError,
)
from app.identity.agents.schemas import (
    AgentEquip,
    AgentPatch,
    AgentQuery,
    AgentRead,
    ProcessorList,
    ProcessorRead,
)
from app.identity.agents.service import AgentCreation, AgentService
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    AdminDep,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.tenants.schemas import Eraser, ErasureQuery, Receipt
from app.language.llm.errors import UnknownEmbedderError, UnknownModelError
from app.platform.http.dependencies import VersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import OwnId
from app.platform.values.pagination import InvalidCursorError, Page
from app.platform.work.unit import MemoryDisabledError

router = APIRouter(prefix="/v1/agents", tags=["agents"], responses=responses_for(*KEY_ERRORS))
processors_router = APIRouter(
    prefix="/v1/processors", tags=["operations"], responses=responses_for(*KEY_ERRORS)
)


ServiceDep = Annotated[AgentService, provided(AgentService)]
CreationDep = Annotated[AgentCreation, provided(AgentCreation)]
ErasureDep = Annotated[Eraser, provided(Eraser)]


@router.post(
    "",
    status_code=201,
    responses=responses_for(
        BlockNotFoundError,
        IdTakenError,
        LabelTakenError,
        BlockOfSessionError,
        TemplateBoundError,
        UnknownEmbedderError,
        UnknownModelError,
        InvalidConfigError,
        BlockLimitError,
        MemoryDisabledError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def add_agent(
    body: AgentEquip, principal: WriterDep, service: CreationDep, key: IdempotencyKeyDep
) -> AgentRead:
    """Create an agent with its first blocks."""
    return await service.add(principal, body, key=key)


@router.get("", responses=responses_for(InvalidCursorError))
async def list_agents(
    query: Annotated[AgentQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[AgentRead]:
    """List agents, newest first."""
    return await service.list_agents(principal, query)


@router.get("/{agent_id}", responses=responses_for(AgentNotFoundError))
async def get_agent(agent_id: OwnId, principal: ReaderDep, service: ServiceDep) -> AgentRead:
    """Get one agent."""
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
async def update_agent(
    agent_id: OwnId,
    body: AgentPatch,
    principal: WriterDep,
    service: ServiceDep,
    version: VersionDep,
) -> AgentRead:
    """Change an agent; omitted fields stay."""
    return await service.patch(principal, agent_id, body, expected=version)


@router.delete(
    "/{agent_id}",
    responses=responses_for(AgentNotFoundError, AgentInUseError, ConfirmationRequiredError),
)
async def delete_agent(
    agent_id: OwnId,
    query: Annotated[ErasureQuery, Query()],
    principal: AdminDep,
    erasure: ErasureDep,
) -> Receipt:
    """Delete an agent with its sessions and private memories, for good."""
    return await erasure.delete(principal, "agent", agent_id, query)


@processors_router.get("")
async def list_processors(
    _principal: AdminDep, processing: Annotated[Processing, provided(Processing)]
) -> ProcessorList:
    """List the processors that this deployment allows, in the order in which they run."""
    loaded = [processor.loaded for processor in processing.allowed.runners.values()]
    return ProcessorList(items=[ProcessorRead.of(processor) for processor in loaded])
