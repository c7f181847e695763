"""Use cases of projects and their members."""

from typing import Any

from app.database.engine import Database
from app.database.ids import new_id
from app.projects.models import Project
from app.projects.repository import ProjectRepository
from app.projects.schemas import (
    MemberPut,
    MemberRead,
    ProjectCreate,
    ProjectPatch,
    ProjectQuery,
    ProjectRead,
)
from app.tenants.access import Principal
from app.users.repository import UserRepository
from app.web.idempotency import NEVER, Once
from app.web.pagination import Page, PageQuery, decode_moment, page


class ProjectService:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, principal: Principal, body: ProjectCreate, *, once: Once = NEVER
    ) -> ProjectRead:
        """Create a project; a restricted key must name an owner it can see.

        Raises:
            IdTakenError: the tenant has a project with that id.
            UserNotFoundError: there is no such owner.

        """
        owner_id = body.owner_id or principal.access.user_id
        project = Project(
            project_id=body.project_id or new_id("prj"),
            project_name=body.project_name,
            description=body.description,
            metadata_=body.metadata,
            creator=principal.key_id,
        )
        async with self._database.begin(principal.tenant_id) as db:
            await once.claim(db)
            projects = ProjectRepository(db, principal.access)
            if owner_id is not None:
                await UserRepository(db, principal.access).get(owner_id)
            await projects.add(project)
            if owner_id is not None:
                await projects.put_member(project.project_id, owner_id, "owner")
            return await once.keep(db, ProjectRead.model_validate(project), status=201)

    async def get(self, principal: Principal, project_id: str) -> ProjectRead:
        """Raises ProjectNotFoundError."""
        async with self._database.begin(principal.tenant_id) as db:
            project = await ProjectRepository(db, principal.access).get(project_id)
            return ProjectRead.model_validate(project)

    async def list(self, principal: Principal, query: ProjectQuery) -> Page[ProjectRead]:
        """Projects, newest first."""
        start = decode_moment(query.cursor)
        async with self._database.begin(principal.tenant_id) as db:
            rows = await ProjectRepository(db, principal.access).list(
                start=start, limit=query.limit, user_id=query.user_id
            )
        return page(
            rows,
            query.limit,
            show=ProjectRead.model_validate,
            place=lambda project: (project.create_time, project.project_id),
        )

    async def patch(
        self, principal: Principal, project_id: str, body: ProjectPatch, *, expected: int | None
    ) -> ProjectRead:
        """Raises ProjectNotFoundError, VersionConflictError."""
        changes: dict[str, Any] = {
            {"metadata": "metadata_"}.get(name, name): value
            for name, value in body.model_dump(exclude_unset=True).items()
            if value is not None or name == "description"
        }
        async with self._database.begin(principal.tenant_id) as db:
            project = await ProjectRepository(db, principal.access).patch(
                project_id, changes, expected
            )
            return ProjectRead.model_validate(project)

    async def put_member(
        self, principal: Principal, project_id: str, user_id: str, body: MemberPut
    ) -> MemberRead:
        """Add a member or change the role of one. Safe to repeat.

        Raises:
            ProjectNotFoundError, UserNotFoundError: one of them is missing.

        """
        async with self._database.begin(principal.tenant_id) as db:
            projects = ProjectRepository(db, principal.access)
            await projects.get(project_id)
            await UserRepository(db, principal.access).get(user_id)
            member = await projects.put_member(project_id, user_id, body.role)
            return MemberRead.model_validate(member)

    async def list_members(
        self, principal: Principal, project_id: str, query: PageQuery
    ) -> Page[MemberRead]:
        """Members, oldest first. Raises ProjectNotFoundError."""
        start = decode_moment(query.cursor)
        async with self._database.begin(principal.tenant_id) as db:
            projects = ProjectRepository(db, principal.access)
            await projects.get(project_id)
            rows = await projects.list_members(project_id, start=start, limit=query.limit)
        return page(
            rows,
            query.limit,
            show=MemberRead.model_validate,
            place=lambda member: (member.create_time, member.user_id),
        )

    async def remove_member(self, principal: Principal, project_id: str, user_id: str) -> None:
        """Raises ProjectNotFoundError, MemberNotFoundError."""
        async with self._database.begin(principal.tenant_id) as db:
            projects = ProjectRepository(db, principal.access)
            await projects.get(project_id)
            await projects.remove_member(project_id, user_id)
