"""SQL for sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.models import Session, SessionRow
from app.conversation.sessions.schemas import (
    SessionEndedError,
    SessionMismatchError,
    SessionNotFoundError,
)
from app.errors import DisabledError, IdTakenError, NotFoundError
from app.identity.agents.errors import AgentNotFoundError
from app.identity.agents.repository import Agent, AgentRepository
from app.identity.projects.repository import ProjectRepository
from app.identity.projects.schemas import ProjectNotFoundError
from app.identity.tenants.access import Access
from app.identity.users.repository import User, UserRepository
from app.identity.users.schemas import UserNotFoundError, UserRequiredError
from app.platform.database.base import Id, Timestamp, after, apply_changes
from app.platform.database.engine import driver_of
from app.platform.database.failures import violated_constraint


@dataclass(frozen=True, slots=True)
class Participants:
    """Who is in a conversation, as a request names them; what is None is found or made."""

    user_id: str | None = None
    agent_id: str | None = None
    project_id: str | None = None


class Opened(NamedTuple):
    """A session, locked, with whom it is about; `now` is PostgreSQL's clock at the lock."""

    session: Session
    agent: Agent
    user: User
    now: datetime

    @property
    def remembers(self) -> bool:
        """Whether neither the agent nor the session keeps what is said out of memory."""
        return self.agent.memory_enabled and self.session.memory_enabled


_UNREAD_SINCE = """
SELECT least(said_at, create_time) FROM messages
WHERE tenant_id = $1 AND session_id = $2 AND sequence_no > $3 AND captured
ORDER BY sequence_no LIMIT 1
"""


@cache
def _locking(*, by_agent: bool, by_user: bool) -> Select[Session, Agent, User, datetime]:
    """A session with its agent and user, locked, and the time."""
    tenant_id = bindparam("tenant_id", type_=Id)
    statement = (
        select(Session, Agent, User, func.clock_timestamp(type_=Timestamp))
        .join(Agent, (Agent.tenant_id == tenant_id) & (Agent.agent_id == Session.agent_id))
        .join(User, (User.tenant_id == tenant_id) & (User.user_id == Session.user_id))
        .where(
            Session.tenant_id == tenant_id,
            Session.session_id == bindparam("session_id"),
        )
        .with_for_update(of=Session)
        # The row may have been read before the lock was granted.
        .execution_options(populate_existing=True)
    )
    if by_agent:
        statement = statement.where(Session.agent_id == bindparam("agent_id"))
    if by_user:
        statement = statement.where(Session.user_id == bindparam("user_id"))
    return statement


