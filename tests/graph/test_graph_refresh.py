"""Memories come, change and go, and their graph with them."""

from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import every_page, execute, ok
from tests.support.graph import known, names, people, refreshed, state
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

LIVES = "The user's friend Bob lives in Munich."
MOVED = "The user's friend Bob lives in Berlin."


@pytest.fixture(autouse=True)
async def _people(client: AsyncClient) -> None:
    await people(client, "ana", "ben")


async def save(client: AsyncClient, content: str, **rest: Any) -> str:
    body = {"messages": content, "user_id": "ana", "infer": False} | rest
    answer = await client.post("/memories", json=body)
    assert answer.is_success, answer.text
    found: str = answer.json()["results"][0]["memory_id"]
    return found


async def homes(client: AsyncClient) -> set[tuple[str, str, str]]:
    return await known(client, relation="lives_in")


@pytest.mark.parametrize(
    ("content", "expected", "word"),
    [
        (LIVES, {("ana", "friend_of", "Bob"), ("Bob", "lives_in", "Munich")}, "Munich"),
        (
            "我朋友张伟住在上海",
            {("ana", "friend_of", "张伟"), ("张伟", "lives_in", "上海")},
            "张伟",
        ),
    ],
)
async def test_verbatim_memory_is_read_by_rules(
    client: AsyncClient,
    runtime: Runtime,
    dsn: str,
    acme: Caller,
    content: str,
    expected: set[tuple[str, str, str]],
    word: str,
) -> None:
    memory_id = await save(client, content)
    assert await known(client) == set()

    await refreshed(client, runtime, dsn, acme.tenant_id)

    assert await known(client) == expected
    entities = await every_page(client, "/graph/entities", q=word)
    [one] = [one for one in entities if one["name"] == word]
    told = ok(await client.get(f"/graph/entities/{one['entity_id']}/memories"))
    assert told["items"] == [memory_id]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("Munich", "Munich is lovely in May."),
        ("慕尼黑", "慕尼黑五月很美。"),
        ("约翰·史密斯", "约翰 史密斯五月来。"),
    ],
)
async def test_known_names_are_noted_as_mentions(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller, name: str, content: str
) -> None:
    made = await state(client, "Ana", "lives_in", name)
    memory_id = await save(client, content)

    await refreshed(client, runtime, dsn, acme.tenant_id)

    path = f"/graph/entities/{made['destination']['entity_id']}/memories"
    assert ok(await client.get(path))["items"] == [memory_id]


