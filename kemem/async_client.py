"""`AsyncMemory`: the client for programs with an event loop; parameters and answers of `Memory`."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, Unpack, overload

from kemem import calls
from kemem.base import listing, one_session
from kemem.checkpointing import AsyncCheckpointing
from kemem.conversations import Job
from kemem.conversing import AsyncConversing
from kemem.equipping import AsyncEquipping
from kemem.exporting import AsyncExporting
from kemem.memories import (
    Added,
    Deleted,
    Feedback,
    History,
    Memories,
    MemoryItem,
    Outcome,
    Restored,
    SearchResults,
)
from kemem.options import (
    AddOptions,
    DeleteOptions,
    Filters,
    ListOptions,
    MemoryChanges,
    Rating,
    Said,
    SearchOptions,
    SupersedeOptions,
)
from kemem.windowing import AsyncWindowing
from kemem.writing import Call, Page


class AsyncMemory(
    AsyncConversing, AsyncWindowing, AsyncCheckpointing, AsyncEquipping, AsyncExporting
):
    """`Memory` for asyncio: every call is awaited, and `iterate` is for `async for`.

    It belongs to the event loop in which it is first used, and any number of tasks there may
    share it. Open it inside the loop, best with `async with`. A task that is cancelled in a call
    may leave its effect behind.

    Args: as of `Memory`; `http_client` is an `httpx.AsyncClient`.
    """

    # --- remember

    @overload
    async def add(
        self,
        messages: Said,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        *,
        async_: Literal[False] = False,
        **options: Unpack[AddOptions],
    ) -> Added: ...

    @overload
    async def add(
        self,
        messages: Said,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        *,
        async_: Literal[True],
        **options: Unpack[AddOptions],
    ) -> Job: ...

    async def add(
        self,
        messages: Said,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        *,
        async_: bool = False,
        **options: Unpack[AddOptions],
    ) -> Added | Job:
        """As `Memory.add`."""
        make: Any = calls.add_later if async_ else calls.add
        call: Call[Added | Job] = make(
            messages,
            user_id=user_id,
            agent_id=agent_id,
            session_id=session_id,
            metadata=metadata,
            infer=infer,
            memory_type=memory_type,
            prompt=prompt,
            **options,
        )
        return await self._send(call)

    write = add

    async def update(
        self,
        memory_id: str,
        content: str | None = None,
        *,
        version: int | None = None,
        **changes: Unpack[MemoryChanges],
    ) -> MemoryItem:
        """As `Memory.update`."""
        return await self._send(calls.update(memory_id, content, version, changes))

    async def supersede(
        self, memory_id: str, content: str, **options: Unpack[SupersedeOptions]
    ) -> Outcome:
        """As `Memory.supersede`."""
        return await self._send(calls.supersede(memory_id, content, options))

    async def restore(
        self,
        memory_id: str,
        history_id: str,
        *,
        reason: str | None = None,
        version: int | None = None,
    ) -> Restored:
        """As `Memory.restore`."""
        return await self._send(
            calls.restore(memory_id, history_id, reason=reason, version=version)
        )

    async def feedback(
        self, memory_id: str, rating: Rating, comment: str | None = None
    ) -> Feedback:
        """As `Memory.feedback`."""
        return await self._send(calls.feedback(memory_id, rating=rating, comment=comment))

    # --- recall

    async def search(
        self,
        query: str,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        limit: int = 100,
        filters: Filters | None = None,
        threshold: float | None = None,
        rerank: bool = True,
        *,
        run_id: str | None = None,
        **options: Unpack[SearchOptions],
    ) -> SearchResults:
        """As `Memory.search`."""
        return await self._send(
            calls.search(
                query,
                user_id=user_id,
                agent_id=agent_id,
                session_id=one_session(session_id, run_id),
                limit=limit,
                filters=filters,
                threshold=threshold,
                rerank=rerank,
                **options,
            )
        )

    retrieve = search

    async def get(self, memory_id: str) -> MemoryItem:
        """As `Memory.get`."""
        return await self._send(calls.get(memory_id))

    async def get_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        filters: Filters | None = None,
        limit: int | None = 100,
        **options: Unpack[ListOptions],
    ) -> Memories:
        """As `Memory.get_all`."""
        call = calls.list_memories(
            user_id=user_id,
            agent_id=agent_id,
            session_id=session_id,
            filters=filters,
            limit=limit,
            **options,
        )
        return listing(Memories, await self._collect(call, limit))

    async def iterate(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        filters: Filters | None = None,
        **options: Unpack[ListOptions],
    ) -> AsyncIterator[MemoryItem]:
        """As `Memory.iterate`."""
        call: Call[Page[MemoryItem]] | None = calls.list_memories(
            user_id=user_id,
            agent_id=agent_id,
            session_id=session_id,
            filters=filters,
            limit=None,
            **options,
        )
        while call is not None:
            page = await self._send(call)
            for item in page.items:
                yield item
            call = page.following

    async def history(self, memory_id: str, limit: int | None = 100) -> History:
        """As `Memory.history`."""
        return listing(History, await self._collect(calls.history(memory_id, limit=limit), limit))

    # --- forget

    async def delete(self, memory_id: str, *, hard: bool = False) -> None:
        """As `Memory.delete`."""
        return await self._send(calls.delete(memory_id, hard=hard))

    forget = delete

    async def delete_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        filters: Filters | None = None,
        *,
        confirm: bool = False,
        dry_run: bool = False,
        **options: Unpack[DeleteOptions],
    ) -> Deleted:
        """As `Memory.delete_all`."""
        return await self._send(
            calls.delete_all(
                user_id=user_id,
                agent_id=agent_id,
                session_id=session_id,
                filters=filters,
                confirm=confirm,
                dry_run=dry_run,
                **options,
            )
        )
