"""A context whose embedder or reranker is another's: far away, of long vectors, or not there."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.api import append, ok, save
from tests.support.hits import save_all
from tests.support.openai_server import OpenAIServer, openai_server, refusal
from tests.support.rerank_server import rerank_server
from tests.support.service import client_of, service
from tests.support.tenants import Caller

TEA = "She drinks green tea in the garden."
CAT = "The cat sleeps on the sofa."


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


def remote(provider: OpenAIServer, **more: Any) -> dict[str, Any]:
    """Settings with the provider's embedder."""
    return {
        "embedding_model": "openai/alpha",
        "openai_base_url": provider.base_url,
        "model_retries": 0,
        "model_timeout_seconds": 60,
    } | more


async def test_without_its_embedder_words_decide_and_the_answer_says_so(
    dsn: str, acme: Caller, provider: OpenAIServer
) -> None:
    provider.reset()
    async with service(dsn, **remote(provider)) as app, client_of(app, acme.key) as client:
        await save_all(client, CAT, TEA)
        await append(client, "s1", "Where does the cat sleep?")
        well = ok(await client.post("/sessions/s1/context", json={}))
        provider.otherwise = refusal(500)

        answer = ok(await client.post("/sessions/s1/context", json={}))

    assert well["query"]["degraded"] is False
    assert well["query"]["embedding_models"] != []
    assert answer["query"] == {
        "source": "last_user_message",
        "embedding_models": [],
        "degraded": True,
        "reranker": None,
    }
    assert CAT in answer["prompt"].splitlines()[2]


async def test_a_reranker_orders_what_is_remembered(dsn: str, acme: Caller) -> None:
    with rerank_server() as server:
        server.scores = {TEA: 0.9}
        async with (
            service(dsn, rerank_model=server.handle()) as app,
            client_of(app, acme.key) as client,
        ):
            await save_all(client, TEA, CAT)
            await append(client, "s1", "Where does the cat sleep?")

            answer = ok(await client.post("/sessions/s1/context", json={"explain": True}))
            without = ok(await client.post("/sessions/s1/context", json={"rerank": False}))

    assert answer["query"]["reranker"]
    assert TEA in answer["prompt"].splitlines()[2]
    assert CAT in without["prompt"].splitlines()[2]
    assert all(one["explain"]["rerank"] is not None for one in answer["used"])
    assert without["query"]["reranker"] is None


async def test_among_long_vectors_corrections_are_found_wherever_they_stand(
    dsn: str, acme: Caller, provider: OpenAIServer
) -> None:
    provider.reset()
    settings = remote(provider, embedding_model="openai/text-embedding-3-small")
    async with service(dsn, **settings) as app, client_of(app, acme.key) as client:
        for start in range(0, 300, 100):
            texts = [f"Green tea number {one} is for today." for one in range(start, start + 100)]
            await save_all(client, *texts)
        mended = await save(
            client, "His cat is called Miso.", memory_type="correction", confidence=0.7,
            on_duplicate="allow",
        )  # fmt: skip
        await append(client, "s1", "Which green tea is for today?")

        body = {"max_memory_tokens": 400}
        answer = ok(await client.post("/sessions/s1/context", json=body))

    assert answer["used"][0]["memory_id"] == mended["memory_id"]
    assert answer["used"][0]["part"] == "corrections"
