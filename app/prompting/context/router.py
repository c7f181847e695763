"""POST /v1/sessions/{session_id}/context"""

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic_core import to_json

from app.conversation.messages.errors import InvalidStrategyError, UnknownStrategyError
from app.conversation.sessions.errors import SessionNotFoundError
from app.identity.tenants.principal import KEY_ERRORS, ReaderDep
from app.memory.memories.filters import InvalidFilterError
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.plugins.errors import ProcessorFailedError
from app.platform.values.fields import Id
from app.prompting.context.errors import LongPromptError, UnknownVariableError
from app.prompting.context.schemas import ContextAnswer, ContextRequest
from app.prompting.context.service import ContextService

router = APIRouter(
    prefix="/v1/sessions/{session_id}/context",
    tags=["context"],
    responses=responses_for(*KEY_ERRORS, SessionNotFoundError),
)


ServiceDep = Annotated[ContextService, provided(ContextService)]


@router.post(
    "",
    response_model=ContextAnswer,
    responses=responses_for(
        UnknownVariableError,
        LongPromptError,
        UnknownStrategyError,
        InvalidStrategyError,
        InvalidFilterError,
        ProcessorFailedError,
    ),
)
async def build_context(
    session_id: Id, body: ContextRequest, principal: ReaderDep, service: ServiceDep
) -> Response:
    """What the model should see next: instructions, what is remembered, and the conversation."""
    # Written out at once; the published schema is held against it by the tests.
    answer = await service.build(principal, session_id, body)
    return Response(to_json(answer), media_type="application/json")
