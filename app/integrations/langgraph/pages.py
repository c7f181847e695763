"""Pages of LangGraph's checkpoints, the chunks that values are cut into, and what can go wrong with
the checkpoints of a thread.

A client cuts a value at points that its content decides; a value that grew shares all chunks but
the last with the one before it.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from app.errors import ConflictError, NotFoundError, UnprocessableError
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


class SaverCheckpointNotFoundError(NotFoundError):
    code = "saver_checkpoint_not_found"
    title = "Checkpoint of the thread not found"

    def __init__(self, session_id: str, checkpoint_id: str) -> None:
        super().__init__(
            f"The session {session_id} has no LangGraph checkpoint {checkpoint_id} in this "
            "namespace: it was deleted, or it has not been put yet.",
            session_id=session_id,
            checkpoint_id=checkpoint_id,
        )


class SaverContentMissingError(ConflictError):
    """A put that leaves out what it takes for stored; nothing was written."""

    code = "saver_content_missing"
    title = "Content not stored here"

    def __init__(self, *, channels: Iterable[str] = (), chunks: Iterable[bytes] = ()) -> None:
        names, digests = sorted(channels), sorted(chunk.hex() for chunk in chunks)
        super().__init__(
            "The checkpoint refers to content that is not stored: put it again with `values` for "
            "the `channels` and with `content` for the `chunks` that are listed.",
            channels=[*names],
            chunks=[*digests],
        )


class SaverStepTooLargeError(UnprocessableError):
    code = "saver_step_too_large"
    title = "Step too large"

    def __init__(self, what: str, *, size: int, limit: int) -> None:
        super().__init__(
            f"{what} take {size} bytes compressed, and at most {limit} are stored; nothing was "
            "written.",
            bytes=size,
            limit=limit,
        )


class InvalidChunkError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self, digest: str, why: str) -> None:
        super().__init__(
            f"The content of the chunk {digest} {why}; nothing was stored.",
            errors=[{"location": ["body", "content", digest], "detail": why}],
        )


class InvalidSaverFilterError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self) -> None:
        super().__init__(
            "`filter` must be a JSON object that can be stored as metadata.",
            errors=[{"location": ["query", "filter"], "detail": "not a JSON object"}],
        )


PAGE_BYTES = 4 * 1024 * 1024
"""Most bytes of content in a page, and most of everything else; it has at least a checkpoint."""

Position = tuple[str, str, str]
"""Checkpoint, session and namespace: where a page begins."""

Values = Mapping[str, tuple[str, Sequence[bytes]]]
"""Types and chunks of values by their digest, in hexadecimal digits."""

_FILTER: TypeAdapter[dict[str, Any]] = TypeAdapter(Document)


@dataclass(frozen=True, slots=True)
class Listed:
    """Checkpoints as they were read, newest first."""

    steps: Sequence[SaverCheckpoint]
    values: Values
    writes: Sequence[SaverWrite]

    def chunks(self) -> list[dict[bytes, None]]:
        """For each step, the digests of the chunks of its values and writes, in order."""
        written: dict[Position, list[bytes]] = {}
        for write in self.writes:
            written.setdefault(_position(write), []).extend(write.chunks or ())
        return [
            dict.fromkeys(
                [
                    *(
                        part
                        for digest in step.channels.values()
                        if digest in self.values
                        for part in self.values[digest][1]
                    ),
                    *written.get(_position(step), ()),
                ]
            )
            for step in self.steps
        ]

    def first(self, number: int) -> "Listed":
        """Only the first of the steps."""
        return replace(self, steps=self.steps[:number])

    def whole(self, held: Collection[bytes]) -> list[SaverCheckpoint]:
        """The complete steps: those of which nothing was deleted while they were read."""
        return [
            step
            for step, chunks in zip(self.steps, self.chunks(), strict=True)
            if self.values.keys() >= set(step.channels.values())
            and all(chunk in held for chunk in chunks)
        ]

    def fitting(self, sizes: Mapping[bytes, int]) -> int:
        """How many of the steps fit into a page, each chunk counted once; at least one."""
        counted: set[bytes] = set()
        left = PAGE_BYTES
        for number, chunks in enumerate(self.chunks()):
            new = chunks.keys() - counted
            left -= sum(sizes.get(digest, 0) for digest in new)
            if left < 0 and number:
                return number
            counted |= new
        return len(self.steps)


def first_chunks(chunks: Iterable[bytes], sizes: Mapping[bytes, int]) -> int:
    """How many of `chunks` fit into a page; at least one."""
    left = PAGE_BYTES
    number = 0
    for digest in chunks:
        left -= sizes.get(digest, 0)
        if left < 0 and number:
            break
        number += 1
    return number


def _position(row: SaverCheckpoint | SaverWrite) -> Position:
    return row.checkpoint_id, row.session_id, row.namespace


def page_json(
    listed: Listed, held: Collection[bytes], content: Mapping[bytes, bytes], *, more: bool
) -> bytes:
    """A `SaverPage` as JSON, without steps that were deleted while they were read.

    Args:
        listed: the steps of the page.
        held: digests of the chunks that are stored.
        content: those of them that are in the page.
        more: whether another page follows.

    """
    shown = replace(listed, steps=listed.whole(held))
    theirs = {digest for chunks in shown.chunks() for digest in chunks}
    page = SaverPage(
        items=_shown(shown.steps, shown.values, shown.writes),
        content={digest.hex(): packed for digest, packed in content.items() if digest in theirs},
        next_cursor=_cursor(listed.steps[-1]) if more else None,
    )
    return page.model_dump_json(by_alias=True).encode()


def _shown(
    steps: Sequence[SaverCheckpoint],
    values: Values,
    writes: Sequence[SaverWrite],
) -> list[SaverCheckpointRead]:
    pending: dict[Position, list[PendingWriteRead]] = {}
    for write in writes:
        shown = PendingWriteRead(
            task_id=write.task_id,
            task_path=write.task_path,
            index=write.idx,
            channel=write.channel,
            type=write.type,
            data=write.value,
            chunks=None if write.chunks is None else [part.hex() for part in write.chunks],
        )
        pending.setdefault(_position(write), []).append(shown)
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
            writes=pending.get(_position(step), []),
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


_LIST: Final = "saver_checkpoints"
"""The list that its cursors name."""


def _cursor(step: SaverCheckpoint) -> str:
    # As it is: written as escapes, the longest names would make a cursor longer than one may be.
    named = [_LIST, step.checkpoint_id, step.session_id, step.namespace]
    raw = json.dumps(named, ensure_ascii=False)
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
        or len(position) != 4
        or position[0] != _LIST
        or not all(isinstance(part, str) and part.isprintable() for part in position)
    ):
        raise InvalidCursorError
    return position[1], position[2], position[3]


CHUNK_BYTES = 64 * 1024
"""Most bytes of a chunk, decompressed."""
STEP_BYTES = 64 * 1024 * 1024
"""Most bytes of the new values of a step or the writes of a task, compressed."""
STAGED_BYTES = 4 * STEP_BYTES
"""Most bytes of chunks that came ahead in one session: several tasks may write at once."""
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
