"""What can stand in the way of letting go."""

from app.errors import ConflictError


class AgentInUseError(ConflictError):
    code = "agent_in_use"
    title = "Agent is the home of users"

    def __init__(self, agent_id: str, users: int) -> None:
        super().__init__(
            f"{users} users are at home with {agent_id}: move them with PATCH, or delete them.",
            agent_id=agent_id,
            users=users,
        )
