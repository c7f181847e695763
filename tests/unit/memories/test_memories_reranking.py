"""A search's way to the reranker: scores when there are some, None when there are none."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from app.language.llm.http_reranker import HTTPReranker
from app.language.llm.reranker_catalogue import connect_reranker
from app.memory.memories.candidate_search import reranked
from tests.support.flaky_server import says, slowly
from tests.support.patience import until_asked
from tests.support.rerank_server import RerankServer, rerank_server

QUERY = "her diary"
CONTENTS = ["She drinks green tea.", "她养了一只猫。"]


@pytest.fixture
def server() -> Iterator[RerankServer]:
    with rerank_server() as server:
        yield server


@asynccontextmanager
async def connected(server: RerankServer, model: str) -> AsyncIterator[HTTPReranker]:
    """A reranker whose metrics are one test's own."""
    reranker = connect_reranker(
        server.handle(model=model), api_key="rk-secret", timeout=timedelta(seconds=0.5)
    )
    try:
        yield reranker
    finally:
        await reranker.aclose()


def counted(model: str, outcome: str) -> float:
    labels = {"model": f"http/{model}", "outcome": outcome}
    return REGISTRY.get_sample_value("kemem_reranks_total", labels) or 0


def timed(model: str) -> float:
    labels = {"model": f"http/{model}"}
    return REGISTRY.get_sample_value("kemem_rerank_seconds_count", labels) or 0


async def test_scores_are_in_the_order_of_the_contents(server: RerankServer):
    server.scores = {CONTENTS[1]: 0.9}
    async with connected(server, "in-order") as reranker:
        assert await reranked(reranker, QUERY, CONTENTS) == [0.1, 0.9]

    assert (counted("in-order", "ok"), timed("in-order")) == (1, 1)


async def test_no_contents_make_no_call(server: RerankServer):
    async with connected(server, "nothing") as reranker:
        assert await reranked(reranker, QUERY, []) == []

    assert server.requests == []
    assert timed("nothing") == 0


async def test_failure_gives_none_and_logs_no_content(server: RerankServer):
    server.script(says({"message": "hush, her diary"}, 500))
    async with connected(server, "failing") as reranker:
        with capture_logs() as lines:
            assert await reranked(reranker, QUERY, CONTENTS) is None

    assert (counted("failing", "provider_error"), timed("failing")) == (1, 1)
    assert lines == [
        {
            "event": "rerank_failed",
            "log_level": "warning",
            "model": "http/failing",
            "reason": "provider_error",
            "provider_status": 500,
        }
    ]


async def test_slow_reranker_gives_none(server: RerankServer):
    server.script(slowly(2, server.score))
    async with connected(server, "slow") as reranker:
        with capture_logs():
            assert await reranked(reranker, QUERY, CONTENTS) is None

    assert (counted("slow", "timeout"), counted("slow", "ok")) == (1, 0)


async def test_cancelled_search_counts_as_no_success(server: RerankServer):
    server.script(slowly(2, server.score))
    async with connected(server, "left") as reranker:
        leaving = asyncio.create_task(reranked(reranker, QUERY, CONTENTS))
        await until_asked(server)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving

    assert (counted("left", "cancelled"), counted("left", "ok")) == (1, 0)
