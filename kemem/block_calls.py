"""The calls about blocks."""

from collections.abc import Mapping
from typing import Any

from kemem.blocks import Block, BlockChange, BlockDeleted
from kemem.writing import (
    Call,
    Page,
    Version,
    change,
    discard,
    fetch,
    fetch_pages,
    if_match,
    post,
    remove,
)


def create(label: str, value: str, **fields: Any) -> Call[Block]:
    return post(Block, "blocks", body={"label": label, "value": value, **fields})


def list_blocks(*, limit: int | None, **params: Any) -> Call[Page[Block]]:
    return fetch_pages(Block, "blocks", limit=limit, **params)


def attached(agent_id: str, *, limit: int | None) -> Call[Page[Block]]:
    return fetch_pages(Block, "agents", agent_id, "blocks", limit=limit)


def get(block_id: str) -> Call[Block]:
    return fetch(Block, "blocks", block_id)


def update(block_id: str, changes: Mapping[str, Any], version: Version) -> Call[Block]:
    return change("PATCH", Block, "blocks", block_id, body=changes, version=version)


def delete(block_id: str, *, confirm: bool, dry_run: bool) -> Call[BlockDeleted]:
    return discard(
        BlockDeleted,
        "blocks",
        block_id,
        lost={"block_id": block_id},
        confirm=confirm or None,
        dry_run=dry_run or None,
    )


def edit(block_id: str, how: str, version: Version | None, **fields: Any) -> Call[Block]:
    """An edit of the text: append, replace, insert, rewrite, undo or redo."""
    return post(Block, "blocks", block_id, how, body=fields or None, headers=if_match(version))


def history(block_id: str, *, limit: int | None) -> Call[Page[BlockChange]]:
    return fetch_pages(BlockChange, "blocks", block_id, "history", limit=limit)


def attach(agent_id: str, block_id: str) -> Call[Block]:
    return change("PUT", Block, "agents", agent_id, "blocks", block_id)


def detach(agent_id: str, block_id: str) -> Call[None]:
    return remove("agents", agent_id, "blocks", block_id)
