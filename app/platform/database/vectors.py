"""Vectors as PostgreSQL sends them: written in binary, they cost neither side the reading of text.

A vector of 256 numbers takes 0.02 ms of Python to write as text, and PostgreSQL as long to read.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final

import asyncpg
import numpy as np
from pgvector import SparseVector, Vector

_HEAD: Final = struct.Struct(">HH")


def vector_bytes(vector: Any) -> bytes:
    """A vector as a parameter of the driver's."""
    numbers = np.asarray(vector, ">f4")
    return _HEAD.pack(len(numbers), 0) + numbers.tobytes()


def vectors_bytes(vectors: Sequence[Any]) -> list[bytes]:
    """Vectors of one length as a parameter of the driver's, for an array of them."""
    if not vectors:
        return []
    rows = np.asarray(vectors, ">f4")
    head = _HEAD.pack(rows.shape[1], 0)
    return [head + row.tobytes() for row in rows]


async def send_in_binary(connection: asyncpg.Connection) -> None:
    """Let a connection take vectors as bytes, and as text where SQLAlchemy has written them."""
    for kind, name in ((Vector, "vector"), (SparseVector, "sparsevec")):
        await connection.set_type_codec(
            name, schema="public", encoder=_encoder(kind), decoder=kind.from_binary, format="binary"
        )


def _encoder(kind: type[Vector | SparseVector]) -> Any:
    def encode(value: bytes | str) -> bytes:
        return value if isinstance(value, bytes) else kind.from_text(value).to_binary()

    return encode
