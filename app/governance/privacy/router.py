"""DELETE of what holds other things, /v1/agents, /v1/users, /v1/projects, /v1/sessions, and the
receipts: /v1/erasures.
"""

from typing import Annotated

from fastapi import APIRouter, Query

from app.conversation.sessions.errors import SessionNotFoundError
from app.errors import ConfirmationRequiredError
from app.governance.privacy.errors import AgentInUseError
from app.governance.privacy.schemas import (
    ErasureListQuery,
    ErasureQuery,
    ErasureRead,
    Receipt,
    UserErasureQuery,
)
from app.governance.privacy.service import ErasureService
from app.identity.agents.errors import AgentNotFoundError
from app.identity.projects.errors import InsufficientRoleError, ProjectNotFoundError
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.tenants.principal import KEY_ERRORS, AdminDep, ManagerDep, WriterDep
from app.identity.users.errors import UserNotFoundError
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id
from app.platform.values.pagination import InvalidCursorError, Page

router = APIRouter(responses=responses_for(*KEY_ERRORS))


ServiceDep = Annotated[ErasureService, provided(ErasureService)]
QueryDep = Annotated[ErasureQuery, Query()]
UserQueryDep = Annotated[UserErasureQuery, Query()]


@router.delete(
    "/v1/agents/{agent_id}",
    tags=["agents"],
    responses=responses_for(AgentNotFoundError, AgentInUseError, ConfirmationRequiredError),
)
async def delete_agent(
    agent_id: Id, query: QueryDep, principal: AdminDep, service: ServiceDep
) -> Receipt:
    """Delete an agent with its sessions and private memories, for good."""
    return await service.delete(principal, "agent", agent_id, query)


@router.delete(
    "/v1/users/{user_id}",
    tags=["users"],
    responses=responses_for(UserNotFoundError, ConfirmationRequiredError),
)
async def delete_user(
    user_id: Id, query: UserQueryDep, principal: AdminDep, service: ServiceDep
) -> Receipt:
    """Delete a person with every word, for good."""
    return await service.delete(principal, "user", user_id, query)


@router.delete(
    "/v1/projects/{project_id}",
    tags=["projects"],
    responses=responses_for(ProjectNotFoundError, InsufficientRoleError, ConfirmationRequiredError),
)
async def delete_project(
    project_id: Id, query: QueryDep, principal: ManagerDep, service: ServiceDep
) -> Receipt:
    """Delete a project with its members and what was shared there, for good."""
    return await service.delete(principal, "project", project_id, query)


@router.delete(
    "/v1/sessions/{session_id}",
    tags=["sessions"],
    responses=responses_for(SessionNotFoundError, ConfirmationRequiredError),
)
async def delete_session(
    session_id: Id, query: QueryDep, principal: WriterDep, service: ServiceDep
) -> Receipt:
    """Delete a session with its messages and its own memories, for good."""
    return await service.delete(principal, "session", session_id, query)


@router.get(
    "/v1/erasures",
    tags=["forgetting"],
    responses=responses_for(KeyRestrictedError, InvalidCursorError),
)
async def list_erasures(
    query: Annotated[ErasureListQuery, Query()], principal: AdminDep, service: ServiceDep
) -> Page[ErasureRead]:
    """List receipts of what was erased, newest first; `kind` and `id` find those of one id."""
    return await service.receipts(principal, query)
