"""/v1/tools"""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from app.conversation.sessions.schemas import SessionMismatchError, SessionNotFoundError
from app.identity.agents.errors import AgentNotFoundError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
)
from app.language.llm.errors import EmbeddingUnavailableError
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.prompting.tools.schemas import ToolAnswer, ToolCall, ToolName, ToolsQuery, ToolsShown
from app.prompting.tools.service import ToolService

router = APIRouter(prefix="/v1/tools", tags=["tools"], responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[ToolService, provided(ToolService)]


@router.get(
    "", responses=responses_for(AgentNotFoundError, SessionNotFoundError, SessionMismatchError)
)
async def list_tools(
    query: Annotated[ToolsQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> ToolsShown:
    """The tools that a model may call, in the format of its provider."""
    return await service.list_tools(principal, query)


@router.post(
    "/{name}/call",
    responses=responses_for(SessionNotFoundError, EmbeddingUnavailableError, *IDEMPOTENCY_ERRORS),
)
async def call_tool(
    name: Annotated[ToolName, Path(description="As the model called it.")],
    body: ToolCall,
    principal: ReaderDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
) -> ToolAnswer:
    """Call a tool for a model; failures come back as text for it, with `ok` false."""
    return await service.call(principal, name, body, key=key)
