"""Tools where something is switched off or does not answer: what the model is told, and what the
program is, which alone can try again.
"""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from tests.support.api import append, ok, problem, save
from tests.support.openai_server import OpenAIServer, openai_server, refusal
from tests.support.service import client_of, service
from tests.support.tenants import Caller
from tests.support.tools import called, result
from tests.support.tools import refusal as refused

TEA = {"content": "She drinks green tea."}


async def test_where_the_operator_has_switched_memory_off_the_model_goes_on(
    dsn: str, acme: Caller, client: AsyncClient
) -> None:
    await append(client, "s1", "Hello.")
    await save(client, "She drinks green tea.")

    async with service(dsn, enabled=False) as app, client_of(app, acme.key) as off:
        text = await refused(off, "memory_save", TEA)
        found = await result(off, "memory_search", {"query": "tea"})

    assert "Go on without it and do not try again" in text
    assert "MEMORY_ENABLED" not in text
    assert "green tea" in found


async def test_whose_agent_is_disabled_saves_nothing(client: AsyncClient) -> None:
    agent_id = (await append(client, "s1", "Hello."))["messages"][0]["agent_id"]
    ok(await client.patch(f"/agents/{agent_id}", json={"status": "disabled"}))

    answer = await called(client, "memory_save", TEA)

    assert (answer["ok"], answer["data"]) == (False, {"code": "disabled"})


class TestEmbedderDown:
    @pytest.fixture
    def provider(self) -> Iterator[OpenAIServer]:
        with openai_server() as server:
            yield server

    async def test_the_program_may_try_again_and_searches_go_on(
        self, dsn: str, acme: Caller, provider: OpenAIServer
    ) -> None:
        settings = {
            "embedding_model": "openai/alpha",
            "openai_base_url": provider.base_url,
            "model_retries": 0,
        }
        async with service(dsn, **settings) as app, client_of(app, acme.key) as client:
            await append(client, "s1", "I drink green tea.")
            await save(client, "She drinks green tea.")
            provider.otherwise = refusal(500)

            body = {"session_id": "s1", "arguments": {"content": "She has a grey cat."}}
            response = await client.post("/tools/memory_save/call", json=body)

            problem(response, 503, "embedding_unavailable")
            assert response.headers["Retry-After"]
            assert "green tea" in await result(client, "memory_search", {"query": "tea"})
            assert "green tea" in await result(client, "conversation_search", {"query": "tea"})


async def test_another_tenants_switches_are_their_own(
    app: FastAPI, client: AsyncClient, stranger: AsyncClient
) -> None:
    for one in (client, stranger):
        await append(one, "s1", "Hello.")
    ok(await client.patch("/sessions/s1", json={"memory_enabled": False}))

    assert not (await called(client, "memory_save", TEA))["ok"]
    assert (await called(stranger, "memory_save", TEA))["ok"]
