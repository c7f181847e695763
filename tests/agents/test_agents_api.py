"""Agents through the public routes."""

from typing import Any

import pytest
from httpx import AsyncClient

from tests.support.api import append, every_page, ok, problem, save
from tests.support.crud_contract import CrudContract


class TestAgents(CrudContract):
    path = "/agents"
    id_field = "agent_id"
    prefix = "agt_"
    body = {"agent_name": "Support"}
    full = {
        "agent_name": "客服 assistant 🤖",
        "agent_type": "chatbot",
        "description": "Answers questions. 回答问题。",
        "config": {"temperature": 0.2, "语言": ["中文", "en"], "nested": {"a": None}},
        "status": "disabled",
        "memory_enabled": False,
        "injection_enabled": False,
    }
    nullable = {"agent_type", "description"}

    @pytest.mark.parametrize(
        ("given", "shown"),
        [("disabled", "disabled"), (0, "disabled"), ("0", "disabled"), (1, "enabled")],
    )
    async def test_a_status_is_a_word_or_its_number(
        self, client: AsyncClient, given, shown
    ) -> None:
        made = await self.make(client, "x1", status=given)
        await self.make(client, "x2", status="enabled" if shown == "disabled" else "disabled")

        assert made["status"] == shown
        rows = await every_page(client, "/agents", status=given)
        assert self.ids(rows) == ["x1"]

    @pytest.mark.parametrize("status", [True, 2, "on", None])
    async def test_another_status_is_refused(self, client: AsyncClient, status) -> None:
        response = await client.post("/agents", json={"agent_name": "A", "status": status})

        problem(response, 422, "invalid_request")

    async def test_a_list_can_be_narrowed(self, client: AsyncClient) -> None:
        await self.make(client, "x1", agent_type="chatbot")
        await self.make(client, "x2", agent_type="chatbot", status="disabled")
        await self.make(client, "x3", agent_type="assistant")

        assert self.ids(await every_page(client, "/agents", agent_type="chatbot")) == ["x2", "x1"]
        both = await every_page(client, "/agents", agent_type="chatbot", status="enabled")
        assert self.ids(both) == ["x1"]

    async def test_an_embedder_nobody_has_is_refused(self, client: AsyncClient) -> None:
        await self.make(client, "x1")
        config = {"config": {"embedding": "nobody/nothing"}}

        made = await client.post("/agents", json={"agent_name": "A", "agent_id": "x2"} | config)
        changed = await client.patch("/agents/x1", json=config)

        problem(made, 422, "unknown_embedder")
        problem(changed, 422, "unknown_embedder")
        assert (await client.get("/agents/x2")).status_code == 404
        assert ok(await client.get("/agents/x1"))["version"] == 1


class TestDisabledAgent:
    async def test_what_is_there_can_be_read_and_nothing_written(self, client: AsyncClient) -> None:
        ok(await client.post("/agents", json={"agent_id": "a1", "agent_name": "A"}), 201)
        await append(client, "s1", "Good morning to you.", agent_id="a1")
        memory = await save(client, "She drinks green tea.", agent_id="a1")
        memory_path = f"/memories/{memory['memory_id']}"

        ok(await client.patch("/agents/a1", json={"status": 0}))

        assert ok(await client.get("/agents/a1"))["status"] == "disabled"
        assert len(await every_page(client, "/sessions/s1/messages")) == 1
        assert ok(await client.get(memory_path))["content"] == "She drinks green tea."
        said = {"messages": [{"role": "user", "content": "More."}]}
        told = {"messages": "She has two cats.", "user_id": "ana", "agent_id": "a1", "infer": False}
        for response in (
            await client.post("/sessions/s1/messages", json=said),
            await client.post("/sessions", json={"user_id": "ana", "agent_id": "a1"}),
            await client.post("/memories", json=told),
            await client.patch(memory_path, json={"content": "She drinks black tea."}),
            await client.post(f"{memory_path}/supersede", json={"content": "She drinks coffee."}),
        ):
            assert problem(response, 409, "disabled")["agent_id"] == "a1"
        assert len(await every_page(client, "/sessions/s1/messages")) == 1
        assert ok(await client.get(memory_path))["version"] == 1

        ok(await client.patch("/agents/a1", json={"status": 1}))

        await append(client, "s1", "Good morning again.")


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"tools": "memory_search"}, "tools"),
        ({"tools": ["memory_search", 1]}, "tools"),
        ({"tools": ["memory_search", "memory_serach"]}, "tools.1"),
        ({"enable_memory": "no"}, "enable_memory"),
        ({"system_prompt": ["Be kind."]}, "system_prompt"),
    ],
)
async def test_a_config_that_would_be_ignored_is_refused(
    client: AsyncClient, config: dict[str, Any], name: str
) -> None:
    body = {"agent_id": "support", "agent_name": "Support", "config": config}

    response = await client.post("/agents", json=body)

    assert (response.status_code, response.json()["code"]) == (422, "invalid_config")
    assert response.json()["errors"][0]["location"] == ["body", "config", *name.split(".")]
    assert "serach" not in response.text
    assert (await client.get("/agents/support")).status_code == 404

    ok(await client.post("/agents", json=body | {"config": {"tools": ["memory_save"]}}), 201)
    response = await client.patch("/agents/support", json={"config": config})

    assert (response.status_code, response.json()["code"]) == (422, "invalid_config")
    kept = ok(await client.get("/agents/support"))
    assert (kept["config"], kept["version"]) == ({"tools": ["memory_save"]}, 1)


async def test_a_config_of_tools_is_kept(client: AsyncClient) -> None:
    config = {"tools": [], "enable_memory": False}

    response = await client.post("/agents", json={"agent_name": "Support", "config": config})

    assert response.status_code == 201
    assert response.json()["config"] == config
