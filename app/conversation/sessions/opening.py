"""How a session is opened by whoever changes what hangs on it."""

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.errors import SessionEndedError
from app.conversation.sessions.repository import Opened, Participants, SessionRepository
from app.identity.tenants.access import Access


async def open_running(db: AsyncSession, access: Access, session_id: str) -> Opened:
    """The session, locked until the end of the transaction, with whom it is about.

    Whoever deletes a session locks it first. So a write that comes late waits here, and then
    finds nothing that it could bring back.

    Raises:
        SessionNotFoundError, SessionEndedError, DisabledError: nothing may be written to it.

    """
    opened = await SessionRepository(db, access).open_for_append(
        session_id, Participants(), create=False, creator=None
    )
    if opened.session.status == 0:
        raise SessionEndedError(session_id)
    return opened
