"""Calls and tokens of a provider's embedder in the ledger, over a real endpoint."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from time import perf_counter
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from httpx import AsyncClient

from app.deployment import open_catalogue
from app.errors import DomainError
from app.identity.usage.ledger import EmbeddingLedger
from app.identity.usage.repository import UsageRepository
from app.language.llm.embedder import EmbeddingUse
from app.language.llm.errors import EmbeddingUnavailableError
from app.memory.memories.backfill import ReembedService
from app.runtime import Runtime
from app.settings import Settings
from tests.support.api import execute, found, ok, problem, save
from tests.support.chat_behaviours import entry, extracts
from tests.support.locks import server_of, until_somebody_waits
from tests.support.openai_server import (
    OpenAIServer,
    Request,
    charging,
    openai_server,
    refusal,
    reporting,
    rows_of,
    slow,
)
from tests.support.patience import PATIENCE
from tests.support.service import client_of, service, tapped
from tests.support.tenants import Caller
from tests.support.working import until

TEA = "She drinks green tea."
CAT = "猫睡在沙发上。"
TOKENS = 7


@pytest.fixture(scope="module")
def running_provider() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest.fixture(autouse=True)
def provider(running_provider: OpenAIServer) -> OpenAIServer:
    """Charges seven tokens per text."""
    running_provider.reset()
    running_provider.otherwise = charging(TOKENS)
    return running_provider


def remote(provider: OpenAIServer) -> dict[str, Any]:
    """Settings of a deployment whose every vector comes from `provider`."""
    return {
        "openai_base_url": provider.base_url,
        "embedding_model": "openai/alpha",
        "extraction_model": "openai/reader",
        "model_retries": 0,
        "model_timeout_seconds": 5,
    }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def paying(dsn: str, running_provider: OpenAIServer) -> AsyncIterator[FastAPI]:
    async with service(dsn, **remote(running_provider)) as app:
        yield app


@pytest.fixture
async def ana(paying: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    """A client whose tenant pays for its vectors."""
    async with client_of(paying, acme.key) as client:
        yield client


async def ledger(client: AsyncClient) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Calls, failures and tokens by operation and model, as the route shows them now."""
    answer = ok(await client.get("/usage"))
    assert all(row["output_tokens"] == 0 for row in answer["items"] if "embed" in row["operation"])
    return {
        (row["operation"], row["model"]): (row["calls"], row["failures"], row["input_tokens"])
        for row in answer["items"]
    }


async def shows(client: AsyncClient, **wanted: tuple[int, int, int]) -> None:
    """Wait until the ledger holds these embeddings, by operation, and no others."""
    now: dict[str, tuple[int, int, int]] = {}
    deadline = perf_counter() + PATIENCE
    while perf_counter() < deadline:
        rows = await ledger(client)
        now = {operation: row for (operation, model), row in rows.items() if model == "alpha"}
        if now == wanted:
            return
        await asyncio.sleep(0.05)
    assert now == wanted


async def figures(runtime: Runtime, caller: Caller) -> dict[str, tuple[int, int, int]]:
    """What is written, by operation; straight from the table."""
    async with runtime.database.begin(caller.tenant_id) as db:
        ledger = UsageRepository(db, caller.tenant_id)
        today = (await ledger.today()).day
        return {
            row.operation: (row.calls, row.failures, row.input_tokens)
            for row in await ledger.list_usage(today, today)
        }


def price(requests: Sequence[Request]) -> int:
    """Tokens that were charged for these; a search may ask about several texts at once."""
    return sum(TOKENS * len(request.texts) for request in requests)


async def uncounted(client: AsyncClient) -> None:
    """Give a flush that should not come the time in which it would."""
    await asyncio.sleep(0.3)
    assert await ledger(client) == {}


