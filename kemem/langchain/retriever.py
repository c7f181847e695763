"""`KeMemRetriever`: memories as documents of LangChain."""

import asyncio
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from kemem._async.memory import AsyncMemory
from kemem._sync.memory import Memory
from kemem.conversation import QUERY_CHARACTERS
from kemem.memories import SearchResults


class KeMemRetriever(BaseRetriever):
    """Finds memories, best first; a document's `id` is that of the memory.

    `metadata` of a document has `memory_id`, `score`, `user_id`, `agent_id`, `session_id` and
    `create_time`. A query beyond 2000 characters is cut, and a blank one finds nothing.

    Raises:
        TypeError: of a sync method: the client is an `AsyncMemory`.
        KememError: of a method: the service did not answer, or refused.

    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Memory | AsyncMemory
    """A `Memory`, which `invoke` and `ainvoke` can use, or an `AsyncMemory`; it is not closed."""
    user_id: str | None = None
    """Whose memories; the user may be left out if the client acts as one."""
    agent_id: str | None = None
    session_id: str | None = None
    """The conversation that asks."""
    k: int = Field(default=10, ge=1, le=100)
    """Most documents."""
    options: dict[str, Any] = {}
    """Further parameters of `Memory.search`, such as `filters` and `threshold`."""

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        if not isinstance(self.client, Memory):
            raise TypeError("an AsyncMemory has no sync methods: use `ainvoke`, or a Memory")
        return _documents(self.client.search(**self._search(query))) if query.strip() else []

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        if not query.strip():
            return []
        if isinstance(self.client, Memory):
            return _documents(await asyncio.to_thread(self.client.search, **self._search(query)))
        return _documents(await self.client.search(**self._search(query)))

    def _search(self, query: str) -> dict[str, Any]:
        return {
            "query": query[:QUERY_CHARACTERS],
            "user_id": self.user_id or self.client.acting_user,
            "agent_id": self.agent_id,
            "session_id": self.session_id,
            "limit": self.k,
            **self.options,
        }


def _documents(found: SearchResults) -> list[Document]:
    return [
        Document(
            page_content=hit.content,
            id=hit.memory_id,
            metadata={
                "memory_id": hit.memory_id,
                "score": hit.score,
                "user_id": hit.user_id,
                "agent_id": hit.agent_id,
                "session_id": hit.session_id,
                "create_time": hit.raw.get("create_time"),
            },
        )
        for hit in found
    ]
