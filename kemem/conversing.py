"""The part of both clients that is about conversations and the work on them."""

import asyncio
import time
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Unpack

from kemem import calls
from kemem.base import WAIT_SECONDS, listing
from kemem.conversations import (
    Appended,
    Extraction,
    Job,
    MessageHits,
    Messages,
    Session,
    Usage,
)
from kemem.options import MessageSearchOptions, Order, Role, Said
from kemem.sending import AsyncSender, Sender
from kemem.waiting import HasJob, Watch


class Conversing(Sender):
    """Sessions, their messages, and jobs."""

    def append(
        self,
        session_id: str,
        messages: Said,
        user_id: str | None = None,
        agent_id: str | None = None,
        *,
        project_id: str | None = None,
        usage: Mapping[str, int] | None = None,
        state: Mapping[str, Any] | None = None,
        state_version: int | None = None,
    ) -> Appended:
        """Store messages of a conversation, all or none; they are read for memories later.

        A new session is opened on first use. The answer's `extraction` says when it is read, or
        why not, and its `pressure` how full the window is.

        Args:
            usage: what the provider counted for the call that led to these messages, as
                `{"input_tokens": 1234}`.
            state: a merge patch of the working state, applied together with the messages.
            state_version: the version of the working state that the patch is for.

        """
        return self._send(
            calls.append(
                session_id,
                messages,
                user_id=user_id,
                agent_id=agent_id,
                project_id=project_id,
                usage=usage,
                state=state,
                state_version=state_version,
            )
        )

    def messages(
        self,
        session_id: str,
        limit: int | None = 100,
        *,
        order: Order = "asc",
        role: Role | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        branch: str | None = None,
    ) -> Messages:
        """Up to `limit` messages, None for all; `order="desc"` begins with the latest."""
        call = calls.messages(
            session_id,
            limit=limit,
            order=order,
            role=role,
            since=since,
            until=until,
            branch=branch,
        )
        return listing(Messages, self._collect(call, limit))

    def search_messages(
        self,
        query: str,
        session_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 100,
        threshold: float | None = None,
        **options: Unpack[MessageSearchOptions],
    ) -> MessageHits:
        """Find what was said, best first; at least one id says where, and all named must fit.

        Tools, calls of tools and hidden messages are never found.

        Args:
            limit: 1 to 100.
            threshold: 0 to 1; leaves out what is less similar.
            options: see `MessageSearchOptions`.

        """
        return self._send(
            calls.search_messages(
                query,
                session_id=session_id,
                user_id=user_id,
                agent_id=agent_id,
                limit=limit,
                threshold=threshold,
                **options,
            )
        )

    def extract(
        self, session_id: str, *, wait: bool = False, prompt: str | None = None
    ) -> Extraction:
        """Read what is unread in a session now.

        Args:
            wait: until it is done, at most a minute.
            prompt: your own instructions to the extractor, for this time.

        Raises:
            RateLimitedError: a model has read this session as often as it may in a day.

        """
        return self._send(calls.extract(session_id, wait=wait, prompt=prompt))

    def end(self, session_id: str) -> Session:
        """End a session: it can be read, nothing can be appended, and it is read a last time."""
        return self._send(calls.end(session_id))

    def reopen(self, session_id: str) -> Session:
        """Let an ended session go on."""
        return self._send(calls.reopen(session_id))

    def job(self, job_id: str) -> Job:
        """How a job stands. Raises NotFoundError."""
        return self._send(calls.job(job_id))

    def wait(self, job: str | HasJob, *, timeout: float = WAIT_SECONDS) -> Job:
        """The job when it has succeeded.

        Args:
            job: its id, or any answer that has a `job_id`.
            timeout: seconds to wait; every look at the job may take those of the client.

        Raises:
            JobFailedError: it is dead or was cancelled.
            TimedOutError: it is not over; it goes on.
            ValueError: the answer has no job, because nothing was scheduled.

        """
        watch = Watch(job, timeout)
        while True:
            seen = self.job(watch.job_id)
            pause = watch.pause(seen)
            if pause is None:
                return seen
            time.sleep(pause)

    def usage(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        operation: str | None = None,
        model: str | None = None,
    ) -> Usage:
        """Calls and tokens of models by day (UTC), and what is left of today's quota."""
        return self._send(calls.usage(since=since, until=until, operation=operation, model=model))


class AsyncConversing(AsyncSender):
    """As `Conversing`, for an event loop."""

    async def append(
        self,
        session_id: str,
        messages: Said,
        user_id: str | None = None,
        agent_id: str | None = None,
        *,
        project_id: str | None = None,
        usage: Mapping[str, int] | None = None,
        state: Mapping[str, Any] | None = None,
        state_version: int | None = None,
    ) -> Appended:
        """As `Memory.append`."""
        return await self._send(
            calls.append(
                session_id,
                messages,
                user_id=user_id,
                agent_id=agent_id,
                project_id=project_id,
                usage=usage,
                state=state,
                state_version=state_version,
            )
        )

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
    ) -> Messages:
        """As `Memory.messages`."""
        call = calls.messages(
            session_id,
            limit=limit,
            order=order,
            role=role,
            since=since,
            until=until,
            branch=branch,
        )
        return listing(Messages, await self._collect(call, limit))

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
        """As `Memory.search_messages`."""
        return await self._send(
            calls.search_messages(
                query,
                session_id=session_id,
                user_id=user_id,
                agent_id=agent_id,
                limit=limit,
                threshold=threshold,
                **options,
            )
        )

    async def extract(
        self, session_id: str, *, wait: bool = False, prompt: str | None = None
    ) -> Extraction:
        """As `Memory.extract`."""
        return await self._send(calls.extract(session_id, wait=wait, prompt=prompt))

    async def end(self, session_id: str) -> Session:
        """As `Memory.end`."""
        return await self._send(calls.end(session_id))

    async def reopen(self, session_id: str) -> Session:
        """As `Memory.reopen`."""
        return await self._send(calls.reopen(session_id))

    async def job(self, job_id: str) -> Job:
        """As `Memory.job`."""
        return await self._send(calls.job(job_id))

    async def wait(self, job: str | HasJob, *, timeout: float = WAIT_SECONDS) -> Job:  # noqa: ASYNC109 (the names of `Memory.wait`)
        """As `Memory.wait`."""
        watch = Watch(job, timeout)
        while True:
            seen = await self.job(watch.job_id)
            pause = watch.pause(seen)
            if pause is None:
                return seen
            await asyncio.sleep(pause)

    async def usage(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        operation: str | None = None,
        model: str | None = None,
    ) -> Usage:
        """As `Memory.usage`."""
        return await self._send(
            calls.usage(since=since, until=until, operation=operation, model=model)
        )
