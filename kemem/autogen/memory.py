"""`KeMemMemory`: the `Memory` protocol of AutoGen, kept in KeMem."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from autogen_core import CancellationToken
from autogen_core.memory import (
    Memory,
    MemoryContent,
    MemoryMimeType,
    MemoryQueryResult,
    UpdateContextResult,
)
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import SystemMessage

from kemem._async.memory import AsyncMemory
from kemem.conversation import QUERY_CHARACTERS

Result = TypeVar("Result")

_TEXTS = frozenset({MemoryMimeType.TEXT, MemoryMimeType.MARKDOWN, "text/plain", "text/markdown"})


class KeMemMemory(Memory):  # type: ignore[misc]  # The package is an extra.
    """Memories of a user or an agent, for `AssistantAgent(memory=[…])`.

    Args:
        client: an `AsyncMemory` of the event loop; it is not closed.
        user_id: whose memories; it may be left out if `client` acts as a user.
        agent_id: with a user what the agent knows of that user, alone what it knows itself.
        limit: most memories for a query.
        options: further parameters of `AsyncMemory.search`, such as `threshold`.

    Raises:
        ValueError: nothing says whose the memories are; of `add`: the content is no text.
        UnprocessableError: of `add`: the gate refused the text.
        KememError: of a method: the service did not answer, or refused.

    """

    component_type = "memory"

    def __init__(
        self,
        client: AsyncMemory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 10,
        **options: Any,
    ) -> None:
        user = user_id or client.acting_user
        if not (user or agent_id):
            raise ValueError("whose memories are these? Give KeMemMemory a user_id or an agent_id")
        self._client = client
        self._owner: dict[str, Any] = {"user_id": user, "agent_id": agent_id}
        self._options = {"limit": limit, **options}

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Add a system message with what is known for the newest message; nothing if nothing is."""
        messages = await model_context.get_messages()
        found = await self.query(_text(messages[-1].content) if messages else "")
        if found.results:
            lines = "\n".join(f"- {result.content}" for result in found.results)
            await model_context.add_message(SystemMessage(content=f"What you remember:\n{lines}"))
        return UpdateContextResult(memories=found)

    async def query(
        self,
        query: str | MemoryContent,
        cancellation_token: CancellationToken | None = None,
        **kwargs: Any,
    ) -> MemoryQueryResult:
        """Memories, best first; nothing for a blank query. `kwargs` are those of a search."""
        text = query if isinstance(query, str) else _text(query.content)
        if not text.strip():
            return MemoryQueryResult(results=[])
        given = {**self._owner, **self._options, **kwargs}
        call = self._client.search(text[:QUERY_CHARACTERS], **given)
        hits = await _cancellable(call, cancellation_token)
        return MemoryQueryResult(
            results=[
                MemoryContent(
                    content=hit.content,
                    mime_type=MemoryMimeType.TEXT,
                    metadata={**hit.metadata, "memory_id": hit.memory_id, "score": hit.score},
                )
                for hit in hits
            ]
        )

    async def add(
        self, content: MemoryContent, cancellation_token: CancellationToken | None = None
    ) -> None:
        """Save a text as a memory, as it is; what is known already is not saved twice."""
        if content.mime_type not in _TEXTS or not isinstance(content.content, str):
            raise ValueError(f"KeMem keeps texts, and this is {content.mime_type}")
        given = {**self._owner, "metadata": content.metadata}
        await _cancellable(
            self._client.add(content.content, infer=False, **given), cancellation_token
        )

    async def clear(self) -> None:
        """Delete all memories of the user, or of the agent, for good."""
        await self._client.delete_all(**self._owner, confirm=True)

    async def close(self) -> None:
        """Nothing: whoever made the client closes it."""


def _text(content: Any) -> str:
    """What a message says; pictures say nothing."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part for part in parts if isinstance(part, str))


async def _cancellable(call: Awaitable[Result], token: CancellationToken | None) -> Result:
    future = asyncio.ensure_future(call)
    if token is not None:
        token.link_future(future)
    return await future
