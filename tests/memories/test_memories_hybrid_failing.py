"""Searches whose embedder or reranker fails, dawdles or answers, and what they tell of it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler
from threading import Event
from time import perf_counter
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from httpx import AsyncClient

from app.language.llm.reranker import RERANK_CANDIDATES
from tests.support.api import ok, problem
from tests.support.flaky_server import cuts_off, hangs_up, says
from tests.support.hits import asked, hits, save_all, texts
from tests.support.openai_server import OpenAIServer, openai_server, refusal
from tests.support.patience import PATIENCE
from tests.support.rerank_server import RerankServer, rerank_server
from tests.support.service import client_of, service
from tests.support.tenants import Caller

TEA = "She drinks green tea in the garden."
COFFEE = "He drinks black coffee at work."
CAT = "The cat sleeps on the sofa."
# The vectors are near to the first alone, since the provider's tell nothing of texts that differ.
UNEVEN_QUERY = "green tea saxophone"
UNEVEN = (UNEVEN_QUERY, "She drinks green tea.", "He plays the saxophone.", CAT)
SESSION = "s1"
SECONDS = 2.0


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def remote(dsn: str, provider: OpenAIServer) -> AsyncIterator[FastAPI]:
    """A service whose only embedder is the provider's."""
    async with service(
        dsn,
        embedding_model="openai/alpha",
        openai_base_url=provider.base_url,
        model_retries=0,
        model_timeout_seconds=60,
    ) as app:
        yield app


class TestEmbedderDown:
    @pytest.fixture
    async def down(
        self, remote: FastAPI, provider: OpenAIServer, acme: Caller
    ) -> AsyncIterator[AsyncClient]:
        """Memories from when the provider was well; now it refuses."""
        provider.reset()
        async with client_of(remote, acme.key) as client:
            await save_all(client, TEA, COFFEE, CAT, session_id=SESSION)
            provider.otherwise = refusal(500)
            yield client

    async def test_words_and_context_go_on(self, down: AsyncClient) -> None:
        for query, first in (("green tea", TEA), ("coffee at work", COFFEE), ("cats", CAT)):
            answer = await asked(down, query)
            assert (answer["degraded"], answer["mode"]) == (True, "hybrid")
            assert answer["embedding_models"] == []
            assert answer["results"][0]["content"] == first
            assert {hit["similarity"] for hit in answer["results"]} == {0.0}

    async def test_words_alone_ask_no_embedder(
        self, down: AsyncClient, provider: OpenAIServer
    ) -> None:
        provider.requests.clear()

        answer = await asked(down, "cats", mode="lexical", explain=True)

        assert provider.requests == []
        assert (answer["degraded"], answer["embedding_models"], answer["waiting"]) == (False, [], 0)
        [hit] = answer["results"]
        assert (hit["content"], hit["similarity"], hit["explain"]["cosine"]) == (CAT, None, None)

    async def test_the_order_is_that_of_the_words(self, down: AsyncClient) -> None:
        query = "Does she drink tea?"
        hybrid = await hits(down, query, mode="hybrid")
        quiet = dict.fromkeys(("near", "far", "adjacent", "answer", "session", "question"), 0.0)
        alone = await hits(down, query, mode="hybrid", boosts=quiet)
        lexical = await hits(down, query, mode="lexical")

        assert list(alone)[: len(lexical)] == list(lexical)
        for text, hit in lexical.items():
            assert hybrid[text]["explain"]["lexical"] == hit["explain"]["lexical"]

    async def test_vectors_alone_cannot_answer(self, down: AsyncClient) -> None:
        body = {"query": "tea", "user_id": "ana", "mode": "semantic"}

        response = await down.post("/memories/search", json=body)

        problem(response, 503, "embedding_unavailable")
        assert int(response.headers["Retry-After"]) > 0

    async def test_when_it_is_well_again_nothing_is_degraded(
        self, down: AsyncClient, provider: OpenAIServer
    ) -> None:
        await asked(down, TEA)
        provider.reset()

        answer = await asked(down, TEA)

        assert (answer["degraded"], answer["embedding_models"]) == (False, ["openai/alpha:64"])
        assert answer["results"][0]["similarity"] == pytest.approx(1, abs=1e-5)

    async def test_what_waits_for_its_vector_is_found_by_its_words(
        self, down: AsyncClient, provider: OpenAIServer, client: AsyncClient
    ) -> None:
        provider.reset()
        answer = await asked(client, "green tea")

        assert (answer["waiting"], answer["degraded"]) == (3, False)
        assert answer["results"][0]["content"] == TEA
        assert answer["results"][0]["similarity"] == 0


