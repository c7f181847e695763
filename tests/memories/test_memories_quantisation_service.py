"""Codes in a running service: made by its worker, never those of words that are gone."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from httpx import AsyncClient
from prometheus_client import REGISTRY

from app.builders.factory import Factory
from app.governance.operations.housekeeping import KIND, Housekeeping
from app.memory.memories.backfill import ReembedService
from app.memory.memories.quantisation import QuantisationService
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from app.worker import handlers_of
from tests.support.api import execute, found, ok, search
from tests.support.databases import served
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.patience import PATIENCE
from tests.support.service import client_of, service
from tests.support.tenants import Caller

COUNT = 101
TEXTS = [f"Locker {number} holds the key to the boathouse." for number in range(COUNT)]


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def remote(dsn: str, provider: OpenAIServer) -> AsyncIterator[Runtime]:
    """A runtime whose buckets earn codes above 100 memories, with a provider's long vectors."""
    settings = Settings(
        _env_file=None,
        openai_base_url=provider.base_url,
        embedding_model="openai/text-embedding-3-small",
    )
    async with open_runtime(settings, served(dsn)) as opened:
        yield opened


@pytest.fixture
async def full(dsn: str, provider: OpenAIServer, acme: Caller) -> AsyncIterator[AsyncClient]:
    """A service with one memory more than is compared exactly."""
    async with (
        service(
            dsn,
            openai_base_url=provider.base_url,
            embedding_model="openai/text-embedding-3-small",
        ) as app,
        client_of(app, acme.key) as client,
    ):
        batch = [{"content": one} for one in TEXTS]
        body = {"user_id": "ana", "infer": False, "on_duplicate": "allow"}
        for start in range(0, COUNT, 40):
            part = body | {"messages": batch[start : start + 40]}
            assert (await client.post("/memories", json=part)).is_success
        yield client


async def keep_house(remote: Runtime, acme: Caller) -> dict[str, int]:
    """What the worker's job of every hour says that it did."""
    coded = QuantisationService(remote.database, 100)
    house = handlers_of(Factory(remote, {QuantisationService: coded}))[KIND]
    assert isinstance(house, Housekeeping)
    return await house.run(acme.tenant_id)


async def without_code(dsn: str, acme: Caller) -> list[str]:
    rows = await execute(
        dsn,
        "SELECT content FROM memories WHERE tenant_id = $1 AND code IS NULL",
        acme.tenant_id,
    )
    return [row["content"] for row in rows]


async def test_worker_makes_codes_and_reports_their_recall(
    full: AsyncClient, remote: Runtime, dsn: str, acme: Caller
) -> None:
    def seen() -> float:
        """How many were reported, of whatever model: its label is bounded, and this process has
        met many.
        """
        return sum(
            sample.value
            for metric in REGISTRY.collect()
            for sample in metric.samples
            if sample.name == "kemem_codes_recall_count"
        )

    before = seen()

    result = await keep_house(remote, acme)

    assert result["codes_made"] == COUNT
    assert await without_code(dsn, acme) == []
    assert seen() == before + 1
    for mode in ("semantic", "hybrid"):
        answer = await search(full, TEXTS[7], user_id="ana", mode=mode, explain=True, limit=3)
        best = answer["results"][0]
        assert best["content"] == TEXTS[7]
        assert best["similarity"] == pytest.approx(1.0, abs=1e-4)
        assert best["explain"]["cosine"] == best["similarity"]
        assert not {"exact", "exact_ranked", "fits", "code"} & best.keys()


async def test_edited_content_is_never_found_by_its_old_code(
    full: AsyncClient, remote: Runtime, dsn: str, acme: Caller
) -> None:
    await keep_house(remote, acme)
    [memory_id, *_] = await found(full, TEXTS[3], user_id="ana", mode="semantic")
    new = "The boathouse has burnt down."

    ok(await full.patch(f"/memories/{memory_id}", json={"content": new}))

    assert await without_code(dsn, acme) == [new]
    for mode in ("semantic", "hybrid"):
        assert (await found(full, new, user_id="ana", mode=mode))[0] == memory_id
    # A row whose use by the searches is being noted is left to the next run.
    async with asyncio.timeout(PATIENCE):
        while (made := (await keep_house(remote, acme))["codes_made"]) == 0:
            pass
    assert made == 1
    assert await without_code(dsn, acme) == []


async def test_a_deleted_memory_leaves_no_code_anywhere(
    full: AsyncClient, remote: Runtime, dsn: str, acme: Caller
) -> None:
    await keep_house(remote, acme)
    [memory_id, *_] = await found(full, TEXTS[3], user_id="ana", mode="semantic")

    ok(await full.delete(f"/memories/{memory_id}"), 204)

    [row] = await execute(
        dsn,
        "SELECT code, (SELECT before FROM memory_history WHERE tenant_id = $1 "
        "AND memory_id = memories.memory_id AND event = 'DELETE') AS before "
        "FROM memories WHERE tenant_id = $1 AND memory_id = $2",
        acme.tenant_id,
        memory_id,
    )
    assert row["code"] is None
    assert '"content"' in row["before"]
    assert '"code"' not in row["before"]


async def test_new_model_replaces_the_codes_of_the_first(
    full: AsyncClient, remote: Runtime, dsn: str, acme: Caller
) -> None:
    await keep_house(remote, acme)
    await execute(
        dsn,
        'UPDATE tenants SET config = \'{"embedding": "openai/text-embedding-3-large"}\' '
        "WHERE tenant_id = $1",
        acme.tenant_id,
    )
    reembedding = ReembedService(remote.database, remote.catalogue, remote.embedding_ledger)
    plan = await reembedding.plan(acme.tenant_id)
    half: list[int] = []

    moved = await reembedding.reembed(acme.tenant_id, plan, batch=50, moved=half.append)

    assert moved == COUNT
    assert len(await without_code(dsn, acme)) == COUNT
    assert await found(full, TEXTS[7], user_id="ana", mode="semantic")
    assert (await keep_house(remote, acme))["codes_made"] == COUNT
    rows = await execute(
        dsn,
        "SELECT embedding_model, rows FROM memory_buckets WHERE tenant_id = $1",
        acme.tenant_id,
    )
    assert [tuple(row) for row in rows] == [("openai/text-embedding-3-large:3072", COUNT)]
    [best, *_] = (await search(full, TEXTS[7], user_id="ana", mode="hybrid"))["results"]
    assert best["content"] == TEXTS[7]
    assert best["similarity"] == pytest.approx(1.0, abs=1e-4)
