"""Pending refreshes: profiles and graphs that changes of memories make stale. They are noted with
each change, and their jobs are ordered at the end of the transaction.

At the end, because the order locks the job's row: a transaction that locked memories afterwards
could deadlock with one that deletes them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, Literal

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.errors import DomainError
from app.identity.tenants.access import Access, Principal
from app.identity.users.repository import UserRepository
from app.platform.database.engine import AT_END
from app.platform.jobs.orders import CHANGED, Order
from app.platform.jobs.repository import JobRepository
from app.platform.work.unit import Work

log = structlog.get_logger()

PROFILE: Final = "profile"

Owner = tuple[Literal["user", "project"], str]
"""Whose profile: a user's, or a project's; and the id."""

Bucket = tuple[str, str]
"""Scope and id of the scope: a user's, a project's or an agent's."""

GATHERING: Final = timedelta(minutes=1)
"""New memories within this time are read together; each starts it again. A read of the graph or the
profile ends it.
"""

LONGEST: Final = timedelta(minutes=2)
"""The most that further memories delay a refresh."""

PROFILE_DELAY: Final = timedelta(seconds=20)
"""The same for memories that changed or are gone."""

PROFILE_PRIORITY: Final = 10
"""Behind whatever else the tenant has to do: no conversation waits for a profile."""


def derive_soon(owner: Owner, *, creator: str | None, changed: bool) -> Order:
    """After new memories, or `changed` ones; one live job per profile."""
    order = _profile_order(owner, creator, PROFILE_DELAY if changed else GATHERING)
    return replace(order, signals=frozenset({CHANGED})) if changed else order


REQUESTED: Final = "requested"
"""Signal of a derivation that somebody waits for: no interval delays it."""


def derive_now(owner: Owner, *, creator: str | None) -> Order:
    """On request; it joins a pending job of the same profile."""
    order = _profile_order(owner, creator, timedelta(0))
    return replace(order, signals=frozenset({REQUESTED}))


def key_of(owner: Owner | Bucket) -> str:
    """The key of jobs about a profile or the graph of a bucket."""
    return ":".join(owner)


def owner_of(key: str) -> Owner:
    """The owner of the profile that a job with this key derives."""
    kind, _, owner_id = key.partition(":")
    return ("user" if kind == "user" else "project"), owner_id


def _profile_order(owner: Owner, creator: str | None, delay: timedelta) -> Order:
    kind, owner_id = owner
    return Order(
        kind=PROFILE,
        key=key_of(owner),
        user_id=owner_id if kind == "user" else None,
        creator=creator,
        delay=delay,
        longest=LONGEST,
        priority=PROFILE_PRIORITY,
    )


GRAPH_REFRESH: Final = "graph_tidy"
"""The kind of job as clients see it."""

GRAPH_DELAY: Final = timedelta(seconds=2)
GRAPH_LONGEST: Final = timedelta(seconds=10)
"""Of memories that changed or are gone."""

GRAPH_PRIORITY: Final = 5
"""Behind conversations, before profiles."""

_REWORDED: Final = "reworded:"


def refresh_graph_soon(
    bucket: Bucket,
    *,
    read: Collection[str],
    reworded: Collection[str],
    creator: str | None,
    changed: bool,
) -> Order:
    """After new memories, or `changed` ones; one live job per bucket.

    Args:
        bucket: whose graph it is.
        read: ids of memories whose entities no run has read.
        reworded: those of them whose content changed.
        creator: the key that changed them.

    """
    scope, scope_id = bucket
    return Order(
        kind=GRAPH_REFRESH,
        key=key_of(bucket),
        user_id=scope_id if scope == "user" else None,
        creator=creator,
        # Keys of their own, since payloads of joined orders are united key by key.
        payload=dict.fromkeys(read, True)
        | {f"{_REWORDED}{memory_id}": True for memory_id in reworded},
        signals=frozenset({CHANGED} if changed else ()),
        delay=GRAPH_DELAY if changed else GATHERING,
        longest=GRAPH_LONGEST if changed else LONGEST,
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
        self._owners: dict[Owner, bool] = {}
        self._gone = False

    def note(self, memories: Iterable[Mapping[str, Any]], *, changed: bool, gone: bool) -> None:
        """Note memories; those of users and projects are what profiles are derived from.

        Args:
            changed: whether they were there before.
            gone: whether they were deleted, perhaps with their user.

        """
        self._gone = self._gone or gone
        for row in memories:
            if row["scope"] in {"user", "project"}:
                owner: Owner = ("user" if row["scope"] == "user" else "project"), row["scope_id"]
                self._owners[owner] = self._owners.get(owner, False) or changed

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
            derive_soon(owner, creator=self._actor, changed=changed)
            for owner, changed in sorted(self._owners.items())
            if owner[0] == "project" or owner[1] in users
        ]


