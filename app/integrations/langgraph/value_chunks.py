"""Pieces of values: what their digests are, and whether a piece is what its digest says. Pure.

A client cuts a value where its content says so; a value that grew shares all pieces but the
last with the one before it.
"""

import hashlib
import zlib
from collections.abc import Mapping, Sequence

from app.integrations.langgraph.errors import InvalidChunkError

CHUNK_BYTES = 64 * 1024
"""Most that one chunk holds, decompressed."""
CONTENT_BYTES = 16 * 1024 * 1024
"""Most that all chunks of one request hold, decompressed."""
DIGEST_BYTES = 16


def digest_of(content: bytes) -> bytes:
    """The name of `content`: the first half of its SHA-256."""
    return hashlib.sha256(content).digest()[:DIGEST_BYTES]


def value_digest(kind: str, chunks: Sequence[bytes]) -> bytes:
    """The name of a value: of its type and its pieces, in order."""
    return digest_of(b"".join([kind.encode(), b"\0", *chunks]))


def check_content(content: Mapping[str, bytes]) -> dict[bytes, bytes]:
    """Compressed chunks by digest, as they may be stored.

    Args:
        content: chunks compressed with zlib, by their digest in hexadecimal digits.

    Raises:
        InvalidChunkError: one is not what its digest says, is too large, or all are.

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
    reader = zlib.decompressobj()
    try:
        # One byte more says whether it is too large, and nothing is made of what follows.
        plain = reader.decompress(packed, CHUNK_BYTES + 1)
    except zlib.error:
        raise InvalidChunkError(name, "is not compressed with zlib") from None
    if len(plain) > CHUNK_BYTES:
        raise InvalidChunkError(name, f"is larger than {CHUNK_BYTES} bytes")
    if not reader.eof or reader.unused_data:
        raise InvalidChunkError(name, "is not one whole zlib stream")
    return plain
