"""Profiles and graphs that a transaction's changes leave behind: noted as they come, ordered at
its end.

At the end, because the order locks the job's row: a transaction that went on to lock memories
could wait in a ring with one that deletes them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.identity.users.graph_order import Bucket, tidy_soon
from app.identity.users.profile_order import Owner, derive_soon
from app.identity.users.repository import UserRepository
from app.platform.database.engine import AT_END
from app.platform.jobs.repository import JobRepository

_OWED: Final = "profiles_owed"
_GRAPHS: Final = "graphs_owed"


class ProfilesOwed:
    """Of one transaction, in which it is called last."""

    def __init__(self, tenant_id: str, actor: str | None) -> None:
        self._tenant_id = tenant_id
        self._actor = actor
        self._owners: set[Owner] = set()
        self._gone = False

    def note(self, memories: Iterable[Mapping[str, Any]], *, gone: bool) -> None:
        """These changed; a user's own memories and those of a project are what profiles tell.

        Args:
            gone: whether they were deleted, perhaps with their user.

        """
        self._gone = self._gone or gone
        for row in memories:
            if row["scope"] == "user":
                self._owners.add(("user", row["scope_id"]))
            elif row["scope"] == "project":
                self._owners.add(("project", row["scope_id"]))

    async def __call__(self, db: AsyncSession) -> None:
        """Order them. In one sequence, so that two transactions cannot wait for each other."""
        jobs = JobRepository(db, self._tenant_id)
        users = {one for kind, one in self._owners if kind == "user"}
        if self._gone:
            users = await UserRepository(db, Access(self._tenant_id)).present(users)
        for owner in sorted(self._owners):
            if owner[0] == "project" or owner[1] in users:
                await jobs.schedule(derive_soon(owner, creator=self._actor))


def owe_profiles(
    db: AsyncSession,
    tenant_id: str,
    memories: Iterable[Mapping[str, Any]],
    actor: str | None,
    *,
    gone: bool = False,
) -> None:
    """Have the profiles that tell of these memories derived, if the transaction commits."""
    owed = db.info.setdefault(AT_END, {}).setdefault(_OWED, ProfilesOwed(tenant_id, actor))
    owed.note(memories, gone=gone)


class GraphsOwed:
    """Of one transaction, in which it is called last: graphs that memories no longer bear out,
    and memories that no run has read for whom they speak of.
    """

    def __init__(self, tenant_id: str, actor: str | None) -> None:
        self._tenant_id = tenant_id
        self._actor = actor
        self._read: dict[Bucket, set[str]] = {}
        self._reworded: set[str] = set()
        self._gone = False

    def note(self, row: Mapping[str, Any], *, read: bool = False, reworded: bool = False) -> None:
        """It changed: perhaps it is to be `read`, perhaps it says something else."""
        if row["scope"] == "session":
            return
        ids = self._read.setdefault((row["scope"], row["scope_id"]), set())
        if read:
            ids.add(row["memory_id"])
        else:
            # Perhaps with its user; whose memory is to be read is there.
            self._gone = True
        if reworded:
            self._reworded.add(row["memory_id"])

    async def __call__(self, db: AsyncSession) -> None:
        """Order them, in one sequence; none of users who are gone."""
        jobs = JobRepository(db, self._tenant_id)
        users = {one for scope, one in self._read if scope == "user"}
        if users and self._gone:
            users = await UserRepository(db, Access(self._tenant_id)).present(users)
        for bucket, ids in sorted(self._read.items()):
            if bucket[0] != "user" or bucket[1] in users:
                reworded = ids & self._reworded
                await jobs.schedule(
                    tidy_soon(bucket, read=ids, reworded=reworded, creator=self._actor)
                )


def graphs_owed(db: AsyncSession, tenant_id: str, actor: str | None) -> GraphsOwed:
    """What the transaction owes the graph, if it commits; to note more in it."""
    owed: GraphsOwed = db.info.setdefault(AT_END, {}).setdefault(
        _GRAPHS, GraphsOwed(tenant_id, actor)
    )
    return owed
