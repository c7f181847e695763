"""`run_id`: only what came from one session, in searches, lists, counts and deletions."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from httpx import AsyncClient

from app.identity.tenants.access import Access
from app.memory.memories.repository import MemoryRepository
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime
from app.settings import Settings
from tests.support.api import execute, fields, found, listed, ok, problem, save, search
from tests.support.plans import generic_plans, new_crowd, nodes, sent_by
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant

TEA = "She drinks green tea."
SECOND = "She drinks green tea from a glass."
MODES = ("hybrid", "semantic", "lexical")


@pytest.fixture
async def town(client: AsyncClient) -> dict[str, str]:
    """Ids of memories, by where they came from and where they count."""
    return await built(client)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_town(
    app: FastAPI, runtime: Runtime
) -> AsyncIterator[tuple[AsyncClient, dict[str, str]]]:
    """A town that tests leave as it is, and a client of its tenant."""
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as reader:
        yield reader, await built(reader)


async def built(client: AsyncClient) -> dict[str, str]:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    body = {"project_id": "p1", "project_name": "P", "owner_id": "ana"}
    ok(await client.post("/projects", json=body), 201)
    first = {"run_id": "s1"}
    places: dict[str, dict[str, Any]] = {
        "s1 user": first,
        "s1 session": first | {"scope": "session"},
        "s1 project": first | {"scope": "project", "project_id": "p1"},
        "s1 agent": {"session_id": "s1", "scope": "agent", "agent_id": "default", "user_id": None},
        "s2 user": {"session_id": "s2", "messages": SECOND},
        "s2 session": {"session_id": "s2", "scope": "session"},
        "no session": {"messages": "Green tea is what she drinks at home with him."},
        "bob": {"user_id": "bob", "session_id": "b1"},
        "bob session": {"user_id": "bob", "session_id": "b1", "scope": "session"},
    }
    return {
        name: (await save(client, place.pop("messages", TEA), on_duplicate="allow", **place))[
            "memory_id"
        ]
        for name, place in places.items()
    }


def named(town: dict[str, str], ids: list[str]) -> list[str]:
    by_id = {memory_id: name for name, memory_id in town.items()}
    return sorted(by_id[memory_id] for memory_id in ids)


class TestSearch:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        ("asked", "hits"),
        [
            ({"run_id": "s1"}, ["s1 session", "s1 user"]),
            ({"run_id": "s1", "user_id": "ana"}, ["s1 session", "s1 user"]),
            ({"run_id": "s2"}, ["s2 session", "s2 user"]),
            ({"run_id": "s1", "scopes": ["user"]}, ["s1 user"]),
            ({"run_id": "s1", "scopes": ["session"]}, ["s1 session"]),
            ({"run_id": "s1", "project_id": "p1"}, ["s1 project", "s1 session", "s1 user"]),
            ({"run_id": "s1", "agent_id": "default"}, ["s1 agent", "s1 session", "s1 user"]),
            ({"run_id": "s1", "session_id": "s1"}, ["s1 session", "s1 user"]),
            ({"run_id": "s1", "session_id": "s2"}, ["s1 session", "s1 user"]),
            ({"run_id": "s1", "thread_id": "s2"}, ["s1 session", "s1 user"]),
            # Beside it: the session that asks leaves nothing out.
            (
                {"session_id": "s1", "user_id": "ana"},
                ["no session", "s1 session", "s1 user", "s2 user"],
            ),
            ({"run_id": "s1", "user_id": "bob"}, []),
            ({"run_id": "none"}, []),
            ({"run_id": "none", "user_id": "ana"}, []),
            ({"run_id": "none", "scopes": ["user"]}, []),
        ],
    )
    async def test_run_leaves_out_what_came_from_elsewhere(
        self,
        shared_town: tuple[AsyncClient, dict[str, str]],
        asked: dict,
        hits: list[str],
        mode: str,
    ) -> None:
        reader, town = shared_town
        assert named(town, await found(reader, mode=mode, **asked)) == hits

    @pytest.mark.parametrize("mode", MODES)
    async def test_run_is_found_as_it_was_known(
        self, client: AsyncClient, town: dict[str, str], mode: str
    ) -> None:
        then = datetime.now(UTC).isoformat()
        changed = {"content": "She drinks black coffee."}
        ok(await client.patch(f"/memories/{town['s1 user']}", json=changed))

        answer = await search(client, mode=mode, run_id="s1", known_at=then)

        assert named(town, [hit["memory_id"] for hit in answer["results"]]) == [
            "s1 session",
            "s1 user",
        ]
        assert {hit["content"] for hit in answer["results"]} == {TEA}

    @pytest.mark.parametrize("mode", MODES)
    async def test_erased_session_is_no_run_of_the_past(
        self, client: AsyncClient, town: dict[str, str], mode: str
    ) -> None:
        asked = {"user_id": "ana", "run_id": "s1", "known_at": datetime.now(UTC).isoformat()}
        assert await found(client, mode=mode, **asked)

        ok(await client.delete("/sessions/s1", params={"confirm": True}))

        assert await found(client, mode=mode, **asked) == []
        assert await listed(client, run_id="s1", known_at=asked["known_at"]) == []
        assert town["s1 user"] in await listed(client)

    async def test_run_changes_no_score(self, client: AsyncClient, town: dict[str, str]) -> None:
        where = {"user_id": "ana", "session_id": "s1"}
        every = {hit["memory_id"]: hit for hit in (await search(client, **where))["results"]}

        some = (await search(client, **where, run_id="s1"))["results"]

        assert len(some) == 2
        for hit in some:
            assert hit["relevance"] == every[hit["memory_id"]]["relevance"]

    async def test_limit_is_filled_from_the_run(
        self, client: AsyncClient, town: dict[str, str]
    ) -> None:
        for number in range(5):
            await save(client, f"Green tea, green tea, the {number}. cup.", session_id="s2")

        [hit] = await found(client, run_id="s1", scopes=["user"], limit=1)

        assert named(town, [hit]) == ["s1 user"]

    async def test_scope_that_no_run_has_needs_its_id(
        self, client: AsyncClient, town: dict[str, str]
    ) -> None:
        for scope in ("project", "agent"):
            body = {"query": "tea", "run_id": "s1", "scopes": [scope]}
            problem(await client.post("/memories/search", json=body), 422, "selector_required")

    async def test_filter_object_knows_the_name(
        self, client: AsyncClient, town: dict[str, str]
    ) -> None:
        asked = {"user_id": "ana", "filters": {"run_id": {"in": ["s2", "none"]}}}

        assert named(town, await found(client, **asked)) == ["s2 user"]


OF_S1 = ["s1 agent", "s1 project", "s1 session", "s1 user"]


class TestLists:
    @pytest.mark.parametrize(
        ("asked", "rows"),
        [
            ({"run_id": "s1"}, OF_S1),
            ({"run_id": "s1", "limit": 1}, OF_S1),
            ({"run_id": "s1", "session_id": "s1"}, OF_S1),
            ({"run_id": "s1", "session_id": "s2"}, []),
            ({"run_id": "s1", "scope": "session"}, ["s1 session"]),
            ({"run_id": "s1", "user_id": "ana"}, ["s1 project", "s1 session", "s1 user"]),
            ({"run_id": "s1", "user_id": "bob"}, []),
            ({"run_id": "none"}, []),
        ],
    )
    @pytest.mark.parametrize("past", [False, True], ids=["now", "known_at"])
    async def test_list_shows_the_run_alone(
        self,
        shared_town: tuple[AsyncClient, dict[str, str]],
        asked: dict,
        rows: list[str],
        past: bool,
    ) -> None:
        reader, town = shared_town
        then = {"known_at": datetime.now(UTC).isoformat()} if past else {}

        assert named(town, await listed(reader, **asked, **then)) == rows

    async def test_counts_are_of_the_run_alone(
        self, client: AsyncClient, town: dict[str, str]
    ) -> None:
        stats = ok(await client.get("/memories/stats", params={"run_id": "s1"}))

        assert stats["by_scope"] == {"agent": 1, "project": 1, "session": 1, "user": 1}
        assert stats["decisions"] == {"accepted": 4}
        none = ok(await client.get("/memories/stats", params={"run_id": "none"}))
        assert (none["total"], none["decisions"], none["last_saved"]) == (0, {}, None)


class TestDeletion:
    @pytest.mark.parametrize("way", ["query", "body"])
    async def test_deletion_takes_the_run_alone(
        self, client: AsyncClient, town: dict[str, str], way: str
    ) -> None:
        async def delete(**asked: Any) -> int:
            response = (
                await client.delete("/memories", params=asked)
                if way == "query"
                else await client.post("/memories/delete", json=asked)
            )
            count: int = ok(response)["deleted"]
            return count

        assert await delete(run_id="none", confirm=True) == 0
        assert await delete(run_id="s1", session_id="s2", confirm=True) == 0
        assert await delete(run_id="s1", user_id="bob", confirm=True) == 0
        assert await delete(run_id="s1", dry_run=True) == len(OF_S1)
        assert await delete(run_id="s1", confirm=True) == len(OF_S1)

        assert named(town, await listed(client)) == sorted(set(town) - set(OF_S1))


class TestWhoMaySee:
    @pytest.mark.parametrize(
        ("bound", "seen"),
        [
            ({"user_id": "bob"}, {"b1": ["bob", "bob session"], "s1": ["s1 agent"]}),
            ({"user_id": "ana"}, {"b1": [], "s1": OF_S1}),
            ({"agent_id": "other"}, {"b1": [], "s1": []}),
        ],
        ids=["bob", "ana", "other agent"],
    )
    async def test_key_sees_no_more_by_a_run(
        self,
        app: FastAPI,
        runtime: Runtime,
        acme: Caller,
        client: AsyncClient,
        town: dict[str, str],
        bound: dict[str, str],
        seen: dict[str, list[str]],
    ) -> None:
        body = {"agent_id": "other", "agent_name": "O"}
        ok(await client.post("/agents", json=body), 201)
        key = await make_key(runtime, acme.tenant_id, "write", **bound)
        async with client_of(app, key.key) as other:
            for run_id, rows in seen.items():
                assert named(town, await listed(other, run_id=run_id)) == rows
                for mode in MODES:
                    hits = named(town, await found(other, run_id=run_id, mode=mode))
                    assert set(hits) <= set(rows)
                    searched = {"user", "session"}
                    assert set(hits) == {one for one in rows if one.split()[-1] in searched} | (
                        {"bob"} & set(rows)
                    )
                stats = ok(await other.get("/memories/stats", params={"run_id": run_id}))
                assert stats["total"] == len(rows)
                counted = {"run_id": run_id, "dry_run": True}
                count = ok(await other.post("/memories/delete", json=counted))["deleted"]
                # What all users of an agent share is an admin's to delete.
                assert count == len([one for one in rows if one != "s1 agent"])

    async def test_other_tenant_finds_nothing(
        self, stranger: AsyncClient, town: dict[str, str]
    ) -> None:
        assert await found(stranger, run_id="s1") == []
        assert await listed(stranger, run_id="s1") == []

    async def test_manager_learns_nothing_of_where_hidden_items_came_from(
        self, app: FastAPI, runtime: Runtime, acme: Caller, client: AsyncClient, town: dict
    ) -> None:
        ok(await client.put("/projects/p1/members/bob", json={"role": "admin"}))
        ok(await client.patch(f"/memories/{town['s1 project']}", json={"visibility": "owner_only"}))
        key = await make_key(runtime, acme.tenant_id, "write", user_id="bob")
        async with client_of(app, key.key) as bob:
            for asked, count in (({}, 1), ({"run_id": "s1"}, 0)):
                body = {"project_id": "p1", "dry_run": True} | asked
                assert ok(await bob.post("/memories/delete", json=body))["deleted"] == count


@pytest.mark.parametrize("wrong", ["", "a  b", "x" * 65, "a/b"])
async def test_run_that_is_no_id_is_refused_by_its_name(client: AsyncClient, wrong: str) -> None:
    for response, place in (
        (await client.post("/memories/search", json={"query": "tea", "run_id": wrong}), "body"),
        (await client.post("/memories/delete", json={"run_id": wrong}), "body"),
        (await client.get("/memories", params={"run_id": wrong}), "query"),
        (await client.get("/memories/stats", params={"run_id": wrong}), "query"),
        (await client.delete("/memories", params={"run_id": wrong}), "query"),
    ):
        assert fields(problem(response, 422, "invalid_request")) == [f"{place}.run_id"]


CROWD = """
WITH home AS (
    INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, 'default', 'A')
    RETURNING agent_id
), one AS (
    INSERT INTO users (tenant_id, user_id, agent_id) SELECT $1, 'ana', agent_id FROM home
    RETURNING user_id, agent_id
), many AS (
    INSERT INTO sessions (tenant_id, session_id, user_id, agent_id)
    SELECT $1, 's' || n, user_id, agent_id FROM one, generate_series(1, 300) AS n
    RETURNING session_id
)
INSERT INTO memories (tenant_id, memory_id, user_id, session_id, scope, scope_id, content,
    content_hash, memory_type, tier, source, confidence, visibility, embedding_model)
