"""How an archived checkpoint is kept: its parts as JSON, compressed."""

import asyncio
import json
import zlib
from typing import Any, NamedTuple

from app.prompting.checkpoints.models import Checkpoint, CheckpointArchive


class Packed(NamedTuple):
    """What of a checkpoint is compressed; the rest of it stays readable in its row."""

    contents: dict[str, Any]
    state: dict[str, Any]
    state_version: int


def pack(parts: Packed) -> bytes:
    """`parts`, compressed by zlib, which every Python can read again."""
    text = json.dumps(parts._asdict(), ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode())


def unpack(compressed: bytes) -> Packed:
    """What `pack` was given."""
    return Packed(**json.loads(zlib.decompress(compressed)))


async def read_parts(checkpoint: Checkpoint | CheckpointArchive) -> Packed:
    """What a checkpoint holds, be it live or archived; others are not held up by a large one."""
    if isinstance(checkpoint, CheckpointArchive):
        return await asyncio.to_thread(unpack, checkpoint.compressed)
    return parts_of(checkpoint)


def parts_of(checkpoint: Checkpoint) -> Packed:
    """What a live checkpoint holds."""
    return Packed(checkpoint.contents, checkpoint.state, checkpoint.state_version)
