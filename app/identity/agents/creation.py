"""What `POST /v1/agents` asks for; blocks implement it, since an agent may begin with some."""

from typing import Protocol

from app.identity.agents.block_schemas import AgentEquip
from app.identity.agents.schemas import AgentRead
from app.identity.tenants.access import Principal
from app.platform.work.idempotency import IdempotencyKey


class AgentCreation(Protocol):
    """An agent with the blocks it begins with: all of it, or nothing."""

    async def add(
        self, principal: Principal, body: AgentEquip, *, key: IdempotencyKey | None = None
    ) -> AgentRead:
        """Create the agent and its blocks."""
