"""Who has which block: attached, shared, detached, made with an agent."""

import pytest
from httpx import AsyncClient

from tests.support.api import counts, every_page, ok, problem
from tests.support.service import client_of, service
from tests.support.tenants import Caller

ANYWAY = {"If-Match": "*"}


@pytest.fixture
async def agents(client: AsyncClient) -> None:
    for agent_id in ("a1", "a2"):
        ok(await client.post("/agents", json={"agent_id": agent_id, "agent_name": "A"}), 201)
    ok(await client.post("/users", json={"user_id": "ana", "agent_id": "a1"}), 201)


async def make(client: AsyncClient, block_id: str, label: str = "notes", **given) -> dict:
    body = {"block_id": block_id, "label": label} | given
    return ok(await client.post("/blocks", json=body), 201)


async def blocks_of(client: AsyncClient, agent_id: str) -> list[str]:
    return [row["block_id"] for row in await every_page(client, f"/agents/{agent_id}/blocks")]


@pytest.mark.usefixtures("agents")
class TestAttaching:
    async def test_a_block_is_shared_and_a_change_is_seen_by_all(self, client: AsyncClient) -> None:
        made = await make(client, "b1", "organisation", value="Acme")
        for agent_id in ("a1", "a2"):
            assert ok(await client.put(f"/agents/{agent_id}/blocks/b1")) == made

        ok(await client.post("/blocks/b1/append", json={"text": "sells kites"}))

        for agent_id in ("a1", "a2"):
            [row] = ok(await client.get(f"/agents/{agent_id}/blocks"))["items"]
            assert (row["value"], row["version"]) == ("Acme\nsells kites", 2)

    async def test_again_changes_nothing(self, client: AsyncClient, dsn: str, acme: Caller) -> None:
        made = await make(client, "b1")
        for _ in range(2):
            assert ok(await client.put("/agents/a1/blocks/b1")) == made

        assert (await counts(dsn, acme.tenant_id))["agent_blocks"] == 1

    async def test_a_second_block_with_the_label_is_refused(self, client: AsyncClient) -> None:
        await make(client, "b1", agent_id="a1")
        await make(client, "b2", agent_id="a2")

        put = await client.put("/agents/a1/blocks/b2")
        body = {"block_id": "b3", "label": "notes", "agent_id": "a1"}
        made = await client.post("/blocks", json=body)

        assert problem(put, 409, "label_taken")["label"] == "notes"
        problem(made, 409, "label_taken")
        problem(await client.get("/blocks/b3"), 404, "block_not_found")
        assert await blocks_of(client, "a1") == ["b1"]

    async def test_a_user_may_have_a_block_of_the_same_label_once(
        self, client: AsyncClient
    ) -> None:
        await make(client, "b1", agent_id="a1")
        await make(client, "b2", agent_id="a1", user_id="ana")

        body = {"label": "notes", "agent_id": "a1", "user_id": "ana"}
        problem(await client.post("/blocks", json=body), 409, "label_taken")

        assert await blocks_of(client, "a1") == ["b2", "b1"]

    async def test_a_detached_block_stays(self, client: AsyncClient) -> None:
        await make(client, "b1", value="kept", agent_id="a1")
        ok(await client.put("/agents/a2/blocks/b1"))

        assert (await client.delete("/agents/a1/blocks/b1")).status_code == 204

        assert (await blocks_of(client, "a1"), await blocks_of(client, "a2")) == ([], ["b1"])
        assert ok(await client.get("/blocks/b1"))["value"] == "kept"
        await make(client, "b2", agent_id="a1")

    async def test_block_that_is_not_attached_cannot_be_detached(self, client: AsyncClient) -> None:
        await make(client, "b1", agent_id="a2")

        problem(await client.delete("/agents/a1/blocks/b1"), 404, "block_not_attached")
        problem(await client.delete("/agents/a1/blocks/b9"), 404, "block_not_found")
        problem(await client.delete("/agents/a9/blocks/b1"), 404, "agent_not_found")
        problem(await client.put("/agents/a1/blocks/b9"), 404, "block_not_found")
        problem(await client.put("/agents/a9/blocks/b1"), 404, "agent_not_found")
        problem(await client.get("/agents/a9/blocks"), 404, "agent_not_found")

    async def test_a_deleted_block_is_gone_from_every_agent(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await make(client, "b1", agent_id="a1")
        ok(await client.put("/agents/a2/blocks/b1"))

        ok(await client.delete("/blocks/b1"))

        rows = await counts(dsn, acme.tenant_id)
        assert (rows["blocks"], rows["agent_blocks"], rows["block_history"]) == (0, 0, 0)

    async def test_a_deleted_agent_leaves_its_blocks(self, client: AsyncClient) -> None:
        """Elsewhere the shared human and persona of all others went with it."""
        await make(client, "b1", "persona", value="Be kind.", agent_id="a1")
        ok(await client.put("/agents/a2/blocks/b1"))
        await make(client, "b2", "rules", agent_id="a2")

        ok(await client.delete("/agents/a2", params={"confirm": True}))

        assert ok(await client.get("/blocks/b1"))["value"] == "Be kind."
        assert ok(await client.get("/blocks/b2"))["label"] == "rules"
        assert await blocks_of(client, "a1") == ["b1"]

    async def test_a_new_label_holds_for_every_agent(self, client: AsyncClient) -> None:
        await make(client, "b1", "old", agent_id="a1")
        ok(await client.put("/agents/a2/blocks/b1"))
        await make(client, "b2", "taken", agent_id="a2")

        taken = await client.patch("/blocks/b1", json={"label": "taken"}, headers=ANYWAY)
        problem(taken, 409, "label_taken")
        assert ok(await client.get("/blocks/b1"))["label"] == "old"
        ok(await client.patch("/blocks/b1", json={"label": "new"}, headers=ANYWAY))

        await make(client, "b3", "old", agent_id="a1")
        body = {"label": "new", "agent_id": "a2"}
        problem(await client.post("/blocks", json=body), 409, "label_taken")

    async def test_hidden_ones_are_among_an_agents_blocks(self, client: AsyncClient) -> None:
        await make(client, "b1", hidden=True, agent_id="a1")

        assert await blocks_of(client, "a1") == ["b1"]


class TestAgentWithBlocks:
    async def test_agent_begins_with_them(self, client: AsyncClient) -> None:
        await make(client, "org", "organisation", value="Acme")
        body = {
            "agent_id": "a1",
            "agent_name": "A",
            "memory_blocks": [
                {"label": "human"},
                {"label": "persona", "value": "Be kind.", "limit": 2000, "block_id": "p1"},
            ],
            "block_ids": ["org", "org"],
        }

        made = ok(await client.post("/agents", json=body), 201)

        assert made == ok(await client.get("/agents/a1"))
        blocks = await every_page(client, "/agents/a1/blocks")
        by_label = {block["label"]: block for block in blocks}
        assert by_label.keys() == {"human", "persona", "organisation"}
        assert by_label["human"]["per_user"]
        assert by_label["human"]["description"]
        assert (by_label["persona"]["limit"], by_label["persona"]["block_id"]) == (2000, "p1")
        assert by_label["organisation"]["block_id"] == "org"

    @pytest.mark.parametrize(
        ("given", "status", "code"),
        [
            ({"block_ids": ["b9"]}, 404, "block_not_found"),
            ({"memory_blocks": [{"label": "x"}, {"label": "x"}]}, 409, "label_taken"),
            ({"memory_blocks": [{"label": "notes"}], "block_ids": ["b1"]}, 409, "label_taken"),
            ({"memory_blocks": [{"label": "x", "block_id": "b1"}]}, 409, "id_taken"),
            ({"memory_blocks": [{"label": "x", "user_id": "ana"}]}, 422, "invalid_request"),
            ({"memory_blocks": [{"label": f"x{n}"} for n in range(21)]}, 422, "invalid_request"),
        ],
    )
    async def test_agent_and_blocks_are_made_together_or_not_at_all(
        self, client: AsyncClient, dsn: str, acme: Caller, given, status: int, code: str
    ) -> None:
        await make(client, "b1")
        before = await counts(dsn, acme.tenant_id)

        response = await client.post("/agents", json={"agent_id": "a1", "agent_name": "A"} | given)

        problem(response, status, code)
        assert await counts(dsn, acme.tenant_id) == before

    async def test_twenty_of_each_are_taken(self, client: AsyncClient) -> None:
        for number in range(20):
            await make(client, f"b{number}", f"old {number}")
        body = {
            "agent_id": "a1",
            "agent_name": "A",
            "memory_blocks": [{"label": f"new {number}"} for number in range(20)],
            "block_ids": [f"b{number}" for number in range(20)],
        }

        ok(await client.post("/agents", json=body), 201)

        assert len(await blocks_of(client, "a1")) == 40

    async def test_a_repeated_request_makes_them_once(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        body = {"agent_name": "A", "memory_blocks": [{"label": "human"}]}

        for _ in range(2):
            ok(await client.post("/agents", json=body, headers={"Idempotency-Key": "k"}), 201)

        assert (await counts(dsn, acme.tenant_id))["blocks"] == 1

    async def test_while_memory_is_switched_off_it_is_made_without_new_blocks(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await make(client, "b1")
        async with service(dsn, enabled=False) as off, client_of(off, acme.key) as caller:
            body = {"agent_name": "A", "memory_blocks": [{"label": "human"}]}
            problem(await caller.post("/agents", json=body), 503, "memory_disabled")
            body = {"agent_id": "new", "agent_name": "A", "block_ids": ["b1"]}
            ok(await caller.post("/agents", json=body), 201)

            assert await blocks_of(caller, "new") == ["b1"]
