"""Exports in tests: read, compared, and put into another tenant."""

import json
from collections.abc import Sequence
from typing import Any

import asyncpg
from httpx import AsyncClient, Response

from app.identity.tenants.access import Access, Principal
from tests.support.api import execute, ok
from tests.support.tenants import Caller

NDJSON = {"Content-Type": "application/x-ndjson"}


async def exported(client: AsyncClient, **query: Any) -> list[bytes]:
    """The lines of an export, without what ends them."""
    response = await client.get("/export", params=query)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.content.endswith(b"\n")
    return response.content[:-1].split(b"\n")


def rows_in(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines[1:-1]]


def end_of(lines: Sequence[bytes]) -> dict[str, Any]:
    """The end without what differs when the manifest does."""
    end = json.loads(lines[-1])
    assert end["type"] == "end"
    return {name: end[name] for name in ("counts", "rows_sha256")}


async def send(client: AsyncClient, lines: Sequence[bytes], **query: Any) -> Response:
    return await client.post(
        "/import", content=b"\n".join(lines) + b"\n", params=query, headers=NDJSON
    )


def parts_of(lines: Sequence[bytes], size: int) -> list[list[bytes]]:
    """Parts of `size` rows, each behind the manifest."""
    rows = lines[1:-1]
    return [[lines[0], *rows[at : at + size]] for at in range(0, len(rows), size)]


async def imported(
    client: AsyncClient, lines: Sequence[bytes], *, size: int = 1_000, **query: Any
) -> dict[str, int]:
    """Put an export in, part by part; how many rows were new, unchanged and skipped."""
    total = {"inserted": 0, "unchanged": 0, "skipped": 0}
    for part in parts_of(lines, size):
        report = ok(await send(client, part, **query))
        for name in total:
            total[name] += sum(report[name].values())
    return total


def with_row(noun: str, lines: Sequence[bytes], **changes: Any) -> list[bytes]:
    """The manifest and the first row of a kind, changed."""
    [row, *_] = [one["row"] for one in rows_in(lines) if one["type"] == noun]
    return [lines[0], json.dumps({"type": noun, "row": row | changes}).encode()]


async def sessions_that(dsn: str, condition: str) -> int:
    """How many connections of the service there are of which this is true.

    Asked as the service itself: nobody else is told what it is at.
    """
    connection = await asyncpg.connect(dsn)
    try:
        count: int = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            f"AND pid <> pg_backend_pid() AND {condition}"
        )
        return count
    finally:
        await connection.close()


async def reading(dsn: str) -> int:
    """How many exports are open and wait; others keep no snapshot between statements."""
    return await sessions_that(
        dsn, "state LIKE 'idle in transaction%' AND backend_xmin IS NOT NULL"
    )


_MANY = """
INSERT INTO messages (tenant_id, message_id, agent_id, user_id, session_id, role, content,
    sequence_no)
SELECT m.tenant_id, 'many-' || n, agent_id, user_id, session_id, role, repeat('tree ', 200), n
FROM messages m, generate_series(1000, 999 + $2) n WHERE m.tenant_id = $1
"""


async def many(dsn: str, caller: Caller, count: int) -> None:
    """Messages of a kibibyte beside the only one that there is."""
    await execute(dsn, _MANY, caller.tenant_id, count)


def principal_of(caller: Caller) -> Principal:
    """As a route sees the tenant's own key."""
    return Principal(Access(caller.tenant_id), caller.key_id, frozenset({"admin"}), {})
