"""mem0's hosted API over HTTP: users, agents, apps and runs, and events."""

import asyncio

from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from app.worker import working
from tests.support.mem0 import mem0_client, store_text
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller, make_key

TEA = "She drinks green tea in the morning."


async def entities(mem0: AsyncClient, query: str = "") -> list[tuple[str, str]]:
    shown = (await mem0.get(f"/v1/entities/{query}")).json()
    return [(one["type"], one["name"]) for one in shown["results"]]


async def store_one_of_each(mem0: AsyncClient) -> None:
    await store_text(mem0, TEA, user_id="ana", agent_id="helper", run_id="chat-1", app_id="shop")


class TestEntities:
    async def test_what_has_memories_is_listed(self, mem0: AsyncClient) -> None:
        await store_one_of_each(mem0)
        shown = (await mem0.get("/v1/entities/")).json()

        assert [(one["type"], one["name"]) for one in shown["results"]] == [
            ("app", "shop"), ("run", "chat-1"), ("agent", "helper"), ("user", "ana"),
        ]  # fmt: skip
        assert (shown["count"], shown["total_users"], shown["total_apps"]) == (4, 1, 1)

    async def test_pages(self, mem0: AsyncClient) -> None:
        await store_one_of_each(mem0)
        first = (await mem0.get("/v1/entities/?page_size=3")).json()
        second = (await mem0.get(first["next"])).json()

        assert [one["type"] for one in first["results"]] == ["app", "run", "agent"]
        assert [one["type"] for one in second["results"]] == ["user"]
        for size, status in ((0, 400), (1000, 200), (1001, 400)):
            assert (await mem0.get(f"/v1/entities/?page_size={size}")).status_code == status

    async def test_each_is_deleted_in_the_order_of_the_list(self, mem0: AsyncClient) -> None:
        await store_one_of_each(mem0)
        for kind, name in await entities(mem0):
            response = await mem0.delete(f"/v2/entities/{kind}/{name}/")
            assert response.status_code == 200, (kind, response.text)
        assert await entities(mem0) == []

    async def test_of_a_user_nothing_stays(self, mem0: AsyncClient, client: AsyncClient) -> None:
        await store_one_of_each(mem0)
        assert (await mem0.delete("/v1/entities/user/ana/")).status_code == 200
        assert (await client.get("/users/ana")).status_code == 404
        assert await entities(mem0) == []

    async def test_what_is_not_there_is_not_found(self, mem0: AsyncClient) -> None:
        for path, status in (
            ("user/nobody", 404), ("agent/nobody", 404), ("run/nothing", 404), ("app/nothing", 404),
            ("user/al%2Fice", 404), ("colour/red", 400),
        ):  # fmt: skip
            response = await mem0.delete(f"/v2/entities/{path}/")
            assert response.status_code == status, path
            assert response.json()["detail"]

    async def test_a_star_is_a_name_and_not_everything(self, mem0: AsyncClient) -> None:
        await store_one_of_each(mem0)
        for kind in ("app", "run", "agent", "user"):
            assert (await mem0.delete(f"/v2/entities/{kind}/*/")).status_code == 404
        assert len(await entities(mem0)) == 4

    async def test_a_key_without_admin_deletes_no_user_or_agent(
        self, app: FastAPI, mem0: AsyncClient, acme: Caller, runtime: Runtime
    ) -> None:
        await store_one_of_each(mem0)
        writer = await make_key(runtime, acme.tenant_id, "write")
        async with mem0_client(app, writer.key) as opened:
            for kind, name in (("user", "ana"), ("agent", "helper")):
                response = await opened.delete(f"/v2/entities/{kind}/{name}/")
                assert response.status_code == 403
            assert (await opened.delete("/v2/entities/app/shop/")).status_code == 200

    async def test_a_bound_key_sees_its_own(
        self, app: FastAPI, mem0: AsyncClient, acme: Caller, runtime: Runtime
    ) -> None:
        await store_one_of_each(mem0)
        await store_text(mem0, "He drinks black coffee.", user_id="bo", app_id="desk")
        bound = await make_key(runtime, acme.tenant_id, "write", user_id="bo")
        async with mem0_client(app, bound.key) as bo:
            assert await entities(bo) == [("app", "desk"), ("user", "bo")]


class TestEvents:
    async def test_an_add_in_the_background_is_followed_to_its_memories(
        self, mem0: AsyncClient, runtime: Runtime, dsn: str
    ) -> None:
        body = {"messages": [{"role": "user", "content": "I live in Lisbon."}], "user_id": "ana"}
        event_id = (await mem0.post("/v3/memories/add/", json=body)).json()["event_id"]
        path = f"/v1/event/{event_id}/"
        assert (await mem0.get(path)).json()["status"] in {"PENDING", "RUNNING"}

        async with working(runtime, dsn), asyncio.timeout(PATIENCE):
            while (  # noqa: ASYNC110 (the client polls as well)
                shown := (await mem0.get(path)).json()
            )["status"] != "SUCCEEDED":
                await asyncio.sleep(0.05)

        [result] = shown["results"]
        assert result["event"] == "ADD"
        assert "Lisbon" in result["data"]["memory"]
        assert shown["latency"] > 0
        memory = (await mem0.get(f"/v1/memories/{result['id']}/")).json()
        assert memory["memory"] == result["memory"]

    async def test_events_are_listed_and_paged(self, mem0: AsyncClient) -> None:
        body = {"messages": [{"role": "user", "content": "I live in Lisbon."}], "user_id": "ana"}
        ids = [
            (await mem0.post("/v3/memories/add/", json=body)).json()["event_id"] for _ in range(3)
        ]
        first = (await mem0.get("/v1/events/?page_size=2")).json()
        second = (await mem0.get(first["next"])).json()

        assert [one["id"] for one in first["results"] + second["results"]] == ids[::-1]
        assert second["next"] is None

    async def test_an_add_at_once_has_an_event_too(self, mem0: AsyncClient) -> None:
        body = {"messages": [{"role": "user", "content": TEA}], "infer": False, "user_id": "ana"}
        added = (await mem0.post("/v3/memories/add/", json=body)).json()
        shown = (await mem0.get(f"/v1/event/{added['event_id']}/")).json()

        assert (shown["id"], shown["status"]) == (added["event_id"], "SUCCEEDED")
        assert shown["results"][0]["id"] == added["results"][0]["id"]

    async def test_an_event_of_others_is_not_found(
        self, app: FastAPI, mem0: AsyncClient, other: Caller, acme: Caller, runtime: Runtime
    ) -> None:
        body = {"messages": [{"role": "user", "content": "I live in Lisbon."}], "user_id": "ana"}
        event_id = (await mem0.post("/v3/memories/add/", json=body)).json()["event_id"]
        bound = await make_key(runtime, acme.tenant_id, "write", user_id="bo")
        for key in (other.key, bound.key):
            async with mem0_client(app, key) as opened:
                assert (await opened.get(f"/v1/event/{event_id}/")).status_code == 404
                assert (await opened.get("/v1/events/")).json()["results"] == []
        assert (await mem0.get("/v1/event/not-a-uuid/")).status_code == 400
