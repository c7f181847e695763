"""The table of agents, and its SQL."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    Select,
    SmallInteger,
    String,
    Text,
    func,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.errors import IdTakenError
from app.identity.agents.config import ForgettingPolicy, Policies, policies
from app.identity.agents.embedders import InForce
from app.identity.agents.errors import AgentNotFoundError
from app.identity.tenants.access import Access
from app.identity.tenants.models import Tenant
from app.identity.tenants.schemas import FORGETTING
from app.platform.database.base import Base, Id, TenantOwned, Timed, after, apply_changes
from app.platform.database.failures import conflicts


class Agent(TenantOwned, Timed, Base):
    """An application that uses memory. Disabled: it reads, and writes nothing."""

    __tablename__ = "agents"
    __table_args__ = (
        CheckConstraint("status IN (0, 1)", name="status"),
        Index("agents_idx_status", "tenant_id", "status"),
        Index("agents_idx_create_time", "tenant_id", "create_time", "agent_id"),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    agent_id: Mapped[str] = mapped_column(Id, primary_key=True)
    agent_name: Mapped[str] = mapped_column(String(255))
    agent_type: Mapped[str | None] = mapped_column(String(50))
    description: Mapped[str | None] = mapped_column(Text)
    config: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"), default=dict)
    status: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"), default=1)
    memory_enabled: Mapped[bool] = mapped_column(server_default=text("true"), default=True)
    injection_enabled: Mapped[bool] = mapped_column(server_default=text("true"), default=True)
    window_policy: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    creator: Mapped[str | None] = mapped_column(Id)
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


DEFAULT_AGENT_ID = "default"


class AgentRepository:
    """Agents a caller may see. Never begins or ends a transaction.

    A key restricted to an agent sees that agent. A key restricted to a user sees all agents:
    they are not secret inside a tenant, and a user may talk to any of them.
    """

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    def _visible(self) -> Select[Agent]:
        statement = select(Agent).where(Agent.tenant_id == self._access.tenant_id)
        if self._access.agent_id is not None:
            statement = statement.where(Agent.agent_id == self._access.agent_id)
        return statement

    async def add(self, agent: Agent) -> None:
        """Insert `agent` now, so that a taken id is reported here.

        Raises:
            IdTakenError: the tenant has a agent of this id.

        """
        agent.tenant_id = self._access.tenant_id
        self._db.add(agent)
        with conflicts({"agents_pkey": IdTakenError("agent_id", agent.agent_id)}):
            await self._db.flush()
        await self._db.refresh(agent)

    async def find(self, agent_id: str) -> Agent | None:
        return await self._db.scalar(self._visible().where(Agent.agent_id == agent_id))

    async def get(self, agent_id: str, *, lock: bool = False) -> Agent:
        """The agent.

        Raises:
            AgentNotFoundError: there is none for this caller.

        """
        statement = self._visible().where(Agent.agent_id == agent_id)
        agent = await self._db.scalar(statement.with_for_update() if lock else statement)
        if agent is None:
            raise AgentNotFoundError(agent_id)
        return agent

    async def ensure(self, agent_id: str | None, *, create: bool, creator: str | None) -> Agent:
        """The agent, made on first use; None means the tenant's default agent.

        The default agent is always made; a named one only with `create`.

        Raises:
            AgentNotFoundError: the caller may not see it, or it is missing.

        """
        wanted = agent_id or self._access.agent_id or DEFAULT_AGENT_ID
        agent = await self.find(wanted)
        if agent is not None:
            return agent
        mine = self._access.agent_id in {None, wanted}
        if not mine or not (create or agent_id is None):
            raise AgentNotFoundError(wanted)
        # Two first uses at once: one inserts, the other finds.
        await self._db.execute(
            insert(Agent)
            .values(
                tenant_id=self._access.tenant_id,
                agent_id=wanted,
                agent_name=wanted,
                creator=creator,
            )
            .on_conflict_do_nothing()
        )
        return await self.get(wanted)

    async def list_agents(
        self,
        *,
        start: tuple[datetime, str] | None,
        limit: int,
        status: int | None,
        agent_type: str | None,
    ) -> Sequence[Agent]:
        """Newest first, one more than `limit` when another page follows."""
        statement = self._visible()
        if status is not None:
            statement = statement.where(Agent.status == status)
        if agent_type is not None:
            statement = statement.where(Agent.agent_type == agent_type)
        rows = await self._db.scalars(
            after(
                statement,
                (Agent.create_time, Agent.agent_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def patch(self, agent_id: str, changes: dict[str, Any], expected: int | None) -> Agent:
        """The changed agent.

        Raises:
            AgentNotFoundError: there is none for this caller.
            VersionConflictError: its version is not `expected`.

        """
        agent = await self.get(agent_id, lock=True)
        await apply_changes(self._db, agent, changes, expected=expected)
        return agent


class PolicyRepository:
    """Forgetting policies of a tenant and its agents. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def get(
        self, deployment: ForgettingPolicy, agent_ids: Collection[str] | None = None
    ) -> Policies:
        """The policies in force; with `agent_ids`, as far as they are these agents'."""
        tenant = await self._db.scalar(
            select(Tenant.config[FORGETTING]).where(Tenant.tenant_id == self._tenant_id)
        )
        statement = select(Agent.agent_id, Agent.config[FORGETTING]).where(
            Agent.tenant_id == self._tenant_id,
            func.jsonb_typeof(Agent.config[FORGETTING]) == "object",
        )
        if agent_ids is not None:
            statement = statement.where(Agent.agent_id.in_(sorted(agent_ids)))
        rows: Sequence[Any] = (await self._db.execute(statement)).all()
        return policies(
            deployment,
            tenant if isinstance(tenant, dict) else None,
            {row[0]: row[1] for row in rows},
        )


