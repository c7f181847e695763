"""Use cases of letting go. One transaction each: all of it goes, or nothing does."""

from typing import Literal

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.agents.repository import AgentRepository
from app.database.engine import Database
from app.database.failures import DatabaseBusyError
from app.errors import ConfirmationRequiredError
from app.outbox.events import Event
from app.outbox.repository import OutboxRepository
from app.privacy.errors import AgentInUseError
from app.privacy.repository import ErasureRepository, Holding
from app.privacy.schemas import ErasureQuery, Receipt
from app.projects.repository import ProjectRepository
from app.sessions.repository import SessionRepository
from app.tenants.access import Principal
from app.users.errors import UserNotFoundError
from app.users.repository import UserRepository

log = structlog.get_logger()

Kind = Literal["agent", "user", "project", "session"]

ATTEMPTS = 3
"""How often an erasure is begun when it ran into another request."""

DEADLOCK = "40P01"

# What a person would miss. The rest is our own book-keeping about it.
HELD = ("memories", "messages", "sessions", "members", "memberships")


class ErasureService:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def delete(
        self, principal: Principal, kind: Kind, one: str, query: ErasureQuery
    ) -> Receipt:
        """Delete an agent, a user, a project or a session and all that hangs on it, for good.

        A user's words go from everywhere: memories, their history, verdicts, messages and
        kept answers, though the user was never stored; and the user's keys are revoked.
        With a session go its messages and its own memories, with a project what was shared
        there, with an agent its sessions and private memories.

        Raises:
            AgentNotFoundError, UserNotFoundError, ProjectNotFoundError,
            SessionNotFoundError: there is none for this caller.
            AgentInUseError: users are at home with the agent.
            ConfirmationRequiredError: it holds something, and `confirm` is not set.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._delete(principal, kind, one, query)
            except DatabaseBusyError as error:
                # A session that was opened meanwhile may be locked after its user.
                if not _is_deadlock(error):
                    raise
        return await self._delete(principal, kind, one, query)

    async def _delete(
        self, principal: Principal, kind: Kind, one: str, query: ErasureQuery
    ) -> Receipt:
        async with self._database.begin(principal.tenant_id) as db:
            erasure = ErasureRepository(db, principal.tenant_id)
            holdings = await self._holdings(db, erasure, principal, kind, one)
            counts = await erasure.count(holdings)
            held = {name: count for name, count in counts.items() if name in HELD and count}
            if query.dry_run:
                return Receipt(kind=kind, id=one, deleted=counts, dry_run=True)
            if held and not query.confirm:
                raise ConfirmationRequiredError(kind, held)
            lost = await erasure.memory_ids(holdings)
            gone = await erasure.delete(holdings)
            # Whoever keeps a copy has to hear of it, and not whose the memories were.
            await OutboxRepository(db, principal.tenant_id).publish(
                [
                    Event("memory.deleted", {"memory_id": memory_id, "event": "DELETE"})
                    for memory_id in lost
                ]
            )
        log.info("erased", kind=kind, id=one, **gone)
        return Receipt(kind=kind, id=one, deleted=gone, dry_run=False)

    async def _holdings(
        self,
        db: AsyncSession,
        erasure: ErasureRepository,
        principal: Principal,
        kind: Kind,
        one: str,
    ) -> list[Holding]:
        """What hangs on it, after locking it; nothing new can be hung on it meanwhile.

        Locks are taken as an append takes them: sessions, then whose they are.
        """
        sessions = SessionRepository(db, principal.access)
        if kind == "session":
            await sessions.get(one, lock=True)
            return erasure.of_session(one)
        if kind == "user":
            await sessions.lock_all_of(user_id=one)
            return await self._of_user(db, erasure, principal, one)
        if kind == "project":
            await ProjectRepository(db, principal.access).get(one, lock=True)
            return erasure.of_project(one)
        await sessions.lock_all_of(agent_id=one)
        await AgentRepository(db, principal.access).get(one, lock=True)
        users = await erasure.users_at_home(one)
        if users:
            raise AgentInUseError(one, users)
        return erasure.of_agent(one)

    async def _of_user(
        self, db: AsyncSession, erasure: ErasureRepository, principal: Principal, user_id: str
    ) -> list[Holding]:
        """As above. Of someone unknown a verdict or a kept answer may be left, or a key."""
        holdings = erasure.of_user(user_id)
        try:
            await UserRepository(db, principal.access).get(user_id, lock=True)
        except UserNotFoundError:
            if principal.access.restricted or not any((await erasure.count(holdings)).values()):
                raise
        return holdings


def _is_deadlock(error: DatabaseBusyError) -> bool:
    driver = getattr(error.__cause__, "orig", None)
    return getattr(driver, "sqlstate", None) == DEADLOCK
