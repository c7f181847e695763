"""`Memory.blocks` and `AsyncMemory.blocks`: what can be done with blocks."""

from typing import Protocol, TypeVar, Unpack

from kemem import block_calls
from kemem.base import listing
from kemem.blocks import Block, BlockDeleted, BlockHistory, BlockList
from kemem.options import BlockChanges, BlockListOptions, BlockOptions
from kemem.writing import Call, Page, Version

Result = TypeVar("Result")


class Send(Protocol):
    def __call__(self, call: Call[Result]) -> Result: ...


class Collect(Protocol):
    def __call__(self, first: Call[Page[Result]], limit: int | None) -> "list[Result]": ...


class AsyncSend(Protocol):
    async def __call__(self, call: Call[Result]) -> Result: ...


class AsyncCollect(Protocol):
    async def __call__(self, first: Call[Page[Result]], limit: int | None) -> "list[Result]": ...


class Blocks:
    """Blocks of the tenant, as `memory.blocks`."""

    def __init__(self, send: Send, collect: Collect) -> None:
        self._send = send
        self._collect = collect

    def create(
        self,
        label: str,
        value: str = "",
        limit: int | None = None,
        **options: Unpack[BlockOptions],
    ) -> Block:
        """Make a block; `agent_id` attaches it at once.

        Args:
            limit: most characters it may hold; 5000 when left out.
            options: see `BlockOptions`.

        Raises:
            UnprocessableError: the value is longer than the limit.

        """
        return self._send(block_calls.create(label, value, limit=limit, **options))

    def list(self, limit: int | None = 100, **options: Unpack[BlockListOptions]) -> BlockList:
        """Up to `limit` blocks, newest first; None means all."""
        call = block_calls.list_blocks(limit=limit, **options)
        return listing(BlockList, self._collect(call, limit))

    def attached(self, agent_id: str, limit: int | None = 100) -> BlockList:
        """The blocks of an agent, hidden ones too; None means all."""
        call = block_calls.attached(agent_id, limit=limit)
        return listing(BlockList, self._collect(call, limit))

    def get(self, block_id: str) -> Block:
        """One block. Raises NotFoundError."""
        return self._send(block_calls.get(block_id))

    def update(self, block_id: str, *, version: Version, **changes: Unpack[BlockChanges]) -> Block:
        """Change a block.

        Args:
            version: the one you read, or `*` for whatever it is now.
            changes: see `BlockChanges`.

        Raises:
            ConflictError: `version_conflict`: somebody else changed it.

        """
        return self._send(block_calls.update(block_id, changes, version))

    def delete(
        self, block_id: str, *, confirm: bool = False, dry_run: bool = False
    ) -> BlockDeleted:
        """Delete a block for good, with its history and users' copies of it.

        Args:
            confirm: must be True when users have copies.
            dry_run: only count.

        """
        return self._send(block_calls.delete(block_id, confirm=confirm, dry_run=dry_run))

    def append(self, block_id: str, text: str, *, version: Version | None = None) -> Block:
        """Add a line at the end."""
        return self._send(block_calls.edit(block_id, "append", version, text=text))

    def replace(
        self, block_id: str, old: str, new: str, *, version: Version | None = None
    ) -> Block:
        """Replace text that occurs exactly once."""
        return self._send(block_calls.edit(block_id, "replace", version, old=old, new=new))

    def insert(
        self,
        block_id: str,
        text: str,
        line: int | None = None,
        *,
        version: Version | None = None,
    ) -> Block:
        """Insert text behind a line; 0 is the beginning, None the end."""
        return self._send(block_calls.edit(block_id, "insert", version, text=text, line=line))

    def rewrite(self, block_id: str, value: str, *, version: Version) -> Block:
        """Say all of it anew."""
        return self._send(block_calls.edit(block_id, "rewrite", version, value=value))

    def undo(self, block_id: str, *, version: Version) -> Block:
        """Go back to the text before the last change."""
        return self._send(block_calls.edit(block_id, "undo", version))

    def redo(self, block_id: str, *, version: Version) -> Block:
        """Take back an undo."""
        return self._send(block_calls.edit(block_id, "redo", version))

    def history(self, block_id: str, limit: int | None = 100) -> BlockHistory:
        """What a block said after each of its last changes, newest first."""
        call = block_calls.history(block_id, limit=limit)
        return listing(BlockHistory, self._collect(call, limit))

    def attach(self, agent_id: str, block_id: str) -> Block:
        """Show a block to an agent; several agents may share one."""
        return self._send(block_calls.attach(agent_id, block_id))

    def detach(self, agent_id: str, block_id: str) -> None:
        """Take a block from an agent; the block stays."""
        return self._send(block_calls.detach(agent_id, block_id))


