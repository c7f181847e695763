"""How values of a graph travel: cut where their content says so, each piece sent once.

A list of messages that grew by one has the pieces of the list before it, but the last. So a
step sends, and the service stores, about what is new in it, however long the thread is.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Chunks: TypeAlias = dict[str, bytes]
"""Pieces by their digest in hexadecimal digits."""

SHORTEST = 1024
LONGEST = 16 * 1024
_WINDOW = 8
# A cut wherever one byte of the mix is 0 and three bits of another are: every 2 KiB.
_RARE = 0b111
_DIGEST_DIGITS = 32

# Each spreads the bytes in another way, and all processes have the same ones.
_TABLES = tuple(hashlib.shake_256(bytes([number])).digest(256) for number in range(_WINDOW))


@dataclass(frozen=True, slots=True)
class Cut:
    """A value in pieces."""

    type: str
    digests: tuple[str, ...]
    chunks: Chunks


def cut(kind: str, data: bytes) -> Cut:
    """`data`, which a serializer calls `kind`, in pieces of 1 to 16 KiB."""
    named = [(digest_of(piece), piece) for piece in pieces(data)]
    return Cut(kind, tuple(digest for digest, _ in named), dict(named))


def digest_of(piece: bytes) -> str:
    return hashlib.sha256(piece).hexdigest()[:_DIGEST_DIGITS]


def pieces(data: bytes) -> list[bytes]:
    """`data` cut behind places that the bytes before them mark, whatever stands elsewhere."""
    mix = _mix(data)
    found: list[bytes] = []
    start, size = 0, len(data)
    while size - start > SHORTEST:
        end = min(start + LONGEST, size)
        at = mix.find(0, start + SHORTEST, end)
        while at >= 0 and mix[at - _WINDOW] & _RARE:
            at = mix.find(0, at + 1, end)
        behind = end if at < 0 else at + 1
        found.append(data[start:behind])
        start = behind
    if start < size:
        found.append(data[start:])
    return found


def _mix(data: bytes) -> bytes:
    """For each place a byte that depends on the eight bytes up to it and on nothing else.

    Worked out for all places at once, as sums of very long numbers: a loop over the bytes
    would take a hundred times as long.
    """
    mixed = 0
    for number, table in enumerate(_TABLES):
        mixed ^= int.from_bytes(data.translate(table), "little") << (8 * number)
    return mixed.to_bytes(len(data) + _WINDOW, "little")


def packed(chunks: Mapping[str, bytes], digests: Iterable[str]) -> dict[str, str]:
    """Those of `chunks`, as they are sent."""
    return {digest: text_of(zlib.compress(chunks[digest], 9)) for digest in digests}


def unpacked(content: Mapping[str, str]) -> Chunks:
    """Pieces as the service sent them."""
    return {digest: zlib.decompress(bytes_of(text)) for digest, text in content.items()}


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def bytes_of(text: str) -> bytes:
    return base64.b64decode(text)
