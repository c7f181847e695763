"""Methods of `memory.projects`."""

from collections.abc import Mapping
from typing import Any

from kemem._async.sender import AsyncResource
from kemem.answers import listing
from kemem.calls import Version, change, discard, fetch, fetch_pages, post, remove
from kemem.deprecated import OldProjectNames
from kemem.options import ProjectRole, Visibility
from kemem.projects import (
    Member,
    MemberList,
    Project,
    ProjectDeleted,
    ProjectItem,
    ProjectItemList,
    ProjectList,
    Transferred,
)


class AsyncProjects(OldProjectNames, AsyncResource):
    """Projects: groups of users who share memories.

    `memory.acting_as("ana").projects` can do what the role of that user allows. Without an acting
    user, changes take an admin key.
    """

    async def create(
        self,
        project_name: str,
        *,
        project_id: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner_id: str | None = None,
    ) -> Project:
        """Create a project; its owner is the acting user, else `owner_id`.

        Raises:
            ConflictError: the `project_id` is taken.

        """
        body = {
            "project_name": project_name,
            "project_id": project_id,
            "description": description,
            "metadata": metadata,
            "owner_id": owner_id,
        }
        return await self._send(post(Project, "projects", body=body))

    async def list_projects(
        self, limit: int | None = 100, *, user_id: str | None = None
    ) -> ProjectList:
        """Return up to `limit` projects, newest first; None means all.

        Args:
            user_id: only projects of which this user is a member.

        """
        call = fetch_pages(Project, "projects", limit=limit, user_id=user_id)
        return listing(ProjectList, await self._collect(call, limit))

    async def get(self, project_id: str) -> Project:
        """Return one project.

        Raises:
            NotFoundError: there is no such project, or the acting user is no member.

        """
        return await self._send(fetch(Project, "projects", project_id))

    async def update(
        self, project_id: str, *, version: Version | None = None, **changes: Any
    ) -> Project:
        """Change `project_name`, `description` or `metadata`.

        Raises:
            NotFoundError: there is no such project.
            ForbiddenError: the role does not allow it.
            ConflictError: there is a newer version (`version_conflict`).

        """
        call = change("PATCH", Project, "projects", project_id, body=changes, version=version)
        return await self._send(call)

    async def delete(
        self, project_id: str, *, confirm: bool = False, dry_run: bool = False
    ) -> ProjectDeleted:
        """Delete a project with everything shared in it, for good; only owners may.

        Raises:
            NotFoundError: there is no such project.
            ForbiddenError: the role does not allow it.
            ConflictError: `confirm` is missing (`confirmation_required`); the message says how
                much would be deleted.

        """
        call = discard(
            ProjectDeleted,
            "projects",
            project_id,
            lost={"id": project_id},
            confirm=confirm or None,
            dry_run=dry_run or None,
        )
        return await self._send(call)

    async def members(self, project_id: str, limit: int | None = 100) -> MemberList:
        """Return up to `limit` members, oldest first; None means all."""
        call = fetch_pages(Member, "projects", project_id, "members", limit=limit)
        return listing(MemberList, await self._collect(call, limit))

    async def put_member(
        self, project_id: str, user_id: str, role: ProjectRole = "editor"
    ) -> Member:
        """Add a member, or change the role of one. Safe to repeat.

        Raises:
            NotFoundError: there is no such project or user.
            ForbiddenError: the role of the caller does not allow it (`insufficient_role`).
            ConflictError: this is the last owner (`last_owner`); transfer the project first.

        """
        body = {"role": role}
        call = change("PUT", Member, "projects", project_id, "members", user_id, body=body)
        return await self._send(call)

    async def remove_member(self, project_id: str, user_id: str) -> None:
        """Remove a member, or leave the project.

        Raises:
            NotFoundError: there is no such project or member.
            ForbiddenError: the role of the caller does not allow it (`insufficient_role`).
            ConflictError: this is the last owner (`last_owner`); transfer the project first.

        """
        return await self._send(remove("projects", project_id, "members", user_id))

    async def transfer(self, project_id: str, to_user_id: str) -> Transferred:
        """Make a user the owner; the former owners become admins.

        Raises:
            NotFoundError: there is no such project or user.
            ForbiddenError: the role does not allow it.

        """
        body = {"to_user_id": to_user_id}
        return await self._send(post(Transferred, "projects", project_id, "transfer", body=body))

    async def items(
        self,
        project_id: str,
        limit: int | None = 100,
        *,
        user_id: str | None = None,
        visibility: Visibility | None = None,
    ) -> ProjectItemList:
        """Return up to `limit` memories of a project without content, newest first; None means all.

        Only owners and admins may.

        Args:
            user_id: only memories of this author.

        Raises:
            NotFoundError: there is no such project.
            ForbiddenError: the role does not allow it.

        """
        call = fetch_pages(
            ProjectItem,
            "projects",
            project_id,
            "memories",
            limit=limit,
            user_id=user_id,
            visibility=visibility,
        )
        return listing(ProjectItemList, await self._collect(call, limit))
