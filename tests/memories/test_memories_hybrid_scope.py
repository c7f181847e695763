"""Whose words count: filters, places, visibility, time, and what is no longer there."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.language.ranking.packing import INDEX_COLUMNS
from app.runtime import Runtime
from tests.support.api import execute, ok, save, search
from tests.support.hits import hits, save_all, texts
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

MODES = ("hybrid", "lexical")
TEA = "She drinks green tea."
COFFEE = "She drinks black coffee."
CAT = "The cat sleeps on the sofa."


def scores(found: dict[str, dict[str, Any]]) -> dict[str, tuple[float, float]]:
    return {text: (hit["explain"]["lexical"], hit["relevance"]) for text, hit in found.items()}


def now() -> str:
    return datetime.now(UTC).isoformat()


async def stored_terms(dsn: str, tenant_id: str) -> dict[str, bool]:
    """By text, whether a memory has anything of its words left in the columns of searches."""
    some = " OR ".join(f"{name} IS NOT NULL" for name in INDEX_COLUMNS)
    rows = await execute(
        dsn,
        f"SELECT memory_id, {some} AS some FROM memories WHERE tenant_id = $1",
        tenant_id,
    )
    return {row["memory_id"]: row["some"] for row in rows}


class TestFilters:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        "narrowed",
        [
            {"memory_type": "goal"},
            {"tier": "short"},
            {"filters": {"metadata.kind": "tea"}},
            {"filters": {"metadata.absent": {"gt": 5}}},
            {"filters": {"NOT": {"metadata.kind": "coffee"}}},
        ],
        ids=["type", "tier", "metadata", "absent", "not"],
    )
    async def test_a_filter_leaves_out_and_changes_no_score(
        self, client: AsyncClient, mode: str, narrowed: dict[str, Any]
    ) -> None:
        await save_all(client, "Green tea is dear.", memory_type="goal", metadata={"kind": "tea"})
        await save_all(client, "Black tea is cheap.", tier="short", metadata={"kind": "coffee"})
        await save_all(client, *(f"Green door {n} of the tea house." for n in range(5)))
        query = "cheap green tea"
        every = scores(await hits(client, query, mode=mode))

        some = scores(await hits(client, query, mode=mode, **narrowed))

        assert set(some) < set(every)
        assert some == {text: every[text] for text in some}

    async def test_a_place_that_is_not_searched_does_not_count(self, client: AsyncClient) -> None:
        await save_all(client, TEA, COFFEE)
        alone = scores(await hits(client, "green tea", mode="lexical"))
        await save_all(client, "Green tea again.", user_id="bob")
        await save_all(client, "Green tea here.", user_id=None, agent_id="a1", scope="agent")
        await save_all(client, "Green tea there.", scope="session", session_id="s1")

        assert scores(await hits(client, "green tea", mode="lexical")) == alone
        both = await hits(client, "green tea", mode="lexical", user_id="ana", session_id="s1")
        assert set(both) == {TEA, "Green tea there."}
        assert both[TEA]["explain"]["lexical"] != alone[TEA][0]

    async def test_who_is_filtered_out_still_stands_beside_the_others(
        self, client: AsyncClient
    ) -> None:
        await save_all(client, "My sister collects stamps.", session_id="s1", memory_type="goal")
        await save_all(client, "All in a blue album.", session_id="s1")
        await save_all(client, "The river froze.")

        found = await hits(client, "sister stamps", memory_type="fact")

        assert set(found) == {"All in a blue album.", "The river froze."}
        assert found["All in a blue album."]["explain"]["boosts"]["near"] > 0


class TestVisibility:
    """What the caller may not see does not count, is no neighbour, and never appears."""

    @pytest.fixture
    async def seen(self, client: AsyncClient) -> None:
        """What every caller of these tests may see."""
        ok(await client.post("/agents", json={"agent_id": "a1", "agent_name": "A"}), 201)
        ok(await client.post("/agents", json={"agent_id": "a2", "agent_name": "B"}), 201)
        for user_id, agent_id in (("ana", "a1"), ("bob", "a2")):
            body = {"user_id": user_id, "agent_id": agent_id}
            ok(await client.post("/users", json=body), 201)
        body = {"project_id": "p1", "project_name": "P", "owner_id": "ana"}
        ok(await client.post("/projects", json=body), 201)
        ok(await client.put("/projects/p1/members/bob", json={}))
        await save_all(client, "The green gate squeaks.", scope="project", project_id="p1")
        await save_all(client, "The red gate opens.", scope="project", project_id="p1")

    HIDDEN: tuple[dict[str, Any], ...] = (
        {"visibility": "owner_only", "scope": "project", "project_id": "p1", "user_id": "ana"},
        {"agent_id": "a1", "scope": "project", "project_id": "p1", "user_id": "ana"},
        {"user_id": "ana"},
        {"user_id": "ana", "scope": "session", "session_id": "s1"},
    )

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("hidden", HIDDEN, ids=["owner_only", "agent", "user", "session"])
    @pytest.mark.usefixtures("seen")
    async def test_what_is_hidden_from_a_bound_key_counts_nowhere(
        self,
        app: FastAPI,
        client: AsyncClient,
        runtime: Runtime,
        acme: Caller,
        mode: str,
        hidden: dict[str, Any],
    ) -> None:
        key = await make_key(runtime, acme.tenant_id, "read", user_id="bob", agent_id="a2")
        asked = {"mode": mode, "project_id": "p1", "user_id": "bob", "agent_id": "a2"}
        async with client_of(app, key.key) as bound:
            before = scores(await hits(bound, "green gate", **asked))

            await save_all(client, *(f"Green gate number {n}." for n in range(5)), **hidden)

            assert scores(await hits(bound, "green gate", **asked)) == before
            assert len(before) == 2

    @pytest.mark.parametrize("mode", MODES)
    async def test_another_tenants_words_count_nowhere(
        self, client: AsyncClient, stranger: AsyncClient, mode: str
    ) -> None:
        await save_all(client, TEA, COFFEE, CAT)
        before = scores(await hits(client, "green tea", mode=mode))

        await save_all(stranger, *(f"Green tea number {n}." for n in range(9)))

        assert scores(await hits(client, "green tea", mode=mode)) == before
        assert TEA not in await texts(stranger, "green tea", mode=mode)

    @pytest.mark.parametrize("mode", MODES)
    async def test_what_is_private_to_an_agent_counts_for_it_alone(
        self, client: AsyncClient, mode: str
    ) -> None:
        await save_all(client, TEA, COFFEE)
        query, named = "Does she drink green tea?", {"mode": mode, "user_id": "ana"}
        before = scores(await hits(client, query, **named, agent_id="a2"))
        await save_all(client, "Green tea is private.", agent_id="a1")

        other = scores(await hits(client, query, **named, agent_id="a2"))
        same = scores(await hits(client, query, **named, agent_id="a1"))

        assert other == before
        assert "Green tea is private." in same
        assert same[COFFEE] != before[COFFEE]


class TestChanges:
    @pytest.mark.parametrize("mode", MODES)
    async def test_an_edited_memory_is_found_by_its_new_words(
        self, client: AsyncClient, mode: str
    ) -> None:
        memory_id = (await save(client, "She keeps a parrot."))["memory_id"]
        await save(client, CAT)
        ok(await client.patch(f"/memories/{memory_id}", json={"content": "She keeps a tortoise."}))

        new = await hits(client, "tortoise", mode=mode)
        old = await hits(client, "parrot", mode="lexical")

        assert next(iter(new)) == "She keeps a tortoise."
        assert new["She keeps a tortoise."]["explain"]["lexical"] > 0
        assert old == {}

    async def test_a_new_speaker_and_a_new_day_are_found_too(self, client: AsyncClient) -> None:
        memory_id = (await save(client, "I play tennis.", metadata={"name": "Rose"}))["memory_id"]
        body = {"metadata": {"name": "Caroline"}, "valid_from": "2023-05-08T00:00:00Z"}
        ok(await client.patch(f"/memories/{memory_id}", json=body))

        for query, count in (("Rose", 0), ("Caroline", 1), ("May 2023", 1)):
            assert len(await texts(client, query, mode="lexical")) == count, query

    async def test_a_change_of_something_else_keeps_the_words(self, client: AsyncClient) -> None:
        memory_id = (await save(client, TEA, metadata={"name": "Rose"}))["memory_id"]
        ok(await client.patch(f"/memories/{memory_id}", json={"tier": "short"}))

        assert await texts(client, "Rose green tea", mode="lexical") == [TEA]

    @pytest.mark.parametrize("mode", MODES)
    async def test_a_superseded_memory_is_found_by_its_successors_words(
        self, client: AsyncClient, mode: str
    ) -> None:
        memory_id = (await save(client, "She keeps a parrot."))["memory_id"]
        body = {"content": "She keeps a tortoise."}
        ok(await client.post(f"/memories/{memory_id}/supersede", json=body), 201)

        assert await texts(client, "tortoise", mode=mode) == ["She keeps a tortoise."]
        assert await texts(client, "parrot", mode="lexical") == []

    @pytest.mark.parametrize("mode", MODES)
    async def test_a_restored_memory_is_found_by_its_first_words_again(
        self, client: AsyncClient, mode: str
    ) -> None:
        memory_id = (await save(client, "She keeps a parrot."))["memory_id"]
        [entry] = ok(await client.get(f"/memories/{memory_id}/history"))["items"]
        ok(await client.patch(f"/memories/{memory_id}", json={"content": "She keeps a tortoise."}))
        body = {"history_id": entry["history_id"]}
        ok(await client.post(f"/memories/{memory_id}/restore", json=body))

        assert await texts(client, "parrot", mode=mode) == ["She keeps a parrot."]
        assert await texts(client, "tortoise", mode="lexical") == []

    @pytest.mark.parametrize("hard", [False, True])
    async def test_a_deleted_memory_leaves_no_terms(
        self, client: AsyncClient, acme: Caller, dsn: str, hard: bool
    ) -> None:
        kept, gone = await save_all(client, TEA, "She keeps a parrot.")
        assert await stored_terms(dsn, acme.tenant_id) == {kept: True, gone: True}

        ok(await client.delete(f"/memories/{gone}", params={"hard": hard}), 204)

        left = await stored_terms(dsn, acme.tenant_id)
        assert left == ({kept: True} if hard else {kept: True, gone: False})
        for mode in MODES:
            assert await texts(client, "parrot tea", mode=mode) == [TEA]

    async def test_memories_deleted_together_leave_none_either(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        ids = await save_all(client, TEA, COFFEE, CAT)

        ok(await client.delete("/memories", params={"user_id": "ana", "confirm": True}))

        assert await stored_terms(dsn, acme.tenant_id) == dict.fromkeys(ids, False)

    async def test_archived_memories_are_not_found(self, client: AsyncClient) -> None:
        memory_id = (await save(client, TEA))["memory_id"]
        await save(client, COFFEE)
        ok(await client.patch(f"/memories/{memory_id}", json={"status": "archived"}))

        for mode in MODES:
            assert TEA not in await texts(client, "green tea", mode=mode)


class TestThen:
    """Words of then are found then, and those that came later are not."""

    @pytest.fixture
    async def changed(self, client: AsyncClient) -> str:
        """A moment before a parrot became a tortoise."""
        memory_id = (await save(client, "She keeps a parrot."))["memory_id"]
        await save(client, CAT)
        before = now()
        await asyncio.sleep(0.01)
        ok(await client.patch(f"/memories/{memory_id}", json={"content": "She keeps a tortoise."}))
        await save(client, "The tortoise eats salad.")
        return before

    @pytest.mark.parametrize("mode", MODES)
    async def test_what_was_known_then_is_found_by_its_words_of_then(
        self, client: AsyncClient, changed: str, mode: str
    ) -> None:
        then = await hits(client, "parrot", mode=mode, known_at=changed)
        later = await hits(client, "tortoise", mode=mode, known_at=changed)
        today = await hits(client, "tortoise", mode=mode)

        assert next(iter(then)) == "She keeps a parrot."
        assert then["She keeps a parrot."]["explain"]["lexical"] > 0
        assert not any("tortoise" in text for text in [*then, *later])
        assert {hit["explain"]["lexical"] for hit in later.values()} <= {0.0}
        assert set(list(today)[:2]) == {"She keeps a tortoise.", "The tortoise eats salad."}

    async def test_in_lexical_mode_a_word_that_came_later_finds_nothing(
        self, client: AsyncClient, changed: str
    ) -> None:
        assert await texts(client, "tortoise", mode="lexical", known_at=changed) == []
        assert await texts(client, "parrot", mode="lexical") == []

    async def test_scores_of_then_are_those_that_were_given_then(self, client: AsyncClient) -> None:
        ids = await save_all(client, TEA, COFFEE, "She keeps a parrot.", session_id="s1")
        query = "Who drinks tea with a parrot?"
        by_mode = {mode: scores(await hits(client, query, mode=mode)) for mode in MODES}
        before = now()
        await asyncio.sleep(0.01)
        ok(await client.patch(f"/memories/{ids[0]}", json={"content": "He drinks water."}))
        await save_all(client, "Parrots drink tea.", "A tea room.", session_id="s1")

        for mode, given in by_mode.items():
            again = scores(await hits(client, query, mode=mode, known_at=before))
            assert again.keys() == given.keys()
            for text, both in given.items():
                assert again[text] == pytest.approx(both, abs=1e-6)

    @pytest.mark.parametrize("mode", MODES)
    async def test_what_held_then_is_found_by_its_words(
        self, client: AsyncClient, mode: str
    ) -> None:
        old = await save(client, "She keeps a parrot.", valid_from="2020-01-01T00:00:00Z")
        body = {"content": "She keeps a tortoise.", "valid_from": "2022-01-01T00:00:00Z"}
        ok(await client.post(f"/memories/{old['memory_id']}/supersede", json=body), 201)

        for as_of, word, text in (
            ("2021-01-01T00:00:00Z", "parrot", "She keeps a parrot."),
            ("2023-01-01T00:00:00Z", "tortoise", "She keeps a tortoise."),
        ):
            assert await texts(client, word, mode=mode, as_of=as_of) == [text]
        for as_of, word in (
            ("2021-01-01T00:00:00Z", "tortoise"),
            ("2023-01-01T00:00:00Z", "parrot"),
            ("2019-01-01T00:00:00Z", "parrot"),
        ):
            assert await texts(client, word, mode="lexical", as_of=as_of) == []

    async def test_what_was_deleted_since_never_comes_back(
        self, client: AsyncClient, changed: str
    ) -> None:
        found = (await search(client, "parrot", user_id="ana", known_at=changed))["results"]
        ok(await client.delete(f"/memories/{found[0]['memory_id']}"), 204)

        for mode in MODES:
            assert "She keeps a parrot." not in await texts(
                client, "parrot", mode=mode, known_at=changed
            )
