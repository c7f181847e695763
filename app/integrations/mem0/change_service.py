"""Memories changed, deleted and looked back at, singly or many in one request, and feedback on one,
as mem0's clients ask for it.
"""

from collections.abc import Collection
from typing import Any, Final

from app.errors import DomainError, VersionConflictError
from app.identity.tenants.access import Principal
from app.integrations.mem0 import answers
from app.integrations.mem0.answers import Shown
from app.integrations.mem0.errors import (
    BatchStoppedError,
    InvalidMem0RequestError,
    NoCounterpartError,
)
from app.integrations.mem0.filters import (
    APP_KEY,
    Filters,
    expiry,
    moment,
    of_query,
    together,
    translated,
)
from app.integrations.mem0.repository import ListedMemories
from app.integrations.mem0.schemas import (
    ENTITY_IDS,
    DeleteManyQuery,
    Mem0BatchDelete,
    Mem0BatchUpdate,
    Mem0Feedback,
    Mem0FeedbackAdded,
    UpdateRequest,
    own_id,
    shown_id,
)
from app.integrations.mem0.service import made, refuse_other_project
from app.memory.feedback.schemas import FeedbackCreate, Rating
from app.memory.feedback.service import FeedbackService
from app.memory.memories.edit_service import EditService
from app.memory.memories.errors import MemoryNotFoundError
from app.memory.memories.filters import MAX_VALUES
from app.memory.memories.schemas import MemoryPatch
from app.memory.memories.search_schemas import BulkDelete, DeletionScheduled, HistoryRead
from app.memory.memories.service import MemoryService
from app.platform.values.pagination import PageQuery
from app.platform.work.unit import Work

HISTORY_PAGES: Final = 10
"""Of 100 changes each: more of one memory are not shown."""
LINKED: Final = MAX_VALUES
"""Most memories that are deleted because another one replaced them."""


class Mem0ChangeService:
    """Changes and deletes memories, and shows what was changed."""

    def __init__(self, work: Work, memories: MemoryService, edits: EditService) -> None:
        self._work = work
        self._memories = memories
        self._edits = edits

    async def update(self, principal: Principal, memory_id: str, body: UpdateRequest) -> Shown:
        """The changed memory; metadata is replaced as a whole.

        Raises:
            InvalidMem0RequestError: the id is no UUID, or a date none.
            VersionConflictError: others changed it while this was tried twice.
            What `EditService.patch` raises.

        """
        refuse_other_project(principal, body)
        own = own_id("mem", memory_id)
        try:
            return await self._updated(principal, own, body)
        except VersionConflictError:
            return await self._updated(principal, own, body)

    async def _updated(self, principal: Principal, own: str, body: UpdateRequest) -> Shown:
        expected = None
        changes: dict[str, Any] = {}
        if body.text is not None:
            changes["content"] = body.text
        if body.metadata is not None:
            seen = await self._memories.get(principal, own)
            # What is kept of the old metadata is of this version.
            expected, was = seen.version, seen.metadata
            kept = {name: was[name] for name in (APP_KEY, "role") if name in was}
            changes["metadata"] = kept | body.metadata
        if body.timestamp is not None:
            changes["valid_from"] = moment(body.timestamp)
        if "expiration_date" in body.model_fields_set:
            given = body.expiration_date
            changes["expires_at"] = None if given is None else expiry(given)
        patch = made(MemoryPatch, changes)
        changed = await self._edits.patch(principal, own, patch, expected=expected)
        return answers.memory(changed.model_dump())

    async def delete(self, principal: Principal, memory_id: str, *, linked: bool = False) -> Shown:
        """Delete a memory; with `linked` also what it replaced, and what that had replaced.

        Raises:
            InvalidMem0RequestError: the id is no UUID, or more than `LINKED` are linked.
            What `MemoryService.delete` raises.

        """
        own = own_id("mem", memory_id)
        shown: Shown = {"message": "Memory deleted successfully!"}
        if linked:
            # Before the memory itself, so that a request that was cut off can be repeated.
            older = await self._older(principal, own)
            if older:
                chosen = BulkDelete(filters={"memory_id": {"in": older}}, confirm=True)
                await self._memories.delete_many(principal, chosen, location="body")
            shown["cascade_count"] = len(older)
        await self._memories.delete(principal, own, hard=False)
        return shown

    async def _older(self, principal: Principal, memory_id: str) -> list[str]:
        """What a memory replaced, through all generations.

        Raises:
            MemoryNotFoundError: there is no such memory for this caller.
            InvalidMem0RequestError: it is more than `LINKED`.

        """
        await self._memories.get(principal, memory_id)
        found: dict[str, None] = {}
        newest = [memory_id]
        async with self._work.read(principal) as db:
            memories = ListedMemories(db, principal.access)
            while newest:
                before = await memories.predecessors(newest)
                newest = [memory for memory in before if memory not in found]
                found |= dict.fromkeys(newest)
                if len(found) > LINKED:
                    raise InvalidMem0RequestError(f"More than {LINKED} memories are linked.")
        return list(found)

    async def delete_all(self, principal: Principal, query: DeleteManyQuery) -> Shown:
        """Delete every memory that the query chooses; it must choose by something.

        Raises:
            InvalidMem0RequestError: nothing narrows it, or a filter cannot be read.
            What `MemoryService.delete_many` raises.

        """
        ids = {name: value for name in ENTITY_IDS if (value := getattr(query, name)) is not None}
        if all(ids.get(name) == "*" for name in ENTITY_IDS):
            # So the command-line client says: everything, and not only what has all four.
            parts: list[dict[str, Any]] = [{"memory_id": {"exists": True}}]
        else:
            parts = [translated(ids)]
        parts.append(translated(of_query(query.filters)))
        if query.metadata is not None:
            parts.append(translated({"metadata": of_query(query.metadata)}))
        return await self.delete_chosen(principal, together(*parts))

    async def delete_chosen(self, principal: Principal, filters: Filters) -> Shown:
        """Delete what a filter of ours chooses; a job does it where that is too much at once.

        Raises:
            InvalidMem0RequestError: the filter is empty.
            What `MemoryService.delete_many` raises.

        """
        if not filters:
            raise InvalidMem0RequestError(
                "Name what to delete: user_id, agent_id, app_id, run_id or filters; `*` means any."
            )
        chosen = made(BulkDelete, {"filters": dict(filters), "confirm": True})
        done = await self._memories.delete_many(principal, chosen, location="body")
        shown: Shown = {"message": "Memories deleted successfully!"}
        if isinstance(done, DeletionScheduled):
            return shown | {"event_id": shown_id(done.job_id), "selected": done.selected}
        return shown | {"deleted": done.deleted}

    async def history(self, principal: Principal, memory_id: str) -> list[Shown]:
        """What happened to a memory, oldest first; the first 1,000 changes.

        Raises:
            InvalidMem0RequestError: the id is no UUID.
            MemoryNotFoundError: there is none for this caller.

        """
        own = own_id("mem", memory_id)
        user_id = (await self._memories.get(principal, own)).user_id
        entries: list[HistoryRead] = []
        cursor = None
        for _ in range(HISTORY_PAGES):
            found = await self._memories.history(
                principal, own, PageQuery(limit=100, cursor=cursor)
            )
            entries += found.items
            cursor = found.next_cursor
            if cursor is None:
                break
        return [answers.history(entry, user_id) for entry in entries]


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
