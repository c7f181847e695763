"""What can go wrong with an agent."""

from app.errors import NotFoundError


class AgentNotFoundError(NotFoundError):
    code = "agent_not_found"
    title = "Agent not found"

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"No agent {agent_id}.", agent_id=agent_id)
