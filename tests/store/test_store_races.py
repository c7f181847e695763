"""Two connections at one item, and what a search costs PostgreSQL."""

import asyncio
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from sqlalchemy import text

from app.memory.store.models import Spaces
from app.memory.store.schemas import ROWS, StoreSearch
from app.memory.store.search_sql import search_statements
from app.runtime import open_runtime
from tests.support.api import execute
from tests.support.databases import migrated_database, served
from tests.support.locks import committing, until_somebody_waits
from tests.support.plans import nodes, plan_of
from tests.support.service import client_of, tapped
from tests.support.store import batch, delete, get, namespaces, put, search, values
from tests.support.tenants import Caller, make_tenant

TEXTS = "SELECT content FROM store_texts WHERE tenant_id = $1 ORDER BY content"


@pytest.fixture
async def ana(app: FastAPI, acme: Caller) -> Any:
    async with client_of(app, acme.key) as opened:
        opened.headers["KeMem-User"] = "ana"
        yield opened


async def test_first_puts_of_one_item_leave_one_with_its_texts(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    numbers = range(10)

    await asyncio.gather(
        *(batch(client, put("k", {"v": [f"a{n}", f"b{n}"]}, index=["v[*]"])) for n in numbers)
    )

    stored = (await values(client))["k"]["v"]
    left = [row["content"] for row in await execute(dsn, TEXTS, acme.tenant_id)]
    assert left == sorted(stored)


async def test_put_waits_for_another_and_replaces_it(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    await batch(client, put("k", {"v": "old"}, index=["v"]))
    change = f"UPDATE store_items SET value = '{{}}' WHERE tenant_id = '{acme.tenant_id}'"
    async with committing(dsn, change) as holder:
        waiting = asyncio.create_task(batch(client, put("k", {"v": "new"}, index=["v"])))
        await until_somebody_waits(dsn, holder)
    await waiting

    assert await values(client) == {"k": {"v": "new"}}
    assert [row["content"] for row in await execute(dsn, TEXTS, acme.tenant_id)] == ["new"]


async def test_users_put_does_not_reach_what_was_given_to_another_meanwhile(
    client: AsyncClient, ana: AsyncClient, dsn: str, acme: Caller
) -> None:
    await batch(client, put("k", {"n": 1}, user_id="ana"), put("other", user_id="ben"))
    give = (
        f"UPDATE store_items SET user_id = 'ben' WHERE tenant_id = '{acme.tenant_id}' AND key = 'k'"
    )
    async with committing(dsn, give) as holder:
        waiting = asyncio.create_task(batch(ana, put("k", {"n": 2})))
        await until_somebody_waits(dsn, holder)
    await waiting

    assert (await values(client))["k"] == {"n": 1}
    assert await values(ana) == {"k": {"n": 2}}


async def test_users_put_changes_what_they_read_when_their_own_is_deleted_meanwhile(
    client: AsyncClient, ana: AsyncClient, dsn: str, acme: Caller
) -> None:
    await batch(ana, put("k", {"n": 1}))
    await batch(client, put("k", {"n": 2}, user_id="ana"))
    delete_own = f"DELETE FROM store_items WHERE tenant_id = '{acme.tenant_id}' AND space = '/ana'"
    async with committing(dsn, delete_own) as holder:
        waiting = asyncio.create_task(batch(ana, put("k", {"n": 3})))
        await until_somebody_waits(dsn, holder)
    await waiting

    assert await values(ana) == await values(client) == {"k": {"n": 3}}


async def test_users_put_waits_for_another_of_their_own_item(
    client: AsyncClient, ana: AsyncClient, dsn: str, acme: Caller
) -> None:
    await batch(ana, put("k", {"n": 1}))
    await batch(client, put("k", {"n": 2}, user_id="ana"))
    change = (
        "UPDATE store_items SET value = '{}' "
        f"WHERE tenant_id = '{acme.tenant_id}' AND space = '/ana'"
    )
    async with committing(dsn, change) as holder:
        waiting = asyncio.create_task(batch(ana, put("k", {"n": 3})))
        await until_somebody_waits(dsn, holder)
    await waiting

    assert await values(ana) == {"k": {"n": 3}}
    assert await values(client) == {"k": {"n": 2}}


async def test_put_that_comes_while_the_user_is_erased_leaves_nothing_behind(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    await batch(client, put(user_id="ana"))
    erase = f"DELETE FROM users WHERE tenant_id = '{acme.tenant_id}'"
    async with committing(dsn, erase) as holder:
        waiting = asyncio.create_task(
            client.post("/store/batch", json={"operations": [put("late", user_id="ana")]})
        )
        await until_somebody_waits(dsn, holder)
    answer = await waiting

    # Either too late, or for a new user of that name.
    assert answer.status_code in {200, 503}
    assert "k" not in await values(client)


async def test_read_does_not_wait_for_a_put(client: AsyncClient, dsn: str, acme: Caller) -> None:
    await batch(client, put(ttl_minutes=10))
    change = f"UPDATE store_items SET value = '{{}}' WHERE tenant_id = '{acme.tenant_id}'"
    async with committing(dsn, change):
        [found] = await batch(client, get())

    assert found["item"]["value"] == {"n": 1}


async def test_opposite_batches_do_not_block_each_other(client: AsyncClient) -> None:
    keys = [str(number) for number in range(20)]
    one, two = [put(key) for key in keys], [put(key) for key in reversed(keys)]

    answers = await asyncio.gather(
        *(
            client.post("/store/batch", json={"operations": operations})
            for operations in (one, two) * 5
        )
    )

    assert {answer.status_code for answer in answers} == {200}


async def test_put_and_deletion_leave_all_or_nothing(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    item = put("k", {"v": "green tea"}, index=["v"])

    await asyncio.gather(*(batch(client, one) for one in (item, delete()) * 5))

    left = await execute(dsn, TEXTS, acme.tenant_id)
    assert len(left) == len(await values(client))


async def test_search_reads_its_namespace_alone(postgres: Any, settings: Any) -> None:
    dsn = await migrated_database(postgres, "store_plan")
    async with open_runtime(settings, served(dsn)) as runtime:
        tenant_id = (await make_tenant(runtime)).tenant_id
        async with runtime.database.begin(tenant_id) as db:
            for statement in (
                "INSERT INTO store_items (tenant_id, item_id, space, path, key, value)"
                " SELECT :t, 'i' || n, '/', 'users.u' || n % 100, n, '{}'"
                " FROM generate_series(1, 8000) n",
                "INSERT INTO store_texts (tenant_id, text_id, item_id, content, embedding,"
                " embedding_model) SELECT tenant_id, item_id || '_0', item_id, key, '[1,0]', 'm'"
                " FROM store_items WHERE tenant_id = :t",
            ):
                await db.execute(text(statement), {"t": tenant_id})
    wanted = StoreSearch(op="search", namespace=["users", "u7"], query="tea")
    [(statement, values)] = search_statements(
        Spaces("/", "/", None), [(wanted, {"m": np.array([1, 0], np.float32)})], ROWS
    )

    found = nodes(await plan_of(dsn, tenant_id, statement, values))

    for table in ("store_items", "store_texts"):
        read = [one for one in found if one.get("Relation Name") == table]
        assert {one["Node Type"] for one in read} <= {"Index Scan", "Bitmap Heap Scan"}
        assert sum(one["Actual Rows"] * one["Actual Loops"] for one in read) == 80


async def test_batch_takes_few_round_trips(dsn: str, acme: Caller) -> None:
    async with tapped(dsn, acme.key) as (wire, client):
        await batch(client, put("warm", user_id="ana", index=["$"]), search(query="tea"))
        await batch(client, get(), namespaces())
        puts = [put(str(n), {"v": str(n)}, user_id="ana", index=["$"]) for n in range(200)]
        counts = []
        for operations in (puts[:1], puts, [get()], [get(), *[search(limit=3)] * 20, namespaces()]):
            taken = []
            # A connection that has not sent a statement before prepares it first.
            for _ in range(4):
                before = wire.round_trips
                await batch(client, *operations)
                taken.append(wire.round_trips - before)
            counts.append(min(taken))

    one, many, read, reads = counts
    assert many <= one + 1 <= 12
    assert read == 2
    # The searches, their items, and the list, beside the key.
    assert reads == 4
