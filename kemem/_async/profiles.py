"""Methods of `memory.profiles`: profiles of users and projects, and memory documents."""

from collections.abc import Mapping
from typing import Any, Literal, Unpack

from kemem._async.sender import AsyncResource
from kemem.answers import listing
from kemem.calls import Version, change, fetch, fetch_pages, post
from kemem.jobs import Job
from kemem.options import ProfileChanges
from kemem.profiles import (
    DocumentImported,
    MemoryDocument,
    Profile,
    ProfileChange,
    ProfileHistory,
)


class AsyncProfiles(AsyncResource):
    """Profiles of users and projects. Give either `user_id` or `project_id`, else ValueError."""

    async def get(self, user_id: str | None = None, *, project_id: str | None = None) -> Profile:
        """Return a profile; empty if nothing is known.

        Raises:
            NotFoundError: there is no such user or project.

        """
        return await self._send(fetch(Profile, *_owner(user_id, project_id), "profile"))

    async def update(
        self,
        user_id: str | None = None,
        *,
        project_id: str | None = None,
        version: Version,
        whole: bool = False,
        **changes: Unpack[ProfileChanges],
    ) -> Profile:
        """Write values, which jobs will not change any more.

        Args:
            version: the version you read, 0 for an empty profile, or `*` for any version. An
                unanswered request is repeated only with `*`.
            whole: values that are not given are derived by jobs again.
            changes: see `ProfileChanges`.

        Raises:
            NotFoundError: there is no such user or project.
            ConflictError: there is a newer version (`version_conflict`).
            UnprocessableError: a value is invalid for its slot.

        """
        owner = _owner(user_id, project_id)
        method: Literal["PUT", "PATCH"] = "PUT" if whole else "PATCH"
        call = change(method, Profile, *owner, "profile", body=changes, version=version)
        return await self._send(call)

    async def history(
        self,
        user_id: str | None = None,
        *,
        project_id: str | None = None,
        limit: int | None = 100,
    ) -> ProfileHistory:
        """Return up to `limit` changes, newest first; None means all."""
        owner = _owner(user_id, project_id)
        call = fetch_pages(ProfileChange, *owner, "profile", "history", limit=limit)
        return listing(ProfileHistory, await self._collect(call, limit))

    async def derive(self, user_id: str | None = None, *, project_id: str | None = None) -> Job:
        """Start a job that derives the profile from memories now; `memory.wait` accepts it.

        Raises:
            NotFoundError: there is no such user or project.

        """
        return await self._send(post(Job, *_owner(user_id, project_id), "profile", "derive"))

    async def document(self, user_id: str, *, agent_id: str | None = None) -> MemoryDocument:
        """Return what is known about a user in DeerFlow's format; `raw` is the document.

        Raises:
            NotFoundError: there is no such user.

        """
        return await self._send(
            fetch(MemoryDocument, "users", user_id, "memory-document", agent_id=agent_id)
        )

    async def import_document(
        self,
        user_id: str,
        document: Mapping[str, Any],
        *,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> DocumentImported:
        """Import a memory document in DeerFlow's format, all of it or nothing. Safe to repeat."""
        params = {} if agent_id is None else {"agent_id": agent_id}
        if dry_run:
            params["dry_run"] = "true"
        call = post(
            DocumentImported, "users", user_id, "memory-document", body=document, params=params
        )
        return await self._send(call)


def _owner(user_id: str | None, project_id: str | None) -> tuple[str, str]:
    """Raises ValueError unless exactly one is given."""
    if (user_id is None) == (project_id is None):
        raise ValueError("name the user or the project whose profile it is, one of the two")
    return ("users", user_id) if user_id is not None else ("projects", str(project_id))
