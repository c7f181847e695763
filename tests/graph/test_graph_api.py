"""The graph over HTTP: relations by hand, lists, walks, searches."""

from typing import Any

import pytest
from httpx import AsyncClient

from tests.support.api import every_page, fields, ok, problem, save
from tests.support.graph import entity, known, people, state, triples
from tests.support.rows import for_each

LI_MING = {
    ("李明", "studies_at", "北京大学"),
    ("李明", "studies", "计算机科学"),
    ("李明", "advised_by", "张教授"),
    ("张教授", "expert_in", "人工智能"),
}


@pytest.fixture(autouse=True)
async def _ana(client: AsyncClient) -> None:
    await people(client, "ana")


async def tell(client: AsyncClient) -> None:
    for source, relation, destination in sorted(LI_MING):
        await state(client, source, relation, destination)


class TestExample:
    """Two people and their employer, by hand."""

    async def test_four_triples_are_one_graph(self, client: AsyncClient) -> None:
        await tell(client)

        assert await known(client, user_id="ana") == LI_MING
        params = {"name": "李明", "depth": 2, "user_id": "ana"}
        near = ok(await client.get("/graph/neighbours", params=params))
        assert {one["name"]: one["hops"] for one in near["entities"]} == {
            "李明": 0, "北京大学": 1, "计算机科学": 1, "张教授": 1, "人工智能": 2,
        }  # fmt: skip
        assert triples(near["relations"]) == LI_MING
        assert near["truncated"] is False

    async def test_search_finds_the_named_entities(self, client: AsyncClient) -> None:
        await tell(client)

        params = {"q": "李明的导师张教授研究什么?", "user_id": "ana"}
        found = ok(await client.get("/graph/search", params=params))

        assert {one["name"] for one in found["entities"]} == {"李明", "张教授"}
        assert triples(found["relations"]) == LI_MING

    async def test_path_leads_from_person_to_subject(self, client: AsyncClient) -> None:
        await tell(client)
        ends = [(await entity(client, name))["entity_id"] for name in ("李明", "人工智能")]

        found = ok(await client.get("/graph/paths", params={"from": ends[0], "to": ends[1]}))

        [path] = found["paths"]
        assert [one["name"] for one in path["entities"]] == ["李明", "张教授", "人工智能"]
        assert [one["relation"] for one in path["relations"]] == ["advised_by", "expert_in"]