class TestWhatIsCounted:
    async def test_a_save_a_search_and_an_edit(
        self, ana: AsyncClient, provider: OpenAIServer
    ) -> None:
        memory = await save(ana, TEA)
        await shows(ana, embed=(1, 0, TOKENS))

        await found(ana)
        await found(ana)
        searches = (2, 0, price(provider.requests[1:]))
        await shows(ana, embed=(1, 0, TOKENS), embed_query=searches)

        ok(await ana.patch(f"/memories/{memory['memory_id']}", json={"content": CAT}))
        await shows(ana, embed=(2, 0, 2 * TOKENS), embed_query=searches)

    async def test_a_batch_is_one_call(self, ana: AsyncClient) -> None:
        await save(ana, [{"content": TEA}, {"content": CAT}, {"content": "He runs at dawn."}])

        await shows(ana, embed=(1, 0, 3 * TOKENS))

    async def test_what_needs_no_vector_costs_nothing(
        self, ana: AsyncClient, provider: OpenAIServer
    ) -> None:
        body = {"messages": "no", "user_id": "ana", "infer": False}
        problem(await ana.post("/memories", json=body), 422, "gate_rejected")
        ok(await ana.get("/memories"))

        await uncounted(ana)
        assert provider.requests == []

    async def test_a_trial_costs_what_it_costs(self, ana: AsyncClient) -> None:
        body = {"messages": TEA, "user_id": "ana", "infer": False}
        ok(await ana.post("/memories/validate", json=body))

        await shows(ana, embed=(1, 0, TOKENS))

    async def test_reading_pays_both_models_apart(
        self, ana: AsyncClient, provider: OpenAIServer
    ) -> None:
        provider.chat.script(
            extracts(lambda lines: [entry(TEA, lines[0]["id"]), entry(CAT, lines[0]["id"])])
        )
        body = {"messages": "I like green tea, and my cat sleeps.", "user_id": "ana"}
        ok(await ana.post("/memories", json=body), 201)

        # What was said once, to find what is known near to it, and what is stored.
        await shows(ana, embed=(2, 0, 3 * TOKENS))
        assert (await ledger(ana))["extract", "reader"] == (1, 0, 120)

    async def test_the_local_model_is_not_listed(self, client: AsyncClient) -> None:
        await save(client, TEA)
        await found(client)

        await uncounted(client)

    async def test_a_provider_that_counts_no_tokens_counts_calls(
        self, ana: AsyncClient, provider: OpenAIServer
    ) -> None:
        async def silent(request: Any) -> Any:
            return reporting(None, rows_of(request))

        provider.otherwise = silent
        await save(ana, TEA)

        await shows(ana, embed=(1, 0, 0))

    async def test_tenants_pay_for_themselves(
        self, paying: FastAPI, ana: AsyncClient, other: Caller, provider: OpenAIServer
    ) -> None:
        async with client_of(paying, other.key) as stranger:
            await save(ana, TEA)
            await save(stranger, CAT)
            await found(stranger, CAT)

            searches = (1, 0, price(provider.requests[2:]))
            await shows(stranger, embed=(1, 0, TOKENS), embed_query=searches)
            await shows(ana, embed=(1, 0, TOKENS))


class TestFailures:
    async def test_a_call_that_failed_is_a_call(
        self, ana: AsyncClient, provider: OpenAIServer
    ) -> None:
        provider.otherwise = refusal(500)
        body = {"messages": TEA, "user_id": "ana", "infer": False}
        problem(await ana.post("/memories", json=body), 503, "embedding_unavailable")
        # Whatever a search does without vectors.
        await ana.post("/memories/search", json={"query": "tea", "user_id": "ana"})

        await shows(ana, embed=(1, 1, 0), embed_query=(1, 1, 0))

    async def test_an_answer_of_no_use_has_its_price(
        self, ana: AsyncClient, provider: OpenAIServer
    ) -> None:
        async def none_of_it(_: Any) -> Any:
            return reporting({"prompt_tokens": 9}, [])

        provider.otherwise = none_of_it
        body = {"messages": TEA, "user_id": "ana", "infer": False}
        problem(await ana.post("/memories", json=body), 503, "embedding_unavailable")

        await shows(ana, embed=(1, 1, 9))

    async def test_a_caller_that_hangs_up_has_called(
        self, runtime: Runtime, acme: Caller, dsn: str, provider: OpenAIServer
    ) -> None:
        async with service(dsn, **remote(provider)) as app, client_of(app, acme.key) as paying:
            provider.reset()
            provider.otherwise = slow(30)
            searching = asyncio.create_task(found(paying))
            await until(lambda: provider.requests)
            searching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await searching

        assert await figures(runtime, acme) == {"embed_query": (1, 0, 0)}


