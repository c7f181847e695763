"""Finding memories through the public route: order, cuts, filters, and what a search leaves."""

import asyncio
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.memory.memories.uses import MemoryUse
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import (
    append,
    execute,
    fields,
    found,
    ok,
    problem,
    save,
    search,
)
from tests.support.databases import migrated_database, served
from tests.support.model_service import app_of
from tests.support.patience import PATIENCE
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant

TEA = "She drinks green tea."
WEIGHTS = {"session": 1.0, "project": 0.8, "user": 0.6, "agent": 0.4}


@pytest.fixture
async def everywhere(client: AsyncClient) -> dict[str, str]:
    """Ids by scope: one text in each scope that Ana's searches may name."""
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    body = {"project_id": "p1", "project_name": "P", "owner_id": "ana"}
    ok(await client.post("/projects", json=body), 201)
    places = {
        "agent": {"scope": "agent", "agent_id": "a1", "user_id": None},
        "user": {},
        "project": {"scope": "project", "project_id": "p1"},
        "session": {"scope": "session", "session_id": "s1"},
    }
    return {
        scope: (await save(client, TEA, **place))["memory_id"] for scope, place in places.items()
    }


NAMED = {"user_id": "ana", "session_id": "s1", "project_id": "p1", "agent_id": "a1"}