class TestStating:
    async def test_spellings_of_a_name_are_one_entity(self, client: AsyncClient) -> None:
        first = await state(client, "Ana  Müller", "works at", "ＡＣＭＥ")

        again = await state(client, "ana müller", "WorksAt", "acme")

        assert again["relation_id"] == first["relation_id"]
        assert (again["version"], again["relation"]) == (1, "works_at")
        assert len(ok(await client.get("/graph/entities"))["items"]) == 2

    async def test_spacing_of_a_chinese_name_makes_no_second_entity(
        self, client: AsyncClient
    ) -> None:
        first = await state(client, "约翰·史密斯", "studies_at", "北京大学")

        again = await state(client, "约翰 史密斯", "studies_at", "北京 大学")

        assert again["relation_id"] == first["relation_id"]
        assert again["source"]["name"] == "约翰·史密斯"
        for name in ("约翰•史密斯", "约翰史密斯"):
            params = {"name": name, "user_id": "ana"}
            near = ok(await client.get("/graph/neighbours", params=params))
            assert [one["hops"] for one in near["entities"]] == [0, 1]
            params = {"q": f"{name}在哪里上学？", "user_id": "ana"}
            found = ok(await client.get("/graph/search", params=params))
            assert [one["name"] for one in found["entities"]] == ["约翰·史密斯"]

    async def test_repeated_statement_with_more_evidence_is_the_next_version(
        self, client: AsyncClient
    ) -> None:
        first = await state(client, "Ana", "likes", "tea", confidence=0.6, evidence=["m1"])

        again = await state(client, "Ana", "likes", "tea", confidence=0.9, evidence=["m2"])

        assert again["relation_id"] == first["relation_id"]
        assert (again["version"], again["confidence"], again["evidence"]) == (2, 0.9, ["m1", "m2"])

    async def test_single_valued_relation_ends_the_other_value_alone(
        self, client: AsyncClient
    ) -> None:
        """Pain 22."""
        await state(client, "Ana", "lives_in", "Bonn")
        await state(client, "Ana", "works_in", "Bonn")
        await state(client, "Ben", "lives_in", "Bonn")

        await state(client, "Ana", "lives_in", "Köln", single=True)

        assert await known(client) == {
            ("Ana", "lives_in", "Köln"), ("Ana", "works_in", "Bonn"), ("Ben", "lives_in", "Bonn"),
        }  # fmt: skip
        closed = await known(client, include_closed=True, relation="lives_in")
        assert ("Ana", "lives_in", "Bonn") in closed

    async def test_relation_is_added_by_entity_ids(self, client: AsyncClient) -> None:
        made = await state(client, "Ana", "likes", "tea")
        ids = {"source_id": made["source"]["entity_id"], "destination": "coffee"}

        also = ok(await client.post("/graph/relations", json=ids | {"relation": "likes"}), 201)

        assert also["source"] == made["source"]
        assert also["user_id"] == "ana"

    async def test_idempotency_key_adds_a_relation_once(self, client: AsyncClient) -> None:
        once = {"Idempotency-Key": "k"}
        body = {"source": "Ana", "relation": "likes", "destination": "tea", "user_id": "ana"}
        first = await client.post("/graph/relations", json=body, headers=once)
        again = await client.post("/graph/relations", json=body, headers=once)

        assert (first.status_code, again.json()) == (201, first.json())

    @for_each(
        ("wrong", "field"),
        [
            ({"relation": "就读于"}, "body.relation"),
            ({"relation": "x" * 101}, "body.relation"),
            ({"relation": "9lives"}, "body.relation"),
            ({"source": "  "}, "body.source"),
            ({"source": "x" * 256}, "body.source"),
            ({"destination": "ß" * 128}, "body.destination"),
            ({"confidence": 1.1}, "body.confidence"),
            ({"source_id": "ent_1"}, "body"),
            ({"valid_from": "2026-02-01T00:00:00Z", "valid_to": "2026-01-01T00:00:00Z"}, "body"),
        ],
    )
    async def test_invalid_relation_is_refused(
        self, client: AsyncClient, wrong: dict[str, Any], field: str
    ) -> None:
        body = {"source": "Ana", "relation": "likes", "destination": "tea", "user_id": "ana"}

        refused = problem(
            await client.post("/graph/relations", json=body | wrong), 422, "invalid_request"
        )

        assert fields(refused) == [field]

    @pytest.mark.parametrize("good", [{"relation": "x" * 100}, {"source": "x" * 255}])
    async def test_longest_allowed_name_is_kept(
        self, client: AsyncClient, good: dict[str, Any]
    ) -> None:
        body = {"source": "Ana", "relation": "likes", "destination": "tea"}
        ok(await client.post("/graph/relations", json=body | good | {"user_id": "ana"}), 201)

    async def test_entity_is_not_related_to_itself(self, client: AsyncClient) -> None:
        body = {"source": "Ana", "relation": "is", "destination": "ANA", "user_id": "ana"}
        problem(await client.post("/graph/relations", json=body), 422, "same_entity")

    async def test_adding_a_relation_makes_no_user(self, client: AsyncClient) -> None:
        body = {"source": "Ana", "relation": "likes", "destination": "tea", "user_id": "nobody"}
        problem(await client.post("/graph/relations", json=body), 404, "user_not_found")
        del body["user_id"]
        problem(await client.post("/graph/relations", json=body), 422, "user_required")

    async def test_memories_of_a_relation_are_counted_as_mentions(
        self, client: AsyncClient
    ) -> None:
        memory_id = (await save(client, "Ana likes green tea."))["memory_id"]
        made = await state(client, "Ana", "likes", "green tea", memory_ids=[memory_id])
        entity_id = made["source"]["entity_id"]

        assert ok(await client.get(f"/graph/entities/{entity_id}"))["mentions"] == 1
        listed = ok(await client.get(f"/graph/entities/{entity_id}/memories"))
        assert listed == {"items": [memory_id], "next_cursor": None}
        body = {"source": "Ana", "relation": "likes", "destination": "rice", "user_id": "ana"}
        missing = await client.post("/graph/relations", json=body | {"memory_ids": ["mem_none"]})
        problem(missing, 404, "memory_not_found")


