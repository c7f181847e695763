"""SQL for folders and the agents that read them, and which folders a caller may see."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, delete, func, or_, select, true
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.models import Session
from app.errors import IdTakenError
from app.identity.agents.repository import Agent
from app.identity.projects.repository import Project, visible_project_ids
from app.identity.tenants.access import Access
from app.identity.users.repository import User, visible_user_ids
from app.platform.database.base import after, apply_changes
from app.platform.database.failures import conflicts
from app.prompting.documents.errors import FolderNotAttachedError, FolderNotFoundError
from app.prompting.documents.models import AgentFolder, File, Folder, Passage

_OWNERS: Any = {"user": User.user_id, "project": Project.project_id, "agent": Agent.agent_id}


def attached_to(access: Access, agent_id: str) -> Select[str]:
    """Ids of the folders that an agent reads besides its own."""
    return select(AgentFolder.folder_id).where(
        AgentFolder.tenant_id == access.tenant_id, AgentFolder.agent_id == agent_id
    )


def at_home(access: Access) -> ColumnElement[bool]:
    """Which folders are the caller's own: of its users, their projects, its agent.

    For a user's key the folders of every agent of the tenant, as with memories.
    """
    if not access.restricted:
        return true()
    agents: ColumnElement[bool] = true()
    if access.agent_id is not None:
        agents = Folder.agent_id == access.agent_id
    return or_(
        and_(Folder.scope == "user", Folder.user_id.in_(visible_user_ids(access))),
        and_(Folder.scope == "project", Folder.project_id.in_(visible_project_ids(access))),
        and_(Folder.scope == "agent", agents),
    )


def visible(access: Access) -> ColumnElement[bool]:
    """Which folders a caller may read: as memories, and those attached to its agents.

    These are the key's agent, or for a user's key the user's home agent and those with a session.
    """
    if not access.restricted:
        return true()
    if access.agent_id is not None:
        attached = attached_to(access, access.agent_id)
    else:
        attached = _attached_to_agents_of(access)
    return or_(at_home(access), Folder.folder_id.in_(attached))


def _attached_to_agents_of(access: Access) -> Select[str]:
    """Ids of the folders that agents of the caller's user read besides their own."""
    homes = select(User.agent_id).where(
        User.tenant_id == access.tenant_id, User.user_id.in_(visible_user_ids(access))
    )
    sessions = select(Session.agent_id).where(
        Session.tenant_id == access.tenant_id, Session.user_id == access.user_id
    )
    return select(AgentFolder.folder_id).where(
        AgentFolder.tenant_id == access.tenant_id,
        or_(AgentFolder.agent_id.in_(homes), AgentFolder.agent_id.in_(sessions)),
    )


def findable() -> ColumnElement[bool]:
    """Whether a passage can be found: those of a file only once all of them are stored."""
    return Passage.ordinal >= 0


