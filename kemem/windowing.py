"""The part of both clients that is about what goes to the model."""

from collections.abc import Mapping
from typing import Any, Unpack

from kemem import session_calls
from kemem.base import listing
from kemem.contexts import Compaction, Context, Summaries, Summary, Trimmed, Window
from kemem.options import CompactOptions, ContextOptions, Render
from kemem.sending import AsyncSender, Sender


class Windowing(Sender):
    """Contexts, windows and summaries."""

    def context(
        self,
        session_id: str,
        query: str | None = None,
        max_memory_tokens: int | None = None,
        *,
        system_prompt: str | None = None,
        render: Render | None = None,
        **options: Unpack[ContextOptions],
    ) -> Context:
        """What the model should see next: instructions, what is remembered, the conversation.

        It is within its budgets, a valid conversation, and nothing is written.

        Args:
            query: what the memories should be about; what the user said last when left out.
            max_memory_tokens: 100 to 8000.
            system_prompt: instructions, with `{{ names }}` that `options["context"]`, the working
                state and the session's context replace.
            render: `openai` when left out.
            options: see `ContextOptions`.

        """
        return self._send(
            session_calls.context(
                session_id,
                query=query,
                max_memory_tokens=max_memory_tokens,
                system_prompt=system_prompt,
                render=render,
                **options,
            )
        )

    def window(self, session_id: str) -> Window:
        """How full the window of a session is, and which policy holds for it."""
        return self._send(session_calls.window(session_id))

    def trim(
        self,
        session_id: str,
        strategy: str | Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Trimmed:
        """The newest valid part of the window for one call; nothing is written.

        Args:
            strategy: its name, such as `last_tokens`, or its name with parameters, such as
                `{"name": "last_messages", "count": 20}`.
            max_tokens: what the messages may take; as the policy says when left out.

        """
        named = {"name": strategy} if isinstance(strategy, str) else strategy
        return self._send(session_calls.trim(session_id, strategy=named, max_tokens=max_tokens))

    def summarize(
        self,
        session_id: str,
        *,
        force: bool = False,
        dry_run: bool = False,
        **options: Unpack[CompactOptions],
    ) -> Compaction:
        """Put the older messages of the window into a summary; they all stay stored.

        It happens by itself when the window is full.

        Args:
            force: also when it is not full.
            dry_run: only say what would leave the window.
            options: see `CompactOptions`.

        Raises:
            UnavailableError: the model that writes summaries does not answer; nothing changed.

        """
        return self._send(
            session_calls.summarize(session_id, force=force, dry_run=dry_run, **options)
        )

    compact = summarize

    def summaries(
        self, session_id: str, limit: int | None = 100, *, level: int | None = None
    ) -> Summaries:
        """Up to `limit` summaries of a session, newest first; None means all."""
        call = session_calls.summaries(session_id, limit=limit, level=level)
        return listing(Summaries, self._collect(call, limit))

    def summary(self, session_id: str, summary_id: str) -> Summary:
        """One summary. Raises NotFoundError."""
        return self._send(session_calls.summary(session_id, summary_id))


class AsyncWindowing(AsyncSender):
    """`Windowing` for asyncio."""

    async def context(
        self,
        session_id: str,
        query: str | None = None,
        max_memory_tokens: int | None = None,
        *,
        system_prompt: str | None = None,
        render: Render | None = None,
        **options: Unpack[ContextOptions],
    ) -> Context:
        """As `Memory.context`."""
        return await self._send(
            session_calls.context(
                session_id,
                query=query,
                max_memory_tokens=max_memory_tokens,
                system_prompt=system_prompt,
                render=render,
                **options,
            )
        )

    async def window(self, session_id: str) -> Window:
        """As `Memory.window`."""
        return await self._send(session_calls.window(session_id))

    async def trim(
        self,
        session_id: str,
        strategy: str | Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Trimmed:
        """As `Memory.trim`."""
        named = {"name": strategy} if isinstance(strategy, str) else strategy
        return await self._send(
            session_calls.trim(session_id, strategy=named, max_tokens=max_tokens)
        )

    async def summarize(
        self,
        session_id: str,
        *,
        force: bool = False,
        dry_run: bool = False,
        **options: Unpack[CompactOptions],
    ) -> Compaction:
        """As `Memory.summarize`."""
        return await self._send(
            session_calls.summarize(session_id, force=force, dry_run=dry_run, **options)
        )

    compact = summarize

    async def summaries(
        self, session_id: str, limit: int | None = 100, *, level: int | None = None
    ) -> Summaries:
        """As `Memory.summaries`."""
        call = session_calls.summaries(session_id, limit=limit, level=level)
        return listing(Summaries, await self._collect(call, limit))

    async def summary(self, session_id: str, summary_id: str) -> Summary:
        """As `Memory.summary`."""
        return await self._send(session_calls.summary(session_id, summary_id))
