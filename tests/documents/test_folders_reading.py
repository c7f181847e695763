"""Who may read which folder, how much one search looks at, and what is deleted meanwhile."""

import asyncio

import pytest

from app.identity.tenants.access import Access, Principal
from app.language.ranking.boosts import Boosts
from app.prompting.documents.passage_service import PassageSearchService
from app.prompting.documents.schemas import PassageSearch
from tests.support.folders import done, folder, ingested
from tests.support.service import client_of
from tests.support.tenants import make_key
from tests.support.working import working

RENT = "The rent is due in May."


async def shelves(client):
    """Folders of two users, of a project of ana's and of two agents, each with a passage."""
    for agent in ("helper", "rival"):
        await client.post("/agents", json={"agent_id": agent, "agent_name": agent})
    for user, agent in (("ana", "helper"), ("ben", "rival")):
        await client.post("/users", json={"user_id": user, "agent_id": agent})
    await client.post(
        "/projects", json={"project_id": "apollo", "project_name": "A", "owner_id": "ana"}
    )
    made = {}
    for scope, name in (
        ("user", "ana"), ("user", "ben"), ("project", "apollo"), ("agent", "helper"),
        ("agent", "rival"),
    ):  # fmt: skip
        place = {"scope": scope, f"{scope}_id": name}
        made[name] = await folder(client, folder_id=f"of-{name}", **place)
        await client.post(f"/folders/{made[name]}/passages", json={"content": RENT})
    return made


async def read_by(client, **headers):
    """Whose folders a caller reads: in lists, by searching, and one by one."""
    listed = done(await client.get("/folders", headers=headers))["items"]
    found = done(
        await client.post("/passages/search", json={"query": "rent", "limit": 50}, headers=headers)
    )["items"]
    seen = {one["folder_id"].removeprefix("of-") for one in listed}
    assert {one["folder_id"].removeprefix("of-") for one in found} == seen
    for name in ("ana", "ben", "apollo", "helper", "rival"):
        for path in (f"/folders/of-{name}", f"/folders/of-{name}/passages"):
            answer = await client.get(path, headers=headers)
            assert answer.status_code == (200 if name in seen else 404)
    return seen


class TestWhoReads:
    async def test_users_read_their_own_and_what_agents_know(self, app, runtime, acme, client):
        await shelves(client)
        for user, own in (("ana", {"ana", "apollo"}), ("ben", {"ben"})):
            key = await make_key(runtime, acme.tenant_id, "read", user_id=user)
            async with client_of(app, key.key) as bound:
                assert await read_by(bound) == own | {"helper", "rival"}
            acting = await read_by(client, **{"KeMem-User": user})
            assert acting == own | {"helper", "rival"}
        await client.put("/projects/apollo/members/ben", json={"role": "viewer"})
        assert await read_by(client, **{"KeMem-User": "ben"}) == {
            "ben", "apollo", "helper", "rival"
        }  # fmt: skip

    async def test_agents_read_their_own_and_what_is_attached(self, app, runtime, acme, client):
        await shelves(client)
        key = await make_key(runtime, acme.tenant_id, "read", agent_id="rival")
        async with client_of(app, key.key) as rival:
            assert await read_by(rival) == {"ben", "rival"}
            done(await client.put("/folders/of-helper/agents/rival"))
            assert await read_by(rival) == {"ben", "rival", "helper"}
        pair = await make_key(runtime, acme.tenant_id, "read", agent_id="rival", user_id="ben")
        async with client_of(app, pair.key) as both:
            assert await read_by(both) == {"ben", "rival", "helper"}

    async def test_attached_ones_are_for_users_of_that_agent(self, client):
        await shelves(client)
        done(await client.put("/folders/of-ana/agents/rival"))
        everybody = {"helper", "rival"}
        ben = {"KeMem-User": "ben"}
        assert await read_by(client, **ben) == everybody | {"ben", "ana"}
        refused = await client.post("/folders/of-ana/passages", json={"content": RENT}, headers=ben)
        assert refused.json()["code"] == "key_restricted"
        assert await read_by(client, **{"KeMem-User": "cleo"}) == everybody

        await client.post("/users", json={"user_id": "cleo", "agent_id": "helper"})
        cleo = {"KeMem-User": "cleo"}
        assert await read_by(client, **cleo) == everybody
        done(
            await client.post(
                "/sessions", json={"session_id": "s", "user_id": "cleo", "agent_id": "rival"}
            )
        )
        assert await read_by(client, **cleo) == everybody | {"ana"}
        await client.delete("/folders/of-ana/agents/rival")
        assert await read_by(client, **cleo) == everybody


class TestHowMuch:
    @pytest.mark.parametrize(("most", "searched"), [(5, 5), (6, 6), (7, 6)])
    async def test_the_newest_alone_are_looked_at(self, runtime, acme, client, most, searched):
        places = [await folder(client), await folder(client)]
        for number in range(6):
            await client.post(
                f"/folders/{places[number % 2]}/passages",
                json={"content": f"Rent rule {number}.", "tags": ["old"] if number < 3 else []},
            )
        search = PassageSearchService(
            runtime.database, runtime.embedders, Boosts(), runtime.now, runtime.counter, most=most
        )
        principal = Principal(Access(acme.tenant_id), acme.key_id, frozenset({"read"}), {})

        found = await search.search(
            principal, PassageSearch(query="rent rule", user_id="ana", limit=50)
        )
        assert (found.searched, found.left_out) == (searched, most < 6)
        assert {one.content[10] for one in found.items} == set("012345"[6 - searched :])
        tagged = PassageSearch(query="rent rule", user_id="ana", tags=["old"])
        old = await search.search(principal, tagged)
        assert {one.content[10] for one in old.items} == set("012")
        assert not old.left_out or most < 3


class TestMeanwhile:
    async def test_a_passage_deleted_twice_at_once_is_counted_once(self, client, runtime, dsn):
        folder_id = await folder(client)
        async with working(runtime, dsn):
            text = "\n\n".join(f"{number}. {RENT} " * 40 for number in range(6))
            file = await ingested(client, folder_id, "a.txt", text.encode())
        path = f"/folders/{folder_id}/files/{file['file_id']}"
        [first, *_] = done(await client.get(f"{path}/passages"))["items"]
        one = f"/folders/{folder_id}/passages/{first['passage_id']}"
        answers = await asyncio.gather(*(client.delete(one) for _ in range(4)))
        assert sorted(answer.status_code for answer in answers) == [204, 404, 404, 404]
        left = done(await client.get(path))
        assert left["passage_count"] == left["passages_expected"] == file["passage_count"] - 1
