"""POST /v1/sessions/{session_id}/context"""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic_core import to_json

from app.context.errors import LongPromptError, UnknownVariableError
from app.context.schemas import ContextAnswer, ContextRequest
from app.context.service import ContextRules, ContextService, Noted
from app.memories.filters import InvalidFilterError
from app.messages.errors import InvalidStrategyError, UnknownStrategyError
from app.processors.errors import ProcessorFailedError
from app.runtime import Runtime
from app.sessions.errors import SessionNotFoundError
from app.tenants.principal import KEY_ERRORS, ReaderDep
from app.web.fields import Id
from app.web.problems import responses_for

router = APIRouter(
    prefix="/v1/sessions/{session_id}/context",
    tags=["context"],
    responses=responses_for(*KEY_ERRORS, SessionNotFoundError),
)


async def get_service(request: Request) -> ContextService:
    # Without `RuntimeDep` in between: this is a hot read.
    runtime: Runtime = request.state.runtime
    settings = runtime.settings
    return ContextService(
        runtime.database,
        runtime.recall,
        runtime.passages,
        runtime.counter,
        ContextRules(
            runtime.window_policy,
            settings.max_injection_tokens,
            settings.injection_enabled,
            runtime.window_strategies,
        ),
        Noted(runtime.injections, runtime.memory_use),
        runtime.now,
    )


ServiceDep = Annotated[ContextService, Depends(get_service)]


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
