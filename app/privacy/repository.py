"""SQL that reaches across all rooms, for letting go and for nothing else."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.agents.models import Agent
from app.database.base import TenantOwned
from app.extraction.models import ExtractionRun
from app.feedback.models import MemoryFeedback
from app.jobs.models import Job
from app.memories.models import GateDecision, Memory, MemoryBucket, MemoryHistory
from app.messages.models import Message
from app.outbox.models import WebhookDelivery
from app.projects.models import Project, ProjectMember
from app.sessions.models import Session
from app.tenants.models import ApiKey
from app.users.models import User
from app.web.idempotency import IdempotencyKey

Holding = tuple[str, type[TenantOwned], ColumnElement[bool]]
"""A name for the receipt, a table, and which of its rows."""


class ErasureRepository:
    """Everything that hangs on one thing. Never begins or ends a transaction.

    Whether the caller may see the thing is its own room's to say, first.
    """

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    def of_user(self, user_id: str) -> list[Holding]:
        """In the order in which they may go."""
        memories = and_(Memory.tenant_id == self._tenant_id, Memory.user_id == user_id)
        sessions = select(Session.session_id).where(
            Session.tenant_id == self._tenant_id, Session.user_id == user_id
        )
        return [
            ("decisions", GateDecision, GateDecision.user_id == user_id),
            ("feedback", MemoryFeedback, or_(
                MemoryFeedback.user_id == user_id, MemoryFeedback.author_id == user_id
            )),
            ("answers", IdempotencyKey, IdempotencyKey.user_id == user_id),
            ("keys", ApiKey, and_(
                ApiKey.user_id == user_id,
                or_(ApiKey.revoked_at.is_(None), ApiKey.key_name.is_not(None)),
            )),
            ("history", MemoryHistory, or_(
                MemoryHistory.user_id == user_id,
                MemoryHistory.memory_id.in_(select(Memory.memory_id).where(memories)),
            )),
            ("deliveries", WebhookDelivery, WebhookDelivery.user_id == user_id),
            ("memories", Memory, memories),
            ("buckets", MemoryBucket, or_(
                _bucket("user", user_id),
                and_(MemoryBucket.scope == "session", MemoryBucket.scope_id.in_(sessions)),
            )),
            ("messages", Message, Message.user_id == user_id),
            ("runs", ExtractionRun, ExtractionRun.user_id == user_id),
            ("jobs", Job, Job.user_id == user_id),
            ("sessions", Session, Session.user_id == user_id),
            ("memberships", ProjectMember, ProjectMember.user_id == user_id),
            ("users", User, User.user_id == user_id),
        ]  # fmt: skip

    def of_session(self, session_id: str) -> list[Holding]:
        """In the order in which they may go; a user's own memories stay.

        The session's id says which verdicts and kept answers repeat its words.
        """
        own = and_(Memory.scope == "session", Memory.scope_id == session_id)
        decisions, *rest = self._memories(own)
        whose = select(Session.user_id).where(
            Session.tenant_id == self._tenant_id, Session.session_id == session_id
        )
        return [
            ("decisions", GateDecision, or_(decisions[2], GateDecision.session_id == session_id)),
            ("answers", IdempotencyKey, and_(
                or_(IdempotencyKey.user_id.in_(whose), IdempotencyKey.user_id.is_(None)),
                _names("session_id", session_id),
            )),
            *rest,
            ("buckets", MemoryBucket, _bucket("session", session_id)),
            ("messages", Message, Message.session_id == session_id),
            ("runs", ExtractionRun, ExtractionRun.session_id == session_id),
            ("jobs", Job, Job.session_id == session_id),
            ("sessions", Session, Session.session_id == session_id),
        ]  # fmt: skip

    def of_project(self, project_id: str) -> list[Holding]:
        """In the order in which they may go; users and sessions stay.

        What was to be read for the project can be read no more.
        """
        own = and_(Memory.scope == "project", Memory.scope_id == project_id)
        decisions, *rest = self._memories(own)
        shared = and_(GateDecision.scope == "project", GateDecision.project_id == project_id)
        return [
            ("decisions", GateDecision, or_(decisions[2], shared)),
            ("answers", IdempotencyKey, _names("project_id", project_id)),
            *rest,
            ("buckets", MemoryBucket, _bucket("project", project_id)),
            ("jobs", Job, Job.payload[("body", "project_id")].astext == project_id),
            ("members", ProjectMember, ProjectMember.project_id == project_id),
            ("projects", Project, Project.project_id == project_id),
        ]

    def of_agent(self, agent_id: str) -> list[Holding]:
        """In the order in which they may go; the users it talked to stay."""
        sessions = select(Session.session_id).where(
            Session.tenant_id == self._tenant_id, Session.agent_id == agent_id
        )
        own = or_(
            Memory.agent_id == agent_id,
            and_(Memory.scope == "session", Memory.scope_id.in_(sessions)),
        )
        decisions, *rest = self._memories(own)
        heard = or_(GateDecision.agent_id == agent_id, GateDecision.session_id.in_(sessions))
        return [
            ("decisions", GateDecision, or_(decisions[2], heard)),
            ("answers", IdempotencyKey, _names("agent_id", agent_id)),
            *rest,
            (
                "buckets",
                MemoryBucket,
                or_(
                    _bucket("agent", agent_id),
                    and_(MemoryBucket.scope == "session", MemoryBucket.scope_id.in_(sessions)),
                ),
            ),
            ("messages", Message, Message.agent_id == agent_id),
            (
                "runs",
                ExtractionRun,
                or_(ExtractionRun.agent_id == agent_id, ExtractionRun.session_id.in_(sessions)),
            ),
            ("jobs", Job, or_(Job.agent_id == agent_id, Job.session_id.in_(sessions))),
            ("sessions", Session, Session.agent_id == agent_id),
            ("agents", Agent, Agent.agent_id == agent_id),
        ]

    def _memories(self, own: ColumnElement[bool]) -> list[Holding]:
        ids = select(Memory.memory_id).where(Memory.tenant_id == self._tenant_id, own)
        return [
            ("decisions", GateDecision, GateDecision.memory_id.in_(ids)),
            ("feedback", MemoryFeedback, MemoryFeedback.memory_id.in_(ids)),
            ("history", MemoryHistory, MemoryHistory.memory_id.in_(ids)),
            ("memories", Memory, own),
        ]

    async def users_at_home(self, agent_id: str) -> int:
        """How many users call this agent their home."""
        return await self._count(User, User.agent_id == agent_id)

    async def count(self, holdings: Sequence[Holding]) -> dict[str, int]:
        """Rows by name; the thing itself is not counted."""
        return {name: await self._count(table, rows) for name, table, rows in holdings[:-1]}

    async def memory_ids(self, holdings: Sequence[Holding]) -> Sequence[str]:
        """Ids of the memories among them that somebody could still see."""
        [own] = [rows for _, table, rows in holdings if table is Memory]
        found = await self._db.scalars(
            select(Memory.memory_id).where(
                Memory.tenant_id == self._tenant_id, Memory.status != "deleted", own
            )
        )
        return found.all()

    async def delete(self, holdings: Sequence[Holding]) -> dict[str, int]:
        """Remove it all, the thing itself last; keys are revoked. Returns how many rows went."""
        gone = {}
        for name, table, rows in holdings:
            # A key is only revoked: what it did bears its id.
            statement = (
                update(ApiKey).values(
                    revoked_at=func.coalesce(ApiKey.revoked_at, func.now()), key_name=None
                )
                if table is ApiKey
                else delete(table)
            )
            result = await self._db.execute(
                statement.where(table.tenant_id == self._tenant_id, rows)
                .returning(table.tenant_id)
                .execution_options(synchronize_session=False)
            )
            gone[name] = len(result.all())
        gone.popitem()
        return gone

    async def _count(self, table: type[TenantOwned], rows: ColumnElement[bool]) -> int:
        found: int | None = await self._db.scalar(
            select(func.count())
            .select_from(table)
            .where(
                table.tenant_id == self._tenant_id,
                rows,
            )
        )
        return int(found or 0)


def _bucket(scope: str, scope_id: str) -> ColumnElement[bool]:
    return and_(MemoryBucket.scope == scope, MemoryBucket.scope_id == scope_id)


def _names(field: str, one: str) -> ColumnElement[bool]:
    """Kept answers that show an id in a field: they may repeat words of its owner."""
    shown = func.convert_to(f'"{field}":"{one}"', "UTF8")
    return func.pg_catalog.position(IdempotencyKey.answer, shown) > 0