async def test_tenant_may_switch_the_graph_off(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    await execute(dsn, "UPDATE tenants SET config = '{\"graph\": false}' WHERE tenant_id = $1",
        acme.tenant_id)  # fmt: skip
    await save(client, LIVES)
    await refreshed(client, runtime, dsn, acme.tenant_id)

    assert await known(client) == set()


async def test_edited_memory_replaces_its_relations(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    memory_id = await save(client, LIVES)
    await refreshed(client, runtime, dsn, acme.tenant_id)

    ok(await client.patch(f"/memories/{memory_id}", json={"content": MOVED}))
    await refreshed(client, runtime, dsn, acme.tenant_id)

    assert await homes(client) == {("Bob", "lives_in", "Berlin")}
    [munich] = await every_page(client, "/graph/entities", q="munich")
    told = ok(await client.get(f"/graph/entities/{munich['entity_id']}/memories"))
    assert told["items"] == []


async def test_relation_of_archived_memory_closes_and_reopens(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    memory_id = await save(client, "Something that no rule reads.")
    made = await state(client, "Bob", "plays", "chess", memory_ids=[memory_id])
    by_hand = await state(client, "Bob", "likes", "tea")

    ok(await client.patch(f"/memories/{memory_id}", json={"status": "archived"}))
    await refreshed(client, runtime, dsn, acme.tenant_id)
    assert await known(client) == {("Bob", "likes", "tea")}

    ok(await client.patch(f"/memories/{memory_id}", json={"status": "active"}))
    await refreshed(client, runtime, dsn, acme.tenant_id)
    assert await known(client) == {("Bob", "plays", "chess"), ("Bob", "likes", "tea")}
    history = await every_page(client, f"/graph/relations/{made['relation_id']}/history")
    assert [one["version"] for one in history] == [3, 2, 1]
    assert history[0]["valid_to"] is None
    assert by_hand["version"] == 1


async def test_relation_of_superseded_memory_ends(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    memory_id = await save(client, LIVES)
    await refreshed(client, runtime, dsn, acme.tenant_id)

    body = {"content": MOVED}
    ok(await client.post(f"/memories/{memory_id}/supersede", json=body), 201)
    await refreshed(client, runtime, dsn, acme.tenant_id)

    assert await homes(client) == {("Bob", "lives_in", "Berlin")}


async def test_relation_of_deleted_memory_is_hidden_at_once_and_closed_later(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    memory_id = await save(client, LIVES)
    await refreshed(client, runtime, dsn, acme.tenant_id)
    params = {"relation": "lives_in"}
    [relation] = ok(await client.get("/graph/relations", params=params))["items"]
    history = f"/graph/relations/{relation['relation_id']}/history"
    source = relation["source"]["entity_id"]

    assert (await client.delete(f"/memories/{memory_id}")).is_success

    for _ in ("at once", "after the job"):
        assert await known(client, include_closed=True) == set()
        assert await known(client, known_at=relation["known_from"]) == set()
        assert await names(client) == set()
        assert (await client.get(history)).status_code == 404
        assert (await client.get(f"/graph/entities/{source}")).status_code == 404
        found = ok(
            await client.get("/graph/search", params={"q": "Bob in Munich", "user_id": "ana"})
        )
        assert (found["entities"], found["relations"]) == ([], [])
        await refreshed(client, runtime, dsn, acme.tenant_id)


async def test_hard_deletion_leaves_no_graph_row(
    client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    memory_id = await save(client, LIVES)
    kept = await state(client, "Ana", "likes", "tea")
    await refreshed(client, runtime, dsn, acme.tenant_id)

    gone = await client.delete(f"/memories/{memory_id}", params={"hard": True})
    assert gone.is_success, gone.text
    await refreshed(client, runtime, dsn, acme.tenant_id)

    async with runtime.database.begin(acme.tenant_id) as db:
        connection = await db.connection()
        rows = await connection.exec_driver_sql("SELECT name FROM graph_entities ORDER BY name")
        assert list(rows.scalars()) == ["Ana", "tea"]
    assert await known(client) == {("Ana", "likes", "tea")}
    assert kept["version"] == 1


async def project(client: AsyncClient) -> None:
    body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"}
    ok(await client.post("/projects", json=body), 201)
    ok(await client.put("/projects/apollo/members/ben", json={"role": "viewer"}))


async def paths_seen(client: AsyncClient, query: str, **rest: Any) -> str:
    body = {"query": query, "graph": True, "explain": True} | rest
    answer = await client.post("/memories/search", json=body)
    assert answer.is_success, answer.text
    return answer.text


async def test_private_memory_leaves_the_project_graph(
    client: AsyncClient, app: FastAPI, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    await project(client)
    memory_id = await save(client, LIVES, project_id="apollo", scope="project")
    await save(client, "Bob is the captain.", project_id="apollo", scope="project")
    await refreshed(client, runtime, dsn, acme.tenant_id)
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ben")
    async with client_of(app, key.key) as ben:
        assert await homes(ben) == {("Bob", "lives_in", "Munich")}

        ok(await client.patch(f"/memories/{memory_id}", json={"visibility": "owner_only"}))

        for _ in ("at once", "after the job"):
            assert await known(ben, include_closed=True) == set()
            assert "Munich" not in await names(ben)
            near = await ben.get("/graph/neighbours", params={"name": "Bob", "depth": 2})
            assert "Munich" not in near.text
            assert "Munich" not in await paths_seen(ben, "Bob", user_id="ben", project_id="apollo")
            await refreshed(client, runtime, dsn, acme.tenant_id)

        ok(await client.patch(f"/memories/{memory_id}", json={"visibility": "members"}))
        await refreshed(client, runtime, dsn, acme.tenant_id)
        assert await homes(ben) == {("Bob", "lives_in", "Munich")}


async def test_paths_show_no_entity_of_other_callers(
    client: AsyncClient, app: FastAPI, runtime: Runtime, dsn: str, acme: Caller
) -> None:
    await project(client)
    await state(client, "Bob", "married_to", "Zelda")
    shared = await save(client, "Bob is the captain.", project_id="apollo", scope="project")
    captain = {"project_id": "apollo", "memory_ids": [shared]}
    await state(client, "Bob", "leads", "Apollo", **captain)
    await save(client, "Bob likes rowing.", project_id="apollo", scope="project")
    await save(client, "Bob and Zelda met in Rome.")
    await refreshed(client, runtime, dsn, acme.tenant_id)
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ben")
    async with client_of(app, key.key) as ben:
        seen = await paths_seen(ben, "Apollo", user_id="ben", project_id="apollo")
        assert "Bob leads Apollo" in seen
        for query in ("Bob", "Zelda", "Apollo", "Bob Apollo"):
            seen = await paths_seen(ben, query, user_id="ben", project_id="apollo")
            assert "married_to" not in seen
            assert "Rome" not in seen
