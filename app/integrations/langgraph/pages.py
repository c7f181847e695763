"""Pages of LangGraph's checkpoints, and the chunks that values are cut into. Pure.

A client cuts a value at points that its content decides; a value that grew shares all chunks but
the last with the one before it.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.integrations.langgraph.errors import InvalidChunkError, InvalidSaverFilterError
from app.integrations.langgraph.schemas import (
    PendingWriteRead,
    SaverCheckpointRead,
    SaverPage,
    TypedBlob,
    TypedChunks,
)
from app.platform.values.fields import Document
from app.platform.values.pagination import InvalidCursorError
from app.prompting.checkpoints.models import SaverCheckpoint, SaverWrite

PAGE_BYTES = 4 * 1024 * 1024
"""Most bytes of content in a page, and most of everything else; it has at least a checkpoint."""

Position = tuple[str, str, str]
"""Checkpoint, session and namespace: where a page begins."""

Values = Mapping[str, tuple[str, Sequence[bytes]]]
"""Types and chunks of values by their digest, in hexadecimal digits."""

_FILTER: TypeAdapter[dict[str, Any]] = TypeAdapter(Document)


def chunks_of(steps: Sequence[SaverCheckpoint], values: Values) -> set[bytes]:
    """Digests of the chunks of those values of `steps` that are in `values`."""
    return {
        part
        for digest in {name for step in steps for name in step.channels.values()} & values.keys()
        for part in values[digest][1]
    }


def whole(
    steps: Sequence[SaverCheckpoint], values: Values, content: Mapping[bytes, bytes]
) -> list[SaverCheckpoint]:
    """The complete steps: those of which nothing was deleted while they were read."""
    return [
        step
        for step in steps
        if values.keys() >= set(step.channels.values())
        and content.keys() >= chunks_of([step], values)
    ]


def fitting(
    steps: Sequence[SaverCheckpoint], values: Values, sizes: Mapping[bytes, int]
) -> Sequence[SaverCheckpoint]:
    """The first of `steps` whose chunks, each counted once, fit into a page; at least one."""
    counted: set[bytes] = set()
    left = PAGE_BYTES
    for number, step in enumerate(steps):
        new = chunks_of([step], values) - counted
        left -= sum(sizes.get(digest, 0) for digest in new)
        if left < 0 and number:
            return steps[:number]
        counted |= new
    return steps


def page_json(
    steps: Sequence[SaverCheckpoint],
    values: Values,
    writes: Sequence[SaverWrite],
    content: Mapping[bytes, bytes],
    *,
    more: bool,
) -> bytes:
    """A `SaverPage` as JSON, without steps that were deleted while they were read."""
    shown = whole(steps, values, content)
    held = chunks_of(shown, values)
    page = SaverPage(
        items=_shown(shown, values, writes),
        content={digest.hex(): packed for digest, packed in content.items() if digest in held},
        next_cursor=_cursor(steps[-1]) if more else None,
    )
    return page.model_dump_json(by_alias=True).encode()


def _shown(
    steps: Sequence[SaverCheckpoint],
    values: Values,
    writes: Sequence[SaverWrite],
) -> list[SaverCheckpointRead]:
    pending: dict[Position, list[PendingWriteRead]] = {}
    for write in writes:
        position = (write.checkpoint_id, write.session_id, write.namespace)
        shown = PendingWriteRead(
            task_id=write.task_id,
            task_path=write.task_path,
            index=write.idx,
            channel=write.channel,
            type=write.type,
            data=write.value,
        )
        pending.setdefault(position, []).append(shown)
    typed = {
        digest: TypedChunks(type=kind, chunks=[part.hex() for part in parts])
        for digest, (kind, parts) in values.items()
    }
    return [
        SaverCheckpointRead(
            session_id=step.session_id,
            thread_id=step.thread_id or step.session_id,
            namespace=step.namespace,
            checkpoint_id=step.checkpoint_id,
            parent_id=step.parent_id,
            run_id=step.run_id,
            checkpoint=TypedBlob(type=step.type, data=step.checkpoint),
            metadata=step.metadata_,
            values={name: typed[digest] for name, digest in step.channels.items()},
            writes=pending.get((step.checkpoint_id, step.session_id, step.namespace), []),
            create_time=step.create_time,
        )
        for step in steps
    ]


def metadata_of(text: str | None) -> dict[str, Any] | None:
    """The metadata that a filter asks for; None without a filter.

    Raises:
        InvalidSaverFilterError: it is no JSON object.

    """
    if text is None:
        return None
    try:
        return _FILTER.validate_python(json.loads(text))
    except (ValueError, ValidationError, RecursionError):
        raise InvalidSaverFilterError from None


def _cursor(step: SaverCheckpoint) -> str:
    raw = json.dumps([step.checkpoint_id, step.session_id, step.namespace])
    return base64.urlsafe_b64encode(raw.encode()).decode()


def position_of(cursor: str | None) -> Position | None:
    """Where a cursor says that a page begins; None without a cursor.

    Raises:
        InvalidCursorError: it is none that a page returned.

    """
    if cursor is None:
        return None
    try:
        position = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise InvalidCursorError from None
    if (
        not isinstance(position, list)
        or len(position) != 3
        or not all(isinstance(part, str) and part.isprintable() for part in position)
    ):
        raise InvalidCursorError
    return position[0], position[1], position[2]


CHUNK_BYTES = 64 * 1024
"""Most bytes of a chunk, decompressed."""
CONTENT_BYTES = 16 * 1024 * 1024
"""Most bytes of all chunks of a request, decompressed."""
DIGEST_BYTES = 16


def digest_of(content: bytes) -> bytes:
    """The digest of `content`: the first half of its SHA-256."""
    return hashlib.sha256(content).digest()[:DIGEST_BYTES]


def value_digest(kind: str, chunks: Sequence[bytes]) -> bytes:
    """The digest of a value: of its type and its chunks, in order."""
    return digest_of(b"".join([kind.encode(), b"\0", *chunks]))


def check_content(content: Mapping[str, bytes]) -> dict[bytes, bytes]:
    """Compressed chunks by digest, checked for storing.

    Args:
        content: chunks compressed with zlib, by their digest in hexadecimal digits.

    Raises:
        InvalidChunkError: a chunk does not have its digest, or is too large, or all together are.

    """
    checked: dict[bytes, bytes] = {}
    left = CONTENT_BYTES
    for name, packed in content.items():
        plain = _decompressed(name, packed)
        left -= len(plain)
        if left < 0:
            raise InvalidChunkError(name, f"and those before it exceed {CONTENT_BYTES} bytes")
        if digest_of(plain).hex() != name:
            raise InvalidChunkError(name, "does not have this digest")
        checked[bytes.fromhex(name)] = packed
    return checked


def _decompressed(name: str, packed: bytes) -> bytes:
    """Raises InvalidChunkError."""
    reader = zlib.decompressobj()
    try:
        # A further byte shows that it is too large; the rest is not decompressed.
        plain = reader.decompress(packed, CHUNK_BYTES + 1)
    except zlib.error:
        raise InvalidChunkError(name, "is not compressed with zlib") from None
    if len(plain) > CHUNK_BYTES:
        raise InvalidChunkError(name, f"is larger than {CHUNK_BYTES} bytes")
    if not reader.eof or reader.unused_data:
        raise InvalidChunkError(name, "is not one whole zlib stream")
    return plain
