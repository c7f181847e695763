"""The part of both clients that is about tools, and the way to blocks and projects."""

from collections.abc import Mapping
from typing import Any

from kemem import session_calls
from kemem.block_editing import AsyncBlocks, Blocks
from kemem.filing import AsyncFolders, Folders
from kemem.forgetting import AsyncErasures, AsyncForgetting, Erasures, Forgetting
from kemem.graphing import AsyncGraph, Graph
from kemem.options import ToolFormat
from kemem.profiling import AsyncProfiles, Profiles
from kemem.projects import AsyncProjects, Projects
from kemem.sending import AsyncSender, Sender
from kemem.tools import Processors, ToolResult, Tools


class Equipping(Sender):
    """Tools, blocks and projects."""

    @property
    def blocks(self) -> Blocks:
        """Texts that always stand in the context of the agents they are attached to."""
        return Blocks(self._send, self._collect)

    @property
    def folders(self) -> Folders:
        """Documents, and the passages they are cut into."""
        return Folders(self._send, self._collect)

    @property
    def projects(self) -> Projects:
        """Groups of users who share memories, and their members."""
        return Projects(self._send, self._collect)

    @property
    def profiles(self) -> Profiles:
        """What is known of users and projects, and DeerFlow's memory documents."""
        return Profiles(self._send, self._collect)

    @property
    def graph(self) -> Graph:
        """Who and what is spoken of, and how they hang together."""
        return Graph(self._send, self._collect)

    @property
    def forgetting(self) -> Forgetting:
        """What is forgotten by itself: the policies, a look ahead, and a run at once."""
        return Forgetting(self._send)

    @property
    def erasures(self) -> Erasures:
        """Receipts of what was erased."""
        return Erasures(self._collect)

    def tools(
        self,
        agent_id: str | None = None,
        session_id: str | None = None,
        *,
        format: ToolFormat | None = None,  # noqa: A002 (the service's word)
        heartbeat: bool = False,
    ) -> Tools:
        """What a model can be told it may call; hand `tools` to the provider.

        Args:
            agent_id: only what this agent may call.
            session_id: only what can be called there, with the labels of its blocks.
            format: `openai` when left out.
            heartbeat: let each take `request_heartbeat`.

        """
        return self._send(
            session_calls.tools(
                agent_id=agent_id, session_id=session_id, format=format, heartbeat=heartbeat or None
            )
        )

    def processors(self) -> Processors:
        """The processors that the deployment allows, in the order they run in; takes an admin key.

        Raises:
            ForbiddenError: the key is none.

        """
        return self._send(session_calls.processors())

    def call_tool(
        self,
        name: str,
        session_id: str,
        arguments: Mapping[str, Any] | str | None = None,
        tool_call_id: str | None = None,
        *,
        max_tokens: int | None = None,
        request_heartbeat: bool | None = None,
    ) -> ToolResult:
        """Call a tool for a model. What goes wrong is in the answer, as text for the model.

        Args:
            arguments: as the model gave them, an object or its text.
            tool_call_id: of the model's call; then the answer has a `message` to hand back.
            max_tokens: 100 to 8000; 1000 when left out.

        Raises:
            NotFoundError: there is no such session.
            ForbiddenError: the key may not do what the tool does.

        """
        return self._send(
            session_calls.call_tool(
                name,
                session_id,
                arguments=arguments,
                tool_call_id=tool_call_id,
                max_tokens=max_tokens,
                request_heartbeat=request_heartbeat,
            )
        )


class AsyncEquipping(AsyncSender):
    """`Equipping` for asyncio."""

    @property
    def blocks(self) -> AsyncBlocks:
        """Texts that always stand in the context of the agents they are attached to."""
        return AsyncBlocks(self._send, self._collect)

    @property
    def folders(self) -> AsyncFolders:
        """Documents, and the passages they are cut into."""
        return AsyncFolders(self._send, self._collect)

    @property
    def projects(self) -> AsyncProjects:
        """Groups of users who share memories, and their members."""
        return AsyncProjects(self._send, self._collect)

    @property
    def profiles(self) -> AsyncProfiles:
        """What is known of users and projects, and DeerFlow's memory documents."""
        return AsyncProfiles(self._send, self._collect)

    @property
    def graph(self) -> AsyncGraph:
        """Who and what is spoken of, and how they hang together."""
        return AsyncGraph(self._send, self._collect)

    @property
    def forgetting(self) -> AsyncForgetting:
        """What is forgotten by itself: the policies, a look ahead, and a run at once."""
        return AsyncForgetting(self._send)

    @property
    def erasures(self) -> AsyncErasures:
        """Receipts of what was erased."""
        return AsyncErasures(self._collect)

    async def tools(
        self,
        agent_id: str | None = None,
        session_id: str | None = None,
        *,
        format: ToolFormat | None = None,  # noqa: A002 (the service's word)
        heartbeat: bool = False,
    ) -> Tools:
        """As `Memory.tools`."""
        return await self._send(
            session_calls.tools(
                agent_id=agent_id, session_id=session_id, format=format, heartbeat=heartbeat or None
            )
        )

    async def processors(self) -> Processors:
        """As `Memory.processors`."""
        return await self._send(session_calls.processors())

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
        """As `Memory.call_tool`."""
        return await self._send(
            session_calls.call_tool(
                name,
                session_id,
                arguments=arguments,
                tool_call_id=tool_call_id,
                max_tokens=max_tokens,
                request_heartbeat=request_heartbeat,
            )
        )
