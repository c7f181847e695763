"""Two embedders side by side, one that is down, and memory switched off altogether.

Each of these needs settings of its own, so a service of its own on the same database.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import (
    append,
    counts,
    every_page,
    execute,
    found,
    listed,
    ok,
    problem,
    save,
    search,
)
from tests.support.openai_server import OpenAIServer, openai_server, refusal
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_tenant

LOCAL = "wordllama/l2_supercat:256"
REMOTE = "openai/alpha:64"
TEA = "She drinks green tea."
CAT = "The cat sleeps on the sofa."


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest.fixture(autouse=True)
def well(provider: OpenAIServer) -> None:
    provider.reset()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def two_models(dsn: str, provider: OpenAIServer) -> AsyncIterator[FastAPI]:
    """A service that embeds locally, and can ask `provider` for other models."""
    async with service(
        dsn, openai_base_url=provider.base_url, model_retries=0, model_timeout_seconds=60
    ) as app:
        yield app


@pytest.fixture
async def pair(two_models: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    """Ana's words about tea in the local model, and about the cat in the agent's own."""
    async with client_of(two_models, acme.key) as client:
        body = {"agent_id": "a1", "agent_name": "A", "config": {"embedding": "openai/alpha"}}
        ok(await client.post("/agents", json=body), 201)
        await save(client, TEA)
        await save(client, CAT, agent_id="a1")
        yield client


async def stored(dsn: str, caller: Caller) -> dict[str, int]:
    """Rows by table; but the ledger's, which the clock writes about once a second."""
    return {name: n for name, n in (await counts(dsn, caller.tenant_id)).items() if name != "usage"}


class TestTwoModels:
    async def test_each_memory_is_compared_in_its_own_model(self, pair: AsyncClient) -> None:
        for text in (TEA, CAT):
            answer = await search(pair, text, user_id="ana", rerank=False)
            assert set(answer["embedding_models"]) == {LOCAL, REMOTE}
            assert (answer["waiting"], answer["degraded"]) == (0, False)
            best, other = answer["results"]
            assert best["content"] == text
            assert best["similarity"] == pytest.approx(1, abs=1e-5)
            assert other["similarity"] < 0.6
        models = {
            row["content"]: row["embedding_model"] for row in await every_page(pair, "/memories")
        }
        assert models == {TEA: LOCAL, CAT: REMOTE}

    async def test_the_smallest_share_of_vectors_counts(self, pair: AsyncClient) -> None:
        async def rated(query: str, **fields: Any) -> dict[str, float]:
            answer = await search(pair, query, user_id="ana", **fields)
            assert len(answer["embedding_models"]) == 2
            return {hit["content"]: hit["relevance"] for hit in answer["results"]}

        provider, smallest = (
            {"dense_latin": latin, "dense_cjk": cjk} for latin, cjk in ((0.6, 0.6), (0.5, 0.2))
        )
        await save(pair, "Green tea and a walk by the river with her sister on Sundays.")
        await save(pair, "Her sister works at home with black coffee and a saxophone.")
        query = "Who drinks green tea by a saxophone?"
        plain = await rated(query)
        assert plain == await rated(query, boosts=smallest)
        assert plain != await rated(query, boosts=provider)

    async def test_a_tenant_may_name_its_own_embedder(
        self, two_models: FastAPI, runtime: Runtime, dsn: str
    ) -> None:
        tenant = await make_tenant(runtime)
        config = '{"embedding": "openai/beta"}'
        await execute(
            dsn, "UPDATE tenants SET config = $2 WHERE tenant_id = $1", tenant.tenant_id, config
        )

        async with client_of(two_models, tenant.key) as client:
            outcome = await save(client, TEA)
            body = {"agent_id": "a1", "agent_name": "A", "config": {"embedding": "wordllama"}}
            ok(await client.post("/agents", json=body), 201)
            of_agent = await save(client, CAT, agent_id="a1")
            stats = ok(await client.get("/memories/stats"))

        assert outcome["memory"]["embedding_model"] == "openai/beta:64"
        assert of_agent["memory"]["embedding_model"] == LOCAL
        assert stats["by_embedding_model"] == {"openai/beta:64": 1, LOCAL: 1}

    async def test_memories_of_two_models_are_no_near_duplicates(self, pair: AsyncClient) -> None:
        ok(await pair.patch("/agents/a1", json={"config": {"embedding": "wordllama"}}))

        outcome = await save(pair, "On the sofa the cat sleeps.", agent_id="a1")

        assert outcome["event"] == "ADD"
        assert (await save(pair, CAT.upper(), agent_id="a1"))["event"] == "NONE"

    async def test_a_patched_memory_is_embedded_by_the_model_in_force(
        self, pair: AsyncClient
    ) -> None:
        [memory_id] = await listed(pair, agent_id="a1")
        ok(await pair.patch("/agents/a1", json={"config": {}}))

        changed = ok(
            await pair.patch(f"/memories/{memory_id}", json={"content": "Two cats sleep."})
        )

        assert changed["embedding_model"] == LOCAL

    async def test_a_provider_that_is_down_degrades_a_search(
        self, pair: AsyncClient, provider: OpenAIServer
    ) -> None:
        provider.otherwise = refusal(500)

        answer = await search(pair, TEA, user_id="ana")

        assert (answer["degraded"], answer["waiting"]) == (True, 1)
        assert answer["embedding_models"] == [LOCAL]
        assert answer["results"][0]["content"] == TEA
        unknown = [hit for hit in answer["results"] if hit["content"] == CAT]
        assert [hit["similarity"] for hit in unknown] == [0.0] * len(unknown)
        assert await found(pair, TEA, user_id="ana", threshold=0.9) != []

    async def test_a_provider_that_is_down_stores_nothing(
        self, pair: AsyncClient, provider: OpenAIServer, acme: Caller, dsn: str
    ) -> None:
        before = await stored(dsn, acme)
        [memory_id] = await listed(pair, agent_id="a1")
        provider.otherwise = refusal(500)
        body = {"messages": "Dogs bark.", "user_id": "ana", "agent_id": "a1", "infer": False}

        for response in (
            await pair.post("/memories", json=body, headers={"Idempotency-Key": "k"}),
            await pair.post("/memories/validate", json=body),
            await pair.patch(f"/memories/{memory_id}", json={"content": "Dogs bark."}),
            await pair.post(f"/memories/{memory_id}/supersede", json={"content": "Dogs bark."}),
        ):
            problem(response, 503, "embedding_unavailable")
            assert int(response.headers["Retry-After"]) > 0

        assert await stored(dsn, acme) == before
        provider.reset()
        again = await pair.post("/memories", json=body, headers={"Idempotency-Key": "k"})
        ok(again, 201)

    async def test_a_repeated_request_needs_no_provider(
        self, pair: AsyncClient, provider: OpenAIServer
    ) -> None:
        body = {"messages": "Dogs bark.", "user_id": "ana", "agent_id": "a1", "infer": False}
        headers = {"Idempotency-Key": "k"}
        first = ok(await pair.post("/memories", json=body, headers=headers), 201)
        provider.otherwise = refusal(500)

        again = await pair.post("/memories", json=body, headers=headers)

        assert ok(again, 201) == first

    async def test_a_model_nobody_serves_any_more_is_counted_as_waiting(
        self, pair: AsyncClient, client: AsyncClient
    ) -> None:
        answer = await search(client, TEA, user_id="ana")

        assert (answer["waiting"], answer["degraded"]) == (1, False)
        assert answer["embedding_models"] == [LOCAL]
        assert answer["results"][0]["content"] == TEA

    async def test_only_the_buckets_of_the_search_wait(
        self, pair: AsyncClient, client: AsyncClient
    ) -> None:
        await save(client, TEA, user_id="bob")

        answer = await search(client, TEA, user_id="bob")

        assert answer["waiting"] == 0


