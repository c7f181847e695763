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


class BlockNotFoundError(NotFoundError):
    code = "block_not_found"
    title = "Block not found"

    def __init__(self, block_id: str) -> None:
        super().__init__(f"No block {block_id}.", block_id=block_id)


class LabelTakenError(ConflictError):
    code = "label_taken"
    title = "Label already in use"

    def __init__(self, label: str) -> None:
        super().__init__(
            f"An agent or a session has each label once, and has a block {label}.", label=label
        )


class TemplateBoundError(ConflictError):
    """A user's copy goes where its template goes, and bears its label."""

    code = "bound_to_template"
    title = "Copy of a template"

    def __init__(self, template_id: str) -> None:
        super().__init__(
            f"This is a user's copy of the block {template_id}: attach, detach or rename that.",
            template_id=template_id,
        )


class BlockOfSessionError(ConflictError):
    """A block of a session is seen there alone."""

    code = "bound_to_session"
    title = "Block of a session"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"This block belongs to the session {session_id}, and to no agent.",
            session_id=session_id,
        )


class BlockLimitError(UnprocessableError):
    """The text would be longer than the block allows, on whatever way it came."""

    code = "block_limit_exceeded"
    title = "Too long for the block"

    def __init__(self, label: str, *, current: int, wanted: int, limit: int) -> None:
        super().__init__(
            f"The block {label} may hold {limit} characters and would hold {wanted}. Nothing was "
            f"written: say it in {wanted - limit} characters less, or rewrite the block shorter.",
            label=label,
            chars_current=current,
            chars_wanted=wanted,
            limit=limit,
        )
