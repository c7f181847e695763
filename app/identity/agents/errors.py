"""What can go wrong with an agent."""

from app.errors import NotFoundError, UnprocessableError


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
