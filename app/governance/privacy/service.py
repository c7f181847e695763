"""Use cases of erasure. One transaction each: all of it is deleted, or nothing."""

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
from app.identity.projects.repository import ProjectRepository
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.tenants.schemas import ErasureKind, ErasureQuery, Receipt
from app.identity.users.repository import UserRepository
from app.identity.users.schemas import UserNotFoundError
from app.memory.memories.refreshes import pending_graphs, refresh_profiles
from app.platform.database.base import subject_hash
from app.platform.database.failures import DatabaseBusyError
from app.platform.outbox.models import Event
from app.platform.outbox.repository import OutboxRepository
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.unit import Work

log = structlog.get_logger()

ATTEMPTS = 3
"""How often an erasure is tried when it conflicts with another request."""

REPEATED = {"40P01", "23503"}
"""SQLSTATEs after which an erasure is tried again: a deadlock, and a new reference to a row that
was to be deleted."""

# Content, which needs `confirm`. The rest is our own bookkeeping.
HELD = (
    "memories", "messages", "sessions", "members", "memberships", "blocks", "folders", "files",
    "entities", "profiles",
)  # fmt: skip


class ErasureService:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def delete(
        self, principal: Principal, kind: ErasureKind, subject_id: str, query: ErasureQuery
    ) -> Receipt:
        """Erase an agent, a user, a project or a session and all that belongs to it, for good.

        A user's content is deleted everywhere: memories, their history, verdicts, messages and
        kept answers, also when the user itself was never stored; the user's keys are revoked.
        A session's messages and own memories are deleted with it, a project's shared rows, an
        agent's sessions and private memories. A receipt stays that does not name the erased.
        With `dry_run` the counts are returned and nothing is deleted.

        Raises:
            AgentNotFoundError, UserNotFoundError, ProjectNotFoundError,
            SessionNotFoundError: there is none for this caller.
            InsufficientRoleError: the acting user is no owner of the project.
            AgentInUseError: the agent is the home of users.
            ConfirmationRequiredError: it holds something, and `confirm` is not set.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._delete(principal, kind, subject_id, query)
            except DatabaseBusyError as error:
                # A session that was opened meanwhile may have locked its user first.
                if not _may_be_repeated(error):
                    raise
        return await self._delete(principal, kind, subject_id, query)

    async def _delete(
        self, principal: Principal, kind: ErasureKind, subject_id: str, query: ErasureQuery
    ) -> Receipt:
        """Raises ConfirmationRequiredError."""
        async with self._work.write(principal, while_disabled=True) as unit:
            erasure = ErasureRepository(unit.db, principal.tenant_id)
            holdings = await self._holdings(unit.db, erasure, principal, kind, subject_id)
            counts = await erasure.count(holdings)
            held = {name: count for name, count in counts.items() if name in HELD and count}
            if query.dry_run:
                return Receipt(kind=kind, id=subject_id, deleted=counts, dry_run=True)
            if held and not query.confirm:
                raise ConfirmationRequiredError(kind, held)
            lost = await erasure.memory_ids(holdings)
            remembered = await erasure.owners_of(holdings)
            await erasure.orphan(holdings)
            gone = await erasure.delete(holdings)
            self._order_refreshes(
                unit.db, principal, [row for row in remembered if _scope(row) != (kind, subject_id)]
            )
            # Receivers that keep copies are notified, without the owners of the memories.
            await OutboxRepository(unit.db, principal.tenant_id).publish(
                [
                    Event("memory.deleted", {"memory_id": memory_id, "event": "DELETE"})
                    for memory_id in lost
                ]
            )
            kept = await erasure.add_receipt(kind, subject_id, gone, actor=principal.key_id)
        log.info("erasure_completed", kind=kind, erasure_id=kept.erasure_id, **gone)
        return Receipt(
            kind=kind, id=subject_id, deleted=gone, dry_run=False, erasure_id=kept.erasure_id
        )

    def _order_refreshes(
        self, db: AsyncSession, principal: Principal, remembered: Sequence[Mapping[str, Any]]
    ) -> None:
        """Order the refresh of profiles and graphs that were derived from the memories too."""
        refresh_profiles(db, principal.tenant_id, remembered, principal.key_id, gone=True)
        graphs = pending_graphs(db, principal.tenant_id, principal.key_id)
        for row in remembered:
            graphs.note(row)

    async def receipts(self, principal: Principal, query: ErasureListQuery) -> Page[ErasureRead]:
        """A page of receipts, newest first; with `kind` and `id` those of one subject.

        Raises:
            KeyRestrictedError: the key is restricted to an agent or a user.

        """
        if principal.access.restricted:
            raise KeyRestrictedError
        subject = None
        if query.kind is not None and query.id is not None:
            subject = subject_hash(principal.tenant_id, query.kind, query.id)
        start = decode_time(query.cursor, "receipts")
        async with self._work.read(principal) as db:
            rows = await ErasureRepository(db, principal.tenant_id).receipts(
                kind=query.kind, subject=subject, start=start, limit=query.limit
            )
        return page(
            "receipts",
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
        subject_id: str,
    ) -> list[Holding]:
        """What belongs to it, after locking it; nothing can be added to it meanwhile.

        Locks are taken in the order of an append: sessions, then their owners.

        Raises AgentInUseError.
        """
        sessions = SessionRepository(db, principal.access)
        held = Holdings(principal.tenant_id)
        if kind == "session":
            await sessions.get(subject_id, lock=True)
            return held.of_session(subject_id)
        if kind == "user":
            await sessions.lock_all_of(user_id=subject_id)
            return await self._of_user(db, erasure, principal, subject_id)
        if kind == "project":
            await ProjectRepository(db, principal.access).managed(
                subject_id, "delete_project", lock=True
            )
            return held.of_project(subject_id)
        await sessions.lock_all_of(agent_id=subject_id)
        await AgentRepository(db, principal.access).get(subject_id, lock=True)
        users = await erasure.users_at_home(subject_id)
        if users:
            raise AgentInUseError(subject_id, users)
        return held.of_agent(subject_id)

    async def _of_user(
        self, db: AsyncSession, erasure: ErasureRepository, principal: Principal, user_id: str
    ) -> list[Holding]:
        """The same for a user. An unknown user may have a verdict, a kept answer or a key left."""
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
    """Whether the conflicting request has ended, so that another attempt sees its result."""
    driver = getattr(error.__cause__, "orig", None)
    return getattr(driver, "sqlstate", None) in REPEATED
