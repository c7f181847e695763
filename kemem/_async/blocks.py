"""Methods of `memory.blocks`."""

from typing import Any, Unpack

from kemem._async.sender import AsyncResource
from kemem.answers import listing
from kemem.blocks import Block, BlockChange, BlockDeleted, BlockHistory, BlockList
from kemem.calls import (
    Call,
    Version,
    change,
    discard,
    fetch,
    fetch_pages,
    if_match,
    post,
    remove,
)
from kemem.deprecated import OldBlockNames
from kemem.options import BlockChanges, BlockListOptions, BlockOptions


class AsyncBlocks(OldBlockNames, AsyncResource):
    """Blocks: texts that are always in the context of the agents they are attached to."""

    async def create(
        self,
        label: str,
        value: str = "",
        limit: int | None = None,
        **options: Unpack[BlockOptions],
    ) -> Block:
        """Create a block; with `agent_id` it is attached to that agent, with `session_id` it is
        part of the context of that session alone.

        Args:
            limit: maximum length in characters; 5000 by default.
            options: see `BlockOptions`.

        Raises:
            NotFoundError: there is no such user or agent.
            ConflictError: the `block_id` is taken, or the agent has a block with this label.
            UnprocessableError: the value is longer than the limit.

        """
        body = {"label": label, "value": value, "limit": limit, **options}
        return await self._send(post(Block, "blocks", body=body))

    async def list_blocks(
        self, limit: int | None = 100, **options: Unpack[BlockListOptions]
    ) -> BlockList:
        """Return up to `limit` blocks, newest first; None means all."""
        call = fetch_pages(Block, "blocks", limit=limit, **options)
        return listing(BlockList, await self._collect(call, limit))

    async def attached(self, agent_id: str, limit: int | None = 100) -> BlockList:
        """Return up to `limit` blocks of an agent, hidden ones included; None means all."""
        call = fetch_pages(Block, "agents", agent_id, "blocks", limit=limit)
        return listing(BlockList, await self._collect(call, limit))

    async def get(self, block_id: str) -> Block:
        """Return one block.

        Raises:
            NotFoundError: there is no such block.

        """
        return await self._send(fetch(Block, "blocks", block_id))

    async def update(
        self, block_id: str, *, version: Version, **changes: Unpack[BlockChanges]
    ) -> Block:
        """Change a block.

        Args:
            version: the version you read, or `*` for any version. An unanswered request is
                repeated only with `*`.
            changes: see `BlockChanges`.

        Raises:
            NotFoundError: there is no such block.
            ConflictError: there is a newer version (`version_conflict`), or an agent has another
                block with the new label.
            UnprocessableError: the value is longer than the limit.

        """
        call = change("PATCH", Block, "blocks", block_id, body=changes, version=version)
        return await self._send(call)

    async def delete(
        self, block_id: str, *, confirm: bool = False, dry_run: bool = False
    ) -> BlockDeleted:
        """Delete a block for good, with its history and the copies of users.

        Args:
            confirm: must be True if users have copies.
            dry_run: only count.

        Raises:
            NotFoundError: there is no such block.
            ConflictError: users have copies, and `confirm` is missing.

        """
        call = discard(
            BlockDeleted,
            "blocks",
            block_id,
            lost={"block_id": block_id},
            confirm=confirm or None,
            dry_run=dry_run or None,
        )
        return await self._send(call)

    async def append(self, block_id: str, text: str, *, version: Version | None = None) -> Block:
        """Add a line at the end of the text.

        Raises:
            NotFoundError: there is no such block.
            ConflictError: there is a newer version (`version_conflict`), or the block is read-only.
            UnprocessableError: the text would be longer than the limit.

        """
        return await self._send(_edit(block_id, "append", version, text=text))

    async def replace(
        self, block_id: str, old: str, new: str, *, version: Version | None = None
    ) -> Block:
        """Replace a piece of text that occurs exactly once.

        Raises as `append`, and UnprocessableError if `old` does not occur or occurs twice.
        """
        return await self._send(_edit(block_id, "replace", version, old=old, new=new))

    async def insert(
        self,
        block_id: str,
        text: str,
        line: int | None = None,
        *,
        version: Version | None = None,
    ) -> Block:
        """Insert text after a line; 0 is the beginning, None the end.

        Raises as `append`, and UnprocessableError if there is no such line.
        """
        return await self._send(_edit(block_id, "insert", version, text=text, line=line))

    async def rewrite(self, block_id: str, value: str, *, version: Version) -> Block:
        """Replace the whole text; raises as `append`."""
        return await self._send(_edit(block_id, "rewrite", version, value=value))

    async def undo(self, block_id: str, *, version: Version) -> Block:
        """Restore the text before the last change.

        Raises as `append`, and ConflictError if there is nothing to undo.
        """
        return await self._send(_edit(block_id, "undo", version))

    async def redo(self, block_id: str, *, version: Version) -> Block:
        """Revert an undo.

        Raises as `append`, and ConflictError if there is nothing to redo.
        """
        return await self._send(_edit(block_id, "redo", version))

    async def history(self, block_id: str, limit: int | None = 100) -> BlockHistory:
        """Return the text after each of up to `limit` changes, newest first; None means all.

        Raises:
            NotFoundError: there is no such block.

        """
        call = fetch_pages(BlockChange, "blocks", block_id, "history", limit=limit)
        return listing(BlockHistory, await self._collect(call, limit))

    async def attach(self, agent_id: str, block_id: str) -> Block:
        """Attach a block to an agent; several agents may share a block. Safe to repeat.

        Raises:
            NotFoundError: there is no such agent or block.
            ConflictError: the agent has another block with this label.

        """
        return await self._send(change("PUT", Block, "agents", agent_id, "blocks", block_id))

    async def detach(self, agent_id: str, block_id: str) -> None:
        """Detach a block from an agent; the block is kept.

        Raises:
            NotFoundError: it is not attached.

        """
        return await self._send(remove("agents", agent_id, "blocks", block_id))


def _edit(block_id: str, verb: str, version: Version | None, **fields: Any) -> Call[Block]:
    return post(Block, "blocks", block_id, verb, body=fields or None, headers=if_match(version))
