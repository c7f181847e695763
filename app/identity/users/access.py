"""Whom a request is about: those of the key where it names nobody."""

from app.identity.agents.errors import AgentNotFoundError
from app.identity.tenants.access import Access
from app.identity.users.errors import UserNotFoundError


def resolve_subject(
    access: Access, user_id: str | None, agent_id: str | None
) -> tuple[str | None, str | None]:
    """The user and the agent that a request means: those of the key where it names none.

    Raises:
        UserNotFoundError, AgentNotFoundError: the key is another user's or agent's.

    """
    user_id = user_id or access.user_id
    if access.user_id not in {None, user_id}:
        raise UserNotFoundError(user_id or "")
    agent_id = agent_id or access.agent_id
    if access.agent_id not in {None, agent_id}:
        raise AgentNotFoundError(agent_id or "")
    return user_id, agent_id