SELECT $1, session_id || '/' || n, 'ana', session_id, 'user', 'ana', 'x',
    convert_to(session_id || '/' || n, 'UTF8'), 'fact', 'long', 'user', 1, 'members', 'none'
FROM many, generate_series(1, 20) AS n
"""


@pytest.mark.parametrize("access", [{}, {"user_id": "ana"}, {"agent_id": "default"}])
async def test_run_is_read_by_the_index_of_sessions(
    postgres: EmbeddedPostgres, settings: Settings, access: dict[str, str]
) -> None:
    asked: dict[str, Any] = {"equal": {"run_id": "s7"}, "filters": None}
    async with new_crowd(postgres, settings, "_".join(["memories_runs", *access])) as crowd:
        await execute(crowd.dsn, CROWD, crowd.tenant_id)
        await execute(crowd.dsn, "ANALYZE memories")
        async with crowd.runtime.database.begin(crowd.tenant_id) as db:
            memories = MemoryRepository(db, Access(crowd.tenant_id, **access))
            with sent_by((await db.connection()).sync_connection) as sent:
                rows = await memories.list_memories(**asked, start=None, descending=True, limit=10)
                assert len(rows) == 11
                assert await memories.count_selected(**asked) == 20
                assert len(await memories.lock_selected(**asked)) == 20
                assert sum(row.count for row in await memories.stats(asked["equal"])) == 20
            plans = await generic_plans(db, sent)

    assert len(plans) == 4
    for plan in plans:
        reads = [node for node in nodes(plan) if str(node.get("Index Name")).startswith("memories")]
        assert {node["Index Name"] for node in reads} == {"memories_idx_session_id"}, plan
        assert not [one for one in nodes(plan) if one["Node Type"] == "Seq Scan"
                    and one["Relation Name"] == "memories"]  # fmt: skip
