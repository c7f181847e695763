"""/v1/tools"""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from app.conversation.sessions.errors import SessionMismatchError, SessionNotFoundError
from app.identity.agents.errors import AgentNotFoundError
from app.identity.tenants.principal import KEY_ERRORS, ONCE_ERRORS, OnceDep, ReaderDep
from app.language.llm.errors import EmbeddingUnavailableError
from app.memory.memories.service import MemoryService
from app.platform.http.dependencies import RuntimeDep
from app.platform.http.problems import responses_for
from app.prompting.blocks.editing import BlockEditing
from app.prompting.tools.handlers import ToolHandlers
from app.prompting.tools.schemas import ToolAnswer, ToolCall, ToolName, ToolsQuery, ToolsShown
from app.prompting.tools.service import ToolService

router = APIRouter(prefix="/v1/tools", tags=["tools"], responses=responses_for(*KEY_ERRORS))


async def get_service(runtime: RuntimeDep) -> ToolService:
    blocks = BlockEditing(runtime.database, runtime.switches)
    handlers = ToolHandlers(
        runtime.saving,
        MemoryService(runtime.database),
        runtime.search,
        runtime.message_search,
        runtime.passages,
        blocks,
        runtime.injections,
        runtime.now,
    )
    return ToolService(runtime.database, handlers, blocks, runtime.counter)


ServiceDep = Annotated[ToolService, Depends(get_service)]


@router.get(
    "", responses=responses_for(AgentNotFoundError, SessionNotFoundError, SessionMismatchError)
)
async def list_tools(
    query: Annotated[ToolsQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> ToolsShown:
    """The tools that a model may be told of, in the shape that its provider takes."""
    return await service.list(principal, query)


@router.post(
    "/{name}/call",
    responses=responses_for(SessionNotFoundError, EmbeddingUnavailableError, *ONCE_ERRORS),
)
async def call_tool(
    name: Annotated[ToolName, Path(description="As the model called it.")],
    body: ToolCall,
    principal: ReaderDep,
    service: ServiceDep,
    once: OnceDep,
) -> ToolAnswer:
    """Call a tool for a model; failures come back as text for it, with `ok` false."""
    return await service.call(principal, name, body, once=once)
