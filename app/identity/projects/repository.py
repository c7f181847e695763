"""The tables of projects and their members, and their SQL."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Select,
    String,
    Text,
    delete,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.errors import IdTakenError
from app.identity.projects.policy import Management, may, needed
from app.identity.projects.schemas import (
    InsufficientRoleError,
    MemberNotFoundError,
    ProjectNotFoundError,
    Role,
)
from app.identity.tenants.access import Access
from app.identity.users.repository import visible_user_ids
from app.platform.database.base import Base, Id, TenantOwned, Timed, after, apply_changes
from app.platform.database.failures import conflicts


class Project(TenantOwned, Timed, Base):
    """A group of users who share memories."""

    __tablename__ = "projects"
    __table_args__ = (Index("projects_idx_create_time", "tenant_id", "create_time", "project_id"),)

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    project_id: Mapped[str] = mapped_column(Id, primary_key=True)
    project_name: Mapped[str] = mapped_column(String(255))
    description: Mapped[str | None] = mapped_column(Text)
    metadata_: Mapped[dict[str, Any]] = mapped_column(
        "metadata", JSONB, server_default=text("'{}'"), default=dict
    )
    creator: Mapped[str | None] = mapped_column(Id)
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class ProjectMember(TenantOwned, Timed, Base):
    """A user in a project, in one of four roles."""

    __tablename__ = "project_members"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        CheckConstraint("role IN ('owner', 'admin', 'editor', 'viewer')", name="role"),
        Index("project_members_idx_user_id", "tenant_id", "user_id"),
    )

    project_id: Mapped[str] = mapped_column(Id, primary_key=True)
    user_id: Mapped[str] = mapped_column(Id, primary_key=True)
    role: Mapped[str] = mapped_column(String(20))


def visible_project_ids(access: Access, roles: Collection[Role] | None = None) -> Select[str]:
    """Ids of the projects a caller may see, for the statements of other packages.

    Args:
        roles: only those in which a restricted caller has one of them.

    """
    if not access.restricted:
        return select(Project.project_id).where(Project.tenant_id == access.tenant_id)
    statement = select(ProjectMember.project_id).where(
        ProjectMember.tenant_id == access.tenant_id,
        ProjectMember.user_id.in_(visible_user_ids(access)),
    )
    if roles is not None:
        statement = statement.where(ProjectMember.role.in_(sorted(roles)))
    return statement


class ProjectRepository:
    """Projects a caller may see. Never begins or ends a transaction.

    A restricted key sees the projects in which one of its users is a member.
    """

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    def _visible(self) -> Select[Project]:
        statement = select(Project).where(Project.tenant_id == self._access.tenant_id)
        if self._access.restricted:
            statement = statement.where(Project.project_id.in_(visible_project_ids(self._access)))
        return statement

    async def add(self, project: Project) -> None:
        """Insert `project` now, so that a taken id is reported here.

        Raises:
            IdTakenError: the tenant has a project of this id.

        """
        project.tenant_id = self._access.tenant_id
        self._db.add(project)
        with conflicts({"projects_pkey": IdTakenError("project_id", project.project_id)}):
            await self._db.flush()
        await self._db.refresh(project)

    async def get(self, project_id: str, *, lock: bool = False) -> Project:
        """The project.

        Raises:
            ProjectNotFoundError: there is none for this caller.

        """
        statement = self._visible().where(Project.project_id == project_id)
        project = await self._db.scalar(
            statement.with_for_update(of=Project) if lock else statement
        )
        if project is None:
            raise ProjectNotFoundError(project_id)
        return project

    async def list_projects(
        self, *, start: tuple[datetime, str] | None, limit: int, user_id: str | None
    ) -> Sequence[Project]:
        """Newest first, one more than `limit` when another page follows."""
        statement = self._visible()
        if user_id is not None:
            statement = statement.where(
                Project.project_id.in_(
                    select(ProjectMember.project_id).where(
                        ProjectMember.tenant_id == self._access.tenant_id,
                        ProjectMember.user_id == user_id,
                    )
                )
            )
        rows = await self._db.scalars(
            after(
                statement,
                (Project.create_time, Project.project_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def patch(
        self, project_id: str, changes: dict[str, Any], expected: int | None
    ) -> Project:
        """The changed project.

        Raises:
            ProjectNotFoundError: there is none for this caller.
            VersionConflictError: its version is not `expected`.

        """
        project = await self.get(project_id, lock=True)
        await apply_changes(self._db, project, changes, expected=expected)
        return project

    async def managed(
        self, project_id: str, action: Management, *, lock: bool = False
    ) -> tuple[Project, Role | None]:
        """The project, and the caller's role; None when the caller is no one user.

        Args:
            lock: keep its members unchanged until the transaction ends.

        Raises:
            ProjectNotFoundError: missing, or the caller is no member.
            InsufficientRoleError: the caller's role may not do that.

        """
        project = await self.get(project_id, lock=lock)
        if self._access.user_id is None:
            return project, None
        role = await self.membership(project_id)
        if role is None:
            raise ProjectNotFoundError(project_id)
        if not may(role, action):
            raise InsufficientRoleError(project_id, role, needed(action))
        return project, role

    async def membership(self, project_id: str) -> Role | None:
        """The role of the calling user, or None when that user is no member."""
        role: Role | None = await self._db.scalar(
            select(ProjectMember.role).where(
                *self._is_member(project_id, self._access.user_id or ""),
                ProjectMember.user_id.in_(visible_user_ids(self._access)),
            )
        )
        return role

    async def role_of(self, project_id: str, user_id: str) -> Role | None:
        """The role of a member, or None when the user is none."""
        role: Role | None = await self._db.scalar(
            select(ProjectMember.role).where(*self._is_member(project_id, user_id))
        )
        return role

    async def owners(self, project_id: str) -> Sequence[str]:
        """Ids of the owners, in order."""
        rows = await self._db.scalars(
            select(ProjectMember.user_id)
            .where(
                ProjectMember.tenant_id == self._access.tenant_id,
                ProjectMember.project_id == project_id,
                ProjectMember.role == "owner",
            )
            .order_by(ProjectMember.user_id)
        )
        return rows.all()

    async def put_member(self, project_id: str, user_id: str, role: Role) -> ProjectMember:
        """The member, added or given another role."""
        await self._db.execute(
            insert(ProjectMember)
            .values(
                tenant_id=self._access.tenant_id, project_id=project_id, user_id=user_id, role=role
            )
            .on_conflict_do_update(
                index_elements=["tenant_id", "project_id", "user_id"], set_={"role": role}
            )
        )
        statement = (
            select(ProjectMember)
            .where(*self._is_member(project_id, user_id))
            .execution_options(populate_existing=True)
        )
        return (await self._db.scalars(statement)).one()

    async def list_members(
        self, project_id: str, *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[ProjectMember]:
        """Oldest first, one more than `limit` when another page follows."""
        statement = select(ProjectMember).where(
            ProjectMember.tenant_id == self._access.tenant_id,
            ProjectMember.project_id == project_id,
        )
        rows = await self._db.scalars(
            after(
                statement,
                (ProjectMember.create_time, ProjectMember.user_id),
                start=start,
                descending=False,
                limit=limit,
            )
        )
        return rows.all()

    async def remove_member(self, project_id: str, user_id: str) -> None:
        """Remove a member.

        Raises:
            MemberNotFoundError: the user is no member.

        """
        removed = await self._db.execute(
            delete(ProjectMember)
            .where(*self._is_member(project_id, user_id))
            .returning(ProjectMember.user_id)
        )
        if removed.first() is None:
            raise MemberNotFoundError(project_id, user_id)

    def _is_member(self, project_id: str, user_id: str) -> tuple[Any, ...]:
        return (
            ProjectMember.tenant_id == self._access.tenant_id,
            ProjectMember.project_id == project_id,
            ProjectMember.user_id == user_id,
        )
