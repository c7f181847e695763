"""POST /v1/sessions/{session_id}/context and GET /v1/sessions/{session_id}/injections"""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic_core import to_json

from app.conversation.messages.errors import (
    InvalidStrategyError,
    UnknownStrategyError,
    WindowTooSmallError,
)
from app.conversation.sessions.schemas import SessionNotFoundError
from app.identity.tenants.principal import KEY_ERRORS, ReaderDep
from app.memory.memories.filters import InvalidFilterError
from app.platform.http.dependencies import provided
from app.platform.http.hot_route import HotRoute
from app.platform.http.problems import responses_for
from app.platform.plugins.runner import ProcessorFailedError
from app.platform.values.fields import OwnId
from app.platform.values.pagination import InvalidCursorError, Page
from app.prompting.context.schemas import (
    ContextAnswer,
    ContextRequest,
    InjectedContextRead,
    InjectionQuery,
)
from app.prompting.context.service import ContextService
from app.prompting.context.templates import LongPromptError, UnknownVariableError

router = APIRouter(
    prefix="/v1/sessions/{session_id}",
    tags=["context"],
    responses=responses_for(*KEY_ERRORS, SessionNotFoundError),
)


ServiceDep = Annotated[ContextService, provided(ContextService)]


async def build_context(
    session_id: OwnId, body: ContextRequest, principal: ReaderDep, service: ServiceDep
) -> Response:
    """What the model should see next: instructions, what is remembered, and the conversation."""
    # Written out at once; the published schema is held against it by the tests.
    answer = await service.build(principal, session_id, body)
    return Response(to_json(answer), media_type="application/json")


router.add_api_route(
    "/context",
    build_context,
    methods=["POST"],
    response_model=ContextAnswer,
    responses=responses_for(
        UnknownVariableError,
        LongPromptError,
        WindowTooSmallError,
        UnknownStrategyError,
        InvalidStrategyError,
        InvalidFilterError,
        ProcessorFailedError,
    ),
    route_class_override=HotRoute,
)


@router.get("/injections", responses=responses_for(InvalidCursorError))
async def list_injections(
    session_id: OwnId,
    query: Annotated[InjectionQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[InjectedContextRead]:
    """Which contents the session's contexts had, with their hashes, newest first.

    They are noted within about a second after the answer, and kept for 90 days.
    """
    return await service.injections(principal, session_id, query)