class TestShareOfTheVectors:
    """Of a provider's embedder it is 0.6 in either script, unless somebody says another."""

    @pytest.fixture
    def own(self) -> dict[str, float]:
        return {"dense_latin": 0.6, "dense_cjk": 0.6}

    async def test_share_of_the_vectors_is_the_embedders_own(
        self, remote: FastAPI, provider: OpenAIServer, acme: Caller, own: dict[str, float]
    ) -> None:
        provider.reset()
        async with client_of(remote, acme.key) as client:
            await save_all(client, *UNEVEN)

            plain = rated(await hits(client, UNEVEN_QUERY))
            assert rated(await hits(client, UNEVEN_QUERY, boosts=own)) == plain
            half = own | {"dense_latin": 0.5}
            assert rated(await hits(client, UNEVEN_QUERY, boosts=half)) != plain


def rated(found: dict[str, dict[str, Any]]) -> dict[str, float]:
    return {text: hit["relevance"] for text, hit in found.items()}


@asynccontextmanager
async def reranking(
    dsn: str, server: RerankServer, acme: Caller, **settings: Any
) -> AsyncIterator[AsyncClient]:
    """A client of a service that asks `server` to rerank."""
    chosen = {"rerank_model": server.handle()} | settings
    async with service(dsn, **chosen) as app, client_of(app, acme.key) as client:
        yield client


@pytest.fixture
def server() -> Iterator[RerankServer]:
    with rerank_server() as server:
        yield server


