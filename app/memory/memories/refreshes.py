"""Profiles and graphs that changes of memories make stale: noted as the changes come, ordered at
the end of the transaction.

At the end, because the order locks the job's row: a transaction that went on to lock memories
could wait in a ring with one that deletes them.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, Literal

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.identity.users.repository import UserRepository
from app.platform.database.engine import AT_END
from app.platform.jobs.orders import Order
from app.platform.jobs.repository import JobRepository

PROFILE: Final = "profile"

Owner = tuple[Literal["user", "project"], str]
"""Whose profile: a user's, or a project's; and the id."""

PROFILE_DELAY: Final = timedelta(seconds=20)
"""What changes within it is derived from together, and each change begins it anew."""

PROFILE_LONGEST: Final = timedelta(minutes=2)
PROFILE_PRIORITY: Final = 10
"""Behind whatever else the tenant has to do: no conversation waits for a profile."""


def derive_soon(owner: Owner, *, creator: str | None) -> Order:
    """Behind a change of memories; one live job per profile."""
    return _profile_order(owner, creator, PROFILE_DELAY)


def derive_now(owner: Owner, *, creator: str | None) -> Order:
    """Because somebody asks; it joins what is owed already."""
    return _profile_order(owner, creator, timedelta(0))


def owner_of(key: str) -> Owner:
    """Whose profile a job of this key derives."""
    kind, _, owner_id = key.partition(":")
    return ("user" if kind == "user" else "project"), owner_id


def _profile_order(owner: Owner, creator: str | None, delay: timedelta) -> Order:
    kind, owner_id = owner
    return Order(
        kind=PROFILE,
        key=f"{kind}:{owner_id}",
        user_id=owner_id if kind == "user" else None,
        creator=creator,
        delay=delay,
        longest=PROFILE_LONGEST,
        priority=PROFILE_PRIORITY,
    )


GRAPH_REFRESH: Final = "graph_tidy"

Bucket = tuple[str, str]
"""Scope and id of the scope: a user's, a project's or an agent's."""

GRAPH_DELAY: Final = timedelta(seconds=2)
"""What changes within it is looked at together."""

GRAPH_LONGEST: Final = timedelta(seconds=10)
GRAPH_PRIORITY: Final = 5
"""Behind conversations, before profiles."""

_REWORDED: Final = "reworded:"


def refresh_graph_soon(
    bucket: Bucket, *, read: Collection[str], reworded: Collection[str], creator: str | None
) -> Order:
    """Behind a change of memories; one live job per bucket.

    Args:
        bucket: whose graph it is.
        read: ids of memories that no run has read for whom they speak of.
        reworded: those of them that said something else before.
        creator: the key that changed them.

    """
    scope, scope_id = bucket
    return Order(
        kind=GRAPH_REFRESH,
        key=f"{scope}:{scope_id}",
        user_id=scope_id if scope == "user" else None,
        creator=creator,
        # Keys of their own, since payloads of joined orders are united key by key.
        payload=dict.fromkeys(read, True)
        | {f"{_REWORDED}{memory_id}": True for memory_id in reworded},
        delay=GRAPH_DELAY,
        longest=GRAPH_LONGEST,
        priority=GRAPH_PRIORITY,
    )


def bucket_of(key: str) -> Bucket:
    """Whose graph a job of this key looks at."""
    scope, _, scope_id = key.partition(":")
    return scope, scope_id


def unread_ids(payload: Mapping[str, Any]) -> list[str]:
    """Ids of memories that are to be read."""
    return sorted(key for key in payload if not key.startswith(_REWORDED))


def reworded_ids(payload: Mapping[str, Any]) -> list[str]:
    """Ids of those that said something else before."""
    return sorted(key.removeprefix(_REWORDED) for key in payload if key.startswith(_REWORDED))


_PENDING_PROFILES: Final = "pending_profiles"
_PENDING_GRAPHS: Final = "pending_graphs"


class PendingProfiles:
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
        users = {owner_id for kind, owner_id in self._owners if kind == "user"}
        if self._gone:
            users = await UserRepository(db, Access(self._tenant_id)).present(users)
        for owner in sorted(self._owners):
            if owner[0] == "project" or owner[1] in users:
                await jobs.schedule(derive_soon(owner, creator=self._actor))


def refresh_profiles(
    db: AsyncSession,
    tenant_id: str,
    memories: Iterable[Mapping[str, Any]],
    actor: str | None,
    *,
    gone: bool = False,
) -> None:
    """Have the profiles that tell of these memories derived, if the transaction commits."""
    pending = db.info.setdefault(AT_END, {}).setdefault(
        _PENDING_PROFILES, PendingProfiles(tenant_id, actor)
    )
    pending.note(memories, gone=gone)


class PendingGraphs:
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
        users = {scope_id for scope, scope_id in self._read if scope == "user"}
        if users and self._gone:
            users = await UserRepository(db, Access(self._tenant_id)).present(users)
        for bucket, ids in sorted(self._read.items()):
            if bucket[0] != "user" or bucket[1] in users:
                reworded = ids & self._reworded
                await jobs.schedule(
                    refresh_graph_soon(bucket, read=ids, reworded=reworded, creator=self._actor)
                )


def pending_graphs(db: AsyncSession, tenant_id: str, actor: str | None) -> PendingGraphs:
    """The graphs to be refreshed if the transaction commits; to note more in it."""
    pending: PendingGraphs = db.info.setdefault(AT_END, {}).setdefault(
        _PENDING_GRAPHS, PendingGraphs(tenant_id, actor)
    )
    return pending
