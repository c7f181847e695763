"""Pending refreshes: profiles and graphs that changes of memories make stale. They are noted with
each change, and their jobs are ordered at the end of the transaction.

At the end, because the order locks the job's row: a transaction that locked memories afterwards
could deadlock with one that deletes them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
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
"""Changes within this time are derived together; each change starts it again."""

PROFILE_LONGEST: Final = timedelta(minutes=2)
PROFILE_PRIORITY: Final = 10
"""Behind whatever else the tenant has to do: no conversation waits for a profile."""


def derive_soon(owner: Owner, *, creator: str | None) -> Order:
    """After a change of memories; one live job per profile."""
    return _profile_order(owner, creator, PROFILE_DELAY)


REQUESTED: Final = "requested"
"""Signal of a derivation that somebody waits for: no interval delays it."""


def derive_now(owner: Owner, *, creator: str | None) -> Order:
    """On request; it joins a pending job of the same profile."""
    order = _profile_order(owner, creator, timedelta(0))
    return replace(order, signals=frozenset({REQUESTED}))


def owner_of(key: str) -> Owner:
    """The owner of the profile that a job with this key derives."""
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
"""The kind of job as clients see it."""

Bucket = tuple[str, str]
"""Scope and id of the scope: a user's, a project's or an agent's."""

GRAPH_DELAY: Final = timedelta(seconds=2)
"""Changes within this time are read together."""

GRAPH_LONGEST: Final = timedelta(seconds=10)
GRAPH_PRIORITY: Final = 5
"""Behind conversations, before profiles."""

_REWORDED: Final = "reworded:"


def refresh_graph_soon(
    bucket: Bucket, *, read: Collection[str], reworded: Collection[str], creator: str | None
) -> Order:
    """After a change of memories; one live job per bucket.

    Args:
        bucket: whose graph it is.
        read: ids of memories whose entities no run has read.
        reworded: those of them whose content changed.
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
    """The bucket whose graph a job with this key refreshes."""
    scope, _, scope_id = key.partition(":")
    return scope, scope_id


def unread_ids(payload: Mapping[str, Any]) -> list[str]:
    """Ids of memories to be read, in order."""
    return sorted(key for key in payload if not key.startswith(_REWORDED))


def reworded_ids(payload: Mapping[str, Any]) -> list[str]:
    """Ids of memories whose content changed, in order."""
    return sorted(key.removeprefix(_REWORDED) for key in payload if key.startswith(_REWORDED))


_PENDING_PROFILES: Final = "pending_profiles"
_PENDING_GRAPHS: Final = "pending_graphs"


class PendingProfiles:
    """Profiles to be derived after one transaction, which calls this last."""

    def __init__(self, tenant_id: str, actor: str | None) -> None:
        self._tenant_id = tenant_id
        self._actor = actor
        self._owners: set[Owner] = set()
        self._gone = False

    def note(self, memories: Iterable[Mapping[str, Any]], *, gone: bool) -> None:
        """Note changed memories; those of users and projects are what profiles are derived from.

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
        """Order the jobs, sorted, so that two transactions cannot deadlock."""
        jobs = JobRepository(db, self._tenant_id)
        for order in await self.orders(db):
            await jobs.schedule(order)

    async def orders(self, db: AsyncSession) -> list[Order]:
        """What is to be ordered, sorted; nothing for users who are gone."""
        users = {owner_id for kind, owner_id in self._owners if kind == "user"}
        if self._gone:
            users = await UserRepository(db, Access(self._tenant_id)).present(users)
        return [
            derive_soon(owner, creator=self._actor)
            for owner in sorted(self._owners)
            if owner[0] == "project" or owner[1] in users
        ]


def refresh_profiles(
    db: AsyncSession,
    tenant_id: str,
    memories: Iterable[Mapping[str, Any]],
    actor: str | None,
    *,
    gone: bool = False,
) -> None:
    """Have the profiles of these memories derived, if the transaction commits."""
    pending = db.info.setdefault(AT_END, {}).setdefault(
        _PENDING_PROFILES, PendingProfiles(tenant_id, actor)
    )
    pending.note(memories, gone=gone)


class PendingGraphs:
    """Graphs to be refreshed after one transaction, which calls this last: those whose memories
    changed, with the memories whose entities no run has read.
    """

    def __init__(self, tenant_id: str, actor: str | None) -> None:
        self._tenant_id = tenant_id
        self._actor = actor
        self._read: dict[Bucket, set[str]] = {}
        self._reworded: set[str] = set()
        self._gone = False

    def note(self, row: Mapping[str, Any], *, read: bool = False, reworded: bool = False) -> None:
        """Note a changed memory: to be `read` for its entities or not, with new content or not."""
        if row["scope"] == "session":
            return
        ids = self._read.setdefault((row["scope"], row["scope_id"]), set())
        if read:
            ids.add(row["memory_id"])
        else:
            # It may have gone with its user; a memory to be read still has one.
            self._gone = True
        if reworded:
            self._reworded.add(row["memory_id"])

    async def __call__(self, db: AsyncSession) -> None:
        """Order the jobs, sorted, so that two transactions cannot deadlock."""
        jobs = JobRepository(db, self._tenant_id)
        for order in await self.orders(db):
            await jobs.schedule(order)

    async def orders(self, db: AsyncSession) -> list[Order]:
        """What is to be ordered, sorted; nothing for users who are gone."""
        users = {scope_id for scope, scope_id in self._read if scope == "user"}
        if users and self._gone:
            users = await UserRepository(db, Access(self._tenant_id)).present(users)
        return [
            refresh_graph_soon(bucket, read=ids, reworded=ids & self._reworded, creator=self._actor)
            for bucket, ids in sorted(self._read.items())
            if bucket[0] != "user" or bucket[1] in users
        ]


def pending_graphs(db: AsyncSession, tenant_id: str, actor: str | None) -> PendingGraphs:
    """The pending graphs of this transaction, to note changes in."""
    pending: PendingGraphs = db.info.setdefault(AT_END, {}).setdefault(
        _PENDING_GRAPHS, PendingGraphs(tenant_id, actor)
    )
    return pending


async def take_orders(db: AsyncSession) -> list[Order]:
    """What this transaction would order at its end, for its last statement to order instead."""
    waiting = db.info.get(AT_END, {})
    orders: list[Order] = []
    for name in (_PENDING_PROFILES, _PENDING_GRAPHS):
        if name in waiting:
            orders += await waiting.pop(name).orders(db)
    return orders


def refresh_added(
    db: AsyncSession, tenant_id: str, rows: Sequence[Mapping[str, Any]], actor: str | None
) -> None:
    """Have what new memories say read into graphs and profiles, if the transaction commits."""
    if not rows:
        return
    refresh_profiles(db, tenant_id, rows, actor)
    graphs = pending_graphs(db, tenant_id, actor)
    for row in rows:
        graphs.note(row, read=True)
