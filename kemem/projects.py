"""Projects: groups of users who share memories; `memory.projects` says what can be done."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar

from kemem.base import listing
from kemem.block_editing import AsyncCollect, AsyncSend, Collect, Send
from kemem.reading import Answer, Listing
from kemem.writing import Call, Page, Version, change, discard, fetch, fetch_pages, post, remove

Result = TypeVar("Result")

ProjectRole = Literal["owner", "admin", "editor", "viewer"]
Visibility = Literal["public", "members", "owner_only"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Answer):
    """A group of users who share memories."""

    project_id: str
    project_name: str = ""
    description: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    creator: str | None = None
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.project_id}: {self.project_name}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProjectList(Listing[Project]):
    """Projects, newest first."""

    results: tuple[Project, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Answer):
    """A user in a project."""

    project_id: str
    user_id: str
    role: str = "viewer"
    create_time: datetime | None = None
    update_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.user_id}: {self.role}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemberList(Listing[Member]):
    """Members, oldest first."""

    results: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectItem(Answer):
    """A memory of the project, without what it says."""

    memory_id: str
    user_id: str | None = None
    """The author."""
    visibility: str = "members"
    status: str = "active"
    create_time: datetime | None = None
    update_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.memory_id} {self.user_id or '-'} {self.visibility}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProjectItemList(Listing[ProjectItem]):
    """What a project holds, newest first."""

    results: tuple[ProjectItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transferred(Answer):
    """Who owns a project now, and who is an admin instead."""

    project_id: str
    owner_id: str
    former_owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectDeleted(Answer):
    """How much went with a project, or with `dry_run` would go, by kind."""

    id: str
    kind: str = "project"
    deleted: Mapping[str, int] = field(default_factory=dict)
    dry_run: bool = False
    erasure_id: str | None = None
    """Of the receipt that stays; none of a dry run."""


def _create(name: str, fields: Mapping[str, Any]) -> Call[Project]:
    return post(Project, "projects", body={"project_name": name, **fields})


def _update(project_id: str, changes: Mapping[str, Any], version: Version | None) -> Call[Project]:
    return change("PATCH", Project, "projects", project_id, body=changes, version=version)


def _list(user_id: str | None, limit: int | None) -> Call[Page[Project]]:
    return fetch_pages(Project, "projects", limit=limit, user_id=user_id)


def _members(project_id: str, limit: int | None) -> Call[Page[Member]]:
    return fetch_pages(Member, "projects", project_id, "members", limit=limit)


def _items(
    project_id: str, user_id: str | None, visibility: Visibility | None, limit: int | None
) -> Call[Page[ProjectItem]]:
    return fetch_pages(
        ProjectItem,
        "projects",
        project_id,
        "memories",
        limit=limit,
        user_id=user_id,
        visibility=visibility,
    )


def _put_member(project_id: str, user_id: str, role: ProjectRole) -> Call[Member]:
    return change("PUT", Member, "projects", project_id, "members", user_id, body={"role": role})


def _remove_member(project_id: str, user_id: str) -> Call[None]:
    return remove("projects", project_id, "members", user_id)


def _transfer(project_id: str, to_user_id: str) -> Call[Transferred]:
    return post(Transferred, "projects", project_id, "transfer", body={"to_user_id": to_user_id})


def _delete(project_id: str, *, confirm: bool, dry_run: bool) -> Call[ProjectDeleted]:
    return discard(
        ProjectDeleted,
        "projects",
        project_id,
        lost={"id": project_id},
        confirm=confirm or None,
        dry_run=dry_run or None,
    )


class Projects:
    """Projects that the caller sees, as `memory.projects`.

    `memory.acting_as("ana").projects` does what ana's role allows; without an acting user,
    whoever changes something needs an admin key.
    """

    def __init__(self, send: Send, collect: Collect) -> None:
        self._send = send
        self._collect = collect

    def create(
        self,
        project_name: str,
        *,
        project_id: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner_id: str | None = None,
    ) -> Project:
        """Make a project; the acting user becomes its owner, else `owner_id`."""
        fields = {
            "project_id": project_id, "description": description, "metadata": metadata,
            "owner_id": owner_id,
        }  # fmt: skip
        return self._send(_create(project_name, fields))

    def list(self, limit: int | None = 100, *, user_id: str | None = None) -> ProjectList:
        """Up to `limit` projects, newest first, those of a member alone; None means all."""
        return listing(ProjectList, self._collect(_list(user_id, limit), limit))

    def get(self, project_id: str) -> Project:
        """One project. Raises NotFoundError."""
        return self._send(fetch(Project, "projects", project_id))

    def update(self, project_id: str, *, version: Version | None = None, **changes: Any) -> Project:
        """Change `project_name`, `description` or `metadata`."""
        return self._send(_update(project_id, changes, version))

    def delete(
        self, project_id: str, *, confirm: bool = False, dry_run: bool = False
    ) -> ProjectDeleted:
        """Delete a project with what was shared there, for good; takes an owner.

        Raises:
            ConflictError: `confirmation_required`; it says how much it would be.

        """
        return self._send(_delete(project_id, confirm=confirm, dry_run=dry_run))

    def members(self, project_id: str, limit: int | None = 100) -> MemberList:
        """Up to `limit` members, oldest first; None means all."""
        return listing(MemberList, self._collect(_members(project_id, limit), limit))

    def put_member(self, project_id: str, user_id: str, role: ProjectRole = "editor") -> Member:
        """Make a user a member, or give a member another role.

        Raises:
            ForbiddenError: `insufficient_role`.
            ConflictError: `last_owner`; hand the project over first.

        """
        return self._send(_put_member(project_id, user_id, role))

    def remove_member(self, project_id: str, user_id: str) -> None:
        """Take a member out, or leave. Raises as `put_member`."""
        return self._send(_remove_member(project_id, user_id))

    def transfer(self, project_id: str, to_user_id: str) -> Transferred:
        """Hand a project over; who owned it becomes an admin."""
        return self._send(_transfer(project_id, to_user_id))

    def items(
        self,
        project_id: str,
        limit: int | None = 100,
        *,
        user_id: str | None = None,
        visibility: Visibility | None = None,
    ) -> ProjectItemList:
        """What a project holds, without what it says; for owners and admins."""
        call = _items(project_id, user_id, visibility, limit)
        return listing(ProjectItemList, self._collect(call, limit))


class AsyncProjects:
    """`Projects` for asyncio."""

    def __init__(self, send: AsyncSend, collect: AsyncCollect) -> None:
        self._send = send
        self._collect = collect

    async def create(
        self,
        project_name: str,
        *,
        project_id: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner_id: str | None = None,
    ) -> Project:
        """As `Projects.create`."""
        fields = {
            "project_id": project_id, "description": description, "metadata": metadata,
            "owner_id": owner_id,
        }  # fmt: skip
        return await self._send(_create(project_name, fields))

    async def list(self, limit: int | None = 100, *, user_id: str | None = None) -> ProjectList:
        """As `Projects.list`."""
        return listing(ProjectList, await self._collect(_list(user_id, limit), limit))

    async def get(self, project_id: str) -> Project:
        """As `Projects.get`."""
        return await self._send(fetch(Project, "projects", project_id))

    async def update(
        self, project_id: str, *, version: Version | None = None, **changes: Any
    ) -> Project:
        """As `Projects.update`."""
        return await self._send(_update(project_id, changes, version))

    async def delete(
        self, project_id: str, *, confirm: bool = False, dry_run: bool = False
    ) -> ProjectDeleted:
        """As `Projects.delete`."""
        return await self._send(_delete(project_id, confirm=confirm, dry_run=dry_run))

    async def members(self, project_id: str, limit: int | None = 100) -> MemberList:
        """As `Projects.members`."""
        return listing(MemberList, await self._collect(_members(project_id, limit), limit))

    async def put_member(
        self, project_id: str, user_id: str, role: ProjectRole = "editor"
    ) -> Member:
        """As `Projects.put_member`."""
        return await self._send(_put_member(project_id, user_id, role))

    async def remove_member(self, project_id: str, user_id: str) -> None:
        """As `Projects.remove_member`."""
        return await self._send(_remove_member(project_id, user_id))

    async def transfer(self, project_id: str, to_user_id: str) -> Transferred:
        """As `Projects.transfer`."""
        return await self._send(_transfer(project_id, to_user_id))

    async def items(
        self,
        project_id: str,
        limit: int | None = 100,
        *,
        user_id: str | None = None,
        visibility: Visibility | None = None,
    ) -> ProjectItemList:
        """As `Projects.items`."""
        call = _items(project_id, user_id, visibility, limit)
        return listing(ProjectItemList, await self._collect(call, limit))
