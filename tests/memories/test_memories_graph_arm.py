"""The graph arm of search: what the query names, and what is one relation away."""

import pytest

from app.identity.tenants.access import Access
from app.identity.users.repository import UserRepository
from app.memory.graph.refresh_repository import GraphRefresh
from app.memory.graph.relation_repository import RelationTimeline
from app.memory.graph.repository import EntityRepository
from app.memory.graph.statements import GraphOwner
from tests.support.api import append, ok, save
from tests.support.service import tapped
from tests.support.working import extracted, working

PEOPLE = [
    ("我妹妹王芳住在慕尼黑。我在西门子工作。", "王芳", "我妹妹王芳住在慕尼黑"),
    (
        "My brother Tom lives in Berlin. I work at Siemens.",
        "Where is Tom?",
        "My brother Tom lives in Berlin.",
    ),
]


async def hits(client, query: str, **body) -> dict[str, dict]:
    asked = {"query": query, "user_id": "ana", "explain": True} | body
    answer = ok(await client.post("/memories/search", json=asked))
    return {hit["content"]: hit["explain"] for hit in answer["results"]}


@pytest.mark.parametrize(("said", "query", "named"), PEOPLE)
async def test_named_entity_brings_its_memories_and_neighbours(
    client, runtime, dsn, said: str, query: str, named: str
) -> None:
    async with working(runtime, dsn):
        await append(client, "talk", said, {"role": "assistant", "content": "OK."})
        await extracted(client, "talk")

    plain = await hits(client, query)
    assert {one["boosts"]["graph"] for one in plain.values()} == {0.0}
    assert {one["path"] for one in plain.values()} == {None}

    linked = await hits(client, query, graph=True)
    assert linked.keys() == plain.keys()
    assert linked[named]["boosts"]["graph"] > 0
    assert linked[named]["path"]
    others = [one for content, one in linked.items() if content != named]
    assert any(one["boosts"]["graph"] > 0 and "ana" in one["path"] for one in others)
    assert await hits(client, query, graph=False) == plain


@pytest.mark.parametrize(
    ("said", "stated"),
    [
        ("我朋友李明在北京大学读书。", ["ana friend_of 李明", "李明 studies_at 北京大学"]),
        ("My friend Tom works at Siemens.", ["Tom works_at Siemens", "ana friend_of Tom"]),
        ("张三在字节跳动工作吗？", []),
        ("Maybe Tom works at Siemens.", []),
    ],
)
async def test_memory_about_a_named_person_is_in_the_graph(
    client, runtime, dsn, said: str, stated: list[str]
) -> None:
    async with working(runtime, dsn):
        await append(client, "talk", said, {"role": "assistant", "content": "OK."})
        await extracted(client, "talk")
    found = ok(await client.get("/graph/relations", params={"user_id": "ana"}))["items"]
    assert stated == sorted(
        f"{one['source']['name']} {one['relation']} {one['destination']['name']}" for one in found
    )
    linked = await hits(client, said, graph=True)
    assert [bool(one["path"]) for one in linked.values()] == [True] * bool(stated)


async def test_without_a_graph_nothing_changes(client) -> None:
    await save(client, "The user drinks green tea with Tom.")
    with_it = await hits(client, "Tom", graph=True)
    assert with_it == await hits(client, "Tom")


async def test_graphs_of_others_bring_nothing(client, stranger, runtime, dsn) -> None:
    async with working(runtime, dsn):
        await append(client, "talk", PEOPLE[1][0], {"role": "assistant", "content": "OK."})
        await extracted(client, "talk")
    await save(stranger, "The user met Tom.")
    found = await hits(stranger, "Tom", graph=True)
    assert {one["path"] for one in found.values()} == {None}


async def test_the_names_of_many_memories_are_looked_up_at_once(runtime, acme) -> None:
    place = GraphOwner("user", "ana", "ana", None, None)
    keys = [f"word {number}" for number in range(40_000)]
    async with runtime.database.begin(acme.tenant_id) as db:
        entities = EntityRepository(db, Access(acme.tenant_id))
        assert await entities.by_keys(place, keys) == {}
        assert await entities.by_aliases(place, keys) == []


async def test_pending_memories_are_looked_up_in_one_statement(runtime, acme) -> None:
    ids = [f"mem_{number}" for number in range(40_000)]
    async with runtime.database.begin(acme.tenant_id) as db:
        timeline = RelationTimeline(db, Access(acme.tenant_id), now=runtime.now())
        refresh = GraphRefresh(db, acme.tenant_id, ("user", "ana"), timeline)
        assert await refresh.readable(ids) == []
        assert await refresh.drop_reworded(ids, runtime.now()) == 0
        assert await UserRepository(db, Access(acme.tenant_id)).present(ids) == set()


async def test_graph_search_costs_no_round_trip(acme, dsn) -> None:
    async with tapped(dsn, acme.key) as (wire, client):
        await save(client, "She drinks green tea with Tom.")
        for _ in range(3):
            await hits(client, "Tom", graph=True)
        before = wire.round_trips
        await hits(client, "Tom", graph=True)
        assert wire.round_trips - before == 3
