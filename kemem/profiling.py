"""`Memory.profiles` and `AsyncMemory.profiles`: what can be done with profiles."""

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from kemem import profile_calls
from kemem.base import listing
from kemem.block_editing import AsyncCollect, AsyncSend, Collect, Send
from kemem.conversations import Job
from kemem.profile_calls import whose
from kemem.profiles import DocumentImported, MemoryDocument, Profile, ProfileHistory
from kemem.writing import Version


class ProfileChanges(TypedDict, total=False):
    """What is written by hand; None gives a value back to jobs."""

    attributes: Mapping[str, Any]
    sections: Mapping[str, Any]
    slots: Mapping[str, Mapping[str, str | None]]
    instructions: str | None
    key_decisions: list[Mapping[str, Any]] | None


class Profiles:
    """Profiles of users and projects, as `memory.profiles`. Name one of the two."""

    def __init__(self, send: Send, collect: Collect) -> None:
        self._send = send
        self._collect = collect

    def get(self, user_id: str | None = None, *, project_id: str | None = None) -> Profile:
        """What is known; empty when nothing is. Raises NotFoundError."""
        return self._send(profile_calls.get(whose(user_id, project_id)))

    def update(
        self,
        user_id: str | None = None,
        *,
        project_id: str | None = None,
        version: Version,
        whole: bool = False,
        **changes: Unpack[ProfileChanges],
    ) -> Profile:
        """Write values that no job changes.

        Args:
            version: the one you read, 0 for an empty profile, or `*` for whatever it is now.
            whole: what is left out goes back to jobs.

        Raises:
            ConflictError: `version_conflict`: somebody else changed it.
            UnprocessableError: a value does not fit its slot.

        """
        owner = whose(user_id, project_id)
        return self._send(profile_calls.update(owner, changes, version, whole=whole))

    def history(
        self,
        user_id: str | None = None,
        *,
        project_id: str | None = None,
        limit: int | None = 100,
    ) -> ProfileHistory:
        """Up to `limit` changes, newest first; None means all."""
        call = profile_calls.history(whose(user_id, project_id), limit=limit)
        return listing(ProfileHistory, self._collect(call, limit))

    def derive(self, user_id: str | None = None, *, project_id: str | None = None) -> Job:
        """Have it derived now; `memory.job` tells when it is."""
        return self._send(profile_calls.derive(whose(user_id, project_id)))

    def document(self, user_id: str, *, agent_id: str | None = None) -> MemoryDocument:
        """What is known of a user as DeerFlow writes it down; `raw` is the document."""
        return self._send(profile_calls.document(user_id, agent_id=agent_id))

    def import_document(
        self,
        user_id: str,
        document: Mapping[str, Any],
        *,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> DocumentImported:
        """Take in a memory document of DeerFlow's, all of it in one go; safe to repeat."""
        return self._send(
            profile_calls.take_in(user_id, document, agent_id=agent_id, dry_run=dry_run)
        )


class AsyncProfiles:
    """`Profiles` for asyncio."""

    def __init__(self, send: AsyncSend, collect: AsyncCollect) -> None:
        self._send = send
        self._collect = collect

    async def get(self, user_id: str | None = None, *, project_id: str | None = None) -> Profile:
        """As `Profiles.get`."""
        return await self._send(profile_calls.get(whose(user_id, project_id)))

    async def update(
        self,
        user_id: str | None = None,
        *,
        project_id: str | None = None,
        version: Version,
        whole: bool = False,
        **changes: Unpack[ProfileChanges],
    ) -> Profile:
        """As `Profiles.update`."""
        owner = whose(user_id, project_id)
        return await self._send(profile_calls.update(owner, changes, version, whole=whole))

    async def history(
        self,
        user_id: str | None = None,
        *,
        project_id: str | None = None,
        limit: int | None = 100,
    ) -> ProfileHistory:
        """As `Profiles.history`."""
        call = profile_calls.history(whose(user_id, project_id), limit=limit)
        return listing(ProfileHistory, await self._collect(call, limit))

    async def derive(self, user_id: str | None = None, *, project_id: str | None = None) -> Job:
        """As `Profiles.derive`."""
        return await self._send(profile_calls.derive(whose(user_id, project_id)))

    async def document(self, user_id: str, *, agent_id: str | None = None) -> MemoryDocument:
        """As `Profiles.document`."""
        return await self._send(profile_calls.document(user_id, agent_id=agent_id))

    async def import_document(
        self,
        user_id: str,
        document: Mapping[str, Any],
        *,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> DocumentImported:
        """As `Profiles.import_document`."""
        return await self._send(
            profile_calls.take_in(user_id, document, agent_id=agent_id, dry_run=dry_run)
        )