class AsyncBlocks:
    """`Blocks` for asyncio."""

    def __init__(self, send: AsyncSend, collect: AsyncCollect) -> None:
        self._send = send
        self._collect = collect

    async def create(
        self,
        label: str,
        value: str = "",
        limit: int | None = None,
        **options: Unpack[BlockOptions],
    ) -> Block:
        """Make a block; `agent_id` attaches it at once.

        Args:
            limit: most characters it may hold; 5000 when left out.
            options: see `BlockOptions`.

        Raises:
            UnprocessableError: the value is longer than the limit.

        """
        return await self._send(block_calls.create(label, value, limit=limit, **options))

    async def list(self, limit: int | None = 100, **options: Unpack[BlockListOptions]) -> BlockList:
        """As `Blocks.list`."""
        call = block_calls.list_blocks(limit=limit, **options)
        return listing(BlockList, await self._collect(call, limit))

    async def attached(self, agent_id: str, limit: int | None = 100) -> BlockList:
        """As `Blocks.attached`."""
        call = block_calls.attached(agent_id, limit=limit)
        return listing(BlockList, await self._collect(call, limit))

    async def get(self, block_id: str) -> Block:
        """As `Blocks.get`."""
        return await self._send(block_calls.get(block_id))

    async def update(
        self, block_id: str, *, version: Version, **changes: Unpack[BlockChanges]
    ) -> Block:
        """As `Blocks.update`."""
        return await self._send(block_calls.update(block_id, changes, version))

    async def delete(
        self, block_id: str, *, confirm: bool = False, dry_run: bool = False
    ) -> BlockDeleted:
        """As `Blocks.delete`."""
        return await self._send(block_calls.delete(block_id, confirm=confirm, dry_run=dry_run))

    async def append(self, block_id: str, text: str, *, version: Version | None = None) -> Block:
        """As `Blocks.append`."""
        return await self._send(block_calls.edit(block_id, "append", version, text=text))

    async def replace(
        self, block_id: str, old: str, new: str, *, version: Version | None = None
    ) -> Block:
        """As `Blocks.replace`."""
        return await self._send(block_calls.edit(block_id, "replace", version, old=old, new=new))

    async def insert(
        self,
        block_id: str,
        text: str,
        line: int | None = None,
        *,
        version: Version | None = None,
    ) -> Block:
        """As `Blocks.insert`."""
        return await self._send(block_calls.edit(block_id, "insert", version, text=text, line=line))

    async def rewrite(self, block_id: str, value: str, *, version: Version) -> Block:
        """As `Blocks.rewrite`."""
        return await self._send(block_calls.edit(block_id, "rewrite", version, value=value))

    async def undo(self, block_id: str, *, version: Version) -> Block:
        """As `Blocks.undo`."""
        return await self._send(block_calls.edit(block_id, "undo", version))

    async def redo(self, block_id: str, *, version: Version) -> Block:
        """As `Blocks.redo`."""
        return await self._send(block_calls.edit(block_id, "redo", version))

    async def history(self, block_id: str, limit: int | None = 100) -> BlockHistory:
        """As `Blocks.history`."""
        call = block_calls.history(block_id, limit=limit)
        return listing(BlockHistory, await self._collect(call, limit))

    async def attach(self, agent_id: str, block_id: str) -> Block:
        """As `Blocks.attach`."""
        return await self._send(block_calls.attach(agent_id, block_id))

    async def detach(self, agent_id: str, block_id: str) -> None:
        """As `Blocks.detach`."""
        return await self._send(block_calls.detach(agent_id, block_id))