class TestReading:
    async def test_lists_come_in_pages(self, client: AsyncClient) -> None:
        for number in range(5):
            await state(client, "Ana", "likes", f"thing {number}")

        rows = await every_page(client, "/graph/relations", limit=2)
        entities = await every_page(client, "/graph/entities", limit=2)

        assert len({row["relation_id"] for row in rows}) == len(rows) == 5
        assert len({row["entity_id"] for row in entities}) == len(entities) == 6

    async def test_entities_are_filtered(self, client: AsyncClient) -> None:
        await state(client, "Ana", "likes", "100% tea", source_type="person")
        await state(client, "Ana", "likes", "100 cups")

        async def names(**params: Any) -> set[str]:
            rows = ok(await client.get("/graph/entities", params=params))["items"]
            return {row["name"] for row in rows}

        assert await names(q="0% T") == {"100% tea"}
        assert await names(type="person") == {"Ana"}
        assert await names(user_id="nobody") == set()

    async def test_relations_are_filtered(self, client: AsyncClient) -> None:
        made = await state(client, "Ana", "likes", "tea")
        await state(client, "Ben", "knows", "Ana")
        ana = made["source"]["entity_id"]

        assert await known(client, entity_id=ana) == {
            ("Ana", "likes", "tea"), ("Ben", "knows", "Ana")
        }  # fmt: skip
        assert await known(client, source_id=ana) == {("Ana", "likes", "tea")}
        assert await known(client, relation="knows") == {("Ben", "knows", "Ana")}

    @pytest.mark.parametrize(("depth", "status"), [(0, 422), (1, 200), (3, 200), (4, 422)])
    @pytest.mark.parametrize("walk", ["neighbours", "paths"])
    async def test_a_walk_has_one_to_three_steps(
        self, client: AsyncClient, walk: str, depth: int, status: int
    ) -> None:
        made = await state(client, "Ana", "likes", "tea")
        ends = (made["source"]["entity_id"], made["destination"]["entity_id"])
        where = {"entity_id": ends[0]} if walk == "neighbours" else {"from": ends[0], "to": ends[1]}

        answer = await client.get(f"/graph/{walk}", params=where | {"depth": depth})

        assert answer.status_code == status
        if status == 422:
            assert fields(answer.json()) == ["query.depth"]

    async def test_each_step_leads_one_further_and_circles_end(self, client: AsyncClient) -> None:
        for one, other in ("ab", "bc", "cd", "de", "ca"):
            await state(client, one, "knows", other)

        async def hops(depth: int) -> dict[str, int]:
            params = {"name": "b", "depth": depth, "user_id": "ana"}
            near = ok(await client.get("/graph/neighbours", params=params))
            return {one["name"]: one["hops"] for one in near["entities"]}

        assert await hops(1) == {"b": 0, "a": 1, "c": 1}
        assert await hops(2) == {"b": 0, "a": 1, "c": 1, "d": 2}
        assert await hops(3) == {"b": 0, "a": 1, "c": 1, "d": 2, "e": 3}

    async def test_paths_are_the_shortest_first_and_never_circle(self, client: AsyncClient) -> None:
        for one, other in ("ab", "bc", "ac", "cd", "ad"):
            await state(client, one, "knows", other)
        ends = [(await entity(client, name))["entity_id"] for name in "ad"]

        async def ways(**params: Any) -> list[str]:
            where = {"from": ends[0], "to": ends[1]} | params
            found = ok(await client.get("/graph/paths", params=where))
            return ["".join(one["name"] for one in path["entities"]) for path in found["paths"]]

        assert await ways() == ["ad", "acd", "abcd"]
        assert await ways(depth=2) == ["ad", "acd"]
        assert await ways(depth=1) == ["ad"]
        assert await ways(limit=1) == ["ad"]

    async def test_truncated_answer_says_so(self, client: AsyncClient) -> None:
        for number in range(4):
            await state(client, "Ana", "likes", f"thing {number}")

        async def near(limit: int) -> tuple[int, bool]:
            params = {"name": "Ana", "limit": limit, "user_id": "ana"}
            found = ok(await client.get("/graph/neighbours", params=params))
            return len(found["entities"]), found["truncated"]

        assert await near(3) == (4, True)
        assert await near(4) == (5, False)
        assert await near(5) == (5, False)

    async def test_walk_may_follow_one_relation_alone(self, client: AsyncClient) -> None:
        await state(client, "Ana", "likes", "tea")
        await state(client, "Ana", "knows", "Ben")

        params = {"name": "Ana", "relation": "knows", "user_id": "ana"}
        near = ok(await client.get("/graph/neighbours", params=params))

        assert triples(near["relations"]) == {("Ana", "knows", "Ben")}
        assert {one["name"] for one in near["entities"]} == {"Ana", "Ben"}

    async def test_unknown_name_has_no_neighbours(self, client: AsyncClient) -> None:
        params = {"name": "Nobody", "user_id": "ana"}
        near = ok(await client.get("/graph/neighbours", params=params))

        assert near == {"entities": [], "relations": [], "truncated": False}
        missing = await client.get("/graph/neighbours", params={"entity_id": "ent_none"})
        problem(missing, 404, "entity_not_found")
        both = await client.get("/graph/neighbours", params={"entity_id": "x", "name": "y"})
        problem(both, 422, "invalid_request")

    @pytest.mark.parametrize("owner", ["user_id", "agent_id", "project_id"])
    @pytest.mark.parametrize("asked", ["neighbours?name=Ana", "search?q=Ana"])
    async def test_name_needs_the_owner_of_a_graph(
        self, client: AsyncClient, asked: str, owner: str
    ) -> None:
        await state(client, "Ana", "likes", "tea")
        await people(client, "ben")
        await state(client, "Ana", "likes", "rice", user_id="ben")

        refused = problem(await client.get(f"/graph/{asked}"), 422, "selector_required")

        assert fields(refused) == ["query.user_id"]
        assert owner in refused["detail"]
        found = ok(await client.get(f"/graph/{asked}&{owner}=ben"))
        expected = {("Ana", "likes", "rice")} if owner == "user_id" else set()
        assert triples(found["relations"]) == expected

    async def test_a_search_finds_names_in_any_case(self, client: AsyncClient) -> None:
        await state(client, "Ana Müller", "works_at", "Acme & Sons")

        for question in (
            "Where does ANA MÜLLER work?",
            "Who is at acme & sons?",
            "ana müller's job",
        ):
            params = {"q": question, "user_id": "ana"}
            found = ok(await client.get("/graph/search", params=params))
            assert triples(found["relations"]) == {("Ana Müller", "works_at", "Acme & Sons")}
        params = {"q": "Anabel's müll", "user_id": "ana"}
        nothing = ok(await client.get("/graph/search", params=params))
        assert nothing == {"entities": [], "relations": [], "truncated": False}


