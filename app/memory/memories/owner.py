"""The owner of a memory: its scope and ids, checked and made on first use; and what a caller may do
to a memory of that owner.
"""

from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.repository import Participants, SessionRepository, refuse_disabled
from app.identity.agents.repository import AgentRepository
from app.identity.projects.policy import WRITING, Action, Visibility, allows
from app.identity.projects.repository import ProjectRepository
from app.identity.projects.schemas import ProjectNotFoundError, ReadOnlyMemberError
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import InsufficientScopeError
from app.identity.users.repository import UserRepository
from app.identity.users.schemas import UserRequiredError
from app.identity.users.service import resolve_subject
from app.memory.memories.errors import (
    NotYourMemoryError,
    ScopeRequiresError,
    SharedByAllUsersError,
)
from app.memory.memories.models import Memory
from app.memory.memories.schemas import MemoryCreate
from app.platform.work.unit import MemoryPausedError


@dataclass(frozen=True, slots=True)
class MemoryOwner:
    """Columns of a memory; together with the tenant they are its bucket."""

    scope: str
    scope_id: str
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    project_id: str | None

    def columns(self) -> dict[str, Any]:
        return {
            "scope": self.scope,
            "scope_id": self.scope_id,
            "user_id": self.user_id,
            "agent_id": self.agent_id,
            "session_id": self.session_id,
            "project_id": self.project_id,
        }


def requested_owner(principal: Principal, body: MemoryCreate) -> MemoryOwner:
    """The owner that a request names, by the request alone.

    Raises:
        UserRequiredError, ScopeRequiresError: an id is missing.
        SharedByAllUsersError: knowledge of an agent that names a user.
        UserNotFoundError, AgentNotFoundError: the key is another user's or agent's.
        InsufficientScopeError: knowledge shared by all users of an agent needs admin.

    """
    scope = body.scope or ("session" if body.tier == "short" and body.session_id else "user")
    user_id, agent_id = resolve_subject(principal.access, body.user_id, body.agent_id)
    if scope == "agent":
        if not principal.may("admin"):
            raise InsufficientScopeError("admin", acting=principal.acting)
        if body.user_id is not None:
            raise SharedByAllUsersError
        user_id = None
    elif user_id is None and scope != "project":
        raise UserRequiredError
    ids = {
        "user": user_id,
        "session": body.session_id,
        "project": body.project_id,
        "agent": agent_id,
    }
    scope_id = ids[scope]
    if scope_id is None:
        raise ScopeRequiresError(scope, f"{scope}_id")
    return MemoryOwner(scope, scope_id, user_id, agent_id, body.session_id, body.project_id)


def user_owner(principal: Principal, user_id: str, agent_id: str | None = None) -> MemoryOwner:
    """The owner of what is known about a user.

    Raises:
        UserNotFoundError, AgentNotFoundError: the key is another user's or agent's.

    """
    _, agent_id = resolve_subject(principal.access, user_id, agent_id)
    return MemoryOwner("user", user_id, user_id, agent_id, None, None)


async def ensure_owner(
    db: AsyncSession, principal: Principal, owner: MemoryOwner, *, create: bool
) -> None:
    """Make sure that every part of an owner exists, is visible to the caller and may be written to.

    Raises:
        UserNotFoundError, AgentNotFoundError, SessionNotFoundError, ProjectNotFoundError,
        IdTakenError, SessionMismatchError: one is missing or not the caller's.
        ReadOnlyMemberError: the user is a viewer of the project.
        DisabledError, MemoryPausedError: one is switched off.

    """
    access = principal.access
    agents = AgentRepository(db, access)
    agent = None
    if owner.agent_id is not None:
        agent = await agents.ensure(owner.agent_id, create=create, creator=principal.key_id)
    if owner.project_id is not None:
        await _check_project(db, principal, owner.project_id, owner)
    if owner.session_id is not None:
        opened = await SessionRepository(db, access).open_for_append(
            owner.session_id,
            Participants(owner.user_id, owner.agent_id),
            create=create,
            creator=principal.key_id,
        )
        session = opened.session
        if not session.memory_enabled:
            raise MemoryPausedError("session", session.session_id)
        # An agent's key may talk to a guest of its agent, but saves memories only of users at
        # home there: a guest's it could not read afterwards.
        await UserRepository(db, access).get(session.user_id)
        agent = agent or opened.agent
    elif owner.user_id is not None:
        users = UserRepository(db, access)
        user = await users.find(owner.user_id)
        if user is None:
            home = agent or await agents.ensure(None, create=create, creator=principal.key_id)
            user = await users.ensure(owner.user_id, agent_id=home.agent_id, create=create)
        home = agent or await agents.get(user.agent_id)
        refuse_disabled(home, user)
        agent = agent or home
    if agent is not None:
        refuse_disabled(agent, None)
        if not agent.memory_enabled:
            raise MemoryPausedError("agent", agent.agent_id)


async def permit(db: AsyncSession, principal: Principal, row: Memory, action: Action) -> None:
    """Check that the caller may do this to a memory; not every reader may change it.

    Raises:
        InsufficientScopeError: knowledge of an agent changes with an admin key.
        ReadOnlyMemberError: the user may only read in the project.
        NotYourMemoryError: it is another user's, and the user no owner or admin of its project.

    """
    access = principal.access
    if row.scope == "agent" and not principal.may("admin"):
        raise InsufficientScopeError("admin", acting=principal.acting)
    if access.user_id is None:
        return
    own = row.user_id == access.user_id
    if row.scope == "project":
        role = await ProjectRepository(db, access).membership(row.scope_id)
        visibility = cast("Visibility", row.visibility)
        if allows(role, action, visibility=visibility, own=own):
            return
        if own or role == "viewer":
            raise ReadOnlyMemberError(row.scope_id, access.user_id)
    elif own:
        return
    raise NotYourMemoryError(row.memory_id)


async def refuse_switched_off(
    db: AsyncSession, principal: Principal, row: Memory, *, remembering: bool
) -> None:
    """Check that a memory's user, agent and session are not switched off.

    Args:
        remembering: the change brings new content, which a pause keeps out.

    Raises:
        DisabledError, MemoryPausedError: one of them is switched off.

    """
    access = principal.access
    user = await UserRepository(db, access).find(row.user_id) if row.user_id else None
    agent_id = row.agent_id or (user.agent_id if user else None)
    agent = await AgentRepository(db, access).find(agent_id) if agent_id else None
    session = await SessionRepository(db, access).find(row.session_id) if row.session_id else None
    refuse_disabled(agent, user)
    if remembering and agent is not None and not agent.memory_enabled:
        raise MemoryPausedError("agent", agent.agent_id)
    if remembering and session is not None and not session.memory_enabled:
        raise MemoryPausedError("session", session.session_id)


async def _check_project(
    db: AsyncSession, principal: Principal, project_id: str, owner: MemoryOwner
) -> None:
    """Check that an owner's user may save in a project.

    Raises:
        ProjectNotFoundError: there is none for this caller, or the user is no member.
        ReadOnlyMemberError: the user is a viewer.

    """
    projects = ProjectRepository(db, principal.access)
    await projects.get(project_id)
    if owner.user_id is None:
        return
    role = await projects.role_of(project_id, owner.user_id)
    if role is None:
        raise ProjectNotFoundError(project_id)
    if owner.scope == "project" and role not in WRITING:
        raise ReadOnlyMemberError(project_id, owner.user_id)
