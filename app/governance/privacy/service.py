"""Use cases of erasure. One transaction each: all of it goes, or nothing does."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.repository import SessionRepository
from app.errors import ConfirmationRequiredError
from app.governance.privacy.holdings_sql import Holding, Holdings
from app.governance.privacy.repository import ErasureRepository
from app.governance.privacy.schemas import ErasureListQuery, ErasureRead
from app.identity.agents.errors import AgentInUseError
from app.identity.agents.repository import AgentRepository
from app.identity.erasure import ErasureKind, ErasureQuery, Receipt
from app.identity.projects.repository import ProjectRepository
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.users.errors import UserNotFoundError
from app.identity.users.repository import UserRepository
from app.memory.memories.refreshes import pending_graphs, refresh_profiles
from app.platform.database.base import subject_hash
from app.platform.database.failures import DatabaseBusyError
from app.platform.outbox.events import Event
from app.platform.outbox.repository import OutboxRepository
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.unit import Work

log = structlog.get_logger()

ATTEMPTS = 3
"""How often an erasure is begun when it ran into another request."""

REPEATED = {"40P01", "23503"}
"""Codes of PostgreSQL after which an erasure begins again: a deadlock, and a new reference to a row
that was to be deleted."""

# What a person would miss. The rest is our own book-keeping about it.
HELD = (
    "memories", "messages", "sessions", "members", "memberships", "blocks", "folders", "files",
    "entities", "profiles",
)  # fmt: skip


class ErasureService:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def delete(
        self, principal: Principal, kind: ErasureKind, one: str, query: ErasureQuery
    ) -> Receipt:
        """Delete an agent, a user, a project or a session and all that hangs on it, for good.

        A user's words go from everywhere: memories, their history, verdicts, messages and
        kept answers, though the user was never stored; and the user's keys are revoked. A
        receipt stays that names nobody.
        With a session go its messages and its own memories, with a project what was shared
        there, with an agent its sessions and private memories.

        Raises:
            AgentNotFoundError, UserNotFoundError, ProjectNotFoundError,
            SessionNotFoundError: there is none for this caller.
            InsufficientRoleError: the acting user is no owner of the project.
            AgentInUseError: users are at home with the agent.
            ConfirmationRequiredError: it holds something, and `confirm` is not set.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._delete(principal, kind, one, query)
            except DatabaseBusyError as error:
                # A session that was opened meanwhile may be locked after its user.
                if not _may_be_repeated(error):
                    raise
        return await self._delete(principal, kind, one, query)

    async def _delete(
        self, principal: Principal, kind: ErasureKind, one: str, query: ErasureQuery
    ) -> Receipt:
        async with self._work.write(principal, while_disabled=True) as unit:
            erasure = ErasureRepository(unit.db, principal.tenant_id)
            holdings = await self._holdings(unit.db, erasure, principal, kind, one)
            counts = await erasure.count(holdings)
            held = {name: count for name, count in counts.items() if name in HELD and count}
            if query.dry_run:
                return Receipt(kind=kind, id=one, deleted=counts, dry_run=True)
            if held and not query.confirm:
                raise ConfirmationRequiredError(kind, held)
            lost = await erasure.memory_ids(holdings)
            told = await erasure.told_of(holdings)
            await erasure.orphan(holdings)
            gone = await erasure.delete(holdings)
            self._owe(unit.db, principal, [row for row in told if _scope(row) != (kind, one)])
            # Whoever keeps a copy has to hear of it, and not whose the memories were.
            await OutboxRepository(unit.db, principal.tenant_id).publish(
                [
                    Event("memory.deleted", {"memory_id": memory_id, "event": "DELETE"})
                    for memory_id in lost
                ]
            )
            kept = await erasure.add_receipt(kind, one, gone, actor=principal.key_id)
        log.info("erasure_completed", kind=kind, erasure_id=kept.erasure_id, **gone)
        return Receipt(kind=kind, id=one, deleted=gone, dry_run=False, erasure_id=kept.erasure_id)

    def _owe(
        self, db: AsyncSession, principal: Principal, told: Sequence[Mapping[str, Any]]
    ) -> None:
        """Have what others still know told anew: profiles and graphs that stood on it too."""
        refresh_profiles(db, principal.tenant_id, told, principal.key_id, gone=True)
        graphs = pending_graphs(db, principal.tenant_id, principal.key_id)
        for row in told:
            graphs.note(row)

    async def receipts(self, principal: Principal, query: ErasureListQuery) -> Page[ErasureRead]:
        """What was erased, newest first, or the receipts of one id.

        Raises:
            KeyRestrictedError: the key is one agent's or one user's.

        """
        if principal.access.restricted:
            raise KeyRestrictedError
        subject = None
        if query.kind is not None and query.id is not None:
            subject = subject_hash(principal.tenant_id, query.kind, query.id)
        start = decode_time(query.cursor)
        async with self._work.write(principal, while_disabled=True) as unit:
            rows = await ErasureRepository(unit.db, principal.tenant_id).receipts(
                kind=query.kind, subject=subject, start=start, limit=query.limit
            )
        return page(
            rows,
            query.limit,
            show=ErasureRead.model_validate,
            place=lambda row: (row.create_time, row.erasure_id),
        )

    async def _holdings(
        self,
        db: AsyncSession,
        erasure: ErasureRepository,
        principal: Principal,
        kind: ErasureKind,
        one: str,
    ) -> list[Holding]:
        """What hangs on it, after locking it; nothing new can be hung on it meanwhile.

        Locks are taken as an append takes them: sessions, then whose they are.
        """
        sessions = SessionRepository(db, principal.access)
        held = Holdings(principal.tenant_id)
        if kind == "session":
            await sessions.get(one, lock=True)
            return held.of_session(one)
        if kind == "user":
            await sessions.lock_all_of(user_id=one)
            return await self._of_user(db, erasure, principal, one)
        if kind == "project":
            await ProjectRepository(db, principal.access).managed(one, "delete_project", lock=True)
            return held.of_project(one)
        await sessions.lock_all_of(agent_id=one)
        await AgentRepository(db, principal.access).get(one, lock=True)
        users = await erasure.users_at_home(one)
        if users:
            raise AgentInUseError(one, users)
        return held.of_agent(one)

    async def _of_user(
        self, db: AsyncSession, erasure: ErasureRepository, principal: Principal, user_id: str
    ) -> list[Holding]:
        """As above. Of someone unknown a verdict or a kept answer may be left, or a key."""
        holdings = Holdings(principal.tenant_id).of_user(user_id)
        try:
            await UserRepository(db, principal.access).get(user_id, lock=True)
        except UserNotFoundError:
            if principal.access.restricted or not any((await erasure.count(holdings)).values()):
                raise
        return holdings


def _scope(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["scope"], row["scope_id"]


def _may_be_repeated(error: DatabaseBusyError) -> bool:
    """Whether somebody was in the way whom the next attempt sees."""
    driver = getattr(error.__cause__, "orig", None)
    return getattr(driver, "sqlstate", None) in REPEATED
