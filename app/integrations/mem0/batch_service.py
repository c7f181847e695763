"""Many memories in one request of mem0's clients, and feedback on one."""

from collections.abc import Collection
from typing import Any

from app.errors import DomainError
from app.identity.tenants.access import Principal
from app.integrations.mem0.batch_schemas import (
    Mem0BatchDelete,
    Mem0BatchUpdate,
    Mem0Feedback,
    Mem0FeedbackAdded,
)
from app.integrations.mem0.change_service import Mem0ChangeService
from app.integrations.mem0.counterpart_errors import BatchStoppedError, NoCounterpartError
from app.integrations.mem0.ids import own_id, shown_id
from app.integrations.mem0.schemas import UpdateRequest
from app.memory.feedback.schemas import FeedbackCreate, Rating
from app.memory.feedback.service import FeedbackService
from app.memory.memories.errors import MemoryNotFoundError
from app.memory.memories.filters import MAX_VALUES
from app.memory.memories.search_schemas import BulkDelete
from app.memory.memories.service import MemoryService

_RATINGS: dict[str, Rating] = {
    "POSITIVE": "helpful", "NEGATIVE": "wrong", "VERY_NEGATIVE": "wrong",
}  # fmt: skip
_PASSING = 429
"""From here on a status says that the same request may do later."""


class Mem0BatchService:
    """Updates and deletes up to 1,000 memories by their ids."""

    def __init__(self, memories: MemoryService, changes: Mem0ChangeService) -> None:
        self._memories = memories
        self._changes = changes

    async def update(self, principal: Principal, body: Mem0BatchUpdate) -> int:
        """Update memories in their order, each as if alone; how many.

        None is touched when one of them is missing. Safe to repeat: the same values again change
        nothing.

        Raises:
            MemoryNotFoundError: one is missing, or the caller may not change it.
            BatchStoppedError: one was refused, as the gate refuses; those before it are updated.
            EmbeddingUnavailableError: those before it are updated; try again.

        """
        wanted = [own_id("mem", item.memory_id) for item in body.memories]
        await self._refuse_missing(principal, wanted)
        for done, (memory_id, item) in enumerate(zip(wanted, body.memories, strict=True)):
            try:
                given = item.model_dump(include={"text", "metadata"}, exclude_none=True)
                await self._changes.update(principal, memory_id, UpdateRequest(**given))
            except DomainError as error:
                if done == 0 or error.status >= _PASSING:
                    raise
                shown = shown_id(memory_id)
                raise BatchStoppedError(done, len(wanted), shown, error.detail) from error
        return len(wanted)

    async def delete(self, principal: Principal, body: Mem0BatchDelete) -> int:
        """Delete memories in one transaction; how many.

        Raises:
            MemoryNotFoundError: one is missing, or not the caller's to delete; none was deleted.

        """
        wanted = {own_id("mem", item.memory_id) for item in body.memories}
        await self._refuse_missing(principal, wanted)
        selected = BulkDelete(filters=_among(wanted), confirm=True)
        await self._memories.delete_many(principal, selected, location="body")
        return len(wanted)

    async def _refuse_missing(self, principal: Principal, wanted: Collection[str]) -> None:
        """Raises MemoryNotFoundError for the first that the caller may not delete."""
        left = list(dict.fromkeys(wanted))
        if await self._count(principal, left) == len(left):
            return
        # One of them is missing: it is in the first half, or else in the second.
        while len(left) > 1:
            half = left[: len(left) // 2]
            left = half if await self._count(principal, half) < len(half) else left[len(half) :]
        raise MemoryNotFoundError(left[0])

    async def _count(self, principal: Principal, memory_ids: Collection[str]) -> int:
        asked = BulkDelete(filters=_among(memory_ids), dry_run=True)
        found = await self._memories.delete_many(principal, asked, location="body")
        return getattr(found, "deleted", 0)


class Mem0FeedbackService:
    """Feedback as mem0 names it."""

    def __init__(self, feedback: FeedbackService) -> None:
        self._feedback = feedback

    async def add(self, principal: Principal, body: Mem0Feedback) -> Mem0FeedbackAdded:
        """Record what the caller thinks of a memory; each call adds an entry.

        Raises:
            MemoryNotFoundError: there is none for this caller.
            NoCounterpartError: no rating is given; what was said is not taken back.
            SensitiveCommentError: the reason holds what is not kept.
            DisabledError, MemoryDisabledError: writing is switched off.

        """
        if body.feedback is None:
            raise NoCounterpartError(
                "Taking feedback back", "Each is kept; a later one is shown before it."
            )
        comment = body.feedback_reason or None
        if body.feedback == "VERY_NEGATIVE":
            comment = "VERY_NEGATIVE" if comment is None else f"VERY_NEGATIVE: {comment}"
        given = FeedbackCreate(rating=_RATINGS[body.feedback], comment=comment)
        added = await self._feedback.add(principal, own_id("mem", body.memory_id), given)
        return Mem0FeedbackAdded(
            id=shown_id(added.feedback_id),
            feedback=body.feedback,
            feedback_reason=body.feedback_reason,
        )


def _among(memory_ids: Collection[str]) -> dict[str, Any]:
    """The filter of these memories, in lists as long as a filter may have."""
    listed = sorted(set(memory_ids))
    parts = [
        {"memory_id": {"in": listed[start : start + MAX_VALUES]}}
        for start in range(0, len(listed), MAX_VALUES)
    ]
    return parts[0] if len(parts) == 1 else {"OR": parts}
