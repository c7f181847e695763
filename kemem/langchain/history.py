"""`KeMemChatMessageHistory`: the messages of a LangChain chat, kept in a session of KeMem."""

import asyncio
from collections.abc import Sequence
from typing import Literal, TypeVar

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage

from kemem._async.sender import AsyncSender
from kemem._sync.sender import Sender
from kemem.calls import Operation
from kemem.conversation import append, clear, newest
from kemem.ids import checked_id
from kemem.langgraph.transcript import form_of, messages_of
from kemem.owners import UserChoice, UserSource

Result = TypeVar("Result")


class KeMemChatMessageHistory(BaseChatMessageHistory):
    """The messages of a chat, for whatever of LangChain takes a `BaseChatMessageHistory`.

    KeMem reads them like any conversation: it extracts memories, and finds what was said. Texts,
    parts, tool calls and their results come back; ids and a provider's own fields do not. The
    session is created with the first messages.

    Args:
        session_id: 1 to 64 characters of any script, without `/` (docs/api.md has the rule).
        client: a `Memory`, which both kinds of methods can use, or an `AsyncMemory` for those with
            `a` alone; it is not closed.
        user_id: the user; `KEY_USER` if the key is bound to one. It may be left out if `client`
            acts as a user.
        agent_id: the agent; by default the user's home agent.
        limit: how many of the newest messages are given back; all by default.

    Raises:
        ValueError: the id can be none of a session, or nothing says whose the session is.
        TypeError: of a sync method: the client is an `AsyncMemory`.
        ConflictError: of a method: the session has ended, or belongs to another user or agent.
        KememError: of a method: the service did not answer, or refused.

    """

    def __init__(
        self,
        session_id: str,
        client: Sender | AsyncSender,
        *,
        user_id: str | Literal[UserSource.KEY_USER] | None = None,
        agent_id: str | None = None,
        limit: int | None = None,
    ) -> None:
        self.session_id = checked_id("session", session_id)
        user = UserChoice("KeMemChatMessageHistory", user_id, client)
        self._client = client
        self._owner = {"user_id": user.user_id, "agent_id": agent_id}
        self._limit = limit

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, oldest first; one request for every 100."""
        return self._run(self._shown())

    async def aget_messages(self) -> list[BaseMessage]:
        """The messages, oldest first."""
        return await self._arun(self._shown())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages; up to 100 of up to 1 MB together are stored all or none."""
        self._run(self._append(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, as `add_messages` does."""
        await self._arun(self._append(messages))

    def clear(self) -> None:
        """Delete all messages for good. The session stays, and so do memories extracted from it."""
        self._run(clear(self.session_id, self._owner))

    async def aclear(self) -> None:
        """Delete all messages for good, as `clear` does."""
        await self._arun(clear(self.session_id, self._owner))

    def _shown(self) -> Operation[list[BaseMessage]]:
        rows = yield from newest(self.session_id, self._owner, self._limit)
        return list(messages_of(row.raw for row in rows))

    def _append(self, messages: Sequence[BaseMessage]) -> Operation[None]:
        forms = [form for message in messages if (form := form_of(message)) is not None]
        yield from append(self.session_id, self._owner, forms)

    def _run(self, operation: Operation[Result]) -> Result:
        if not isinstance(self._client, Sender):
            raise TypeError("an AsyncMemory has no sync methods: use those with `a`, or a Memory")
        return self._client._run(operation)  # noqa: SLF001 (of this package)

    async def _arun(self, operation: Operation[Result]) -> Result:
        if isinstance(self._client, Sender):
            return await asyncio.to_thread(self._client._run, operation)  # noqa: SLF001
        return await self._client._run(operation)  # noqa: SLF001