class TestOrder:
    async def test_the_nearest_statement_comes_first(self, client: AsyncClient) -> None:
        tea = await save(client, "She drinks green tea in the morning.")
        cat = await save(client, "The cat sleeps on the sofa.")

        assert await found(client) == [tea["memory_id"], cat["memory_id"]]

    async def test_a_chinese_question_finds_its_statement(self, client: AsyncClient) -> None:
        tea = await save(client, "她每天早上喝绿茶。")
        cat = await save(client, "猫睡在沙发上。")
        mixed = await save(client, "她用 Python 写代码。")

        assert (await found(client, "喝茶", user_id="ana"))[0] == tea["memory_id"]
        assert (await found(client, "猫在哪里睡", user_id="ana"))[0] == cat["memory_id"]
        assert (await found(client, "Python", user_id="ana"))[0] == mixed["memory_id"]

    async def test_nearer_to_the_conversation_comes_first(
        self, client: AsyncClient, everywhere: dict[str, str]
    ) -> None:
        order = await found(client, TEA, **NAMED)

        assert order == [everywhere[one] for one in ("session", "project", "user", "agent")]

    @pytest.mark.parametrize(
        ("mode", "precision"), [("semantic", 1e-12), ("hybrid", 1e-7), ("lexical", 1e-7)]
    )
    async def test_the_score_is_the_formula_of_its_parts(
        self, client: AsyncClient, everywhere: dict[str, str], mode: str, precision: float
    ) -> None:
        await save(client, "The cat drinks water.", confidence=0.8)
        await save(client, "He drinks at work.", confidence=0.7, session_id="s1", scope="session")

        hits = (await search(client, TEA, explain=True, mode=mode, **NAMED))["results"]

        assert len(hits) == 6
        for hit in hits:
            parts = hit["explain"]
            shares = parts["relevance"], parts["confidence"], parts["scope"]
            assert shares == pytest.approx(
                (0.5 * hit["relevance"], 0.3 * hit["confidence"], 0.2 * WEIGHTS[hit["scope"]]),
                abs=precision,
            )
            assert hit["score"] == pytest.approx(min(sum(shares), 1.0), abs=precision)
            assert (parts["cosine"], parts["fused"]) == (hit["similarity"], hit["relevance"])
            assert (hit["similarity"] is None) == (mode == "lexical")
            assert 0 <= (hit["similarity"] or 0) <= 1
            assert 0 <= hit["relevance"] <= 1
            assert parts["rerank"] is None
        scores = [hit["score"] for hit in hits]
        assert scores == sorted(scores, reverse=True)
        plain = (await search(client, TEA, mode=mode, **NAMED))["results"]
        assert plain == [
            hit | {"explain": None, "use_count": now["use_count"],
                   "last_used_at": now["last_used_at"]}
            for hit, now in zip(hits, plain, strict=True)
        ]  # fmt: skip

    async def test_without_reranking_similarity_alone_decides(self, client: AsyncClient) -> None:
        near = await save(client, "Green tea.", confidence=0.7)
        far = await save(client, "She drinks tea.", scope="session", session_id="s1")
        named = {"user_id": "ana", "session_id": "s1"}

        plain = (await search(client, "green tea", rerank=False, **named))["results"]

        assert await found(client, "green tea", **named) == [far["memory_id"], near["memory_id"]]
        assert [hit["memory_id"] for hit in plain] == [near["memory_id"], far["memory_id"]]
        assert plain[0]["similarity"] > plain[1]["similarity"]
        assert plain[0]["score"] < plain[1]["score"]

    @pytest.mark.parametrize("rerank", [True, False])
    async def test_of_equals_the_latest_change_comes_first(
        self, client: AsyncClient, rerank: bool
    ) -> None:
        made = [
            (await save(client, TEA, agent_id=agent_id))["memory_id"]
            for agent_id in (None, "a1", "a2")
        ]
        assert await found(client, TEA, user_id="ana", rerank=rerank) == made[::-1]

        ok(await client.patch(f"/memories/{made[0]}", json={"visibility": "public"}))

        expected = [made[0], made[2], made[1]]
        assert await found(client, TEA, user_id="ana", rerank=rerank) == expected

    async def test_of_equals_of_one_moment_the_smallest_id_comes_first(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        first = await save(client, TEA)
        for name in ("mem_c", "mem_a", "mem_b"):
            await execute(
                dsn,
                """
                INSERT INTO memories (tenant_id, memory_id, user_id, scope, scope_id, content,
                    content_hash, memory_type, tier, source, confidence, visibility, embedding,
                    embedding_model, terms, term_count, word_count, update_time)
                SELECT tenant_id, CAST($2 AS text), user_id, scope, scope_id, content,
                    convert_to(CAST($2 AS text), 'UTF8'),
                    memory_type, tier, source, confidence, visibility, embedding,
                    embedding_model, terms, term_count, word_count, '2027-01-01Z'
                FROM memories WHERE tenant_id = $1 AND memory_id = $3
                """,
                acme.tenant_id,
                name,
                first["memory_id"],
            )

        order = await found(client, TEA, user_id="ana")

        assert order == ["mem_a", "mem_b", "mem_c", first["memory_id"]]


class TestCuts:
    async def test_a_threshold_takes_its_own_value_in(self, client: AsyncClient) -> None:
        for text in (TEA, "She drinks water.", "The cat sleeps on the sofa."):
            await save(client, text)
        hits = (await search(client))["results"]
        middle = sorted(hit["similarity"] for hit in hits)[1]

        at = await found(client, user_id="ana", threshold=middle)
        above = await found(client, user_id="ana", threshold=math.nextafter(middle, 1))

        assert (len(hits), len(at), len(above)) == (3, 2, 1)
        assert len(await found(client, user_id="ana", threshold=0)) == 3

    async def test_a_limit_keeps_the_best(self, client: AsyncClient) -> None:
        for number in range(5):
            await save(client, f"Her locker has the number {number}.")
        every = await found(client)

        for limit in (1, 3, 100):
            assert await found(client, user_id="ana", limit=limit) == every[:limit]

    @for_each(
        ("wrong", "place"),
        [
            ({"limit": 0}, "body.limit"),
            ({"limit": 101}, "body.limit"),
            ({"threshold": 1.01}, "body.threshold"),
            ({"threshold": -0.01}, "body.threshold"),
            ({"query": ""}, "body.query"),
            ({"query": " \n\u3000"}, "body.query"),
            ({"query": "a\x00b"}, "body.query"),
            ({"query": "q" * 10_001}, "body.query"),
            ({"scopes": []}, "body.scopes"),
            ({"thread_id": "s1", "session_id": "s2"}, "body"),
            ({"colour": "red"}, "body.colour"),
        ],
    )
    async def test_what_is_no_search_is_refused_by_its_place(
        self, client: AsyncClient, wrong: dict, place: str
    ) -> None:
        body = {"query": "tea", "user_id": "ana"} | wrong

        document = problem(await client.post("/memories/search", json=body), 422, "invalid_request")

        assert fields(document) == [place]

    async def test_a_hundred_hits_are_the_most(self, client: AsyncClient) -> None:
        batch = [{"content": f"Her badge number {number} is blue."} for number in range(60)]
        for user_id in ("ana", "ana", "bob"):
            body = {"messages": batch, "user_id": user_id, "infer": False}
            ok(await client.post("/memories", json=body))
        texts = [{"content": f"His door number {number} is red."} for number in range(60)]
        ok(
            await client.post(
                "/memories", json={"messages": texts, "user_id": "ana", "infer": False}
            )
        )

        hits = (await search(client))["results"]

        assert len(hits) == 100
        assert {hit["user_id"] for hit in hits} == {"ana"}

    async def test_a_query_without_words_is_like_nothing(self, client: AsyncClient) -> None:
        sure = await save(client, TEA, confidence=1.0)
        unsure = await save(client, "She has two cats.", confidence=0.8)

        hits = (await search(client, "\u200b", user_id="ana"))["results"]

        assert [hit["memory_id"] for hit in hits] == [sure["memory_id"], unsure["memory_id"]]
        assert [hit["similarity"] for hit in hits] == [0.0, 0.0]

    @pytest.mark.parametrize("mode", ["semantic", "lexical", "hybrid"])
    async def test_a_blank_query_asks_nothing_and_is_refused(
        self, client: AsyncClient, mode: str
    ) -> None:
        await save(client, TEA)
        body = {"query": " \t\u3000", "user_id": "ana", "mode": mode}

        response = await client.post("/memories/search", json=body)

        [error] = problem(response, 422, "invalid_request")["errors"]
        assert error["location"] == ["body", "query"]
        assert "must not be blank" in error["detail"]
        assert ok(await client.post("/memories/search", json=body | {"query": " tea "}))


class TestWhere:
    @for_each(
        ("asked", "scopes"),
        [
            ({"user_id": "ana"}, "user"),
            ({"session_id": "s1"}, "session"),
            ({"run_id": "s1", "user_id": "ana"}, "session"),
            ({"thread_id": "s1"}, "session"),
            ({"project_id": "p1"}, "project"),
            ({"agent_id": "a1"}, "agent"),
            ({"user_id": "ana", "project_id": "p1"}, "project user"),
            (NAMED, "session project user agent"),
            (NAMED | {"scopes": ["user", "agent"]}, "user agent"),
            (NAMED | {"scopes": ["project"]}, "project"),
        ],
    )
    async def test_only_the_scopes_that_are_named_are_searched(
        self, client: AsyncClient, everywhere: dict[str, str], asked: dict, scopes: str
    ) -> None:
        assert await found(client, TEA, **asked) == [everywhere[one] for one in scopes.split()]

    async def test_a_search_of_nothing_is_refused(
        self, client: AsyncClient, everywhere: dict[str, str]
    ) -> None:
        for asked in ({}, {"scopes": ["user"]}, {"scopes": ["session"], "user_id": "ana"}):
            response = await client.post("/memories/search", json={"query": TEA} | asked)
            assert fields(problem(response, 422, "selector_required")) == ["body.user_id"]

    async def test_whom_nobody_has_heard_of_has_no_memories(self, client: AsyncClient) -> None:
        await save(client, TEA)

        for asked in ({"user_id": "new"}, {"session_id": "new"}, {"agent_id": "new"}):
            answer = await search(client, TEA, **asked)
            assert (answer["results"], answer["degraded"], answer["waiting"]) == ([], False, 0)

    async def test_a_project_is_searched_by_its_members(
        self, client: AsyncClient, everywhere: dict[str, str]
    ) -> None:
        ok(await client.post("/users", json={"user_id": "bob"}), 201)
        body = {"query": TEA, "user_id": "bob", "project_id": "p1"}

        problem(await client.post("/memories/search", json=body), 404, "project_not_found")
        ok(await client.put("/projects/p1/members/bob", json={"role": "viewer"}))

        asked = {"user_id": "bob", "project_id": "p1"}
        assert await found(client, TEA, **asked) == [everywhere["project"]]
        unknown = {"query": TEA, "user_id": "ana", "project_id": "p2"}
        problem(await client.post("/memories/search", json=unknown), 404, "project_not_found")

    async def test_an_owners_own_memory_is_shown_to_the_owner_alone(
        self, client: AsyncClient, everywhere: dict[str, str]
    ) -> None:
        ok(await client.post("/users", json={"user_id": "bob"}), 201)
        ok(await client.put("/projects/p1/members/bob", json={}))
        own = await save(
            client, "Tea is dear.", scope="project", project_id="p1", visibility="owner_only"
        )

        as_ana = await found(client, TEA, user_id="ana", project_id="p1", scopes=["project"])
        as_bob = await found(client, TEA, user_id="bob", project_id="p1")

        assert as_ana == [everywhere["project"], own["memory_id"]]
        assert as_bob == [everywhere["project"]]

    async def test_a_session_is_one_persons(
        self, client: AsyncClient, everywhere: dict[str, str]
    ) -> None:
        assert await found(client, TEA, session_id="s1", user_id="bob") == []

    async def test_what_is_private_to_an_agent_is_hidden_from_another(
        self, client: AsyncClient
    ) -> None:
        shared = await save(client, TEA)
        private = await save(client, "She has two cats.", agent_id="a1")

        as_other = await found(client, user_id="ana", agent_id="a2")
        as_same = await found(client, user_id="ana", agent_id="a1")

        assert as_other == [shared["memory_id"]]
        assert set(as_same) == {shared["memory_id"], private["memory_id"]}

    async def test_a_bound_key_searches_for_its_own_user(
        self, app: FastAPI, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        mine = await save(client, TEA)
        await save(client, TEA, user_id="bob")
        key = await make_key(runtime, acme.tenant_id, "read", user_id="ana")

        async with client_of(app, key.key) as bound:
            response = await bound.post("/memories/search", json={"query": TEA})
            other = await bound.post("/memories/search", json={"query": TEA, "user_id": "bob"})

        assert [hit["memory_id"] for hit in ok(response)["results"]] == [mine["memory_id"]]
        problem(other, 404, "user_not_found")


class TestFilters:
    @pytest.fixture
    async def names(self, client: AsyncClient) -> dict[str, str]:
        """Letters of some memories, by id."""
        rows = {
            "a": {"metadata": {"size": 9, "茶": {"kind": "green"}}, "memory_type": "goal"},
            "b": {"metadata": {"size": 10, "茶": {"kind": "black"}}, "confidence": 0.8},
            "c": {"metadata": {"size": "10", "at": "2026-03-01T00:00:00+08:00"}, "tier": "short"},
            "d": {"metadata": {"at": "2026-03-01T00:00:00Z", "done": True}, "external_id": "x"},
        }
        return {
            (await save(client, f"The thing called {name} is red.", on_duplicate="allow", **row))[
                "memory_id"
            ]: name
            for name, row in rows.items()
        }

    @for_each(
        ("asked", "expected"),
        [
            ({"filters": {"metadata.size": {"gt": 9}}}, "b"),
            ({"filters": {"metadata.size": {"gte": 9}}}, "ab"),
            ({"filters": {"metadata.size": "10"}}, "c"),
            ({"filters": {"metadata.at": {"lt": "2026-03-01T00:00:00Z"}}}, "c"),
            ({"filters": {"metadata.at": "2026-03-01T08:00:00+08:00"}}, "d"),
            ({"filters": {"metadata.茶.kind": {"in": ["green", "white"]}}}, "a"),
            ({"filters": {"metadata.done": True}}, "d"),
            ({"filters": {"create_time": {"gte": "2099-01-01T00:00:00Z"}}}, ""),
            ({"filters": {"confidence": {"lt": 0.9}}}, "b"),
            ({"filters": {"OR": [{"memory_type": "goal"}, {"external_id": "x"}]}}, "ad"),
            ({"filters": {"AND": [{"tier": "long"}, {"NOT": {"memory_type": "goal"}}]}}, "bd"),
            ({"filters": {"content": {"contains": "called c"}}}, "c"),
            ({"filters": {}}, "abcd"),
            ({"memory_type": "goal"}, "a"),
            ({"category": "goal"}, "a"),
            ({"tier": "short"}, "c"),
            ({"memory_type": "short"}, "c"),
            ({"tier": "long", "filters": {"confidence": 0.8}}, "b"),
        ],
    )
    async def test_a_filter_narrows_by_type(
        self, client: AsyncClient, names: dict[str, str], asked: dict, expected: str
    ) -> None:
        hits = await found(client, "thing", user_id="ana", **asked)

        assert "".join(sorted(names[one] for one in hits)) == expected

    @pytest.mark.parametrize(
        "filters",
        [
            {"colour": "red"},
            {"NOT": {"NOT": {"NOT": {"NOT": {"NOT": {"tier": "long"}}}}}},
            {"confidence": "high"},
            {"create_time": "2026-01-01"},
            {"OR": []},
        ],
        ids=["field", "depth", "type", "time without a zone", "nothing to choose from"],
    )
    async def test_a_filter_that_is_none_is_refused(
        self, client: AsyncClient, filters: dict
    ) -> None:
        body = {"query": "tea", "user_id": "ana", "filters": filters}

        document = problem(await client.post("/memories/search", json=body), 422, "invalid_filter")

        assert document["field"].startswith("filters.")

    async def test_a_filter_opens_no_other_bucket(self, client: AsyncClient) -> None:
        await save(client, TEA, user_id="bob")
        filters = {"OR": [{"user_id": "bob"}, {"NOT": {"user_id": "ana"}}]}

        assert await found(client, TEA, user_id="ana", filters=filters) == []


PAGE = "CAST((CAST(CAST(ctid AS text) AS point))[0] AS int)"
"""Of a row, in SQL."""


class TestTraces:
    async def used(self, client: AsyncClient, memory_id: str, count: int) -> dict:
        """The memory, once it was counted so often."""
        async with asyncio.timeout(PATIENCE):
            while True:
                memory = ok(await client.get(f"/memories/{memory_id}"))
                if memory["use_count"] >= count:
                    return memory
                await asyncio.sleep(0.05)

    async def test_being_found_is_counted_and_changes_nothing_else(
        self, client: AsyncClient
    ) -> None:
        tea = await save(client, TEA)
        cat = await save(client, "The cat sleeps on the sofa.")
        for _ in range(3):
            await found(client, TEA, user_id="ana", limit=1)

        memory = await self.used(client, tea["memory_id"], 3)

        assert memory["last_used_at"] > memory["create_time"]
        assert memory == tea["memory"] | {
            "use_count": 3,
            "last_used_at": memory["last_used_at"],
        }
        assert ok(await client.get(f"/memories/{cat['memory_id']}")) == cat["memory"]

    @pytest.mark.parametrize("given", ["yes", "true", 1, None])
    async def test_a_preview_is_true_or_false(self, client: AsyncClient, given: Any) -> None:
        body = {"query": TEA, "user_id": "ana", "preview": given}
        answer = await client.post("/memories/search", json=body)
        assert fields(problem(answer, 422, "invalid_request")) == ["body.preview"]

    async def test_a_preview_counts_nothing(self, client: AsyncClient) -> None:
        tea = await save(client, TEA)
        cat = await save(client, "The cat sleeps on the sofa.")
        looked = await search(client, TEA, user_id="ana", limit=1, preview=True)
        await search(client, "the cat on the sofa", user_id="ana", limit=1)

        await self.used(client, cat["memory_id"], 1)

        assert [hit["memory_id"] for hit in looked["results"]] == [tea["memory_id"]]
        assert ok(await client.get(f"/memories/{tea['memory_id']}"))["use_count"] == 0

    async def test_a_change_in_between_keeps_the_count(self, client: AsyncClient) -> None:
        tea = await save(client, TEA)
        await found(client)
        await self.used(client, tea["memory_id"], 1)

        changed = ok(await client.patch(f"/memories/{tea['memory_id']}", json={"tier": "short"}))

        assert (changed["use_count"], changed["version"]) == (1, 2)
        assert changed["update_time"] > tea["memory"]["update_time"]

    async def test_the_last_use_never_goes_back(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        memory_id = (await save(client, TEA))["memory_id"]
        use = MemoryUse(runtime.database)
        late, early = datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)

        for moments in ((late, early), (early,)):
            for moment in moments:
                use.note(acme.tenant_id, [memory_id], moment)
            await use.flush(everything=True)

        memory = await self.used(client, memory_id, 3)
        assert datetime.fromisoformat(memory["last_used_at"]) == late

    async def test_a_use_is_counted_in_the_page_of_its_row(
        self, postgres: EmbeddedPostgres, settings: Settings
    ) -> None:
        """A version in the same page is found by the index entries that are there."""
        # In a page with rows of others these might take the room.
        dsn = await migrated_database(postgres, "pages")
        async with open_runtime(settings, served(dsn)) as runtime, app_of(runtime) as app:
            owner = await make_tenant(runtime)
            said = [
                {"content": f"She drinks tea in house {house} of the street."}
                for house in range(40)
            ]
            body = {"messages": said, "user_id": "ana", "infer": False}
            async with client_of(app, owner.key) as client:
                ok(await client.post("/memories", json=body))
            before = await self.pages(dsn, owner)
            one_of_each = {page: each for each, page in before.items()}
            assert len(one_of_each) > 3

            use = MemoryUse(runtime.database)
            use.note(owner.tenant_id, one_of_each.values(), datetime(2026, 11, 2, tzinfo=UTC))
            await use.flush(everything=True)

        assert await self.pages(dsn, owner) == before
        counted = await execute(dsn, "SELECT sum(use_count) FROM memories")
        assert counted[0][0] == len(one_of_each)

    async def pages(self, dsn: str, acme: Caller) -> dict[str, int]:
        rows = await execute(
            dsn,
            f"SELECT memory_id, {PAGE} AS page FROM memories WHERE tenant_id = $1",
            acme.tenant_id,
        )
        return {row["memory_id"]: row["page"] for row in rows}

    async def test_a_search_writes_nothing_while_it_runs(self, client: AsyncClient) -> None:
        await append(client, "s1", "Hello.")
        user = ok(await client.get("/users/ana"))

        await found(client)

        assert ok(await client.get("/users/ana")) == user
