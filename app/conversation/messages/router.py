"""/v1/sessions/{session_id}/messages and /v1/messages."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic_core import to_json

from app.conversation.messages.append_service import AppendService
from app.conversation.messages.errors import (
    InvalidStrategyError,
    MessageConflictError,
    MessageNotFoundError,
    MessageSetAsideError,
    OtherSearchError,
    ParentNotFoundError,
    UnknownStrategyError,
    UnknownToolCallError,
    WindowTooSmallError,
)
from app.conversation.messages.schemas import (
    DeleteAllQuery,
    MessageAppend,
    MessageAppended,
    MessageDelete,
    MessageQuery,
    MessageRead,
    MessagesDeleted,
    WindowRead,
    WindowTrim,
    WindowTrimmed,
)
from app.conversation.messages.search_schemas import (
    MessageSearch,
    MessageSearchAnswer,
    MessageSlice,
    MessageSliceQuery,
)
from app.conversation.messages.search_service import MessageSearchService
from app.conversation.messages.service import MessageService
from app.conversation.messages.window_service import WindowService
from app.conversation.sessions.schemas import (
    SessionEndedError,
    SessionMismatchError,
    SessionNotFoundError,
    StateTooLargeError,
)
from app.errors import (
    ConfirmationRequiredError,
    DisabledError,
    IdTakenError,
    SelectorRequiredError,
    VersionConflictError,
)
from app.identity.agents.errors import AgentNotFoundError
from app.identity.projects.schemas import ProjectNotFoundError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.users.schemas import UserNotFoundError, UserRequiredError
from app.language.llm.errors import EmbeddingUnavailableError
from app.platform.http.dependencies import provided
from app.platform.http.hot_route import HotRoute
from app.platform.http.problems import responses_for
from app.platform.plugins.runner import ProcessorFailedError
from app.platform.values.fields import Id, OwnId
from app.platform.values.pagination import InvalidCursorError, Page
from app.platform.work.unit import MemoryDisabledError

router = APIRouter(
    prefix="/v1/sessions/{session_id}/messages",
    tags=["messages"],
    responses=responses_for(*KEY_ERRORS, SessionNotFoundError),
)

window_router = APIRouter(
    prefix="/v1/sessions/{session_id}/window",
    tags=["messages"],
    responses=responses_for(*KEY_ERRORS, SessionNotFoundError),
)

anywhere_router = APIRouter(
    prefix="/v1/messages", tags=["messages"], responses=responses_for(*KEY_ERRORS)
)


ServiceDep = Annotated[MessageService, provided(MessageService)]
AppendsDep = Annotated[AppendService, provided(AppendService)]
WindowsDep = Annotated[WindowService, provided(WindowService)]
SearchDep = Annotated[MessageSearchService, provided(MessageSearchService)]


@anywhere_router.post(
    "/search",
    response_model=MessageSearchAnswer,
    responses=responses_for(
        SelectorRequiredError,
        OtherSearchError,
        UserNotFoundError,
        AgentNotFoundError,
        EmbeddingUnavailableError,
    ),
)
async def search_messages(
    body: MessageSearch, principal: ReaderDep, service: SearchDep
) -> Response:
    """Find what was said, best first."""
    # Written out at once; the published schema is held against it by the tests.
    return Response(to_json(await service.search(principal, body)), media_type="application/json")


@anywhere_router.get("/{message_id}", responses=responses_for(MessageNotFoundError))
async def get_message_anywhere(
    message_id: Id,
    query: Annotated[MessageSliceQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> MessageSlice:
    """Get one message, or a stretch of its text, when its session is not known."""
    return await service.get_anywhere(principal, message_id, query)


async def append_messages(
    session_id: OwnId,
    body: MessageAppend,
    principal: WriterDep,
    service: AppendsDep,
    key: IdempotencyKeyDep,
) -> Response:
    """Append 1 to 100 messages; a new session is opened on first use."""
    appended = await service.append(principal, session_id, body, key=key)
    # Written out at once; the published schema is held against it by the tests.
    return Response(
        to_json(appended, by_alias=True),
        status_code=201 if appended.created else 200,
        media_type="application/json",
    )


router.add_api_route(
    "",
    append_messages,
    methods=["POST"],
    status_code=201,
    response_model=MessageAppended,
    responses={
        200: {"model": MessageAppended, "description": "All of them were there already."},
        **responses_for(
            SessionNotFoundError,
            UserRequiredError,
            UserNotFoundError,
            AgentNotFoundError,
            ProjectNotFoundError,
            SessionMismatchError,
            SessionEndedError,
            DisabledError,
            MessageConflictError,
            MessageSetAsideError,
            VersionConflictError,
            StateTooLargeError,
            IdTakenError,
            ParentNotFoundError,
            UnknownToolCallError,
            MemoryDisabledError,
            ProcessorFailedError,
            *IDEMPOTENCY_ERRORS,
        ),
    },
    route_class_override=HotRoute,
)


@router.get("", responses=responses_for(MessageNotFoundError, InvalidCursorError))
async def list_messages(
    session_id: OwnId,
    query: Annotated[MessageQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[MessageRead]:
    """List messages in the order of the conversation, or one branch of it."""
    return await service.list_messages(principal, session_id, query)


@router.get("/{message_id}", responses=responses_for(SessionNotFoundError, MessageNotFoundError))
async def get_message(
    session_id: OwnId,
    message_id: Id,
    query: Annotated[MessageSliceQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> MessageSlice:
    """Get one message, or a stretch of its text."""
    return await service.get(principal, session_id, message_id, query)


@router.post(
    "/delete",
    responses=responses_for(SessionNotFoundError, MessageNotFoundError, *IDEMPOTENCY_ERRORS),
)
async def delete_messages(
    session_id: OwnId,
    body: MessageDelete,
    principal: WriterDep,
    service: ServiceDep,
    key: IdempotencyKeyDep,
) -> MessagesDeleted:
    """Delete some messages, or the oldest ones, for good."""
    return await service.delete(principal, session_id, body, key=key)


@router.delete("/{message_id}", responses=responses_for(SessionNotFoundError, MessageNotFoundError))
async def delete_message(
    session_id: OwnId, message_id: Id, principal: WriterDep, service: ServiceDep
) -> MessagesDeleted:
    """Delete one message for good."""
    return await service.delete(principal, session_id, MessageDelete(message_ids=[message_id]))


@router.delete("", responses=responses_for(SessionNotFoundError, ConfirmationRequiredError))
async def delete_all_messages(
    session_id: OwnId,
    query: Annotated[DeleteAllQuery, Query()],
    principal: WriterDep,
    service: ServiceDep,
) -> MessagesDeleted:
    """Delete every message of a session for good."""
    return await service.delete_all(
        principal, session_id, confirm=query.confirm, dry_run=query.dry_run
    )


@window_router.get("", responses=responses_for(SessionNotFoundError))
async def get_window(session_id: OwnId, principal: ReaderDep, service: WindowsDep) -> WindowRead:
    """How full the window of a session is, and what holds for it."""
    return await service.get(principal, session_id)


@window_router.post(
    "/trim",
    responses=responses_for(
        SessionNotFoundError, UnknownStrategyError, InvalidStrategyError, WindowTooSmallError
    ),
)
async def trim_window(
    session_id: OwnId, body: WindowTrim, principal: ReaderDep, service: WindowsDep
) -> WindowTrimmed:
    """The newest valid part of the window for one call; writes nothing."""
    return await service.trim(principal, session_id, body)