def refresh_profiles(
    db: AsyncSession,
    tenant_id: str,
    memories: Iterable[Mapping[str, Any]],
    actor: str | None,
    *,
    changed: bool = True,
    gone: bool = False,
) -> None:
    """Have the profiles of these memories derived, if the transaction commits."""
    pending = db.info.setdefault(AT_END, {}).setdefault(
        _PENDING_PROFILES, PendingProfiles(tenant_id, actor)
    )
    pending.note(memories, changed=changed, gone=gone)


class PendingGraphs:
    """Graphs to be refreshed after one transaction, which calls this last: those whose memories
    changed, with the memories whose entities no run has read.
    """

    def __init__(self, tenant_id: str, actor: str | None) -> None:
        self._tenant_id = tenant_id
        self._actor = actor
        self._read: dict[Bucket, set[str]] = {}
        self._reworded: set[str] = set()
        self._changed: set[Bucket] = set()
        self._gone = False

    def note(
        self,
        row: Mapping[str, Any],
        *,
        read: bool = False,
        reworded: bool = False,
        changed: bool = True,
    ) -> None:
        """Note a memory: to be `read` for its entities or not, with new content or not, one that
        was there before (`changed`) or not.
        """
        if row["scope"] == "session":
            return
        bucket = (row["scope"], row["scope_id"])
        ids = self._read.setdefault(bucket, set())
        if changed:
            self._changed.add(bucket)
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
            refresh_graph_soon(
                bucket,
                read=ids,
                reworded=ids & self._reworded,
                creator=self._actor,
                changed=bucket in self._changed,
            )
            for bucket, ids in sorted(self._read.items())
            if bucket[0] != "user" or bucket[1] in users
        ]


def pending_graphs(db: AsyncSession, tenant_id: str, actor: str | None) -> PendingGraphs:
    """The pending graphs of this transaction, to note changes in."""
    pending: PendingGraphs = db.info.setdefault(AT_END, {}).setdefault(
        _PENDING_GRAPHS, PendingGraphs(tenant_id, actor)
    )
    return pending


MOST_HASTENED: Final = 20
"""Refreshes that one read brings forward."""


async def hasten(work: Work, principal: Principal, kind: str, key: str | None = None) -> None:
    """Have a refresh done at once that waits for further memories: somebody reads what it changes.

    Their answer is what there is; the next read finds the rest. It never fails: without a database
    that can be written to the refresh comes when it is due.

    Args:
        key: whose profile or graph; without it those of the tenant that are due next.

    """
    try:
        async with work.read(principal) as db:
            jobs = JobRepository(db, principal.tenant_id)
            waiting = await jobs.waiting(kind, key, most=MOST_HASTENED)
        if waiting:
            async with work.write(principal) as unit:
                await JobRepository(unit.db, principal.tenant_id).hasten(waiting)
    except Exception as error:  # noqa: BLE001 (the answer is ready)
        code = error.code if isinstance(error, DomainError) else type(error).__name__
        log.info("refresh_not_hastened", kind=kind, code=code)


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
    refresh_profiles(db, tenant_id, rows, actor, changed=False)
    graphs = pending_graphs(db, tenant_id, actor)
    for row in rows:
        graphs.note(row, read=True, changed=False)
