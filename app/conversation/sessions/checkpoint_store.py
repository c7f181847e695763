"""What higher layers keep for a session: its checkpoints, and tool calls that wait for a human.
Sessions, messages and compaction get a `CheckpointStore` and know no more of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.schemas import StateReason
from app.identity.tenants.access import Access

MARK = "requires_approval"
"""In the metadata of an assistant's message: true, or the ids of the calls."""

LONGEST_CALL_ID = 255
"""What a tool message can name; a call with a longer id is never answered."""


@dataclass(frozen=True, slots=True)
class AwaitedCall:
    """A call of a tool that a human has to allow first.

    Args:
        message_id: the message that makes it; None when the caller keeps messages elsewhere.
        sequence_no: its number, or that of the newest message then.
        call: as it is in the message, with its `id`.

    """

    message_id: str | None
    sequence_no: int
    call: Mapping[str, Any]

    @property
    def tool_call_id(self) -> str:
        """The id of the call in its message; texts alone are let through."""
        return str(self.call["id"])


def awaited_calls(
    message_id: str,
    sequence_no: int,
    tool_calls: Sequence[Mapping[str, Any]] | None,
    metadata: Mapping[str, Any],
) -> list[AwaitedCall]:
    """Those calls of a message that its metadata marks as waiting for a human."""
    marked = metadata.get(MARK)
    if marked is True:
        chosen = list(tool_calls or [])
    elif isinstance(marked, list):
        chosen = [call for call in tool_calls or [] if call["id"] in marked]
    else:
        chosen = []
    return [
        AwaitedCall(message_id, sequence_no, call)
        for call in chosen
        if len(call["id"]) <= LONGEST_CALL_ID
    ]


class CheckpointStore(Protocol):
    """Each method works in the caller's transaction, in which the session is locked."""

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
        """Store the present state of the session.

        Args:
            now: PostgreSQL's clock, where the caller has read it in this transaction.

        Returns:
            The id of the checkpoint; None for a session in which nothing has happened.

        """

    async def ask(
        self,
        db: AsyncSession,
        access: Access,
        session_id: str,
        calls: Sequence[AwaitedCall],
        *,
        expires_in: timedelta,
    ) -> None:
        """Record `calls` as waiting for a human. Safe to repeat: recorded calls do not change."""

    async def forget(
        self, db: AsyncSession, access: Access, session_id: str, message_ids: Sequence[str]
    ) -> None:
        """Delete the recorded calls of messages that were deleted."""
