"""Use cases of projects and their members.

Who acts as a user (`KeMem-User`, or a key of that user's) does what the user's role allows; the
application itself needs an admin key. Whoever changes who is in a project locks the project, so
that two changes see each other and the last owner stays.
"""

from dataclasses import replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.repository import AgentRepository
from app.identity.projects.policy import may_assign
from app.identity.projects.repository import Project, ProjectRepository
from app.identity.projects.schemas import (
    InsufficientRoleError,
    LastOwnerError,
    MemberNotFoundError,
    MemberPut,
    MemberRead,
    ProjectCreate,
    ProjectPatch,
    ProjectQuery,
    ProjectRead,
    ProjectTransfer,
    ProjectTransferred,
    Role,
)
from app.identity.tenants.access import Access, Principal
from app.identity.users.repository import UserRepository
from app.platform.database.base import new_id
from app.platform.values.pagination import Page, PageQuery, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work


class ProjectService:
    def __init__(self, work: Work, *, auto_create: bool) -> None:
        self._work = work
        self._auto_create = auto_create

    async def add(
        self, principal: Principal, body: ProjectCreate, *, key: IdempotencyKey | None = None
    ) -> ProjectRead:
        """Create a project; an acting user becomes its owner, made on first use.

        Raises:
            IdTakenError: the tenant has a project with that id.
            IdNotAllowedError: the key is bound, and the id is not its to choose.
            UserNotFoundError: there is no such owner, or another user is to be it.

        """
        principal.access.refuse_choice("project_id", body.project_id)
        owner_id = body.owner_id or principal.access.user_id
        project = Project(
            project_id=body.project_id or new_id("prj"),
            project_name=body.project_name,
            description=body.description,
            metadata_=body.metadata,
            creator=principal.key_id,
        )
        async with self._work.write(principal, key, while_disabled=True) as unit:
            projects = ProjectRepository(unit.db, principal.access)
            if owner_id is not None:
                await self._ensure_owner(unit.db, principal, owner_id)
            await projects.add(project)
            if owner_id is not None:
                await projects.put_member(project.project_id, owner_id, "owner")
            return unit.answer(ProjectRead.model_validate(project), 201)

    async def _ensure_owner(self, db: AsyncSession, principal: Principal, owner_id: str) -> None:
        users = UserRepository(db, principal.access)
        create = self._auto_create and owner_id == principal.access.user_id
        if not create:
            await users.get(owner_id)
        elif await users.find(owner_id) is None:
            home = await AgentRepository(db, principal.access).ensure(
                None, create=True, creator=principal.key_id
            )
            await users.ensure(owner_id, agent_id=home.agent_id, create=True)

    async def get(self, principal: Principal, project_id: str) -> ProjectRead:
        """The project.

        Raises:
            ProjectNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            project = await ProjectRepository(db, principal.access).get(project_id)
            return ProjectRead.model_validate(project)

    async def list_projects(self, principal: Principal, query: ProjectQuery) -> Page[ProjectRead]:
        """A page of projects, newest first."""
        start = decode_time(query.cursor, "projects")
        async with self._work.read(principal) as db:
            rows = await ProjectRepository(db, principal.access).list_projects(
                start=start, limit=query.limit, user_id=query.user_id
            )
        return page(
            "projects",
            rows,
            query.limit,
            show=ProjectRead.model_validate,
            place=lambda project: (project.create_time, project.project_id),
        )

    async def patch(
        self, principal: Principal, project_id: str, body: ProjectPatch, *, expected: int | None
    ) -> ProjectRead:
        """The changed project.

        Raises:
            ProjectNotFoundError: there is none for this caller.
            InsufficientRoleError: the acting user may not change it.
            VersionConflictError: its version is not `expected`.

        """
        changes: dict[str, Any] = {
            {"metadata": "metadata_"}.get(name, name): value
            for name, value in body.model_dump(exclude_unset=True).items()
            if value is not None or name == "description"
        }
        async with self._work.write(principal, while_disabled=True) as unit:
            projects = ProjectRepository(unit.db, principal.access)
            await projects.managed(project_id, "edit_project", lock=True)
            project = await projects.patch(project_id, changes, expected)
            return ProjectRead.model_validate(project)

    async def put_member(
        self, principal: Principal, project_id: str, user_id: str, body: MemberPut
    ) -> MemberRead:
        """Add a member or change the role of one. Safe to repeat.

        Raises:
            ProjectNotFoundError, UserNotFoundError: one of them is missing.
            InsufficientRoleError: the caller's role may not give or take that one.
            LastOwnerError: the project would have no owner any more.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            projects = ProjectRepository(unit.db, principal.access)
            _, role = await projects.managed(project_id, "manage_members", lock=True)
            before = await projects.role_of(project_id, user_id)
            _refuse_role(project_id, role, before, body.role)
            await UserRepository(unit.db, _everybody(principal.access)).get(user_id)
            if before == "owner" != body.role:
                await _refuse_last(projects, project_id, user_id)
            member = await projects.put_member(project_id, user_id, body.role)
            return MemberRead.model_validate(member)

    async def list_members(
        self, principal: Principal, project_id: str, query: PageQuery
    ) -> Page[MemberRead]:
        """A page of members, oldest first.

        Raises:
            ProjectNotFoundError: there is none for this caller.

        """
        start = decode_time(query.cursor, "project_members")
        async with self._work.read(principal) as db:
            projects = ProjectRepository(db, principal.access)
            await projects.get(project_id)
            rows = await projects.list_members(project_id, start=start, limit=query.limit)
        return page(
            "project_members",
            rows,
            query.limit,
            show=MemberRead.model_validate,
            place=lambda member: (member.create_time, member.user_id),
        )

    async def remove_member(self, principal: Principal, project_id: str, user_id: str) -> None:
        """Remove a member; any member may remove itself.

        Raises:
            ProjectNotFoundError, MemberNotFoundError: one of them is missing.
            InsufficientRoleError: the caller's role may not take that one out.
            LastOwnerError: the project would have no owner any more.

        """
        access = principal.access
        async with self._work.write(principal, while_disabled=True) as unit:
            projects = ProjectRepository(unit.db, access)
            role: Role | None = None
            if user_id == access.user_id:
                await projects.get(project_id, lock=True)
            else:
                _, role = await projects.managed(project_id, "manage_members", lock=True)
            before = await projects.role_of(project_id, user_id)
            if before is None:
                raise MemberNotFoundError(project_id, user_id)
            _refuse_role(project_id, role, before, None)
            if before == "owner":
                await _refuse_last(projects, project_id, user_id)
            await projects.remove_member(project_id, user_id)

    async def transfer(
        self,
        principal: Principal,
        project_id: str,
        body: ProjectTransfer,
        *,
        key: IdempotencyKey | None = None,
    ) -> ProjectTransferred:
        """Hand a project over: the user becomes owner, and the caller an admin.

        The application itself hands it over for all owners there are.

        Raises:
            ProjectNotFoundError, UserNotFoundError: one of them is missing.
            InsufficientRoleError: the caller is no owner.

        """
        access, heir = principal.access, body.to_user_id
        async with self._work.write(principal, key, while_disabled=True) as unit:
            projects = ProjectRepository(unit.db, access)
            await projects.managed(project_id, "transfer", lock=True)
            await UserRepository(unit.db, _everybody(access)).get(heir)
            leaving = [access.user_id] if access.user_id else await projects.owners(project_id)
            former = [user_id for user_id in leaving if user_id != heir]
            await projects.put_member(project_id, heir, "owner")
            for user_id in former:
                await projects.put_member(project_id, user_id, "admin")
            answer = ProjectTransferred(project_id=project_id, owner_id=heir, former_owners=former)
            return unit.answer(answer, 200)


def _everybody(access: Access) -> Access:
    """Check that a user may become a member: the key must reach the user."""
    return replace(access, user_id=None)


def _refuse_role(
    project_id: str, role: Role | None, before: Role | None, after: Role | None
) -> None:
    """Check the role; `role` is None for the application itself.

    Raises:
        InsufficientRoleError: the role does not allow it.

    """
    if role is not None and not may_assign(role, before=before, after=after):
        raise InsufficientRoleError(project_id, role, ["owner"])


async def _refuse_last(projects: ProjectRepository, project_id: str, user_id: str) -> None:
    """Check that an owner remains; the project is locked.

    Raises:
        LastOwnerError: the user is the last owner.

    """
    if await projects.owners(project_id) == [user_id]:
        raise LastOwnerError(project_id, user_id)
