"""Use cases of folders, and who owns a folder and may add to it."""

from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.repository import refuse_disabled
from app.errors import ConfirmationRequiredError
from app.identity.agents.repository import AgentRepository
from app.identity.projects.policy import WRITING
from app.identity.projects.repository import ProjectRepository
from app.identity.projects.schemas import ReadOnlyMemberError
from app.identity.tenants.access import Access, Principal
from app.identity.tenants.errors import InsufficientScopeError, KeyRestrictedError
from app.identity.users.repository import UserRepository
from app.identity.users.service import resolve_subject
from app.memory.memories.errors import ScopeRequiresError
from app.platform.database.base import new_id
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.documents.file_repository import FileRepository
from app.prompting.documents.models import Folder
from app.prompting.documents.passage_repository import PassageRepository
from app.prompting.documents.repository import FolderRepository
from app.prompting.documents.schemas import (
    FileDeleteQuery,
    FolderCreate,
    FolderDeleted,
    FolderPatch,
    FolderQuery,
    FolderRead,
)


def owner_of(
    principal: Principal,
    scope: str,
    *,
    user_id: str | None,
    project_id: str | None,
    agent_id: str | None,
) -> str:
    """The id of the scope's owner; that of the key where the request names none.

    Raises:
        ScopeRequiresError: neither names it.
        UserNotFoundError, AgentNotFoundError: the key is restricted to a different user or agent.

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
    """Refuse a caller who may not write for a user, a project or an agent; as for memories.

    Raises:
        UserNotFoundError, ProjectNotFoundError, AgentNotFoundError: there is none for this caller.
        InsufficientScopeError: knowledge of an agent needs admin.
        ReadOnlyMemberError: the user may only read in the project.
        DisabledError: the user or the agent is disabled.

    """
    access = principal.access
    if scope == "agent":
        if not principal.may("admin"):
            raise InsufficientScopeError("admin", acting=principal.acting)
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
        lock: lock the folder, and keep its owner from being erased while the transaction runs.

    Raises:
        FolderNotFoundError: there is none for this caller.
        KeyRestrictedError: it is only attached to the key's agent.
        InsufficientScopeError, ReadOnlyMemberError, DisabledError: as in `refuse_outsiders`.

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


log = structlog.get_logger()

_OWNERS = ("scope", "user_id", "project_id")


class FolderService:
    def __init__(self, work: Work, *, auto_create: bool) -> None:
        self._work = work
        self._auto_create = auto_create

    async def add(
        self,
        principal: Principal,
        body: FolderCreate,
        *,
        folder_id: str | None = None,
        key: IdempotencyKey | None = None,
    ) -> FolderRead:
        """Create a folder, which belongs to a user, a project or an agent; the user is made on
        first use.

        Args:
            folder_id: in place of the body's, one that no client may choose.

        Raises:
            IdTakenError: the tenant has a folder with that id.
            IdNotAllowedError: the key is bound, and an id is not its to choose.
            ScopeRequiresError: the id of its owner is missing.
            MemoryDisabledError: writing is switched off.
            UserNotFoundError, ProjectNotFoundError, AgentNotFoundError, InsufficientScopeError,
            ReadOnlyMemberError, DisabledError: as in `refuse_outsiders`.

        """
        self._work.refuse_disabled()
        principal.access.refuse_choice("folder_id", body.folder_id)
        scope_id = owner_of(
            principal,
            body.scope,
            user_id=body.user_id,
            project_id=body.project_id,
            agent_id=body.agent_id,
        )
        folder = Folder(
            folder_id=folder_id or body.folder_id or new_id("fld"),
            folder_name=body.folder_name,
            description=body.description,
            scope=body.scope,
            scope_id=scope_id,
            metadata_=body.metadata,
            creator=principal.key_id,
        )
        setattr(folder, f"{body.scope}_id", scope_id)
        async with self._work.write(principal, key) as unit:
            if body.scope == "user":
                await self._ensure_user(unit.db, principal, scope_id)
            await refuse_outsiders(unit.db, principal, body.scope, scope_id)
            await FolderRepository(unit.db, principal.access).add(folder)
            answer = FolderRead.model_validate(folder)
            return unit.answer(answer, 201, user_id=folder.user_id)

    async def _ensure_user(self, db: AsyncSession, principal: Principal, user_id: str) -> None:
        """Raises UserNotFoundError, AgentNotFoundError, IdTakenError."""
        users = UserRepository(db, principal.access)
        if await users.find(user_id) is None:
            agents = AgentRepository(db, principal.access)
            home = await agents.ensure(None, create=self._auto_create, creator=principal.key_id)
            await users.ensure(user_id, agent_id=home.agent_id, create=self._auto_create)

    async def get(self, principal: Principal, folder_id: str) -> FolderRead:
        """A folder with its counts. Raises FolderNotFoundError if the caller has none."""
        async with self._work.read(principal) as db:
            folder = await FolderRepository(db, principal.access).get(folder_id)
            return await _shown(db, principal.access, folder)

    async def list_folders(self, principal: Principal, query: FolderQuery) -> Page[FolderRead]:
        """Folders that the caller may read, with their counts, newest first.

        Raises:
            InvalidCursorError: the cursor is none that a page returned.

        """
        start = decode_time(query.cursor, "folders")
        async with self._work.read(principal) as db:
            folders = FolderRepository(db, principal.access)
            rows = await folders.list_folders(
                start=start,
                limit=query.limit,
                equal=query.model_dump(include=set(_OWNERS), exclude_none=True),
                agent_id=query.agent_id,
            )
            counts = await folders.counts([row.folder_id for row in rows])
        return page(
            "folders",
            rows,
            query.limit,
            show=lambda row: _with(row, counts[row.folder_id]),
            place=lambda row: (row.create_time, row.folder_id),
        )

    async def patch(
        self, principal: Principal, folder_id: str, body: FolderPatch, *, expected: int | None
    ) -> FolderRead:
        """The changed folder; fields that are left out stay as they are.

        Raises:
            VersionConflictError: it is no longer at the version `expected`.
            FolderNotFoundError, KeyRestrictedError, InsufficientScopeError, ReadOnlyMemberError,
            DisabledError: as in `writable_folder`.

        """
        changes: dict[str, Any] = {
            {"metadata": "metadata_"}.get(name, name): value
            for name, value in body.model_dump(exclude_unset=True).items()
            if value is not None or name == "description"
        }
        async with self._work.write(principal, while_disabled=True) as unit:
            folder = await writable_folder(unit.db, principal, folder_id, lock=True)
            await FolderRepository(unit.db, principal.access).patch(
                folder, changes, expected=expected
            )
            return await _shown(unit.db, principal.access, folder)

    async def delete(
        self, principal: Principal, folder_id: str, query: FileDeleteQuery
    ) -> FolderDeleted:
        """Delete a folder with its files and passages; memories from them stay, marked as orphaned.

        With `dry_run` nothing is deleted, and the counts say what would be.

        Raises:
            ConfirmationRequiredError: it is not empty, and `confirm` is not set.
            FolderNotFoundError, KeyRestrictedError, InsufficientScopeError, ReadOnlyMemberError,
            DisabledError: as in `writable_folder`.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            await writable_folder(unit.db, principal, folder_id, lock=True)
            files = FileRepository(unit.db, principal.access)
            file_ids = await files.ids_of(folder_id, lock=not query.dry_run)
            holds = {
                "files": len(file_ids),
                "passages": await PassageRepository(unit.db, principal.access).count(
                    folder_id=folder_id
                ),
            }
            if query.dry_run:
                memories = await files.count_derived(file_ids)
            else:
                if any(holds.values()) and not query.confirm:
                    raise ConfirmationRequiredError("folder", holds)
                memories = await files.orphan(file_ids)
                await FolderRepository(unit.db, principal.access).delete(folder_id)
        if not query.dry_run:
            log.info("folder_deleted", folder_id=folder_id, **holds)
        return FolderDeleted(folder_id=folder_id, memories=memories, dry_run=query.dry_run, **holds)

    async def attach(self, principal: Principal, folder_id: str, agent_id: str) -> FolderRead:
        """Let a further agent read a folder in all its sessions; safe to repeat.

        Raises:
            AgentNotFoundError: there is none for this caller.
            InsufficientScopeError: the key is not an admin's, and all users of the agent would
                share the folder.
            FolderNotFoundError, KeyRestrictedError, InsufficientScopeError, ReadOnlyMemberError,
            DisabledError: as in `writable_folder`.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            folder = await self._shareable(unit.db, principal, folder_id, agent_id)
            await FolderRepository(unit.db, principal.access).attach(folder_id, agent_id)
            return await _shown(unit.db, principal.access, folder)

    async def detach(self, principal: Principal, folder_id: str, agent_id: str) -> None:
        """Detach a folder from an agent; the folder stays.

        Raises:
            FolderNotAttachedError: the agent does not have it.
            AgentNotFoundError, InsufficientScopeError, FolderNotFoundError, KeyRestrictedError,
            ReadOnlyMemberError, DisabledError: as in `attach`.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            await self._shareable(unit.db, principal, folder_id, agent_id)
            await FolderRepository(unit.db, principal.access).detach(folder_id, agent_id)

    async def _shareable(
        self, db: AsyncSession, principal: Principal, folder_id: str, agent_id: str
    ) -> Folder:
        """Raises InsufficientScopeError."""
        folder = await writable_folder(db, principal, folder_id, lock=True)
        if not principal.may("admin"):
            raise InsufficientScopeError("admin", acting=principal.acting)
        await AgentRepository(db, principal.access).get(agent_id)
        return folder


async def _shown(db: AsyncSession, access: Access, folder: Folder) -> FolderRead:
    counts = await FolderRepository(db, access).counts([folder.folder_id])
    return _with(folder, counts[folder.folder_id])


def _with(folder: Folder, counts: dict[str, Any]) -> FolderRead:
    return FolderRead.model_validate(folder).model_copy(update=counts)
