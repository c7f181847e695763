"""What an append leaves to a worker, to housekeeping or to `kemem reembed`.

With an embedder at a provider, so a service and a database of their own.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from fastapi import FastAPI
from httpx import AsyncClient

from app.builders.factory import Factory
from app.conversation.messages.jobs import MessageBackfill
from app.conversation.messages.message_index import INDEXED_AT_ONCE
from app.governance.operations.housekeeping import Housekeeping
from app.governance.operations.repository import Retention
from app.identity.usage.ledger import EmbeddingLedger
from app.language.llm.errors import EmbeddingUnavailableError
from app.memory.memories.backfill import ReembedService
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import append, every_page, execute, ok, problem
from tests.support.databases import migrated_database, served
from tests.support.openai_server import OpenAIServer, charging, openai_server, refusal
from tests.support.patience import PATIENCE
from tests.support.recall import recall, recalled
from tests.support.service import USAGE_FLUSH, client_of, service
from tests.support.tenants import Caller, make_tenant
from tests.support.working import make_due, over, working

LOCAL = "wordllama/l2_supercat:256"
REMOTE = "openai/alpha:64"
PIANO = "My daughter has started to play the piano."
CLIMB = "I went climbing in Yosemite."
CHINESE = "我女儿开始学钢琴了。"
TOKENS = 7


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest.fixture(autouse=True)
def well(provider: OpenAIServer) -> None:
    provider.reset()
    provider.otherwise = charging(TOKENS)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own_dsn(postgres: EmbeddedPostgres) -> str:
    return await migrated_database(postgres, "filling")


def remote(provider: OpenAIServer) -> dict[str, Any]:
    return {
        "openai_base_url": provider.base_url,
        "embedding_model": "openai/alpha",
        "embedding_dim": 64,
        "model_retries": 0,
        "model_timeout_seconds": 60,
    }


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def far(own_dsn: str, provider: OpenAIServer) -> AsyncIterator[FastAPI]:
    """A service whose embedder is at the provider."""
    async with service(own_dsn, **remote(provider)) as app:
        yield app


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def far_runtime(own_dsn: str, provider: OpenAIServer) -> AsyncIterator[Runtime]:
    settings = Settings(_env_file=None, **remote(provider))
    async with open_runtime(settings, served(own_dsn), usage_flush=USAGE_FLUSH) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def near_runtime(own_dsn: str) -> AsyncIterator[Runtime]:
    """The same database with the embedder of the process."""
    async with open_runtime(Settings(_env_file=None), served(own_dsn)) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def ours(far_runtime: Runtime) -> Caller:
    return await make_tenant(far_runtime)


@pytest_asyncio.fixture(loop_scope="session")
async def ana(far: FastAPI, ours: Caller) -> AsyncIterator[AsyncClient]:
    async with client_of(far, ours.key) as opened:
        yield opened


async def indexed(client: AsyncClient, dsn: str, session_id: str = "s1") -> dict[str, Any]:
    """The job of a session's searches, once it is over; its delay is not waited for."""
    async with asyncio.timeout(PATIENCE):
        while True:
            jobs = await every_page(client, "/jobs", kind="index_messages", session_id=session_id)
            if jobs:
                await make_due(dsn, "job_id = $1", jobs[0]["job_id"])
                return await over(client, jobs[0]["job_id"])
            await asyncio.sleep(0.02)


async def stored(dsn: str, caller: Caller) -> list[tuple[str, bool, str | None]]:
    """Of every message: its text, whether it is read, and what embedded it."""
    rows = await execute(
        dsn,
        "SELECT content, terms IS NOT NULL AS read, embedding_model FROM messages "
        "WHERE tenant_id = $1 ORDER BY session_id, sequence_no",
        caller.tenant_id,
    )
    return [(row["content"], row["read"], row["embedding_model"]) for row in rows]


async def forget(dsn: str, caller: Caller, columns: str) -> None:
    """Make messages as an earlier release has left them."""
    await execute(dsn, f"UPDATE messages SET {columns} WHERE tenant_id = $1", caller.tenant_id)


