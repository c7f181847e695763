"""What can go wrong with an agent."""

from app.errors import ConflictError, NotFoundError, UnprocessableError


class AgentNotFoundError(NotFoundError):
    code = "agent_not_found"
    title = "Agent not found"

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"No agent {agent_id}.", agent_id=agent_id)


class InvalidConfigError(UnprocessableError):
    code = "invalid_config"
    title = "Setting not usable"

    def __init__(self, name: str, wanted: str) -> None:
        super().__init__(
            f"`config.{name}` must be {wanted}.",
            errors=[
                {"location": ["body", "config", *name.split(".")], "detail": f"must be {wanted}"}
            ],
        )


class AgentInUseError(ConflictError):
    code = "agent_in_use"
    title = "Agent is the home of users"

    def __init__(self, agent_id: str, users: int) -> None:
        super().__init__(
            f"{users} users are at home with {agent_id}: move them with PATCH, or delete them.",
            agent_id=agent_id,
            users=users,
        )
