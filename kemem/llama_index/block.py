"""`KeMemMemoryBlock`: what KeMem knows of a user, in the prompt of an agent of LlamaIndex."""

import asyncio
from typing import Any, TypeVar

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import ConfigDict, Field
from llama_index.core.memory import BaseMemoryBlock

from kemem._async.sender import AsyncSender
from kemem._sync.sender import Sender
from kemem.calls import Operation
from kemem.conversation import append, recall
from kemem.ids import checked_id

Result = TypeVar("Result")

_SAID = frozenset({"user", "assistant"})


class KeMemMemoryBlock(BaseMemoryBlock[str]):  # type: ignore[misc]  # The package is an extra.
    """Recalls what KeMem knows for what the user said last, and stores the conversation.

    The session is the `session_id` of LlamaIndex's `Memory`. That gives a block the messages that
    leave its short-term memory; texts of user and assistant are appended to the session of KeMem,
    which extracts memories from them. To have messages read at once, give them to
    `Memory.append` of the client as well, or set a low `chat_history_token_ratio`.

    Raises:
        ValueError: of a method: the `session_id` can be none of a session.
        ConflictError: of a method: the session has ended, or belongs to another user or agent.
        KememError: of a method: the service did not answer, or refused.

    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str = Field(default="KeMem")
    client: Sender | AsyncSender
    """A `Memory`, or an `AsyncMemory` of the event loop; it is not closed."""
    user_id: str | None = None
    """The user; it may be left out if the client acts as one, or the key is bound to one."""
    agent_id: str | None = None

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = [
            message.content
            for message in messages or ()
            if message.role == "user" and message.content
        ]
        session_id = checked_id("session", str(block_kwargs.get("session_id", "")))
        return await self._run(recall(session_id, self._owner(), said[-1] if said else ""))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        spoken = [
            message for message in messages if message.content and message.role.value in _SAID
        ]
        for session_id in dict.fromkeys(str(_session_of(message)) for message in spoken):
            forms = [
                {"role": message.role.value, "content": message.content}
                for message in spoken
                if str(_session_of(message)) == session_id
            ]
            await self._run(append(checked_id("session", session_id), self._owner(), forms))

    def _owner(self) -> dict[str, str | None]:
        return {"user_id": self.user_id, "agent_id": self.agent_id}

    async def _run(self, operation: Operation[Result]) -> Result:
        if isinstance(self.client, Sender):
            return await asyncio.to_thread(self.client._run, operation)  # noqa: SLF001
        return await self.client._run(operation)  # noqa: SLF001 (of this package)


def _session_of(message: ChatMessage) -> Any:
    """LlamaIndex's `Memory` writes its session into each message that it hands on."""
    return message.additional_kwargs.get("session_id", "")