class TestEditing:
    async def test_an_entity_is_renamed_and_keeps_its_old_name(self, client: AsyncClient) -> None:
        made = (await state(client, "Anna", "likes", "tea"))["source"]
        path = f"/graph/entities/{made['entity_id']}"

        changed = ok(
            await client.patch(path, json={"name": "Ana", "entity_type": "person"}),
        )

        assert (changed["name"], changed["entity_type"], changed["aliases"]) == (
            "Ana", "person", ["Anna"],
        )  # fmt: skip
        assert changed["version"] == 2
        assert (await state(client, "anna", "likes", "rice"))["source"]["name"] == "Ana"

    async def test_a_stale_change_is_refused(self, client: AsyncClient) -> None:
        made = await state(client, "Ana", "likes", "tea")
        entities = f"/graph/entities/{made['source']['entity_id']}"
        relations = f"/graph/relations/{made['relation_id']}"
        stale = {"If-Match": "7"}

        for path, body in ((entities, {"name": "A"}), (relations, {"confidence": 0.5})):
            problem(await client.patch(path, json=body, headers=stale), 409, "version_conflict")
        problem(await client.delete(relations, headers=stale), 409, "version_conflict")

    async def test_a_name_that_is_taken_is_refused(self, client: AsyncClient) -> None:
        made = await state(client, "Ana", "knows", "Ben")
        path = f"/graph/entities/{made['source']['entity_id']}"

        refused = problem(await client.patch(path, json={"name": "BEN"}), 409, "entity_exists")
        assert refused["entity_id"] == made["destination"]["entity_id"]
        body = {"alias": "ben"}
        problem(await client.post(f"{path}/aliases", json=body), 409, "entity_exists")

    async def test_aliases_come_and_go(self, client: AsyncClient) -> None:
        made = (await state(client, "李明", "studies", "计算机科学"))["source"]
        path = f"/graph/entities/{made['entity_id']}/aliases"

        assert ok(await client.post(path, json={"alias": "Li Ming"}))["aliases"] == ["Li Ming"]
        assert ok(await client.post(path, json={"alias": "LI MING"}))["aliases"] == ["Li Ming"]
        params = {"name": "li  ming", "user_id": "ana"}
        near = ok(await client.get("/graph/neighbours", params=params))
        assert len(near["entities"]) == 2
        assert (await client.delete(path, params={"alias": "li ming"})).status_code == 204
        problem(await client.delete(path, params={"alias": "li ming"}), 404, "alias_not_found")

    async def test_a_relation_is_corrected_and_withdrawn(self, client: AsyncClient) -> None:
        made = await state(client, "Ana", "lives_in", "Bonn")
        path = f"/graph/relations/{made['relation_id']}"

        changed = ok(await client.patch(path, json={"destination": "Köln", "reason": "A typo."}))
        assert (changed["destination"]["name"], changed["version"]) == ("Köln", 2)
        same = ok(await client.patch(path, json={"destination": "Köln"}))
        assert same["version"] == 2
        assert (await client.delete(path, headers={"If-Match": "2"})).status_code == 204

        assert await known(client) == set()
        history = ok(await client.get(f"{path}/history"))["items"]
        assert [(one["version"], one["destination"]["name"]) for one in history] == [
            (2, "Köln"), (1, "Bonn"),
        ]  # fmt: skip
        assert all(one["known_to"] for one in history)
        assert history[0]["reason"] == "A typo."
        problem(await client.patch(path, json={"confidence": 0.1}), 404, "relation_not_found")
        pages = await every_page(client, f"{path}/history", limit=1)
        assert [one["version"] for one in pages] == [2, 1]

    async def test_correction_equal_to_another_relation_is_refused(
        self, client: AsyncClient
    ) -> None:
        tea = await state(client, "Ana", "likes", "tea")
        rice = await state(client, "Ana", "likes", "rice")
        path = f"/graph/relations/{rice['relation_id']}"

        refused = problem(
            await client.patch(path, json={"destination": "TEA"}), 409, "relation_exists"
        )
        assert refused["relation_id"] == tea["relation_id"]
        problem(await client.patch(path, json={"destination": "Ana"}), 422, "same_entity")
        wrong = {"valid_from": "2026-02-01T00:00:00Z", "valid_to": "2026-01-01T00:00:00Z"}
        problem(await client.patch(path, json=wrong), 422, "invalid_validity")