class TestReranker:
    @pytest.fixture
    async def reranked(
        self, dsn: str, server: RerankServer, acme: Caller
    ) -> AsyncIterator[AsyncClient]:
        async with reranking(dsn, server, acme) as client:
            await save_all(client, TEA, COFFEE, CAT)
            yield client

    @pytest.mark.parametrize("mode", ["hybrid", "semantic", "lexical"])
    async def test_its_scores_are_the_order(
        self, reranked: AsyncClient, server: RerankServer, mode: str
    ) -> None:
        query = "Who drinks tea with the cat?"
        before = await texts(reranked, query, mode=mode, rerank=False)
        server.scores = {CAT: 0.9, TEA: 0.2, COFFEE: 0.4}

        answer = await asked(reranked, query, mode=mode, explain=True)

        assert len(before) == 3
        assert [hit["content"] for hit in answer["results"]] == [CAT, COFFEE, TEA]
        assert [hit["explain"]["rerank"] for hit in answer["results"]] == [0.9, 0.4, 0.2]
        assert (answer["reranker"], answer["degraded"]) == ("http/a-model", False)
        [body] = server.bodies
        assert (body["query"], body["model"]) == (query, "a-model")
        assert sorted(body["documents"]) == sorted([TEA, COFFEE, CAT])

    async def test_what_it_finds_equal_stays_as_it_was(
        self, reranked: AsyncClient, client: AsyncClient
    ) -> None:
        query = "green tea in the garden"

        assert await texts(reranked, query) == await texts(client, query)

    async def test_the_score_of_a_hit_stays_what_it_was(
        self, reranked: AsyncClient, client: AsyncClient, server: RerankServer
    ) -> None:
        server.scores = {CAT: 0.9}
        query = "green tea in the garden"

        judged, plain = await hits(reranked, query), await hits(client, query)

        assert next(iter(judged)) == CAT
        for text, hit in plain.items():
            assert judged[text]["score"] == hit["score"]
            assert (judged[text]["relevance"], hit["explain"]["rerank"]) == (hit["relevance"], None)

    async def test_nobody_is_asked_when_it_is_not_wanted_or_nothing_is_found(
        self, reranked: AsyncClient, server: RerankServer
    ) -> None:
        plain = await asked(reranked, "tea", rerank=False, explain=True)
        empty = await asked(reranked, "bicycle", mode="lexical")

        assert server.requests == []
        assert {hit["explain"]["rerank"] for hit in plain["results"]} == {None}
        for answer in (plain, empty):
            assert (answer["reranker"], answer["degraded"]) == (None, False)

    @pytest.mark.parametrize(
        "behaviour",
        [
            says({"message": "no"}, 500),
            says({"message": "no"}, 401),
            says({"results": []}),
            says({"results": [{"index": 7, "relevance_score": 1}]}),
            says([1, 2]),
            hangs_up,
            cuts_off,
        ],
        ids=["500", "401", "too few", "no such index", "no answer", "hung up", "cut off"],
    )
    async def test_when_it_fails_the_order_without_it_stands(
        self, reranked: AsyncClient, client: AsyncClient, server: RerankServer, behaviour: Any
    ) -> None:
        query = "Who drinks tea with the cat?"
        server.otherwise = behaviour

        answer = await asked(reranked, query, explain=True)

        assert (answer["reranker"], answer["degraded"]) == (None, True)
        assert [hit["content"] for hit in answer["results"]] == await texts(client, query)
        assert {hit["explain"]["rerank"] for hit in answer["results"]} == {None}
        server.otherwise = server.score
        assert (await asked(reranked, query))["degraded"] is False

    async def test_one_that_takes_too_long_is_not_waited_for(
        self, dsn: str, acme: Caller, client: AsyncClient, server: RerankServer
    ) -> None:
        query = "Who drinks tea with the cat?"
        await save_all(client, TEA, COFFEE, CAT)
        released = Event()

        def score_when_released(to: BaseHTTPRequestHandler) -> None:
            released.wait(PATIENCE)
            server.score(to)

        server.script(score_when_released)
        async with reranking(dsn, server, acme, rerank_within=None) as hasty:
            started = perf_counter()

            answer = await asked(hasty, query)

        released.set()
        assert perf_counter() - started > SECONDS * 0.9
        assert (answer["reranker"], answer["degraded"]) == (None, True)
        assert [hit["content"] for hit in answer["results"]] == await texts(client, query)

    async def test_only_what_is_shown_counts_as_used(
        self, reranked: AsyncClient, server: RerankServer
    ) -> None:
        server.scores = {CAT: 0.9}

        assert await texts(reranked, "tea", limit=1) == [CAT]


class TestCandidates:
    @pytest.mark.parametrize(
        ("stored", "judged"),
        [
            (RERANK_CANDIDATES - 1, RERANK_CANDIDATES - 1),
            (RERANK_CANDIDATES, RERANK_CANDIDATES),
            (RERANK_CANDIDATES + 1, RERANK_CANDIDATES),
        ],
    )
    async def test_reranker_sees_the_best_and_no_more(
        self, dsn: str, acme: Caller, server: RerankServer, stored: int, judged: int
    ) -> None:
        async with reranking(dsn, server, acme) as client:
            await save_all(client, *(f"Locker number {n} is green." for n in range(stored)))
            plain = await texts(client, "green locker", rerank=True, limit=100)
            server.requests.clear()
            chosen = plain[judged - 1]
            server.scores = {chosen: 0.9, **dict.fromkeys(plain[judged:], 1.0)}

            found = await texts(client, "green locker", limit=100)
            first = await texts(client, "green locker", limit=1)

        for body in server.bodies:
            assert len(body["documents"]) == judged
        # The last that it sees comes first; what it does not see keeps its place behind.
        assert found == [chosen, *plain[: judged - 1], *plain[judged:]]
        assert first == [chosen]

    async def test_no_setting_is_no_reranker(self, client: AsyncClient) -> None:
        await save_all(client, TEA)

        answer = await asked(client, "tea")

        assert (answer["reranker"], answer["degraded"]) == (None, False)
        ok(await client.get("/memories/stats"))
