"""Whose a folder is, and who may put something into it."""

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.repository import refuse_disabled
from app.identity.agents.repository import AgentRepository
from app.identity.projects.errors import ReadOnlyMemberError
from app.identity.projects.policy import WRITING
from app.identity.projects.repository import ProjectRepository
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import InsufficientScopeError, KeyRestrictedError
from app.identity.users.repository import UserRepository
from app.identity.users.service import resolve_subject
from app.memory.memories.errors import ScopeRequiresError
from app.prompting.documents.models import Folder
from app.prompting.documents.repository import FolderRepository


def owner_of(
    principal: Principal,
    scope: str,
    *,
    user_id: str | None,
    project_id: str | None,
    agent_id: str | None,
) -> str:
    """The id that a scope hangs on; those of the key where the request names none.

    Raises:
        ScopeRequiresError: it is missing.
        UserNotFoundError, AgentNotFoundError: the key is another user's or agent's.

    """
    found: str | None = project_id
    if scope == "user":
        found, _ = resolve_subject(principal.access, user_id, None)
    elif scope == "agent":
        _, found = resolve_subject(principal.access, None, agent_id)
    if found is None:
        raise ScopeRequiresError(scope, f"{scope}_id")
    return found


async def refuse_outsiders(
    db: AsyncSession, principal: Principal, scope: str, scope_id: str
) -> None:
    """Whether the caller may write for a user, a project or an agent: as for memories.

    Raises:
        UserNotFoundError, ProjectNotFoundError, AgentNotFoundError: not for this caller.
        InsufficientScopeError: knowledge of an agent needs admin.
        ReadOnlyMemberError: the user may only read in the project.
        DisabledError: the user or the agent is disabled.

    """
    access = principal.access
    if scope == "agent":
        if not principal.may("admin"):
            raise InsufficientScopeError("admin")
        refuse_disabled(await AgentRepository(db, access).get(scope_id), None)
    elif scope == "user":
        refuse_disabled(None, await UserRepository(db, access).get(scope_id))
    else:
        projects = ProjectRepository(db, access)
        await projects.get(scope_id)
        if access.user_id is not None:
            role = await projects.role_of(scope_id, access.user_id)
            if role not in WRITING:
                raise ReadOnlyMemberError(scope_id, access.user_id)


async def writable_folder(
    db: AsyncSession, principal: Principal, folder_id: str, *, lock: bool = False
) -> Folder:
    """A folder that the caller may change and fill.

    Args:
        lock: one at a time, and nobody erases whose it is meanwhile.

    Raises:
        FolderNotFoundError: there is none for this caller.
        KeyRestrictedError: it is only attached to the key's agent.
        and what `refuse_outsiders` raises.

    """
    folders = FolderRepository(db, principal.access)
    folder = await folders.get(folder_id)
    if lock:
        await folders.hold_owner(folder.scope, folder.scope_id)
        folder = await folders.get(folder_id, lock=True)
    if not await folders.is_own(folder_id):
        raise KeyRestrictedError
    await refuse_outsiders(db, principal, folder.scope, folder.scope_id)
    return folder
