"""What tests of LangGraph's saver say again and again, in the words of a client."""

import base64
import hashlib
import zlib
from typing import Any

from httpx import AsyncClient, Response

from tests.support.api import execute, ok

TABLES = ("saver_checkpoints", "saver_values", "saver_chunks", "saver_writes")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def digest(piece: bytes) -> str:
    return hashlib.sha256(piece).hexdigest()[:32]


def content(*pieces: bytes) -> dict[str, str]:
    return {digest(one): b64(zlib.compress(one)) for one in pieces}


def value(*pieces: bytes, kind: str = "msgpack") -> dict[str, Any]:
    return {"type": kind, "chunks": [digest(one) for one in pieces]}


def body(parent: str | None = None, **fields: Any) -> dict[str, Any]:
    """A put of Ana's; channels are named with their pieces."""
    values = fields.pop("values", {})
    pieces = [one for parts in values.values() for one in parts]
    return {
        "user_id": "ana",
        "parent_id": parent,
        "checkpoint": {"type": "msgpack", "data": b64(b"\x80")},
        "metadata": {"source": "loop", "step": 1},
        "values": {name: value(*parts) for name, parts in values.items()},
        "content": content(*pieces),
    } | fields


async def put(
    client: AsyncClient,
    checkpoint_id: str,
    parent: str | None = None,
    *,
    session: str = "trip",
    namespace: str = "",
    **fields: Any,
) -> Response:
    return await client.put(
        f"/sessions/{session}/saver/checkpoints/{checkpoint_id}",
        params={"namespace": namespace},
        json=body(parent, **fields),
    )


async def write(
    client: AsyncClient,
    checkpoint_id: str,
    *texts: str,
    session: str = "trip",
    namespace: str = "",
    task: str = "task",
    first: int = 0,
    **fields: Any,
) -> Response:
    writes = [
        {"index": first + place, "channel": "messages", "type": "raw", "data": b64(text.encode())}
        for place, text in enumerate(texts)
    ]
    return await client.put(
        f"/sessions/{session}/saver/checkpoints/{checkpoint_id}/writes",
        params={"namespace": namespace},
        json={"task_id": task, "writes": writes} | fields,
    )


async def listed(client: AsyncClient, session: str = "trip", **params: Any) -> list[str]:
    """Ids of the checkpoints that a list shows, newest first."""
    page = ok(await client.get(f"/sessions/{session}/saver/checkpoints", params=params))
    return [one["checkpoint_id"] for one in page["items"]]


async def held(client: AsyncClient, session: str = "trip", **params: Any) -> list[dict[str, Any]]:
    """Per checkpoint the content of its channels, put together from the chunks."""
    page = ok(await client.get(f"/sessions/{session}/saver/checkpoints", params=params))
    pieces = {
        name: zlib.decompress(base64.b64decode(text)) for name, text in page["content"].items()
    }
    return [
        {
            name: b"".join(pieces[one] for one in told["chunks"])
            for name, told in step["values"].items()
        }
        for step in page["items"]
    ]


async def rows(dsn: str, tenant_id: str) -> dict[str, int]:
    """How many rows a tenant has in each of the saver's tables."""
    return {
        table: (
            await execute(dsn, f"SELECT count(*) FROM {table} WHERE tenant_id = $1", tenant_id)
        )[0][0]
        for table in TABLES
    }