class SessionRepository:
    """Sessions a caller may see. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    def _visible(self) -> Select[Session]:
        statement = select(Session).where(Session.tenant_id == self._access.tenant_id)
        if self._access.agent_id is not None:
            statement = statement.where(Session.agent_id == self._access.agent_id)
        if self._access.user_id is not None:
            statement = statement.where(Session.user_id == self._access.user_id)
        return statement

    async def add(self, session: Session) -> None:
        """Insert `session` now, so that a taken id is reported here. Raises IdTakenError."""
        session.tenant_id = self._access.tenant_id
        self._db.add(session)
        try:
            await self._db.flush()
        except IntegrityError as error:
            if violated_constraint(error) == "sessions_pkey":
                raise IdTakenError("session_id", session.session_id) from error
            raise
        await self._db.refresh(session)

    async def find(self, session_id: str) -> Session | None:
        return await self._db.scalar(self._visible().where(Session.session_id == session_id))

    async def get(self, session_id: str, *, lock: bool = False) -> Session:
        """Raises SessionNotFoundError."""
        statement = self._visible().where(Session.session_id == session_id)
        session = await self._db.scalar(statement.with_for_update() if lock else statement)
        if session is None:
            raise SessionNotFoundError(session_id)
        return session

    async def unread_since(self, session: SessionRow) -> datetime | None:
        """When the first message was said that was not read for memories; None without one."""
        driver = await driver_of(self._db)
        row = await driver.fetchrow(
            _UNREAD_SINCE, session.tenant_id, session.session_id, session.last_extracted_seq
        )
        return None if row is None else row[0]

    async def lock_all_of(self, *, user_id: str | None = None, agent_id: str | None = None) -> None:
        """Lock every session of a user or an agent, before the user or the agent itself.

        An append locks its session first and then what the session refers to.
        """
        whose = Session.agent_id == agent_id if user_id is None else Session.user_id == user_id
        await self._db.execute(
            select(Session.session_id)
            .where(Session.tenant_id == self._access.tenant_id, whose)
            .order_by(Session.session_id)
            .with_for_update()
        )

    async def ensure_participants(
        self, named: Participants, *, create: bool, creator: str | None
    ) -> tuple[Agent, User]:
        """The agent and the user of a new session, made on first use where `create` allows.

        Raises:
            AgentNotFoundError, UserNotFoundError, ProjectNotFoundError: one is missing.
            UserRequiredError: neither the request nor the key names one.
            IdTakenError: the user id is one this key may not see.
            DisabledError: the agent or the user is disabled.

        """
        agents = AgentRepository(self._db, self._access)
        users = UserRepository(self._db, self._access)
        access = self._access
        user_id = named.user_id or access.user_id or access.default_user_id
        if user_id is None:
            raise UserRequiredError
        known = await users.find(user_id)
        agent_id = named.agent_id or (known.agent_id if known else None)
        agent = await agents.ensure(agent_id, create=create, creator=creator)
        user = known or await users.ensure(user_id, agent_id=agent.agent_id, create=create)
        refuse_disabled(agent, user)
        if named.project_id is not None:
            await ProjectRepository(self._db, self._access).get(named.project_id)
        return agent, user

    async def open_for_append(
        self, session_id: str, named: Participants, *, create: bool, creator: str | None
    ) -> Opened:
        """The session, locked until the transaction ends; made on first use.

        Raises:
            SessionNotFoundError: missing, and may not be made.
            UserRequiredError: missing, and neither the request nor the key says whose it is.
            SessionMismatchError: it was opened with another user, agent or project.
            IdTakenError: it is a session this key may not see.
            IdNotAllowedError: missing or not to be seen, and the key is bound and may not choose
                the id.
            DisabledError: its agent or user is disabled.

        """
        found = await self._locked(session_id)
        if found is None:
            if not create:
                raise SessionNotFoundError(session_id)
            await self.ensure_opened(session_id, named, create=create, creator=creator)
            found = await self._locked(session_id)
            if found is None:
                raise IdTakenError("session_id", session_id)
        refuse_mismatch(found.session, named)
        refuse_disabled(found.agent, found.user)
        return found

    async def ensure_opened(
        self, session_id: str, named: Participants, *, create: bool, creator: str | None
    ) -> None:
        """Make a session that was not found, unless somebody else has made it meanwhile.

        Raises as `ensure_participants`, and:
            IdNotAllowedError: the key is bound, and the id is not its to choose.

        """
        self._access.refuse_choice("session_id", session_id)
        agent, user = await self.ensure_participants(named, create=create, creator=creator)
        # Two first appends at once: one inserts, the other waits and finds.
        statement = (
            insert(Session)
            .values(
                tenant_id=self._access.tenant_id,
                session_id=session_id,
                agent_id=agent.agent_id,
                user_id=user.user_id,
                project_id=named.project_id,
            )
            .on_conflict_do_nothing()
        )
        try:
            await self._db.execute(statement)
        except IntegrityError as error:
            raise (_vanished(error, agent, user, named) or error) from error

    async def _locked(self, session_id: str) -> Opened | None:
        access = self._access
        statement = _locking(
            by_agent=access.agent_id is not None, by_user=access.user_id is not None
        )
        wanted = {
            "tenant_id": access.tenant_id,
            "session_id": session_id,
            "agent_id": access.agent_id,
            "user_id": access.user_id,
        }
        row = (await self._db.execute(statement, wanted)).first()
        return None if row is None else Opened(*row)

    async def list_sessions(
        self, *, start: tuple[datetime, str] | None, limit: int, filters: dict[str, Any]
    ) -> Sequence[Session]:
        """Newest first, one more than `limit` when another page follows.

        Args:
            filters: column to the value it must have.

        """
        rows = await self._db.scalars(
            after(
                self._visible().filter_by(**filters),
                (Session.create_time, Session.session_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def patch(
        self, session_id: str, changes: dict[str, Any], expected: int | None
    ) -> Session:
        """The changed session. Raises SessionNotFoundError, VersionConflictError."""
        session = await self.get(session_id, lock=True)
        await apply_changes(self._db, session, changes, expected=expected)
        return session


def refuse_mismatch(session: SessionRow, named: Participants) -> None:
    """Raises SessionMismatchError: `session` is not that of those who are named."""
    for field in ("user_id", "agent_id", "project_id"):
        wanted = getattr(named, field)
        if wanted is not None and wanted != getattr(session, field):
            raise SessionMismatchError(session.session_id, field)


def _vanished(
    error: IntegrityError, agent: Agent, user: User, named: Participants
) -> NotFoundError | None:
    """Whom an erasure took away between the look and the insert."""
    match violated_constraint(error):
        case "sessions_fk_users":
            return UserNotFoundError(user.user_id)
        case "sessions_fk_agents":
            return AgentNotFoundError(agent.agent_id)
        case "sessions_fk_projects":
            return ProjectNotFoundError(named.project_id or "")
    return None


def refuse_disabled(agent: Agent | None, user: User | None) -> None:
    """Raises DisabledError when the agent or the user may not be written for."""
    if agent is not None and agent.status == 0:
        raise DisabledError("agent", agent.agent_id)
    if user is not None and user.status == 0:
        raise DisabledError("user", user.user_id)


async def open_running(db: AsyncSession, access: Access, session_id: str) -> Opened:
    """The session, locked until the end of the transaction, with whom it is about.

    Whoever deletes a session locks it first. So a write that comes late waits here, and then
    finds nothing that it could bring back.

    Raises:
        SessionNotFoundError, SessionEndedError, DisabledError: nothing may be written to it.

    """
    opened = await SessionRepository(db, access).open_for_append(
        session_id, Participants(), create=False, creator=None
    )
    if opened.session.status == 0:
        raise SessionEndedError(session_id)
    return opened