class TestQuota:
    async def test_embeddings_are_listed_and_keep_nothing_from_being_read(
        self, ana: AsyncClient, provider: OpenAIServer, acme: Caller, dsn: str
    ) -> None:
        config = """UPDATE tenants SET config = '{"daily_calls": 1, "daily_tokens": 1}'
            WHERE tenant_id = $1"""
        await execute(dsn, config, acme.tenant_id)
        await save(ana, TEA)
        await found(ana)
        searches = (1, 0, price(provider.requests[1:]))
        await shows(ana, embed=(1, 0, TOKENS), embed_query=searches)

        today = ok(await ana.get("/usage"))["today"]
        assert today["calls"] == {"limit": 1, "used": 0, "remaining": 1}
        assert today["tokens"] == {"limit": 1, "used": 0, "remaining": 1}
        assert today["exhausted"] is None
        provider.chat.script(extracts(lambda lines: [entry(CAT, lines[0]["id"])]))
        body = {"messages": "My cat sleeps on the sofa.", "user_id": "ana"}
        ok(await ana.post("/memories", json=body), 201)

        # That was the one call of the day: reading waits, searching and saving go on.
        problem(await ana.post("/memories", json=body), 429, "quota_exhausted")
        assert len(await found(ana)) == 2
        assert (await save(ana, "He runs at dawn."))["event"] == "ADD"


