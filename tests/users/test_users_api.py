"""Users through the public routes."""

import asyncio

from httpx import AsyncClient

from tests.support.api import append, every_page, execute, ok, problem, save
from tests.support.crud_contract import CrudContract
from tests.support.rows import every_row
from tests.support.tenants import Caller


class TestUsers(CrudContract):
    path = "/users"
    id_field = "user_id"
    prefix = "usr_"
    body = {}
    full = {
        "user_name": "李明 (Ming) 🌱",
        "user_type": "enterprise",
        "external_id": "客户-42",
        "profile": {"likes": ["茶", "tea"], "age": 41},
        "status": "disabled",
    }
    nullable = {"user_name", "user_type", "external_id"}

    async def test_the_home_agent_is_the_default_one_or_made_on_first_use(
        self, client: AsyncClient
    ) -> None:
        at_default = await self.make(client, "x1")
        at_new = await self.make(client, "x2", agent_id="a1")

        assert (at_default["agent_id"], at_new["agent_id"]) == ("default", "a1")
        agents = [row["agent_id"] for row in await every_page(client, "/agents")]
        assert sorted(agents) == ["a1", "default"]

    async def test_a_user_moves_to_an_agent_that_is_there(self, client: AsyncClient) -> None:
        await self.make(client, "x1")

        missing = await client.patch("/users/x1", json={"agent_id": "a1"})
        ok(await client.post("/agents", json={"agent_id": "a1", "agent_name": "A"}), 201)
        moved = ok(await client.patch("/users/x1", json={"agent_id": "a1"}))

        problem(missing, 404, "agent_not_found")
        assert (moved["agent_id"], moved["version"]) == ("a1", 2)

    async def test_an_external_id_is_taken_once_per_agent(self, client: AsyncClient) -> None:
        await self.make(client, "x1", external_id="crm-7")
        await self.make(client, "x2", external_id="crm-7", agent_id="a1")
        await self.make(client, "x3")
        await self.make(client, "x4")

        made = await client.post("/users", json={"external_id": "crm-7"})
        changed = await client.patch("/users/x3", json={"external_id": "crm-7"})

        for response in (made, changed):
            assert problem(response, 409, "id_taken")["external_id"] == "crm-7"

    async def test_a_list_can_be_narrowed(self, client: AsyncClient) -> None:
        await self.make(client, "x1", user_type="individual", external_id="e1")
        await self.make(client, "x2", user_type="individual", agent_id="a1")
        await self.make(client, "x3", status=0, agent_id="a1")

        cases = [
            ({"agent_id": "a1"}, ["x3", "x2"]),
            ({"status": "disabled"}, ["x3"]),
            ({"status": 1}, ["x2", "x1"]),
            ({"user_type": "individual"}, ["x2", "x1"]),
            ({"external_id": "e1"}, ["x1"]),
            ({"agent_id": "a1", "user_type": "individual"}, ["x2"]),
            ({"agent_id": "nobody"}, []),
        ]
        with every_row() as trying:
            for narrowed, expected in cases:
                with trying(**narrowed):
                    assert self.ids(await every_page(client, "/users", **narrowed)) == expected

    async def test_an_appended_message_shows_as_activity(self, client: AsyncClient) -> None:
        made = await self.make(client, "ana")

        said = await append(client, "s1", "Hello.")

        user = ok(await client.get("/users/ana"))
        assert made["last_active_time"] is None
        assert user["last_active_time"] == said["messages"][0]["create_time"]
        assert user["version"] == 1

    async def test_activity_is_that_of_the_latest_message_of_all_sessions(
        self, client: AsyncClient
    ) -> None:
        await self.make(client, "ana")

        said = await asyncio.gather(*(append(client, f"s{n}", "Hello.") for n in range(12)))

        latest = max(answer["messages"][-1]["create_time"] for answer in said)
        assert ok(await client.get("/users/ana"))["last_active_time"] == latest

    async def test_activity_never_moves_back(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await self.make(client, "ana")
        # As if the append of another session, a little later, had committed first.
        await execute(
            dsn,
            "UPDATE users SET last_active_time = '2099-01-01Z' WHERE tenant_id = $1",
            acme.tenant_id,
        )

        await append(client, "s1", "Hello.")

        assert ok(await client.get("/users/ana"))["last_active_time"] == "2099-01-01T00:00:00Z"


class TestDisabledUser:
    async def test_what_is_there_can_be_read_and_nothing_written(self, client: AsyncClient) -> None:
        await append(client, "s1", "Good morning to you.")
        memory = await save(client, "She drinks green tea.")
        memory_path = f"/memories/{memory['memory_id']}"

        ok(await client.patch("/users/ana", json={"status": "disabled"}))

        assert len(await every_page(client, "/sessions/s1/messages")) == 1
        assert ok(await client.get(memory_path))["content"] == "She drinks green tea."
        said = {"messages": [{"role": "user", "content": "More."}]}
        told = {"messages": "She has two cats.", "user_id": "ana", "infer": False}
        for response in (
            await client.post("/sessions/s1/messages", json=said),
            await client.post("/sessions/s2/messages", json=said | {"user_id": "ana"}),
            await client.post("/sessions", json={"user_id": "ana"}),
            await client.post("/memories", json=told),
            await client.patch(memory_path, json={"content": "She drinks black tea."}),
            await client.post(f"{memory_path}/supersede", json={"content": "She drinks coffee."}),
        ):
            assert problem(response, 409, "disabled")["user_id"] == "ana"
        assert (await client.get("/sessions/s2")).status_code == 404
        assert ok(await client.get(memory_path))["version"] == 1

        ok(await client.patch("/users/ana", json={"status": "enabled"}))

        await append(client, "s1", "Good morning again.")
