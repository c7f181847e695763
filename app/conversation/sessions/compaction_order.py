"""The order to compact a session's window; any room may place it, `compaction` carries it out.
Pure.
"""

from app.conversation.sessions.models import Session
from app.platform.jobs.orders import Order

COMPACT = "compact"


def compact_soon(session: Session, *, creator: str | None) -> Order:
    """Due at once; one live job per session, however many appends ask for it."""
    return Order(
        kind=COMPACT,
        key=session.session_id,
        agent_id=session.agent_id,
        user_id=session.user_id,
        session_id=session.session_id,
        creator=creator,
    )
