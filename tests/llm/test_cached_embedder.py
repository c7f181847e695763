"""The short memory of query vectors."""

from datetime import timedelta

import numpy as np
import pytest
from openai import AsyncOpenAI

from app.llm.cached import CachedEmbedder
from app.llm.errors import EmbeddingUnavailableError
from app.llm.openai_embedder import OpenAIEmbedder
from tests.support.openai_server import OpenAIServer, refusal


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def embedder(client: AsyncOpenAI, clock: Clock) -> CachedEmbedder:
    remote = OpenAIEmbedder(client, "text-embedding-3-small", 1536)
    return CachedEmbedder(remote, entries=2, keep=timedelta(seconds=60), clock=clock)


async def test_the_same_query_costs_one_call(server: OpenAIServer, embedder: CachedEmbedder):
    first = await embedder.embed(["green tea"])
    again = await embedder.embed(("green tea",))

    assert np.array_equal(first, again)
    assert server.batch_sizes == [1]


async def test_a_vector_is_used_until_its_time_is_up(
    server: OpenAIServer, embedder: CachedEmbedder, clock: Clock
):
    await embedder.embed(["green tea"])
    clock.now += 59
    await embedder.embed(["green tea"])
    assert len(server.requests) == 1

    # Use does not prolong it.
    clock.now += 1
    await embedder.embed(["green tea"])
    assert len(server.requests) == 2


async def test_the_longest_unused_goes_first(server: OpenAIServer, embedder: CachedEmbedder):
    for text in ("one", "two", "one", "three", "one", "two"):
        await embedder.embed([text])

    assert [request.texts for request in server.requests] == [["one"], ["two"], ["three"], ["two"]]


async def test_batches_are_neither_kept_nor_answered_from_what_is_kept(
    server: OpenAIServer, embedder: CachedEmbedder
):
    await embedder.embed(["one"])
    await embedder.embed(["one", "two"])
    await embedder.embed(["two"])

    assert server.batch_sizes == [1, 2, 1]


async def test_a_failure_is_not_kept(server: OpenAIServer, embedder: CachedEmbedder):
    server.script(refusal(500))
    with pytest.raises(EmbeddingUnavailableError):
        await embedder.embed(["one"])

    assert (await embedder.embed(["one"])).any()


async def test_what_a_caller_does_to_its_array_stays_with_it(embedder: CachedEmbedder):
    expected = (await embedder.embed(["one"])).copy()
    for _ in range(2):
        vectors = await embedder.embed(["one"])
        assert np.array_equal(vectors, expected)
        vectors[:] = 0
