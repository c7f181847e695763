"""Memories in conflict when one is erased, exported or imported."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import append, dump, every_page, ok, tables_with
from tests.support.conflicts import FARO, LISBON, PORTO, Doubting, conflicts, in_doubt, tell
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant


@pytest.fixture(scope="module")
async def doubting_app(runtime: Runtime) -> AsyncIterator[Any]:
    async with in_doubt(runtime, Doubting()) as (app, _):
        yield app


@pytest.fixture
async def owner(runtime: Runtime) -> Caller:
    return await make_tenant(runtime)


@pytest.fixture
async def client(doubting_app: Any, runtime: Runtime, owner: Caller) -> AsyncIterator[AsyncClient]:
    key = await make_key(runtime, owner.tenant_id, "read", "write", "admin")
    async with client_of(doubting_app, key.key) as opened:
        yield opened


async def test_erased_person_leaves_no_link(client: AsyncClient, owner: Caller, dsn: str) -> None:
    [bens] = await tell(client, FARO, user_id="ben")
    told = [(await tell(client, text))[0] for text in (LISBON, PORTO)]

    ok(await client.delete("/users/ana", params={"confirm": True}))

    left = await dump(dsn, owner.tenant_id)
    assert [tables_with(one["memory_id"], left) for one in told] == [[], []]
    assert await conflicts(client, bens) == [[]]


async def test_knowledge_that_stays_is_in_conflict_with_nothing(client: AsyncClient) -> None:
    """What all users of an agent share may have come from two of them."""
    told = []
    for user, text in (("ana", LISBON), ("ben", PORTO)):
        await append(client, f"of-{user}", "Hello.", user_id=user)
        where = {"user_id": None, "session_id": f"of-{user}", "agent_id": "default"}
        told += await tell(client, text, scope="agent", **where)
    assert await conflicts(client, told[1]) == [[told[0]["memory_id"]]]

    ok(await client.delete("/users/ana", params={"confirm": True}))

    assert await conflicts(client, told[1]) == [[]]
    assert await every_page(client, "/memories", in_conflict="true") == []


async def test_export_takes_links_along(
    client: AsyncClient, doubting_app: Any, runtime: Runtime
) -> None:
    told = [(await tell(client, text))[0] for text in (LISBON, PORTO)]
    copy = await make_tenant(runtime)
    exported = (await client.get("/export", params={"user_id": "ana"})).content
    async with client_of(doubting_app, copy.key) as other:
        ok(await other.post("/import", content=exported))

        rows = await every_page(other, "/memories", in_conflict="true")
        assert [row["content"] for row in rows] == [PORTO, LISBON]
        assert [row["conflicts_with"] for row in rows] == [
            [told[0]["memory_id"]],
            [told[1]["memory_id"]],
        ]
        # One of them alone is in conflict with nothing.
        ok(await other.delete(f"/memories/{told[0]['memory_id']}", params={"hard": True}), 204)
        assert await conflicts(other, told[1]) == [[]]
