"""`Memory`: the client for programs without an event loop."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Unpack, overload

from kemem import calls
from kemem.base import listing, one_session
from kemem.checkpointing import Checkpointing
from kemem.conversations import Job
from kemem.conversing import Conversing
from kemem.equipping import Equipping
from kemem.exporting import Exporting
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
from kemem.windowing import Windowing
from kemem.writing import Call, Page


class Memory(Conversing, Windowing, Checkpointing, Equipping, Exporting):
    """The memory of an agent, kept by a KeMem service.

    Threads may share one. Processes may not: open one after a fork.

    Args:
        base_url: where the service is; KEMEM_URL, else http://127.0.0.1:8000, when left out.
        api_key: KEMEM_API_KEY when left out, else the key that `kemem serve` keeps on this
            machine, which is used for addresses of this machine alone.
        timeout: seconds that a call may take, its retries and waits included. An attempt waits
            for the next byte as long as is left of it.
        max_retries: how often a call is tried again when the service cannot be reached, is
            busy, or names a time to wait that `timeout` allows. Nothing is done twice.
        http_client: used for every request instead of one of its own, and left open.
        acting_user: the user for whom every request is made: it is answered as that user's own
            key would be. `acting_as` gives a client for one user that shares the connections.

    Raises:
        ConfigurationError: there is no key, or the address is none.

    """

    # --- remember

    @overload
    def add(
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
    def add(
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

    def add(
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
        """Remember what messages say, and get one outcome per statement.

        What they say is extracted and reconciled with what is known: added, merged, replaced or
        dropped. With `infer=False` each message is stored as it stands. The messages themselves
        are not kept; `append` does that.

        Args:
            messages: a text, one message with `role` and `content`, or up to 100 of them.
            metadata: your own data, kept with every memory.
            memory_type: `short` or `long`, or a kind such as `preference`.
            prompt: your own instructions to the extractor.
            async_: return at once with a job that does the work.
            options: see `AddOptions`.

        Raises:
            UnprocessableError, ConflictError: one text with `infer=False` was refused by the
                gate (`gate_rejected`) or is known (`duplicate`); in lists such are outcomes.
            RateLimitedError: today's quota of model calls is used up.

        """
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
        return self._send(call)

    write = add

    def update(
        self,
        memory_id: str,
        content: str | None = None,
        *,
        version: int | None = None,
        **changes: Unpack[MemoryChanges],
    ) -> MemoryItem:
        """Change a memory; what it was is in its history.

        Args:
            version: the one you read; the change is refused when it has moved on. Without it
                the last write wins.
            changes: see `MemoryChanges`; None empties what may be empty.

        Raises:
            NotFoundError: there is no such memory.
            ConflictError: `version_conflict`, or another memory says the same.
            UnprocessableError: the gate refused the new text.

        """
        return self._send(calls.update(memory_id, content, version, changes))

    def supersede(
        self, memory_id: str, content: str, **options: Unpack[SupersedeOptions]
    ) -> Outcome:
        """Put a newer statement in the place of a memory, which keeps its text and ends."""
        return self._send(calls.supersede(memory_id, content, options))

    def restore(
        self,
        memory_id: str,
        history_id: str,
        *,
        reason: str | None = None,
        version: int | None = None,
    ) -> Restored:
        """Make a memory what it was right after an entry of its history, as a new entry."""
        return self._send(calls.restore(memory_id, history_id, reason=reason, version=version))

    def feedback(self, memory_id: str, rating: Rating, comment: str | None = None) -> Feedback:
        """Say that a memory is helpful, wrong or outdated; recorded, and changes nothing."""
        return self._send(calls.feedback(memory_id, rating=rating, comment=comment))

    # --- recall

    def search(
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
        """Find memories by words, meaning and context, best first; at least one id says whose.

        `str()` of the answer has one escaped line per memory, for a prompt.

        Args:
            limit: 1 to 100.
            threshold: 0 to 1; leaves out what is less similar.
            rerank: order by score; False orders by similarity alone.
            run_id: another name for session_id.
            options: see `SearchOptions`.

        """
        return self._send(
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

    def get(self, memory_id: str) -> MemoryItem:
        """One memory. Raises NotFoundError."""
        return self._send(calls.get(memory_id))

    def get_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        filters: Filters | None = None,
        limit: int | None = 100,
        **options: Unpack[ListOptions],
    ) -> Memories:
        """Up to `limit` memories, newest first; None means all of them.

        Pages are fetched as needed; `iterate` holds one at a time.
        """
        call = calls.list_memories(
            user_id=user_id,
            agent_id=agent_id,
            session_id=session_id,
            filters=filters,
            limit=limit,
            **options,
        )
        return listing(Memories, self._collect(call, limit))

    def iterate(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        filters: Filters | None = None,
        **options: Unpack[ListOptions],
    ) -> Iterator[MemoryItem]:
        """All memories, newest first, fetched a page at a time while they are used."""
        call: Call[Page[MemoryItem]] | None = calls.list_memories(
            user_id=user_id,
            agent_id=agent_id,
            session_id=session_id,
            filters=filters,
            limit=None,
            **options,
        )
        while call is not None:
            page = self._send(call)
            yield from page.items
            call = page.following

    def history(self, memory_id: str, limit: int | None = 100) -> History:
        """What happened to a memory, oldest first; None means everything."""
        return listing(History, self._collect(calls.history(memory_id, limit=limit), limit))

    # --- forget

    def delete(self, memory_id: str, *, hard: bool = False) -> None:
        """Delete one memory; `hard` removes it at once instead of after some days.

        Raises:
            NotFoundError: there is no such memory.

        """
        return self._send(calls.delete(memory_id, hard=hard))

    forget = delete

    def delete_all(
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
        """Delete everything that all the selectors name; dangerous.

        Args:
            confirm: must be True, unless it is a dry run.
            dry_run: only count.

        Raises:
            UnprocessableError: `selector_required`; nothing selects everything.
            ConflictError: `confirmation_required`; it says how many it would be.

        """
        return self._send(
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
