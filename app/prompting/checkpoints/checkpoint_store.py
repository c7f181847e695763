"""The checkpoint store of sessions, messages and compaction: checkpoints and approvals in their
transactions.
"""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.checkpoint_store import AwaitedCall
from app.conversation.sessions.schemas import StateReason
from app.identity.tenants.access import Access
from app.prompting.checkpoints.approval_repository import ApprovalRepository
from app.prompting.checkpoints.models import Checkpoint
from app.prompting.checkpoints.repository import CheckpointDraft, CheckpointRepository


async def add_automatic(
    db: AsyncSession,
    access: Access,
    session_id: str,
    *,
    reason: StateReason,
    creator: str | None,
    keep: str | None = None,
) -> Checkpoint | None:
    """Add an automatic checkpoint of a locked session, and delete the oldest beyond the limit.

    Args:
        keep: id of a checkpoint that stays, however old it is.

    Returns:
        The checkpoint; None for a session in which nothing has happened.

    """
    checkpoints = CheckpointRepository(db, access, session_id)
    waiting = await ApprovalRepository(db, access, session_id).waiting()
    made = await checkpoints.add(
        CheckpointDraft(reason, creator, contents_of(pending_tool_calls=waiting))
    )
    if made is not None:
        await checkpoints.prune(periodic=reason == "periodic", keep=keep)
    return made


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
    ) -> str | None:
        """Add a checkpoint of the session as this transaction sees it.

        Returns:
            The id of the checkpoint; None for a session in which nothing has happened.

        """
        made = await add_automatic(db, access, session_id, reason=reason, creator=creator)
        return None if made is None else made.checkpoint_id

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
