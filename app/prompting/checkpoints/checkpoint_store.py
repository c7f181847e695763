"""The checkpoint store of sessions, messages and compaction: checkpoints and approvals in their
transactions.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.checkpoint_store import AwaitedCall
from app.conversation.sessions.schemas import StateReason
from app.identity.tenants.access import Access
from app.platform.database.engine import clock_of
from app.prompting.checkpoints.approval_repository import ApprovalRepository
from app.prompting.checkpoints.repository import CheckpointRepository


async def add_automatic(
    db: AsyncSession,
    access: Access,
    session_id: str,
    *,
    reason: StateReason,
    creator: str | None,
    now: datetime | None = None,
    keep: str | None = None,
) -> str | None:
    """Add an automatic checkpoint of a locked session, and delete the oldest beyond the limit.

    Args:
        now: PostgreSQL's clock, where the caller has read it.
        keep: id of a checkpoint that stays, however old it is.

    Returns:
        The id of the checkpoint; None for a session in which nothing has happened.

    """
    return await CheckpointRepository(db, access, session_id).add_automatic(
        reason, creator, contents_of(), now=now or await clock_of(db), keep=keep
    )


def contents_of(**parts: object) -> dict[str, object]:
    """The contents of a checkpoint: `parts`, with empty values for the parts that are missing."""
    empty: dict[str, object] = {
        "messages": None,
        "agent_state": {},
        "tool_states": {},
        "pending_tool_calls": [],
    }
    return empty | parts


class SessionCheckpointStore:
    """The `CheckpointStore` that sessions, messages and compaction use."""

    async def checkpoint(
        self,
        db: AsyncSession,
        access: Access,
        session_id: str,
        *,
        reason: StateReason,
        creator: str | None,
        now: datetime | None = None,
    ) -> str | None:
        """Add a checkpoint of the session as this transaction sees it, as `add_automatic` does."""
        return await add_automatic(db, access, session_id, reason=reason, creator=creator, now=now)

    async def ask(
        self,
        db: AsyncSession,
        access: Access,
        session_id: str,
        calls: Sequence[AwaitedCall],
        *,
        expires_in: timedelta,
    ) -> None:
        """Let `calls` wait for a human; calls that already wait stay as they are."""
        await ApprovalRepository(db, access, session_id).ask(calls, expires_in=expires_in)

    async def forget(
        self, db: AsyncSession, access: Access, session_id: str, message_ids: Sequence[str]
    ) -> None:
        """Delete the approvals of the calls of deleted messages."""
        await ApprovalRepository(db, access, session_id).forget(message_ids)
