"""Memories changed, deleted and looked back at, as mem0's clients ask for it."""

from typing import Any, Final

from app.errors import VersionConflictError
from app.identity.tenants.access import Principal
from app.integrations.mem0 import answers
from app.integrations.mem0.answers import Shown
from app.integrations.mem0.errors import InvalidMem0RequestError
from app.integrations.mem0.filters import (
    APP_KEY,
    Filters,
    expiry,
    moment,
    of_query,
    together,
    translated,
)
from app.integrations.mem0.ids import own_id, shown_id
from app.integrations.mem0.repository import ListedMemories
from app.integrations.mem0.schemas import ENTITY_IDS, DeleteManyQuery, UpdateRequest
from app.integrations.mem0.service import made, refuse_other_project
from app.memory.memories.edit_service import EditService
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
