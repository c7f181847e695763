"""Who sees which block, and who may change it: keys of users and of agents."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.blocks.conftest import Desk
from tests.support.api import counts, every_page, ok, problem
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key
from tests.support.world import rows_of

ANYWAY = {"If-Match": "*"}

pytestmark = pytest.mark.usefixtures("people")


@pytest.fixture
async def bound(
    app: FastAPI, runtime: Runtime, acme: Caller
) -> AsyncIterator[dict[str, AsyncClient]]:
    """Clients whose keys are restricted."""
    restrictions: dict[str, dict[str, str]] = {
        "ana": {"user_id": "ana"},
        "ben": {"user_id": "ben"},
        "a1": {"agent_id": "a1"},
        "a2": {"agent_id": "a2"},
        "ana at a1": {"user_id": "ana", "agent_id": "a1"},
    }
    async with AsyncExitStack() as stack:
        clients = {}
        for name, restriction in restrictions.items():
            key = await make_key(runtime, acme.tenant_id, "write", **restriction)
            clients[name] = await stack.enter_async_context(client_of(app, key.key))
        yield clients


async def listed(client: AsyncClient, **params: Any) -> set[str]:
    rows = await every_page(client, "/blocks", include_hidden=True, **params)
    return {row["block_id"] for row in rows}


def ways(block_id: str) -> list[tuple[str, str, Any]]:
    """Every way to change a block."""
    path = f"/blocks/{block_id}"
    return [
        ("PATCH", path, {"value": "x"}),
        ("POST", f"{path}/append", {"text": "x"}),
        ("POST", f"{path}/replace", {"old": "a", "new": "x"}),
        ("POST", f"{path}/insert", {"text": "x"}),
        ("POST", f"{path}/rewrite", {"value": "x"}),
        ("POST", f"{path}/undo", None),
        ("POST", f"{path}/redo", None),
        ("DELETE", path, None),
        ("PUT", f"/agents/a1{path}", None),
        ("DELETE", f"/agents/a1{path}", None),
    ]


class TestKeyOfAUser:
    async def test_key_of_a_user_sees_own_and_shared_blocks(
        self, bound: dict[str, AsyncClient], make: Any
    ) -> None:
        await make("shared")
        await make("anas", user_id="ana")
        await make("bens", user_id="ben")

        assert await listed(bound["ana"]) == {"shared", "anas"}
        assert await listed(bound["ben"]) == {"shared", "bens"}
        assert await listed(bound["ana"], user_id="ben") == set()
        problem(await bound["ana"].get("/blocks/bens"), 404, "block_not_found")
        problem(await bound["ana"].get("/blocks/bens/history"), 404, "block_not_found")
        rows = await every_page(bound["ana"], "/agents/a1/blocks")
        assert {row["block_id"] for row in rows} == {"shared", "anas"}

    async def test_key_of_a_user_sees_shared_blocks_of_its_own_agents_alone(
        self, client: AsyncClient, make: Any, bound: dict[str, AsyncClient]
    ) -> None:
        await make("helps", "l1")
        await make("other", "l2", agent_id="a2")
        await make("nowhere", "l3")
        ok(await client.delete("/agents/a1/blocks/nowhere"), 204)
        assert await listed(bound["ben"]) == {"helps"}
        for block_id in ("other", "nowhere"):
            problem(await bound["ben"].get(f"/blocks/{block_id}"), 404, "block_not_found")
            path = f"/blocks/{block_id}/history"
            problem(await bound["ben"].get(path), 404, "block_not_found")
        assert await every_page(bound["ben"], "/agents/a2/blocks") == []

        body = {"session_id": "guest", "user_id": "ben", "agent_id": "a2"}
        ok(await client.post("/sessions", json=body), 201)

        assert await listed(bound["ben"]) == {"helps", "other"}

    async def test_key_of_a_user_may_not_change_shared_blocks(
        self, bound: dict[str, AsyncClient], make: Any, dsn: str, acme: Caller
    ) -> None:
        await make("shared", value="a")
        before = await rows_of(dsn, acme.tenant_id)

        for method, path, body in ways("shared"):
            response = await bound["ana"].request(method, path, json=body, headers=ANYWAY)
            problem(response, 403, "key_restricted")

        assert await rows_of(dsn, acme.tenant_id) == before

    async def test_block_of_another_user_reads_like_a_missing_block(
        self, bound: dict[str, AsyncClient], make: Any, dsn: str, acme: Caller
    ) -> None:
        await make("bens", user_id="ben", value="a")
        before = await rows_of(dsn, acme.tenant_id)

        for (method, path, body), (_, missing, _) in zip(ways("bens"), ways("none"), strict=True):
            answers = []
            for one in (path, missing):
                response = await bound["ana"].request(method, one, json=body, headers=ANYWAY)
                document = problem(response, 404, "block_not_found")
                del document["request_id"]
                answers.append(str(document).replace("bens", "ID").replace("none", "ID"))
            assert answers[0] == answers[1]

        assert await rows_of(dsn, acme.tenant_id) == before

    async def test_its_own_is_its_to_change(self, bound: dict[str, AsyncClient], make: Any) -> None:
        await make("anas", user_id="ana", value="a")

        for method, path, body in ways("anas"):
            if method != "DELETE":
                response = await bound["ana"].request(method, path, json=body, headers=ANYWAY)
                assert response.status_code not in {403, 404}, (method, path, response.text)
        assert (await bound["ana"].delete("/agents/a1/blocks/anas")).status_code == 204
        ok(await bound["ana"].delete("/blocks/anas"))

    async def test_block_made_by_a_key_of_a_user_belongs_to_that_user(
        self, bound: dict[str, AsyncClient]
    ) -> None:
        body = {"label": "human"}
        made = ok(await bound["ana"].post("/blocks", json=body), 201)

        assert (made["user_id"], made["per_user"]) == ("ana", False)
        problem(
            await bound["ana"].post("/blocks", json=body | {"user_id": "ben"}),
            404, "user_not_found",
        )  # fmt: skip
        template = await bound["ana"].post("/blocks", json=body | {"per_user": True})
        assert ok(template, 201)["per_user"] is False

    async def test_a_copy_is_its_users_alone(
        self, bound: dict[str, AsyncClient], desk: Desk, make: Any
    ) -> None:
        await make("b1", "human")
        copy = await desk.append("s1", "human", "Ana")

        assert await listed(bound["ana"], template_id="b1") == {copy.block_id}
        assert await listed(bound["ben"], template_id="b1") == set()
        problem(await bound["ben"].get(f"/blocks/{copy.block_id}"), 404, "block_not_found")

    async def test_key_of_a_user_makes_no_agents(self, bound: dict[str, AsyncClient]) -> None:
        body = {"agent_name": "A", "memory_blocks": [{"label": "human"}]}

        problem(await bound["ana"].post("/agents", json=body), 403, "key_restricted")


class TestKeyOfAnAgent:
    async def test_key_of_an_agent_sees_attached_blocks(
        self, client: AsyncClient, bound: dict[str, AsyncClient], make: Any
    ) -> None:
        await make("b1")
        await make("b2", agent_id="a2")
        await make("both", "org")
        ok(await client.put("/agents/a2/blocks/both"))
        ok(await client.post("/blocks", json={"label": "free", "block_id": "free"}), 201)

        assert await listed(bound["a1"]) == {"b1", "both"}
        assert await listed(bound["a2"]) == {"b2", "both"}
        for block_id in ("b2", "free"):
            for method, path, body in ways(block_id):
                response = await bound["a1"].request(method, path, json=body, headers=ANYWAY)
                problem(response, 404, "block_not_found")
        problem(await bound["a1"].get("/agents/a2/blocks"), 404, "agent_not_found")
        problem(await bound["a1"].put("/agents/a2/blocks/b1"), 404, "agent_not_found")

    async def test_key_of_an_agent_sees_blocks_of_its_users(
        self, client: AsyncClient, bound: dict[str, AsyncClient], desk: Desk, make: Any
    ) -> None:
        """Ana is a guest of a2, where Ben has never been."""
        await make("b1", "human")
        ok(await client.put("/agents/a2/blocks/b1"))
        anas = (await desk.append("s1", "human", "Ana")).block_id
        bens = (await desk.append("s2", "human", "Ben")).block_id

        assert await listed(bound["a1"]) == {"b1", anas, bens}
        assert await listed(bound["a2"]) == {"b1", anas}
        problem(await bound["a2"].get(f"/blocks/{bens}"), 404, "block_not_found")
        assert await listed(bound["ana at a1"]) == {"b1", anas}

    async def test_block_made_by_a_key_of_an_agent_is_attached_to_it(
        self, bound: dict[str, AsyncClient], dsn: str, acme: Caller
    ) -> None:
        made = ok(await bound["a1"].post("/blocks", json={"label": "notes"}), 201)

        assert await listed(bound["a1"]) == {made["block_id"]}
        other = await bound["a1"].post("/blocks", json={"label": "x", "agent_id": "a2"})
        problem(other, 404, "agent_not_found")
        assert (await counts(dsn, acme.tenant_id))["blocks"] == 1

    async def test_key_of_an_agent_may_not_delete_a_block_of_another_agent(
        self, client: AsyncClient, bound: dict[str, AsyncClient], make: Any
    ) -> None:
        await make("both")
        ok(await client.put("/agents/a2/blocks/both"))

        problem(await bound["a1"].delete("/blocks/both"), 403, "key_restricted")
        assert (await bound["a1"].delete("/agents/a1/blocks/both")).status_code == 204

        assert await listed(bound["a1"]) == set()
        ok(await bound["a2"].delete("/blocks/both"))

    async def test_key_of_an_agent_edits_shared_blocks(
        self, client: AsyncClient, bound: dict[str, AsyncClient], make: Any
    ) -> None:
        await make("both", value="a")
        ok(await client.put("/agents/a2/blocks/both"))

        ok(await bound["a2"].post("/blocks/both/append", json={"text": "b"}))

        assert ok(await bound["a1"].get("/blocks/both"))["value"] == "a\nb"

    async def test_key_of_an_agent_changes_the_copy_of_a_guest(
        self, bound: dict[str, AsyncClient], desk: Desk, make: Any
    ) -> None:
        await make("b1", "human", agent_id="a2")
        copy = (await desk.append("s3", "human", "Ana")).block_id

        edited = ok(await bound["a2"].post(f"/blocks/{copy}/append", json={"text": "x"}))

        assert edited["value"] == "Ana\nx"


class TestAnotherTenant:
    async def test_other_tenant_sees_nothing(
        self, stranger: AsyncClient, make: Any, dsn: str, acme: Caller
    ) -> None:
        await make("b1", value="a")
        ok(await stranger.post("/agents", json={"agent_id": "a1", "agent_name": "A"}), 201)
        before = await rows_of(dsn, acme.tenant_id)

        assert await listed(stranger) == set()
        problem(await stranger.get("/blocks/b1"), 404, "block_not_found")
        problem(await stranger.get("/blocks/b1/history"), 404, "block_not_found")
        for method, path, body in ways("b1"):
            response = await stranger.request(method, path, json=body, headers=ANYWAY)
            problem(response, 404, "block_not_found")
        body = {"agent_name": "B", "block_ids": ["b1"]}
        problem(await stranger.post("/agents", json=body), 404, "block_not_found")
        assert ok(await stranger.post("/blocks", json={"label": "x", "block_id": "b1"}), 201)

        assert await rows_of(dsn, acme.tenant_id) == before


class TestErasure:
    async def test_a_users_words_go_with_the_user(
        self, client: AsyncClient, desk: Desk, make: Any, dsn: str, acme: Caller
    ) -> None:
        await make("b1", "human", value="Name?")
        await make("b2", "diary", user_id="ana", value="Wilhelmina")
        await desk.append("s1", "human", "Wilhelmina")
        await desk.append("s2", "human", "Ben")

        ok(await client.delete("/users/ana", params={"confirm": True}))

        assert not [row for row in await rows_of(dsn, acme.tenant_id) if "Wilhelmina" in row[1]]
        assert await desk.said("s2") == {"human": "Name?\nBen"}