class TestSwitchedOff:
    async def test_writes_are_refused_and_reads_and_deletes_go_on(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        memory = await save(client, TEA)
        other = await save(client, CAT)
        await append(client, "s1", "Hello.")
        path = f"/memories/{memory['memory_id']}"
        before = await counts(dsn, acme.tenant_id)
        told = {"messages": "She has two dogs.", "user_id": "ana"}
        said = {"user_id": "ana", "messages": [{"role": "user", "content": "More."}]}

        async with service(dsn, enabled=False) as app, client_of(app, acme.key) as off:
            for response in (
                await off.post("/memories", json=told | {"infer": False}),
                await off.post("/memories", json=told),
                await off.patch(path, json={"tier": "short"}),
                await off.post(f"{path}/supersede", json={"content": "She drinks coffee."}),
                await off.post("/sessions/s1/messages", json=said),
                await off.post("/sessions/s2/messages", json=said),
            ):
                problem(response, 503, "memory_disabled")
                assert int(response.headers["Retry-After"]) > 0
            assert await counts(dsn, acme.tenant_id) == before

            assert set(await found(off, TEA, user_id="ana")) == {
                memory["memory_id"],
                other["memory_id"],
            }
            assert len(await listed(off)) == 2
            assert ok(await off.get(path))["content"] == TEA
            assert len(await every_page(off, f"{path}/history")) == 1
            assert ok(await off.get("/memories/stats"))["total"] == 2
            assert len(await every_page(off, "/memories/decisions")) == 2
            assert len(await every_page(off, "/sessions/s1/messages")) == 1
            ok(await off.delete(path), 204)
            gone = ok(await off.delete("/memories", params={"user_id": "ana", "confirm": True}))
            assert gone["deleted"] == 1
            ok(await off.delete("/sessions/s1/messages", params={"confirm": True}))
