"""Methods about tools that a model may call, and about processors."""

from collections.abc import Mapping
from typing import Any

from kemem._async.sender import AsyncSender
from kemem.calls import fetch, post
from kemem.options import ToolFormat
from kemem.tools import Processors, ToolResult, Tools


class AsyncToolMethods(AsyncSender):
    """Methods about tools and processors."""

    async def tools(
        self,
        agent_id: str | None = None,
        session_id: str | None = None,
        *,
        format: ToolFormat | None = None,  # noqa: A002 (the name in the HTTP interface)
        heartbeat: bool = False,
    ) -> Tools:
        """Return the tools that a model may call; pass `tools` of the answer to the provider.

        Args:
            agent_id: only tools that this agent may use.
            session_id: only tools that work in this session, with the labels of its blocks.
            format: `openai` by default.
            heartbeat: give each tool a `request_heartbeat` parameter.

        """
        call = fetch(
            Tools,
            "tools",
            agent_id=agent_id,
            session_id=session_id,
            format=format,
            heartbeat=heartbeat or None,
        )
        return await self._send(call)

    async def call_tool(
        self,
        name: str,
        session_id: str,
        arguments: Mapping[str, Any] | str | None = None,
        tool_call_id: str | None = None,
        *,
        max_tokens: int | None = None,
        request_heartbeat: bool | None = None,
    ) -> ToolResult:
        """Call a tool for a model. If the tool fails, the answer has the error for the model.

        Args:
            arguments: as the model gave them, a mapping or JSON text.
            tool_call_id: the id of the model's call; with it, the answer has a `message`.
            max_tokens: the size of the result, 100 to 8000; 1000 by default.

        Raises:
            NotFoundError: there is no such session.
            ForbiddenError: the key may not do what the tool does.

        """
        body = {
            "session_id": session_id,
            "arguments": arguments,
            "tool_call_id": tool_call_id,
            "max_tokens": max_tokens,
            "request_heartbeat": request_heartbeat,
        }
        return await self._send(post(ToolResult, "tools", name, "call", body=body))

    async def processors(self) -> Processors:
        """Return the processors of the deployment in the order in which they run.

        Raises:
            ForbiddenError: the key is no admin key.

        """
        return await self._send(fetch(Processors, "processors"))