class FolderRepository:
    """Folders a caller may see. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    def _seen(self, condition: ColumnElement[bool]) -> Select[Folder]:
        return select(Folder).where(Folder.tenant_id == self._access.tenant_id, condition)

    async def add(self, folder: Folder) -> None:
        """Insert `folder` now, so that a taken id is reported here. Raises IdTakenError."""
        folder.tenant_id = self._access.tenant_id
        self._db.add(folder)
        with conflicts({"folders_pkey": IdTakenError("folder_id", folder.folder_id)}):
            await self._db.flush()
        await self._db.refresh(folder)

    async def get(self, folder_id: str, *, lock: bool = False) -> Folder:
        """A folder that the caller may read.

        Args:
            lock: lock its row, and read it as it is after the lock was granted.

        Raises:
            FolderNotFoundError: there is none for this caller.

        """
        statement = self._seen(visible(self._access)).where(Folder.folder_id == folder_id)
        if lock:
            statement = statement.with_for_update(of=Folder, key_share=True)
        folder = await self._db.scalar(statement.execution_options(populate_existing=True))
        if folder is None:
            raise FolderNotFoundError(folder_id)
        return folder

    async def hold_owner(self, scope: str, scope_id: str) -> None:
        """Keep the owner of a folder or a memory from being erased while the transaction runs.

        Call it before folders, files and memories are locked: an erasure locks in that order. An
        owner that is gone already is no error.
        """
        owner = _OWNERS[scope]
        await self._db.execute(
            select(owner)
            .where(owner.class_.tenant_id == self._access.tenant_id, owner == scope_id)
            .with_for_update(read=True, key_share=True)
        )

    async def is_own(self, folder_id: str, *, user_id: str | None = None) -> bool:
        """Whether the folder is the caller's own, not only attached to its agent.

        Args:
            user_id: whether it is this user's, too.

        """
        statement = self._seen(at_home(self._access)).where(Folder.folder_id == folder_id)
        if user_id is not None:
            statement = statement.where(Folder.user_id == user_id)
        return await self._db.scalar(statement.with_only_columns(Folder.folder_id)) is not None

    async def list_folders(
        self,
        *,
        start: tuple[datetime, str] | None,
        limit: int,
        equal: Mapping[str, str],
        agent_id: str | None,
    ) -> Sequence[Folder]:
        """Folders, newest first; one more than `limit` when a further page follows.

        Args:
            start: creation time and id of the last folder of the previous page.
            limit: size of a page.
            equal: column to the value it must have.
            agent_id: only folders that this agent reads.

        """
        statement = self._seen(visible(self._access))
        for name, value in equal.items():
            statement = statement.where(getattr(Folder, name) == value)
        if agent_id is not None:
            statement = statement.where(self._read_by(agent_id))
        columns = (Folder.create_time, Folder.folder_id)
        rows = await self._db.scalars(
            after(statement, columns, start=start, descending=True, limit=limit)
        )
        return rows.all()

    async def ids(
        self,
        *,
        among: Collection[str] | None,
        user_id: str | None,
        agent_id: str | None,
        project_id: str | None,
    ) -> Sequence[str]:
        """Ids of the visible folders for a search, in no order.

        Args:
            among: only these ids; None for any.
            user_id, agent_id, project_id: folders of any of these; all when none is given.

        """
        statement = select(Folder.folder_id).where(
            Folder.tenant_id == self._access.tenant_id, visible(self._access)
        )
        if among is not None:
            statement = statement.where(Folder.folder_id.in_(among))
        named: list[ColumnElement[bool]] = []
        if user_id is not None:
            named.append(and_(Folder.scope == "user", Folder.user_id == user_id))
        if project_id is not None:
            named.append(and_(Folder.scope == "project", Folder.project_id == project_id))
        if agent_id is not None:
            named.append(self._read_by(agent_id))
        if named:
            statement = statement.where(or_(*named))
        return (await self._db.scalars(statement)).all()

    def _read_by(self, agent_id: str) -> ColumnElement[bool]:
        return or_(
            and_(Folder.scope == "agent", Folder.agent_id == agent_id),
            Folder.folder_id.in_(attached_to(self._access, agent_id)),
        )

    async def patch(
        self, folder: Folder, changes: Mapping[str, Any], *, expected: int | None
    ) -> None:
        """Change a locked folder. Raises VersionConflictError when it has a different version."""
        await apply_changes(self._db, folder, changes, expected=expected)

    async def delete(self, folder_id: str) -> None:
        """Delete a folder with its files and passages."""
        await self._db.execute(
            delete(Folder)
            .where(Folder.tenant_id == self._access.tenant_id, Folder.folder_id == folder_id)
            .execution_options(synchronize_session=False)
        )

    async def attach(self, folder_id: str, agent_id: str) -> None:
        """Let an agent read a folder; safe to repeat."""
        await self._db.execute(
            insert(AgentFolder)
            .values(tenant_id=self._access.tenant_id, agent_id=agent_id, folder_id=folder_id)
            .on_conflict_do_nothing()
        )

    async def detach(self, folder_id: str, agent_id: str) -> None:
        """Detach a folder from an agent. Raises FolderNotAttachedError when it was not attached."""
        gone = await self._db.execute(
            delete(AgentFolder)
            .where(
                AgentFolder.tenant_id == self._access.tenant_id,
                AgentFolder.folder_id == folder_id,
                AgentFolder.agent_id == agent_id,
            )
            .returning(AgentFolder.agent_id)
        )
        if gone.first() is None:
            raise FolderNotAttachedError(folder_id, agent_id)

    async def counts(self, folder_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """By folder: its numbers of files and findable passages, and the ids of further agents."""
        found: dict[str, dict[str, Any]] = {
            folder_id: {"file_count": 0, "passage_count": 0, "agent_ids": []}
            for folder_id in folder_ids
        }
        tenant_id = self._access.tenant_id
        files = (
            select(File.folder_id, func.count())
            .where(File.tenant_id == tenant_id, File.folder_id.in_(folder_ids))
            .group_by(File.folder_id)
        )
        for folder_id, count in await self._db.execute(files):
            found[folder_id]["file_count"] = count
        passages = (
            select(Passage.folder_id, func.count())
            .where(Passage.tenant_id == tenant_id, Passage.folder_id.in_(folder_ids), findable())
            .group_by(Passage.folder_id)
        )
        for folder_id, count in await self._db.execute(passages):
            found[folder_id]["passage_count"] = count
        agents = (
            select(AgentFolder.folder_id, AgentFolder.agent_id)
            .where(AgentFolder.tenant_id == tenant_id, AgentFolder.folder_id.in_(folder_ids))
            .order_by(AgentFolder.agent_id)
        )
        if self._access.agent_id is not None:
            agents = agents.where(AgentFolder.agent_id == self._access.agent_id)
        for folder_id, agent_id in await self._db.execute(agents):
            found[folder_id]["agent_ids"].append(agent_id)
        return found
