"""Pages of LangGraph's checkpoints end by their bytes too."""

import random

import pytest
from httpx import AsyncClient

from app.integrations.langgraph.pages import PAGE_BYTES
from tests.checkpoints.saver_support import b64, listed, put, write
from tests.support.api import every_page, execute, ok
from tests.support.tenants import Caller

PATH = "/sessions/trip/saver/checkpoints"

NAMES = ["c3", "c2", "c1"]


def noise(length: int, seed: int) -> bytes:
    """Bytes that do not compress."""
    return random.Random(seed).randbytes(length)


async def pages(client: AsyncClient, **params: int) -> list[list[str]]:
    """Ids of the checkpoints of each page."""
    found: list[list[str]] = []
    cursor: dict[str, str] = {}
    while True:
        page = ok(await client.get(PATH, params=params | cursor))
        found.append([one["checkpoint_id"] for one in page["items"]])
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


@pytest.mark.parametrize(("beyond", "ends"), [(-1, 3), (0, 3), (1, 2)])
async def test_own_bytes_of_checkpoints_limit_a_page(
    client: AsyncClient, acme: Caller, dsn: str, beyond: int, ends: int
) -> None:
    for number in (1, 2):
        blob = {"type": "raw", "data": b64(noise(1_390_000, number))}
        ok(await put(client, f"c{number}", checkpoint=blob))
    ok(await put(client, "c3"))
    ok(await write(client, "c2", "pending"))
    [row] = await execute(
        dsn,
        "SELECT sum(octet_length(checkpoint) + pg_column_size(metadata) "
        "+ pg_column_size(channels)) + octet_length('pending') AS bytes "
        "FROM saver_checkpoints WHERE tenant_id = $1",
        acme.tenant_id,
    )
    left = PAGE_BYTES - int(row["bytes"]) + beyond + 1  # One byte was there.
    ok(await put(client, "c3", checkpoint={"type": "raw", "data": b64(noise(left, 3))}))

    assert await pages(client) == [one for one in (NAMES[:ends], NAMES[ends:]) if one]
    assert await pages(client, limit=1) == [["c3"], ["c2"], ["c1"]]


async def test_shared_chunks_are_counted_once_per_page(client: AsyncClient) -> None:
    """Four steps of 1.3 MB of their own each, beside 1.3 MB that all of them have."""
    shared = [noise(65_536, number) for number in range(20)]
    ok(await put(client, "c0", values={"shared": shared}))
    for step in range(1, 4):
        own = [noise(65_536, 100 * step + number) for number in range(20)]
        ok(await put(client, f"c{step}", f"c{step - 1}", values={"own": own}, kept=["shared"]))

    assert await pages(client) == [["c3", "c2"], ["c1", "c0"]]
    assert len(await every_page(client, PATH)) == 4
    assert await listed(client, limit=1) == ["c3"]


async def test_many_small_steps_are_one_page(client: AsyncClient) -> None:
    """More chunks than would fit if each were as long as one may be."""
    for step in range(8):
        pieces = [f"{step} {number}".encode() for number in range(20)]
        ok(await put(client, f"c{step}", values={"list": pieces}))

    assert [len(page) for page in await pages(client)] == [8]
