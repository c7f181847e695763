"""Memories in conflict as lists, searches and tools show them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from app.language.llm.reconciler import ReconcileDecision
from app.memory.memories.conflict_repository import ConflictRepository
from app.runtime import Runtime
from tests.support.api import append, every_page, execute, found, listed, ok, problem, save, search
from tests.support.conflicts import FARO, LISBON, PORTO, Doubting, conflicts, in_doubt, tell
from tests.support.service import client_of, tapped
from tests.support.tenants import Caller, make_key, make_tenant
from tests.support.tools import called, result

OTHER = "I keep a small flat rented out in Evora."


@pytest.fixture(scope="module")
async def doubting_app(runtime: Runtime) -> AsyncIterator[Any]:
    reconciler = Doubting()
    reconciler.scripted[OTHER] = lambda _: ReconcileDecision("ADD")
    async with in_doubt(runtime, reconciler) as (app, _):
        yield app


@pytest.fixture
async def owner(runtime: Runtime) -> Caller:
    return await make_tenant(runtime)


@pytest.fixture
async def client(doubting_app: Any, owner: Caller) -> AsyncIterator[AsyncClient]:
    async with client_of(doubting_app, owner.key) as opened:
        yield opened


class TestLists:
    async def test_filter_lists_those_in_conflict_or_the_others(self, client: AsyncClient) -> None:
        [lisbon], [porto], [other] = [await tell(client, text) for text in (LISBON, PORTO, OTHER)]
        bens = await save(client, "He lives in Faro.", user_id="ben")
        pair = [porto["memory_id"], lisbon["memory_id"]]

        assert await listed(client, in_conflict="true") == pair
        assert await listed(client, in_conflict="true", order="asc") == pair[::-1]
        assert await listed(client, in_conflict="true", user_id="ben") == []
        others = [bens["memory_id"], other["memory_id"]]
        assert await listed(client, in_conflict="false") == others
        assert len(await listed(client)) == 4
        pages = await every_page(client, "/memories", in_conflict="true", limit=1)
        assert [row["memory_id"] for row in pages] == pair

    @pytest.mark.parametrize(
        "fields",
        [
            {"status": "archived"},
            {"as_of": "2026-01-01T00:00:00Z"},
            {"known_at": "2026-01-01T00:00:00Z"},
        ],
    )
    async def test_filter_asks_for_now_alone(
        self, client: AsyncClient, fields: dict[str, str]
    ) -> None:
        for wanted in ("true", "false"):
            params = {"in_conflict": wanted} | fields
            body = problem(await client.get("/memories", params=params), 422, "invalid_request")
            assert "in_conflict asks for now" in str(body)
        answer = await client.get("/memories", params={"in_conflict": "perhaps"})
        problem(answer, 422, "invalid_request")

    async def test_list_of_the_past_knows_no_conflict(self, client: AsyncClient) -> None:
        await tell(client, LISBON)
        await tell(client, PORTO)
        later = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()

        for row in await every_page(client, "/memories", known_at=later):
            assert row["conflicts_with"] == []
        assert all(row["conflicts_with"] for row in await every_page(client, "/memories"))


class TestSearch:
    @pytest.mark.parametrize(
        "fields",
        [{}, {"mode": "semantic"}, {"mode": "lexical"}, {"rerank": False}],
        ids=["hybrid", "semantic", "lexical", "similarity"],
    )
    async def test_newer_comes_first(self, client: AsyncClient, fields: dict[str, Any]) -> None:
        [older] = await tell(client, LISBON)
        [newer] = await tell(client, PORTO)
        await tell(client, OTHER)
        about = {"query": "flat in Lisbon", "user_id": "ana"} | fields

        answer = await search(client, **about, format="text")

        assert [hit["content"] for hit in answer["results"]] == [PORTO, LISBON, OTHER]
        first, second, third = answer["results"]
        assert first["score"] < second["score"]
        assert (first["conflicts_with"], first["newer_conflicts"]) == ([older["memory_id"]], [])
        assert second["conflicts_with"] == second["newer_conflicts"] == [newer["memory_id"]]
        assert (third["conflicts_with"], third["newer_conflicts"]) == ([], [])
        lines = answer["prompt"].splitlines()[1:]
        assert [line.rpartition(".")[2] for line in lines] == [
            " (in conflict with an older statement)",
            " (in conflict with a newer statement)",
            "",
        ]
        # Where the newer one is not among the hits, the older says of it.
        answer = await search(client, **about, limit=1, format="text")
        assert [hit["content"] for hit in answer["results"]] == [LISBON]
        assert answer["prompt"].endswith("(in conflict with a newer statement)")
        # It is on a later page then.
        shown = [LISBON]
        while answer["next_cursor"] is not None:
            answer = await search(client, **about, limit=1, cursor=answer["next_cursor"])
            shown += [hit["content"] for hit in answer["results"]]
        assert sorted(shown) == sorted([PORTO, LISBON, OTHER])

    async def test_newer_that_ranks_higher_keeps_its_place(self, client: AsyncClient) -> None:
        told = [(await tell(client, text))[0]["memory_id"] for text in (LISBON, PORTO, OTHER)]

        best = await found(client, "flat in Porto", user_id="ana")
        assert best[0] == told[1]
        assert sorted(best) == sorted(told)

    @pytest.mark.parametrize("mode", ["hybrid", "semantic"])
    async def test_search_of_the_past(self, client: AsyncClient, mode: str) -> None:
        await tell(client, LISBON)
        await tell(client, PORTO)
        later = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
        about = {"query": "flat in Lisbon", "user_id": "ana", "mode": mode}

        then = (await search(client, **about, known_at=later))["results"]
        assert [hit["content"] for hit in then] == [LISBON, PORTO]
        assert [hit["conflicts_with"] for hit in then] == [[], []]
        held = (await search(client, **about, as_of=later))["results"]
        assert [hit["content"] for hit in held] == [PORTO, LISBON]
        ok(await client.patch(f"/memories/{held[0]['memory_id']}", json={"status": "archived"}))
        [left] = (await search(client, **about, as_of=later))["results"]
        assert left["conflicts_with"] == []

    async def test_tool_tells_the_model(self, client: AsyncClient) -> None:
        await append(client, "s1", "Hello there, how are you today?")
        await tell(client, LISBON)
        await tell(client, PORTO)
        arguments = {"query": "flat in Lisbon"}

        told = await result(client, "memory_search", arguments)
        assert told.index("(in conflict with an older") < told.index("(in conflict with a newer")
        data = await called(client, "memory_search", arguments)
        assert "newer_conflicts" in str(data)

    @pytest.mark.parametrize("mode", ["hybrid", "semantic"])
    async def test_conflicts_cost_no_statement(
        self, client: AsyncClient, owner: Caller, dsn: str, mode: str
    ) -> None:
        async with tapped(dsn, owner.key) as (wire, counted):

            async def cost() -> int:
                for _ in range(3):
                    await found(counted, "flat", user_id="ana", mode=mode)
                before = wire.round_trips
                await found(counted, "flat", user_id="ana", mode=mode)
                return wire.round_trips - before

            await tell(client, LISBON)
            alone = await cost()
            await tell(client, PORTO)
            assert await cost() == alone


class TestWhose:
    async def test_key_of_another_user_sees_nothing_of_it(
        self, client: AsyncClient, owner: Caller, runtime: Runtime, doubting_app: Any
    ) -> None:
        await tell(client, LISBON)
        await tell(client, PORTO, user_id="ben")
        [bens] = await tell(client, FARO, user_id="ben")
        key = await make_key(runtime, owner.tenant_id, "read", user_id="ana")

        assert len(bens["conflicts_with"]) == 1
        async with client_of(doubting_app, key.key) as ana:
            [own] = await every_page(ana, "/memories")
            assert own["conflicts_with"] == []
            assert await listed(ana, in_conflict="true") == []

    async def test_memory_of_another_agent_is_not_in_conflict(self, client: AsyncClient) -> None:
        [one], [other] = await asyncio.gather(
            tell(client, LISBON, agent_id="one"), tell(client, PORTO, agent_id="two")
        )

        assert await conflicts(client, one, other) == [[], []]

    async def test_ids_of_other_buckets_link_nothing(
        self, client: AsyncClient, owner: Caller, runtime: Runtime, dsn: str
    ) -> None:
        """As an import could bring them, or a decision name them."""
        [anas] = await tell(client, LISBON)
        others = [
            (await tell(client, PORTO, **where))[0]
            for where in (
                {"user_id": "ben"},
                {"agent_id": "one"},
                {"session_id": "s", "scope": "session"},
            )
        ]
        ids = [one["memory_id"] for one in others]
        change = "UPDATE memories SET conflict_ids = $2 WHERE memory_id = ANY ($1) RETURNING 1"
        assert await execute(dsn, change, [anas["memory_id"]], ids)
        assert await execute(dsn, change, ids, [anas["memory_id"]])

        assert {one["scope"] for one in others} == {"user", "session"}
        assert await conflicts(client, anas, *others) == [[]] * 4
        assert await listed(client, in_conflict="true") == []
        async with runtime.database.begin(owner.tenant_id) as db:
            repository = ConflictRepository(db, owner.tenant_id)
            assert await repository.lock(anas, ids) == []
            [row] = await repository.lock(anas, [anas["memory_id"], *ids])
            assert row.memory_id == anas["memory_id"]

    async def test_what_two_authors_keep_to_themselves_links_nothing(
        self, client: AsyncClient, dsn: str
    ) -> None:
        project = {"project_id": "p", "scope": "project", "visibility": "owner_only"}
        ok(await client.post("/projects", json={"project_id": "p", "project_name": "P"}), 201)
        told = []
        for user, text in (("ana", LISBON), ("ben", PORTO)):
            ok(await client.post("/users", json={"user_id": user}), 201)
            ok(await client.put(f"/projects/p/members/{user}", json={"role": "editor"}))
            told.append((await save(client, text, user_id=user, **project))["memory"])
        ids = [one["memory_id"] for one in told]
        change = "UPDATE memories SET conflict_ids = $2 WHERE memory_id = $1 RETURNING 1"
        for one, other in (ids, ids[::-1]):
            assert await execute(dsn, change, one, [other])

        assert await conflicts(client, *told) == [[], []]