class VectorRepository:
    """Vectors of one tenant's rows of one kind. Never begins or ends a transaction.

    A package that keeps vectors says in SQL which of its rows wait. All statements may name
    `:tenant_id`.
    """

    WAITING: ClassVar[str]
    """`FROM` and `WHERE`: rows whose vector is of another model than `in_force.model`, to which
    `:handles`, `:models` and `:home` lead (`InForce`)."""
    COLUMNS: ClassVar[str]
    """Of such a row: `id`, `content`, `version`, `old` and `new`, the last two models."""
    KEY: ClassVar[str]
    """The column behind `id`."""
    REPLACE: ClassVar[str]
    """Writes `:vectors` of the models `:new` where `:ids` are as `:versions` and `:old` say."""
    PRESENT: ClassVar[str]
    """A condition: there is a row with a vector of `listed.model`."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def count_waiting(self, in_force: InForce) -> int:
        """How many rows have a vector of another model than the one in force."""
        parameters = in_force.parameters() | {"tenant_id": self._tenant_id}
        counted = await self._db.scalar(text(f"SELECT count(*) {self.WAITING}"), parameters)
        return int(counted or 0)

    async def next_waiting(self, in_force: InForce, *, after: str, limit: int) -> Sequence[Any]:
        """The next such rows by id: `id, content, version, old, new`."""
        statement = (
            f"SELECT {self.COLUMNS} {self.WAITING} AND {self.KEY} > CAST(:after AS text) "
            f"ORDER BY {self.KEY} LIMIT :limit"
        )
        parameters = in_force.parameters() | {
            "tenant_id": self._tenant_id,
            "after": after,
            "limit": limit,
        }
        return (await self._db.execute(text(statement), parameters)).all()

    async def replace_vectors(self, rows: Sequence[Any], vectors: Sequence[Sequence[float]]) -> int:
        """Give rows of `next_waiting` their new vectors; how many had not changed meanwhile."""
        result: Any = await self._db.execute(
            text(self.REPLACE),
            {
                "tenant_id": self._tenant_id,
                "ids": [row.id for row in rows],
                "versions": [row.version for row in rows],
                "old": [row.old for row in rows],
                "new": [row.new for row in rows],
                "vectors": [
                    f"[{','.join(f'{number:.9g}' for number in vector)}]" for vector in vectors
                ],
            },
        )
        return int(result.rowcount)

    async def models_with_rows(self, models: Sequence[str]) -> set[str]:
        """Those of `models` whose vectors are still stored."""
        statement = (
            "SELECT listed.model FROM unnest(CAST(:models AS text[])) AS listed(model) "
            f"WHERE {self.PRESENT}"
        )
        parameters = {"tenant_id": self._tenant_id, "models": list(models)}
        return set(await self._db.scalars(text(statement), parameters))
