"""Splitting the values of a graph into chunks, so that a chunk the service has is not sent again.

The content decides where a value is split. A list of messages that grew by one message has the
same chunks as before except the last, so a step sends and stores only about what is new in it,
however long the thread is.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Chunks: TypeAlias = dict[str, bytes]
"""Chunks by their hexadecimal digest."""

SHORTEST = 1024
LONGEST = 16 * 1024
PART_BYTES = 1024 * 1024
"""Most bytes of chunks in one request; the service takes 2 MiB."""
PART_CHUNKS = 4096
REFERENCE_BYTES = 37
"""A digest in JSON, with quotes and punctuation."""
_WINDOW = 8
# A split where one byte of the hash is 0 and three bits of another are: every 2 KiB on average.
_RARE = 0b111
_DIGEST_DIGITS = 32

# Each maps bytes differently; all processes have the same tables.
_TABLES = tuple(hashlib.shake_256(bytes([number])).digest(256) for number in range(_WINDOW))


@dataclass(frozen=True, slots=True)
class SplitValue:
    """A serialized value in chunks."""

    type: str
    digests: tuple[str, ...]
    chunks: Chunks


def split_value(kind: str, data: bytes) -> SplitValue:
    """Split `data`, which the serializer calls `kind`, into chunks of 1 to 16 KiB."""
    chunks = [(digest_of(chunk), chunk) for chunk in split(data)]
    return SplitValue(kind, tuple(digest for digest, _ in chunks), dict(chunks))


def digest_of(chunk: bytes) -> str:
    return hashlib.sha256(chunk).hexdigest()[:_DIGEST_DIGITS]


def split(data: bytes) -> list[bytes]:
    """Split `data` at positions that depend only on the eight bytes before them."""
    hashes = _rolling_hash(data)
    found: list[bytes] = []
    start, size = 0, len(data)
    while size - start > SHORTEST:
        end = min(start + LONGEST, size)
        at = hashes.find(0, start + SHORTEST, end)
        while at >= 0 and hashes[at - _WINDOW] & _RARE:
            at = hashes.find(0, at + 1, end)
        stop = end if at < 0 else at + 1
        found.append(data[start:stop])
        start = stop
    if start < size:
        found.append(data[start:])
    return found


def _rolling_hash(data: bytes) -> bytes:
    """For each position, a byte that depends only on the eight bytes up to it.

    Computed for all positions at once with very long integers; a loop over the bytes takes a
    hundred times as long.
    """
    mixed = 0
    for number, table in enumerate(_TABLES):
        mixed ^= int.from_bytes(data.translate(table), "little") << (8 * number)
    return mixed.to_bytes(len(data) + _WINDOW, "little")


def compressed(chunks: Mapping[str, bytes], digests: Iterable[str]) -> dict[str, str]:
    """The chunks with these digests, compressed and as text."""
    return {digest: text_of(zlib.compress(chunks[digest])) for digest in digests}


class Content:
    """Chunks that the service sent, decompressed when they are first used."""

    def __init__(self, packed: Mapping[str, str]) -> None:
        self._packed = dict(packed)
        self._plain: Chunks = {}

    def add(self, packed: Mapping[str, str]) -> None:
        self._packed.update(packed)

    def missing(self, digests: Iterable[str]) -> list[str]:
        """Those of `digests` that are not here, each once."""
        return [digest for digest in dict.fromkeys(digests) if digest not in self._packed]

    def joined(self, digests: Iterable[str]) -> bytes:
        """The value of these chunks."""
        return b"".join(map(self._chunk, digests))

    def _chunk(self, digest: str) -> bytes:
        if digest not in self._plain:
            self._plain[digest] = zlib.decompress(bytes_of(self._packed[digest]))
        return self._plain[digest]


def parts(packed: Mapping[str, str], most: int = PART_BYTES) -> Iterator[dict[str, str]]:
    """`packed` in parts that fit into a request each."""
    part: dict[str, str] = {}
    left = most
    for digest, text in packed.items():
        left -= len(text) + REFERENCE_BYTES
        if part and (left < 0 or len(part) == PART_CHUNKS):
            yield part
            part, left = {}, most - len(text) - REFERENCE_BYTES
        part[digest] = text
    if part:
        yield part


def fits(packed: Mapping[str, str], references: int) -> bool:
    """Whether a request that names this many chunks has room for `packed` too."""
    size = sum(len(text) + REFERENCE_BYTES for text in packed.values())
    return len(packed) <= PART_CHUNKS and size + references * REFERENCE_BYTES <= PART_BYTES


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def bytes_of(text: str) -> bytes:
    return base64.b64decode(text)