UNREAD = (
    "terms = NULL, term_count = NULL, word_count = NULL, is_question = NULL, has_time = NULL, "
    "analyser = NULL, said_at = NULL, embedding = NULL, embedding_model = NULL"
)


class TestJob:
    async def test_messages_are_found_by_words_at_once_and_by_meaning_after_the_job(
        self, ana: AsyncClient, far_runtime: Runtime, own_dsn: str, provider: OpenAIServer
    ) -> None:
        await append(ana, "s1", PIANO, CLIMB, CHINESE, {"role": "system", "content": "Be kind."})
        assert provider.requests == []
        first = await recall(ana, "piano", user_id="ana")
        assert first["items"][0]["content"] == PIANO
        assert first["items"][0]["similarity"] is None
        assert first["waiting"] == 4
        only = await recall(ana, PIANO, user_id="ana", mode="semantic")
        assert (only["items"], only["waiting"]) == ([], 4)

        provider.requests.clear()
        async with working(far_runtime, own_dsn):
            job = await indexed(ana, own_dsn)

        assert job["status"] == "succeeded"
        assert job["result"] == {"read": 0, "embedded": 4}
        assert provider.batch_sizes == [4]
        after = await recall(ana, PIANO, user_id="ana", mode="semantic")
        assert after["waiting"] == 0
        assert after["items"][0]["content"] == PIANO
        assert after["items"][0]["similarity"] == pytest.approx(1, abs=1e-5)
        assert after["embedding_models"] == [REMOTE]

    async def test_turns_of_one_session_share_a_job(
        self, ana: AsyncClient, far_runtime: Runtime, own_dsn: str, provider: OpenAIServer
    ) -> None:
        for number in range(3):
            await append(ana, "s1", f"Turn {number}.")
        await append(ana, "s2", "Another session.")

        async with working(far_runtime, own_dsn):
            assert (await indexed(ana, own_dsn, "s1"))["result"]["embedded"] == 3
            assert (await indexed(ana, own_dsn, "s2"))["result"]["embedded"] == 1

        assert len(await every_page(ana, "/jobs", kind="index_messages")) == 2

    async def test_what_it_costs_is_in_the_ledger(
        self, ana: AsyncClient, far_runtime: Runtime, own_dsn: str
    ) -> None:
        await append(ana, "s1", PIANO, CLIMB)

        async with working(far_runtime, own_dsn):
            await indexed(ana, own_dsn)

        await far_runtime.embedding_ledger.flush(everything=True)
        [line] = ok(await ana.get("/usage"))["items"]
        assert (line["operation"], line["calls"], line["input_tokens"]) == ("embed", 1, 2 * TOKENS)

    async def test_a_long_batch_is_read_by_the_job(
        self, ana: AsyncClient, ours: Caller, far_runtime: Runtime, own_dsn: str
    ) -> None:
        whole = "a" * (INDEXED_AT_ONCE - 1) + " "
        fits = {"role": "user", "content": whole}
        over_it = {"role": "user", "content": "Marzipan is at the end of the batch."}
        await append(ana, "s1", fits)
        await append(ana, "s2", fits, over_it)

        assert [read for _, read, _ in await stored(own_dsn, ours)] == [True, True, False]
        assert await recalled(ana, "marzipan", user_id="ana", mode="lexical") == []
        async with working(far_runtime, own_dsn):
            job = await indexed(ana, own_dsn, "s2")
        # Housekeeping may have read it before.
        assert job["result"]["embedded"] == 2
        assert job["result"]["read"] <= 1

        [found] = await recalled(ana, "marzipan", user_id="ana", mode="lexical")
        assert found == over_it["content"]

    async def test_a_provider_that_is_down_keeps_the_job_owed_and_loses_nothing(
        self,
        ana: AsyncClient,
        ours: Caller,
        far_runtime: Runtime,
        own_dsn: str,
        provider: OpenAIServer,
    ) -> None:
        await append(ana, "s1", PIANO)
        provider.otherwise = refusal(500)

        async with working(far_runtime, own_dsn):
            async with asyncio.timeout(PATIENCE):
                while True:
                    [job] = await every_page(ana, "/jobs", kind="index_messages")
                    if job["deferred_reason"] == "retry":
                        break
                    await asyncio.sleep(0.02)
            assert (job["status"], job["attempts"]) == ("pending", 1)
            answer = await recall(ana, "piano", user_id="ana")
            assert [hit["content"] for hit in answer["items"]] == [PIANO]
            assert (answer["degraded"], answer["embedding_models"]) == (True, [])
            assert answer["waiting"] == 1
            body = {"query": "piano", "user_id": "ana", "mode": "semantic"}
            problem(await ana.post("/messages/search", json=body), 503, "embedding_unavailable")
            assert not (await recall(ana, "piano", user_id="ana", mode="lexical"))["degraded"]

            provider.otherwise = charging(TOKENS)
            assert (await indexed(ana, own_dsn))["result"] == {"read": 0, "embedded": 1}

    async def test_messages_deleted_meanwhile_stay_deleted(
        self,
        ana: AsyncClient,
        ours: Caller,
        far_runtime: Runtime,
        own_dsn: str,
        provider: OpenAIServer,
    ) -> None:
        appended = await append(ana, "s1", PIANO, CLIMB)
        gone = appended["messages"][0]["message_id"]
        asked, go_on = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        async def wait(request: Any) -> Any:
            loop.call_soon_threadsafe(asked.set)
            await asyncio.to_thread(go_on.wait, 20)
            return await charging(TOKENS)(request)

        provider.script(wait)
        async with working(far_runtime, own_dsn):
            await asyncio.wait_for(asked.wait(), PATIENCE)
            # No lock is held meanwhile, or this would wait.
            ok(await ana.delete(f"/sessions/s1/messages/{gone}"))
            go_on.set()
            assert (await indexed(ana, own_dsn))["result"] == {"read": 0, "embedded": 1}

        assert await stored(own_dsn, ours) == [(CLIMB, True, REMOTE)]

    async def test_rows_that_a_deletion_holds_are_left_to_it(
        self, ana: AsyncClient, ours: Caller, far_runtime: Runtime, own_dsn: str
    ) -> None:
        appended = await append(ana, "s1", PIANO, CLIMB)
        held = appended["messages"][0]["message_id"]
        connection = await asyncpg.connect(own_dsn)
        try:
            await connection.execute("SET ROLE kemem_owner")
            async with connection.transaction():
                await connection.execute("DELETE FROM messages WHERE message_id = $1", held)
                async with working(far_runtime, own_dsn):
                    job = await asyncio.wait_for(indexed(ana, own_dsn), PATIENCE)
        finally:
            await connection.close()

        assert job["result"] == {"read": 0, "embedded": 1}
        assert await stored(own_dsn, ours) == [(CLIMB, True, REMOTE)]

    async def test_an_agents_own_embedder_is_used_for_what_is_said_to_it(
        self, ana: AsyncClient, ours: Caller, far_runtime: Runtime, own_dsn: str
    ) -> None:
        for agent_id, handle in (("a1", "wordllama"), ("a2", "openai/beta")):
            body = {"agent_id": agent_id, "agent_name": "A", "config": {"embedding": handle}}
            ok(await ana.post("/agents", json=body), 201)
            await append(ana, f"s-{agent_id}", PIANO, agent_id=agent_id)
        await append(ana, "s-none", PIANO, user_id="ben")

        async with working(far_runtime, own_dsn):
            for session_id in ("s-a1", "s-a2", "s-none"):
                assert (await indexed(ana, own_dsn, session_id))["status"] == "succeeded"

        models = [model for _, _, model in await stored(own_dsn, ours)]
        assert models == [LOCAL, "openai/beta:64", REMOTE]
        answer = await recall(ana, PIANO, user_id="ana", mode="semantic")
        assert set(answer["embedding_models"]) == {LOCAL, "openai/beta:64", REMOTE}
        assert answer["waiting"] == 0
        assert [round(hit["similarity"], 4) for hit in answer["items"]] == [1, 1]

    async def test_an_embedder_that_is_gone_is_seen_and_keeps_no_message_out(
        self, ana: AsyncClient, ours: Caller, far_runtime: Runtime, own_dsn: str
    ) -> None:
        config = '{"embedding": "nobody/has-this"}'
        statement = "UPDATE tenants SET config = $2 WHERE tenant_id = $1"
        await execute(own_dsn, statement, ours.tenant_id, config)

        await append(ana, "s1", PIANO)
        async with working(far_runtime, own_dsn):
            job = await indexed(ana, own_dsn)

        assert (job["status"], job["error_code"]) == ("dead", "unknown_embedder")
        assert await recalled(ana, "piano", user_id="ana", mode="lexical") == [PIANO]

    async def test_nothing_is_owed_where_the_embedder_is_in_the_process(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await append(client, "s1", PIANO, {"role": "system", "content": "Be kind."})

        assert await stored(dsn, acme) == [(PIANO, True, LOCAL), ("Be kind.", True, LOCAL)]
        assert await every_page(client, "/jobs", kind="index_messages") == []


class TestHousekeeping:
    async def test_messages_of_before_are_read_some_on_each_run(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        call = {"id": "c1", "function": {"name": "f", "arguments": "{}"}}
        meta = {"client_time": "2024-05-01T00:00:00Z"}
        await append(
            client,
            "s1",
            {"role": "user", "content": PIANO, "metadata": meta},
            {"role": "assistant", "content": "I look.", "tool_calls": [call]},
            CHINESE,
        )
        before = await execute(dsn, WHOLE, acme.tenant_id)
        await forget(dsn, acme, UNREAD)
        assert (await recall(client, "piano", user_id="ana"))["items"] == []

        house = Housekeeping(
            runtime.database,
            Retention(deleted=timedelta(days=9)),
            messages=Factory(runtime).get(MessageBackfill),
        )
        assert (await house.run(acme.tenant_id))["messages_read"] == 3

        assert await execute(dsn, WHOLE, acme.tenant_id) == before
        assert await recalled(client, "piano", user_id="ana") == [PIANO, CHINESE]
        assert (await house.run(acme.tenant_id))["messages_read"] == 0

    async def test_a_run_stops_at_its_bound(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        for batch in range(3):
            await append(client, "s1", *(f"Tea {batch} {number}." for number in range(50)))
        await forget(dsn, acme, UNREAD)

        finished: list[int] = []
        read = (
            await Factory(runtime)
            .get(MessageBackfill)
            .read(acme.tenant_id, most=101, finished=finished.append)
        )

        assert (read, finished) == (101, [100, 1])
        assert len(await waiting(dsn, acme)) == 49
        assert await Factory(runtime).get(MessageBackfill).read(acme.tenant_id, most=None) == 49

    async def test_terms_of_an_older_analyser_are_renewed_and_vectors_stay(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await append(client, "s1", PIANO)
        before = await execute(dsn, WHOLE, acme.tenant_id)
        await forget(dsn, acme, "terms = '{}/1000000000', analyser = 0")

        assert await Factory(runtime).get(MessageBackfill).read(acme.tenant_id, most=10) == 1

        assert await execute(dsn, WHOLE, acme.tenant_id) == before

    async def test_with_a_provider_nothing_is_embedded_unasked(
        self,
        ana: AsyncClient,
        ours: Caller,
        far_runtime: Runtime,
        own_dsn: str,
        provider: OpenAIServer,
    ) -> None:
        await append(ana, "s1", PIANO)
        await forget(own_dsn, ours, UNREAD)

        assert await Factory(far_runtime).get(MessageBackfill).read(ours.tenant_id, most=10) == 1

        assert provider.requests == []
        assert await stored(own_dsn, ours) == [(PIANO, True, None)]


WHOLE = """SELECT message_id, terms::text, term_count, word_count, is_question, has_time, analyser,
    said_at, left(embedding::text, 200) AS vector, embedding_model
    FROM messages WHERE tenant_id = $1 ORDER BY sequence_no"""


async def waiting(dsn: str, caller: Caller) -> list[Any]:
    statement = "SELECT 1 FROM messages WHERE tenant_id = $1 AND analyser IS NULL"
    return await execute(dsn, statement, caller.tenant_id)


class TestReembedding:
    @pytest.fixture
    def reembedding(self, far_runtime: Runtime) -> ReembedService:
        ledger = EmbeddingLedger(far_runtime.database)
        return ReembedService(far_runtime.database, far_runtime.catalogue, ledger)

    async def test_messages_move_to_the_model_in_force_and_are_read_first(
        self,
        near_runtime: Runtime,
        ana: AsyncClient,
        ours: Caller,
        own_dsn: str,
        reembedding: ReembedService,
        provider: OpenAIServer,
    ) -> None:
        await append(ana, "s1", PIANO, CLIMB)
        await forget(own_dsn, ours, UNREAD)
        await Factory(near_runtime).get(MessageBackfill).read(ours.tenant_id, most=1)
        await append(ana, "s2", CHINESE)
        await append(ana, "s2", {"role": "user", "content": "x", "metadata": {"hidden": True}})
        models = {model for _, _, model in await stored(own_dsn, ours)}
        assert models == {LOCAL, None}

        plan = await reembedding.plan(ours.tenant_id)
        assert plan.waiting == 3
        told: list[int] = []
        moved = await reembedding.reembed(ours.tenant_id, plan, batch=2, moved=told.append)

        assert moved == sum(told) == 3
        assert sorted(provider.batch_sizes) == [1, 2]
        assert [row[1:] for row in await stored(own_dsn, ours)] == [(True, REMOTE)] * 3 + [
            (False, None)
        ]
        assert (await reembedding.plan(ours.tenant_id)).waiting == 0
        answer = await recall(ana, PIANO, user_id="ana", mode="semantic")
        assert answer["embedding_models"] == [REMOTE]

    async def test_stopped_half_way_it_goes_on_where_it_was(
        self,
        ana: AsyncClient,
        ours: Caller,
        own_dsn: str,
        reembedding: ReembedService,
        provider: OpenAIServer,
    ) -> None:
        await append(ana, "s1", *(f"Tea {number}." for number in range(4)))
        plan = await reembedding.plan(ours.tenant_id)
        provider.script(charging(TOKENS), refusal(500))

        with pytest.raises(EmbeddingUnavailableError):
            await reembedding.reembed(ours.tenant_id, plan, batch=2, moved=lambda _: None)
        models = [model for _, _, model in await stored(own_dsn, ours)]
        assert sorted(models, key=str) == [None, None, REMOTE, REMOTE]
        moved = await reembedding.reembed(ours.tenant_id, plan, batch=2, moved=lambda _: None)

        assert moved == 2
        assert provider.batch_sizes == [2, 2, 2]

    async def test_a_model_that_messages_have_is_not_forgotten(
        self,
        near_runtime: Runtime,
        ana: AsyncClient,
        ours: Caller,
        own_dsn: str,
        reembedding: ReembedService,
    ) -> None:
        await append(ana, "s1", PIANO, agent_id="a1")
        await forget(own_dsn, ours, UNREAD)
        await Factory(near_runtime).get(MessageBackfill).read(ours.tenant_id, most=10)
        named = "UPDATE agents SET config = $2 WHERE tenant_id = $1"
        config = '{"embedding": "nobody/has-this"}'
        await execute(own_dsn, named, ours.tenant_id, config)

        plan = await reembedding.plan(ours.tenant_id)
        assert (plan.waiting, plan.missing) == (0, ("nobody/has-this",))
        await reembedding.reembed(ours.tenant_id, plan, batch=2, moved=lambda _: None)

        assert (await recall(ana, PIANO, user_id="ana"))["embedding_models"] == [LOCAL]