class TestReembedding:
    async def test_each_batch_is_written_as_it_is_done(
        self,
        client: AsyncClient,
        runtime: Runtime,
        acme: Caller,
        provider: OpenAIServer,
    ) -> None:
        for text in (TEA, CAT, "He runs at dawn.", "Her bike is blue."):
            await save(client, text)
        settings = Settings(_env_file=None, **remote(provider))
        async with open_catalogue(settings) as catalogue:
            spending = EmbeddingLedger(runtime.database)
            reembedding = ReembedService(runtime.database, catalogue, spending)
            plan = await reembedding.plan(acme.tenant_id)
            written: list[Any] = []
            provider.script(charging(TOKENS), charging(TOKENS), refusal(500))

            with pytest.raises(EmbeddingUnavailableError):
                await reembedding.reembed(acme.tenant_id, plan, batch=1, moved=written.append)

            assert written == [1, 1]
            assert await figures(runtime, acme) == {"reembed": (3, 1, 2 * TOKENS)}
            moved = await reembedding.reembed(
                acme.tenant_id, plan, batch=2, moved=lambda _count: None
            )
        assert moved == 2
        await shows(client, reembed=(4, 1, 4 * TOKENS))

    async def test_the_local_model_moves_for_nothing(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await save(client, TEA)
        old = "UPDATE memories SET embedding_model = 'wordllama/before:256' WHERE tenant_id = $1"
        await execute(dsn, old, acme.tenant_id)
        spending = EmbeddingLedger(runtime.database)
        reembedding = ReembedService(runtime.database, runtime.catalogue, spending)
        plan = await reembedding.plan(acme.tenant_id)

        moved = await reembedding.reembed(acme.tenant_id, plan, batch=10, moved=lambda _: None)

        assert moved == 1
        assert await figures(runtime, acme) == {}


class TestTheSearchPath:
    async def test_a_search_asks_the_database_no_oftener_and_nothing_is_lost_at_the_end(
        self, stranger: AsyncClient, acme: Caller, other: Caller, dsn: str, provider: OpenAIServer
    ) -> None:
        async def round_trips(caller: Caller, **settings: Any) -> int:
            """Of ten searches, in a service that has no occasion to write counts meanwhile."""
            async with tapped(dsn, caller.key, **settings) as (wire, searching):
                await save(searching, TEA)
                # Statements are prepared once per connection.
                for _ in range(3):
                    await found(searching)
                before = wire.round_trips
                for _ in range(10):
                    assert len(await found(searching)) == 1
                spent = wire.round_trips - before
                assert await ledger(searching) == {}
            return spent

        unpaid = await round_trips(acme)
        provider.requests.clear()
        paid = await round_trips(other, **remote(provider))

        assert paid == unpaid
        # The first call finds the dimension, for nobody.
        assert await ledger(stranger) == {
            ("embed", "alpha"): (1, 0, TOKENS),
            ("embed_query", "alpha"): (13, 0, price(provider.requests[2:])),
        }


ONE = EmbeddingUse(calls=1, failures=0, input_tokens=TOKENS)


class TestGathering:
    async def test_notes_during_a_write_are_written_the_next_time(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        spending = EmbeddingLedger(runtime.database)
        spending.note(acme.tenant_id, "embed", "alpha", ONE)
        await spending.flush()
        spending.note(acme.tenant_id, "embed", "alpha", ONE)
        async with runtime.database.begin(acme.tenant_id) as holding:
            await UsageRepository(holding, acme.tenant_id).note(
                "embed", "alpha", calls=1, input_tokens=0, output_tokens=0
            )
            writing = asyncio.create_task(spending.flush())
            await until_somebody_waits(dsn, await server_of(holding))
            assert not writing.done()
            spending.note(acme.tenant_id, "embed", "alpha", ONE)
        await writing
        assert await figures(runtime, acme) == {"embed": (3, 0, 2 * TOKENS)}

        await spending.flush()
        await spending.flush()

        assert await figures(runtime, acme) == {"embed": (4, 0, 3 * TOKENS)}

    async def test_a_write_that_is_cut_off_is_made_up_for(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        spending = EmbeddingLedger(runtime.database)
        spending.note(acme.tenant_id, "embed", "alpha", ONE)
        async with runtime.database.begin(acme.tenant_id) as holding:
            await UsageRepository(holding, acme.tenant_id).note(
                "embed", "alpha", calls=1, input_tokens=0, output_tokens=0
            )
            writing = asyncio.create_task(spending.flush())
            await until_somebody_waits(dsn, await server_of(holding))
            spending.note(acme.tenant_id, "embed", "alpha", ONE)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing

        await spending.flush()

        assert await figures(runtime, acme) == {"embed": (3, 0, 2 * TOKENS)}

    async def test_a_tenant_that_cannot_be_written_stands_behind_the_others(
        self, runtime: Runtime, acme: Caller
    ) -> None:
        spending = EmbeddingLedger(runtime.database)
        spending.note("nobody", "embed", "alpha", ONE)
        spending.note(acme.tenant_id, "embed", "alpha", ONE)

        with pytest.raises(DomainError):
            await spending.flush()
        assert await figures(runtime, acme) == {}
        with pytest.raises(DomainError):
            await spending.flush()

        assert await figures(runtime, acme) == {"embed": (1, 0, TOKENS)}

    @pytest.mark.parametrize(("rows", "kept"), [(2, 2), (3, 3), (4, 3)])
    async def test_so_many_rows_wait_and_no_more(
        self, runtime: Runtime, acme: Caller, rows: int, kept: int
    ) -> None:
        spending = EmbeddingLedger(runtime.database, waiting=3)
        for number in range(rows):
            spending.note(acme.tenant_id, "embed", f"m{number}", ONE)
        # What waits already is counted on.
        spending.note(acme.tenant_id, "embed", "m0", ONE)
        await spending.flush()
        spending.note(acme.tenant_id, "reembed", "later", ONE)
        await spending.flush()

        async with runtime.database.begin(acme.tenant_id) as db:
            today = (await UsageRepository(db, acme.tenant_id).today()).day
            written = await UsageRepository(db, acme.tenant_id).list_usage(today, today)

        assert {row.model: row.calls for row in written} == {
            **{f"m{number}": 1 for number in range(kept)}, "m0": 2, "later": 1,
        }  # fmt: skip

    @pytest.mark.parametrize(("everything", "first"), [(False, 1), (True, 2)])
    async def test_so_many_tenants_are_written_at_once(
        self, runtime: Runtime, acme: Caller, other: Caller, *, everything: bool, first: int
    ) -> None:
        spending = EmbeddingLedger(runtime.database, tenants=1)
        for caller in (acme, other):
            spending.note(caller.tenant_id, "embed", "alpha", ONE)

        await spending.flush(everything=everything)
        written = [bool(await figures(runtime, caller)) for caller in (acme, other)]
        await spending.flush()

        assert sum(written) == first
        assert await figures(runtime, other) == {"embed": (1, 0, TOKENS)}

    async def test_processes_that_write_at_once_add_up(
        self, runtime: Runtime, acme: Caller
    ) -> None:
        """In either order of noting, so that an unsorted write would wait in a circle."""
        operations = ("embed", "embed_query", "reembed")
        ledgers = [EmbeddingLedger(runtime.database) for _ in range(4)]
        for _ in range(10):
            for number, spending in enumerate(ledgers):
                for operation in operations[:: -1 if number % 2 else 1]:
                    spending.note(acme.tenant_id, operation, "alpha", ONE)
            await asyncio.gather(*(spending.flush() for spending in ledgers))

        assert await figures(runtime, acme) == dict.fromkeys(operations, (40, 0, 40 * TOKENS))
