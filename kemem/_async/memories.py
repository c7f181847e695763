"""Methods about memories: add, search, read, change and delete them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, Unpack, overload

from kemem._async.sender import AsyncSender
from kemem.answers import listing
from kemem.calls import (
    Call,
    Page,
    change,
    checked_limit,
    checked_names,
    fetch,
    fetch_pages,
    if_match,
    json_bytes,
    post,
    remove,
)
from kemem.jobs import Job
from kemem.memories import (
    Added,
    Deleted,
    Feedback,
    History,
    HistoryEntry,
    Memories,
    MemoryItem,
    Outcome,
    RefusedStored,
    Restored,
    SearchResults,
    UseReported,
)
from kemem.options import (
    AddOptions,
    DeleteOptions,
    Filters,
    ListOptions,
    MemoryChanges,
    MessageInput,
    Rating,
    SearchOptions,
    SupersedeOptions,
)


class AsyncMemoryMethods(AsyncSender):
    """Methods about memories."""

    @overload
    async def add(
        self,
        messages: MessageInput,
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
        messages: MessageInput,
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
        messages: MessageInput,
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
        """Extract memories from messages and store them; returns one outcome per statement.

        Each statement is compared with the stored memories and added, merged, put in the place
        of an older memory, or dropped. With `infer=False` each message is stored unchanged. The
        messages themselves are not stored; use `append` for that.

        Args:
            messages: a text, one message with `role` and `content`, or up to 100 messages.
            metadata: your own data, stored with every memory.
            memory_type: `short` or `long`, or a type such as `preference`.
            prompt: instructions for the extractor.
            async_: return a job at once, which does the work; `wait` accepts it.
            options: see `AddOptions`.

        Raises:
            UnprocessableError, ConflictError: with `infer=False`, a single text was rejected
                (`gate_rejected`) or is known already (`duplicate`). For several messages, these
                are outcomes and not errors.
            RateLimitedError: today's quota of model calls is used up.

        """
        body = {
            "messages": messages,
            "user_id": user_id,
            "agent_id": agent_id,
            "session_id": session_id,
            "metadata": metadata,
            "infer": infer,
            "memory_type": memory_type,
            "prompt": prompt,
            **options,
        }
        if async_:
            return await self._send(post(Job, "memories", body=body, params={"async": "true"}))
        return await self._send(post(Added, "memories", body=body))

    async def update(
        self,
        memory_id: str,
        content: str | None = None,
        *,
        version: int | None = None,
        **changes: Unpack[MemoryChanges],
    ) -> MemoryItem:
        """Change a memory and return the new version; `history` has the previous ones.

        Args:
            version: the version you read; the change is refused if there is a newer one. Without
                it the last write wins.
            changes: see `MemoryChanges`; None clears a field.

        Raises:
            NotFoundError: there is no such memory.
            ForbiddenError: the acting user may not change it.
            ConflictError: there is a newer version (`version_conflict`), another memory with this
                content (`duplicate`), or the memory is superseded or deleted.
            UnprocessableError: the new content was rejected.
            ConnectionFailedError, TimedOutError: with `version`, an unanswered request is not
                repeated. It may have succeeded: read the memory again.

        """
        body = {**({} if content is None else {"content": content}), **checked_names(changes)}
        call = change("PATCH", MemoryItem, "memories", memory_id, body=body, version=version)
        return await self._send(call)

    async def supersede(
        self, memory_id: str, content: str, **options: Unpack[SupersedeOptions]
    ) -> Outcome:
        """Add a newer statement and end the validity of an old memory, which keeps its content.

        Raises:
            NotFoundError: there is no such memory.
            ForbiddenError: the acting user may not change it.
            ConflictError: the memory is superseded or deleted, or another has this content.
            UnprocessableError: the new content was rejected.

        """
        body = {"content": content, **options}
        return await self._send(post(Outcome, "memories", memory_id, "supersede", body=body))

    async def restore(
        self,
        memory_id: str,
        history_id: str,
        *,
        reason: str | None = None,
        version: int | None = None,
    ) -> Restored:
        """Restore a memory to its state after a history entry, as a new version.

        Args:
            version: the version you read; refused if there is a newer one.

        Raises:
            NotFoundError: there is no such memory or entry.
            ForbiddenError: the acting user may not change it.
            ConflictError: there is a newer version (`version_conflict`), or another memory with
                this content.

        """
        return await self._send(
            post(
                Restored,
                "memories",
                memory_id,
                "restore",
                body={"history_id": history_id, "reason": reason},
                headers=if_match(version),
            )
        )

    async def feedback(
        self, memory_id: str, rating: Rating, comment: str | None = None
    ) -> Feedback:
        """Record that a memory is helpful, wrong or outdated; the memory is not changed.

        Raises:
            NotFoundError: there is no such memory.

        """
        body = {"rating": rating, "comment": comment}
        return await self._send(post(Feedback, "memories", memory_id, "feedback", body=body))

    async def store_refused(
        self, decision_id: str, *, memory_type: str | None = None
    ) -> RefusedStored:
        """Store a text that the gate refused, past the rules of its verdict; takes an admin key.

        Raises:
            NotFoundError: there is no such verdict.
            ConflictError: its text cannot be stored: it was sensitive, too long, or is stored.
            UnprocessableError: it breaks another rule.

        """
        body = {"memory_type": memory_type}
        return await self._send(
            post(RefusedStored, "memories", "decisions", decision_id, "store", body=body)
        )

    async def report_use(self, session_id: str, memory_ids: Sequence[str]) -> UseReported:
        """Record which memories of a session's contexts an answer drew on, for statistics.

        Safe to repeat: each memory of a session counts once.

        Raises:
            NotFoundError: there is no such session.

        """
        body = {"session_id": session_id, "memory_ids": list(memory_ids)}
        return await self._send(post(UseReported, "feedback", "used", body=body))

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
        """Search memories by keywords, meaning and context; best first, empty without a hit.

        At least one id is required. `str()` of the answer has one escaped line per memory, ready
        for a prompt.

        Args:
            limit: 1 to 100.
            threshold: 0 to 1; excludes memories that are less similar to the query.
            rerank: order by score; False orders by similarity alone.
            session_id: the conversation that asks; what counts in it alone is found too.
            run_id: only what came from this session.
            options: see `SearchOptions`.

        Raises:
            UnprocessableError: no id was given (`selector_required`), or a parameter is invalid.
            NotFoundError: there is no such project, or the key is bound to another user or agent.

        """
        body = {
            "query": query,
            "user_id": user_id,
            "agent_id": agent_id,
            "session_id": session_id,
            "run_id": run_id,
            "limit": checked_limit(limit),
            "filters": filters,
            "threshold": threshold,
            "rerank": rerank,
            **checked_names(options),
        }
        return await self._send(post(SearchResults, "memories", "search", body=body))

    async def get(self, memory_id: str) -> MemoryItem:
        """Return one memory.

        Raises:
            NotFoundError: there is no such memory.

        """
        return await self._send(fetch(MemoryItem, "memories", memory_id))

    async def get_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        filters: Filters | None = None,
        limit: int | None = 100,
        *,
        run_id: str | None = None,
        **options: Unpack[ListOptions],
    ) -> Memories:
        """Return up to `limit` memories, newest first; None means all.

        Pages are fetched as needed. Use `iterate` to hold one page at a time.

        Args:
            run_id: only what came from this session; `session_id` means the same here.

        """
        call = _list_call(user_id, agent_id, session_id, run_id, filters, limit, options)
        return listing(Memories, await self._collect(call, limit))

    async def iterate(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        filters: Filters | None = None,
        *,
        run_id: str | None = None,
        **options: Unpack[ListOptions],
    ) -> AsyncIterator[MemoryItem]:
        """Iterate over all memories, newest first; each page is fetched when it is reached."""
        call: Call[Page[MemoryItem]] | None = _list_call(
            user_id, agent_id, session_id, run_id, filters, None, options
        )
        while call is not None:
            page = await self._send(call)
            for item in page.items:
                yield item
            call = page.following

    async def history(self, memory_id: str, limit: int | None = 100) -> History:
        """Return up to `limit` changes of a memory, oldest first; None means all.

        Raises:
            NotFoundError: there is no such memory.

        """
        call = fetch_pages(HistoryEntry, "memories", memory_id, "history", limit=limit)
        return listing(History, await self._collect(call, limit))

    async def delete(self, memory_id: str, *, hard: bool = False) -> None:
        """Delete one memory.

        Args:
            hard: remove it from the database at once, not after some days.

        Raises:
            NotFoundError: there is no such memory. Not raised if a first attempt, whose answer
                was lost, has deleted it.
            ForbiddenError: the acting user may not delete it.

        """
        return await self._send(remove("memories", memory_id, hard=hard or None))

    async def delete_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        filters: Filters | None = None,
        *,
        run_id: str | None = None,
        confirm: bool = False,
        dry_run: bool = False,
        **options: Unpack[DeleteOptions],
    ) -> Deleted:
        """Delete all memories that match every given parameter. There is no undo.

        Args:
            run_id: only what came from this session; `session_id` means the same here.
            confirm: must be True, unless `dry_run` is.
            dry_run: only count them.
            options: see `DeleteOptions`.

        Raises:
            UnprocessableError: no parameter selects memories (`selector_required`).
            ConflictError: `confirm` is missing (`confirmation_required`); the message says how
                many memories would be deleted.

        """
        body = {
            "user_id": user_id,
            "agent_id": agent_id,
            "session_id": session_id,
            "run_id": run_id,
            "filters": filters,
            "confirm": confirm,
            "dry_run": dry_run,
            **options,
        }
        # A POST and not a DELETE: it has a body, and a repeated request gets the same answer.
        return await self._send(post(Deleted, "memories", "delete", body=body))


def _list_call(
    user_id: str | None,
    agent_id: str | None,
    session_id: str | None,
    run_id: str | None,
    filters: Filters | None,
    limit: int | None,
    options: ListOptions,
) -> Call[Page[MemoryItem]]:
    return fetch_pages(
        MemoryItem,
        "memories",
        limit=limit,
        user_id=user_id,
        agent_id=agent_id,
        session_id=session_id,
        run_id=run_id,
        filters=None if filters is None else json_bytes(filters).decode(),
        **options,
    )
