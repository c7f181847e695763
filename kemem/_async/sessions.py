"""Methods about sessions (conversations), their messages, jobs and the use of models."""

from asyncio import sleep
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Unpack

from kemem._async.sender import AsyncSender
from kemem.answers import listing
from kemem.calls import checked_limit, fetch, fetch_pages, post
from kemem.jobs import WAIT_SECONDS, HasJob, Job, JobWait, Usage
from kemem.options import MessageInput, MessageSearchOptions, Order, Role
from kemem.sessions import (
    Appended,
    Extraction,
    Message,
    MessageHits,
    Messages,
    MessageSlice,
    Session,
)


class AsyncSessionMethods(AsyncSender):
    """Methods about sessions and jobs."""

    async def append(
        self,
        session_id: str,
        messages: MessageInput,
        user_id: str | None = None,
        agent_id: str | None = None,
        *,
        project_id: str | None = None,
        usage: Mapping[str, int] | None = None,
        state: Mapping[str, Any] | None = None,
        state_version: int | None = None,
    ) -> Appended:
        """Store messages of a conversation, all or none; memories are extracted from them later.

        A new session is created on first use. `extraction` of the answer says when memories are
        extracted, or why not; `pressure` says how full the window is.

        Args:
            usage: the token counts that the provider reported for the call that led to these
                messages, for example `{"input_tokens": 1234}`.
            state: a merge patch for the working state, applied together with the messages.
            state_version: the version of the working state that the patch is for.

        Raises:
            ConflictError: the session has ended, or belongs to another user or agent; or the
                working state has a newer version (`version_conflict`).

        """
        if isinstance(messages, str):
            messages = {"role": "user", "content": messages}
        body = {
            "messages": [messages] if isinstance(messages, Mapping) else list(messages),
            "user_id": user_id,
            "agent_id": agent_id,
            "project_id": project_id,
            "usage": usage,
            "state": state,
            "state_version": state_version,
        }
        return await self._send(post(Appended, "sessions", session_id, "messages", body=body))

    async def messages(
        self,
        session_id: str,
        limit: int | None = 100,
        *,
        order: Order = "asc",
        role: Role | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        branch: str | None = None,
        query: str | None = None,
        before: str | None = None,
    ) -> Messages:
        """Return up to `limit` messages, None for all; `order="desc"` starts with the latest.

        Args:
            query: only messages with this text in their content, in any case.
            before: only messages before the one with this id.

        Raises:
            NotFoundError: there is no such session.

        """
        call = fetch_pages(
            Message,
            "sessions",
            session_id,
            "messages",
            limit=limit,
            order=order,
            role=role,
            since=since,
            until=until,
            branch=branch,
            query=query,
            before=before,
        )
        return listing(Messages, await self._collect(call, limit))

    async def message(
        self, session_id: str, message_id: str, *, offset: int = 0, limit: int | None = None
    ) -> MessageSlice:
        """Return one message, or `limit` characters of its text from `offset` on.

        Raises:
            NotFoundError: there is no such message.

        """
        path = ("sessions", session_id, "messages", message_id)
        return await self._send(fetch(MessageSlice, *path, offset=offset or None, limit=limit))

    async def search_messages(
        self,
        query: str,
        session_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 100,
        threshold: float | None = None,
        **options: Unpack[MessageSearchOptions],
    ) -> MessageHits:
        """Search messages by keywords, meaning and context; best first, empty without a hit.

        At least one id is required, and messages match all given ids. Tool calls and hidden
        messages are not searched, and results of tools only with `roles=["tool"]`.

        Args:
            limit: 1 to 100.
            threshold: 0 to 1; excludes messages that are less similar to the query.
            options: see `MessageSearchOptions`.

        Raises:
            UnprocessableError: no id was given (`selector_required`), or a parameter is invalid.
            NotFoundError: there is no such session, or the key is bound to another user or agent.

        """
        body = {
            "query": query,
            "session_id": session_id,
            "user_id": user_id,
            "agent_id": agent_id,
            "limit": checked_limit(limit),
            "threshold": threshold,
            **options,
        }
        return await self._send(post(MessageHits, "messages", "search", body=body))

    async def extract(
        self, session_id: str, *, wait: bool = False, prompt: str | None = None
    ) -> Extraction:
        """Extract memories now from the messages of a session that were not processed yet.

        Args:
            wait: return when it is done, after a minute at most; at once if the job is
                deferred for longer (`deferred_reason`).
            prompt: instructions for the extractor, for this time.

        Raises:
            NotFoundError: there is no such session.
            RateLimitedError: a model has processed this session as often as it may in a day.
            UnavailableError: with `wait`, the model has failed (`model_unavailable`); the job
                tries again, and nothing is lost.

        """
        body = {"wait": wait, "prompt": prompt}
        return await self._send(post(Extraction, "sessions", session_id, "extract", body=body))

    async def end(self, session_id: str) -> Session:
        """End a session: it stays readable, accepts no messages, and is extracted from once more.

        Raises:
            NotFoundError: there is no such session.

        """
        return await self._send(post(Session, "sessions", session_id, "end"))

    async def reopen(self, session_id: str) -> Session:
        """Let an ended session accept messages again.

        Raises:
            NotFoundError: there is no such session.

        """
        return await self._send(post(Session, "sessions", session_id, "reopen"))

    async def job(self, job_id: str) -> Job:
        """Return the status of a job.

        Raises:
            NotFoundError: there is no such job.

        """
        return await self._send(fetch(Job, "jobs", job_id))

    async def wait(self, job: str | HasJob, *, timeout: float = WAIT_SECONDS) -> Job:
        """Wait until a job has succeeded, and return it.

        Args:
            job: its id, or any answer that has a `job_id`.
            timeout: seconds to wait; each request for the job has the timeout of the client.

        Raises:
            JobFailedError: it failed for good or was cancelled.
            TimedOutError: the time is over; the job continues.
            ValueError: the answer has no job, because nothing was scheduled.

        """
        job_wait = JobWait(job, timeout)
        while True:
            current = await self.job(job_wait.job_id)
            pause = job_wait.pause(current)
            if pause is None:
                return current
            await sleep(pause)

    async def usage(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        operation: str | None = None,
        model: str | None = None,
    ) -> Usage:
        """Return model calls and tokens by day (UTC), newest first, and what is left of today.

        Without `since` and `until`, the last 30 days.
        """
        return await self._send(
            fetch(Usage, "usage", since=since, until=until, operation=operation, model=model)
        )
