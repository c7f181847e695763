"""Methods about the context of a model call: contexts, the window of a session, summaries."""

from collections.abc import Mapping
from typing import Any, Unpack

from kemem._async.sender import AsyncSender
from kemem.answers import listing
from kemem.calls import fetch, fetch_pages, post
from kemem.context import (
    Compaction,
    Context,
    InjectedContext,
    InjectedContexts,
    Summaries,
    Summary,
    Trimmed,
    Window,
)
from kemem.options import CompactOptions, ContextOptions, Render


class AsyncContextMethods(AsyncSender):
    """Methods about contexts, windows and summaries."""

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
        """Assemble what to send to the model: instructions, memories and the conversation.

        The result keeps to its budgets and is a valid conversation. Nothing is stored.

        Args:
            query: what the memories should be about; the last user message by default.
            max_memory_tokens: 100 to 8000.
            system_prompt: instructions with `{{ names }}`, which `options["context"]`, the working
                state and the session's context replace; by default those of the agent.
            render: the format of the messages; `openai` by default.
            options: see `ContextOptions`.

        Raises:
            NotFoundError: there is no such session.
            UnprocessableError: a name in the system prompt has no value, or a parameter is
                invalid.

        """
        body = {
            "query": query,
            "max_memory_tokens": max_memory_tokens,
            "system_prompt": system_prompt,
            "render": render,
            **options,
        }
        return await self._send(post(Context, "sessions", session_id, "context", body=body))

    async def injections(
        self, session_id: str, limit: int | None = 100, *, content_sha256: str | None = None
    ) -> InjectedContexts:
        """Return up to `limit` contents that the session's contexts had, newest first; None: all.

        Args:
            content_sha256: only the content with this hash, as `Context.content_sha256` has it.

        Raises:
            NotFoundError: there is no such session.

        """
        call = fetch_pages(
            InjectedContext,
            "sessions",
            session_id,
            "injections",
            limit=limit,
            content_sha256=content_sha256,
        )
        return listing(InjectedContexts, await self._collect(call, limit))

    async def window(self, session_id: str) -> Window:
        """Return how full the window of a session is, and the policy in force.

        Raises:
            NotFoundError: there is no such session.

        """
        return await self._send(fetch(Window, "sessions", session_id, "window"))

    async def trim(
        self,
        session_id: str,
        strategy: str | Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Trimmed:
        """Return the newest valid part of the window for one model call. Nothing is stored.

        Args:
            strategy: a name such as `last_tokens`, or a name with parameters such as
                `{"name": "last_messages", "count": 20}`.
            max_tokens: the budget of the messages; that of the policy by default.

        Raises:
            NotFoundError: there is no such session.
            UnprocessableError: there is no such strategy.

        """
        named = {"name": strategy} if isinstance(strategy, str) else strategy
        body = {"strategy": named, "max_tokens": max_tokens}
        return await self._send(post(Trimmed, "sessions", session_id, "window", "trim", body=body))

    async def summarize(
        self,
        session_id: str,
        *,
        force: bool = False,
        dry_run: bool = False,
        **options: Unpack[CompactOptions],
    ) -> Compaction:
        """Replace the older messages of the window by a summary; the messages stay stored.

        This happens automatically when the window is full.

        Args:
            force: also when the window is not full.
            dry_run: only return which messages would leave the window.
            options: see `CompactOptions`.

        Raises:
            NotFoundError: there is no such session.
            UnavailableError: the model that writes summaries does not answer; nothing changed.

        """
        body = {"force": force, "dry_run": dry_run, **options}
        return await self._send(post(Compaction, "sessions", session_id, "compact", body=body))

    async def summaries(
        self, session_id: str, limit: int | None = 100, *, level: int | None = None
    ) -> Summaries:
        """Return up to `limit` summaries of a session, newest first; None means all."""
        call = fetch_pages(Summary, "sessions", session_id, "summaries", limit=limit, level=level)
        return listing(Summaries, await self._collect(call, limit))

    async def summary(self, session_id: str, summary_id: str) -> Summary:
        """Return one summary.

        Raises:
            NotFoundError: there is no such session or summary.

        """
        return await self._send(fetch(Summary, "sessions", session_id, "summaries", summary_id))
