"""Documents with models behind a real endpoint: what fails, what is remembered, what is renewed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from httpx import AsyncClient

from app.builders.factory import Factory
from app.cli.maintenance import OTHERS
from app.identity.usage.ledger import EmbeddingLedger
from app.language.llm.errors import EmbeddingUnavailableError
from app.memory.memories.backfill import ReembedService
from app.platform.embedded.server import EmbeddedPostgres
from app.prompting.documents.extract_service import AT_ONCE
from app.prompting.documents.passage_service import PassageSearchService
from app.prompting.documents.schemas import PassageSearch
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import execute
from tests.support.chat_behaviours import by_question, entry, extracts, lines_of, says
from tests.support.databases import migrated_database, served
from tests.support.folders import done, folder, ingested, passages_of, upload
from tests.support.model_service import app_of, asking
from tests.support.openai_server import OpenAIServer, good, openai_server, refusal
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import Caller, make_tenant
from tests.support.working import make_due, over, waiting, working

LOCAL = "wordllama/l2_supercat:256"
REMOTE = "openai/alpha:64"
REFUNDS = "Refunds take five working days after we receive the parcel."
CHINESE = "退款需要五个工作日。客户必须提供订单号码。"
PARAGRAPH = "The mill grinds {0} sacks a day, and every sack has the number {0}. " * 12


@pytest.fixture(scope="module")
def running_server() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest.fixture
def provider(running_server: OpenAIServer) -> OpenAIServer:
    running_server.reset()
    return running_server


@pytest.fixture(scope="module")
async def dsn(postgres: EmbeddedPostgres) -> str:
    """A database of this file alone: other tests' jobs would use up the script."""
    return await migrated_database(postgres, "folders_models")


@pytest.fixture(scope="module")
async def far_runtime(dsn: str, running_server: OpenAIServer) -> AsyncIterator[Runtime]:
    """Whose embedder and extractor are at the provider."""
    settings = asking(
        running_server,
        embedding_model="openai/alpha",
        embedding_dim=64,
        extraction_model="openai/reader",
        model_timeout_seconds=60,
    )
    async with open_runtime(settings, served(dsn)) as runtime:
        yield runtime


@pytest.fixture(scope="module")
async def near_runtime(dsn: str) -> AsyncIterator[Runtime]:
    """The same database with the embedder and the rules of the process."""
    async with open_runtime(Settings(_env_file=None), served(dsn)) as runtime:
        yield runtime


@pytest.fixture(scope="module")
async def far_app(far_runtime: Runtime):
    async with app_of(far_runtime) as application:
        yield application


@pytest.fixture
async def ours(far_runtime: Runtime) -> Caller:
    return await make_tenant(far_runtime)


@pytest.fixture
async def client(far_app, ours: Caller, provider: OpenAIServer) -> AsyncIterator[AsyncClient]:
    async with client_of(far_app, ours.key) as opened:
        yield opened


@asynccontextmanager
async def near_client(runtime: Runtime, caller: Caller) -> AsyncIterator[AsyncClient]:
    async with app_of(runtime) as application, client_of(application, caller.key) as opened:
        yield opened


async def found(client: AsyncClient, query: str, **body):
    said = {"query": query, "user_id": "ana"} | body
    return done(await client.post("/passages/search", json=said))


class TestEmbedderDown:
    async def test_a_file_waits_and_is_not_half_there(self, client, far_runtime, dsn, provider):
        folder_id = await folder(client)
        book = "\n\n".join(PARAGRAPH.format(number) for number in range(120))
        # The first batch is stored, the second fails.
        provider.script(good, refusal(500))
        async with working(far_runtime, dsn):
            accepted = await upload(client, folder_id, "book.txt", book.encode())
            job = await waiting(client, accepted["job_id"])
        path = f"/folders/{folder_id}/files/{accepted['file']['file_id']}"
        file = done(await client.get(path))
        assert (job["status"], job["deferred_reason"], job["attempts"]) == ("pending", "retry", 1)
        assert (file["state"], file["error_code"]) == ("embedding", None)
        assert 0 < file["passage_count"] < file["passages_expected"]
        assert (await found(client, "mill sacks"))["items"] == []
        assert done(await client.get(f"/folders/{folder_id}/passages"))["items"] == []

        texts = sum(len(one.texts) for one in provider.requests)
        statement = "UPDATE jobs SET due_at = now() WHERE job_id = $1"
        await execute(dsn, statement, accepted["job_id"])
        async with working(far_runtime, dsn):
            job = await over(client, accepted["job_id"])
        again = done(await client.get(path))
        assert (job["status"], again["state"]) == ("succeeded", "completed")
        assert again["passage_count"] == again["passages_expected"]
        # What was stored is not embedded a second time; one query was.
        asked = sum(len(one.texts) for one in provider.requests) - texts
        assert asked == again["passage_count"] - file["passage_count"]
        assert (await found(client, "mill sacks"))["items"]

    async def test_a_text_put_in_by_hand_is_refused_whole(self, client, provider):
        folder_id = await folder(client)
        provider.otherwise = refusal(500)
        answer = await client.post(f"/folders/{folder_id}/passages", json={"content": REFUNDS})
        assert (answer.status_code, answer.json()["code"]) == (503, "embedding_unavailable")
        assert done(await client.get(f"/folders/{folder_id}/passages"))["items"] == []

    async def test_words_decide_in_a_search(self, client, provider):
        folder_id = await folder(client)
        for text in (REFUNDS, CHINESE, "The office has a ping-pong table."):
            done(await client.post(f"/folders/{folder_id}/passages", json={"content": text}))
        well = await found(client, REFUNDS)
        assert (well["degraded"], well["embedding_models"]) == (False, [REMOTE])

        provider.otherwise = refusal(500)
        for query, best in (("How long do refunds take?", REFUNDS), ("退款要多久?", CHINESE)):
            for mode in ("hybrid", "semantic"):
                down = await found(client, query, mode=mode)
                assert (down["degraded"], down["mode"]) == (True, "lexical")
                assert down["embedding_models"] == []
                assert down["items"][0]["content"] == best
                assert down["items"][0]["similarity"] is None
        assert not (await found(client, "refunds", mode="lexical"))["degraded"]


class TestWhoseFolders:
    async def test_of_those_in_it_and_of_nobody_else(self, client, far_runtime, ours, provider):
        for user in ("ana", "ben"):
            await client.post("/users", json={"user_id": user})
        for agent in ("helper", "rival", "lender"):
            await client.post("/agents", json={"agent_id": agent, "agent_name": agent})
        for project in ("apollo", "gemini"):
            body = {"project_id": project, "project_name": project, "owner_id": "ana"}
            done(await client.post("/projects", json=body))
        places = {
            "ana": {"scope": "user", "user_id": "ana"},
            "ben": {"scope": "user", "user_id": "ben"},
            "helper": {"scope": "agent", "agent_id": "helper"},
            "rival": {"scope": "agent", "agent_id": "rival"},
            "lender": {"scope": "agent", "agent_id": "lender"},
            "apollo": {"scope": "project", "project_id": "apollo"},
            "gemini": {"scope": "project", "project_id": "gemini"},
        }
        folders = {}
        for name, place in places.items():
            folders[name] = await folder(client, **place)
            text = {"content": f"{REFUNDS} So says {name}."}
            done(await client.post(f"/folders/{folders[name]}/passages", json=text))
        done(await client.put(f"/folders/{folders['lender']}/agents/helper"))
        names = {folder_id: name for name, folder_id in folders.items()}
        principal = await far_runtime.identification.identify(ours.key)

        async def best(agent_id=None, user_id=None, project_id=None):
            answer = (
                await Factory(far_runtime)
                .get(PassageSearchService)
                .search(
                    principal,
                    PassageSearch(
                        query="How long do refunds take?",
                        agent_id=agent_id,
                        user_id=user_id,
                        project_id=project_id,
                    ),
                )
            )
            return {names[one.folder_id] for one in answer.items}

        assert await best(agent_id="helper") == {"helper", "lender"}
        assert await best(user_id="ana") == {"ana"}
        assert await best("helper", "ana") == {"helper", "lender", "ana"}
        assert await best("helper", "ana", "apollo") == {"helper", "lender", "ana", "apollo"}
        assert await best("rival", "ben") == {"rival", "ben"}
        assert await best("nobody", "nobody", "nothing") == set()
        provider.otherwise = refusal(500)
        assert await best("helper", "ana") == {"helper", "lender", "ana"}


class TestExtracting:
    async def test_a_model_reads_passages_and_what_it_makes_names_them(
        self, client, far_runtime, dsn, provider
    ):
        folder_id = await folder(client)
        wanted = "A refund takes five working days."

        def entries(lines):
            return [
                entry(wanted, line["id"], type="knowledge", attribute="refund time")
                for line in lines
                if "five working days" in str(line.get("text", line))
            ][:1]

        provider.chat.otherwise = by_question(
            memories=extracts(entries), decisions=says({"decisions": []})
        )
        async with working(far_runtime, dsn):
            file = await ingested(client, folder_id, "refunds.txt", REFUNDS.encode())
            [passage] = await passages_of(client, folder_id, file["file_id"])
            path = f"/files/{file['file_id']}/extract"
            ordered = done(await client.post(path, json={"prompt": "Only times."}))
            assert ordered["extractor"].startswith("openai/reader")
            job = await over(client, ordered["job_id"])
            assert job["status"] == "succeeded", job
            again = done(await client.post(path, json={"prompt": "Only times."}))
            repeated = await over(client, again["job_id"])
        assert repeated["status"] == "succeeded", repeated
        [first, *_] = provider.chat.requests
        [line] = [line for line in lines_of(first) if REFUNDS in str(line)]
        assert line["name"] == "refunds.txt"
        assert "Only times." in str(first.body["messages"])
        [memory] = done(await client.get("/memories", params={"user_id": "ana"}))["items"]
        assert memory["content"] == wanted
        assert (memory["source"], memory["source_id"]) == ("knowledge_base", file["file_id"])
        assert memory["evidence"] == [passage["passage_id"]]
        assert (memory["speaker"], memory["said_at"]) == (None, None)
        assert memory["source_deleted_at"] is None

        done(await client.delete(f"/folders/{folder_id}/files/{file['file_id']}"))
        left = done(await client.get(f"/memories/{memory['memory_id']}"))
        assert left["source_deleted_at"]
        assert left["content"] == wanted

    async def test_a_repeated_job_pays_only_for_what_was_not_read(
        self, client, far_runtime, dsn, provider
    ):
        """A file is read in several runs, each stored by itself."""
        folder_id = await folder(client)
        text = "\n\n".join(f"Chapter {n}.\n\n" + f"Rule {n} holds. " * 120 for n in range(60))
        asked: list[str] = []

        async def read(request):
            asked.append(str(request.body["messages"]))
            if len(asked) == 2:
                return await refusal(500)(request)
            return await extracts(lambda _: [])(request)

        provider.chat.otherwise = by_question(memories=read)
        async with working(far_runtime, dsn):
            file = await ingested(client, folder_id, "rules.txt", text.encode())
            assert len(await passages_of(client, folder_id, file["file_id"])) > AT_ONCE
            ordered = done(await client.post(f"/files/{file['file_id']}/extract", json={}))
            async with asyncio.timeout(PATIENCE):
                while done(await client.get(f"/jobs/{ordered['job_id']}"))["attempts"] < 2:
                    await make_due(dsn, "job_id = $1", ordered["job_id"])
                    await asyncio.sleep(0.05)
            job = await over(client, ordered["job_id"])

        assert job["status"] == "succeeded", job
        # The first piece once, and the second until it was answered.
        assert len(asked) - len(set(asked)) == 1
        assert asked.count(asked[0]) == 1
        assert await execute(dsn, "SELECT FROM model_answers") == []


class TestReembedding:
    async def test_passages_and_entities_move_to_the_model_in_force(
        self, client, near_runtime, far_runtime, ours, dsn, provider
    ):
        async with near_client(near_runtime, ours) as near:
            folder_id = await folder(near)
            done(await near.post(f"/folders/{folder_id}/passages", json={"content": REFUNDS}))
            done(await near.post(f"/folders/{folder_id}/passages", json={"content": CHINESE}))
        for entity_id, name, model in (
            ("e1", "Bello", LOCAL), ("e2", "Graz", REMOTE), ("e3", "by hand", None)
        ):  # fmt: skip
            await execute(
                dsn,
                "INSERT INTO graph_entities (tenant_id, entity_id, name, name_key, entity_type, "
                "scope, scope_id, user_id, embedding, embedding_model) VALUES "
                "($1, $2, $3, $3, 'thing', 'user', 'ana', 'ana', "
                "CASE WHEN $4::text IS NULL THEN NULL ELSE '[1,0]'::vector END, $4)",
                ours.tenant_id, entity_id, name, model,
            )  # fmt: skip
        reembedding = ReembedService(
            far_runtime.database,
            far_runtime.catalogue,
            EmbeddingLedger(far_runtime.database),
            others=OTHERS,
        )
        plan = await reembedding.plan(ours.tenant_id)
        assert plan.waiting == 3
        # Stopped half-way, it goes on where it was, and no search overlooks what waits.
        provider.script(good, refusal(500))
        with pytest.raises(EmbeddingUnavailableError):
            await reembedding.reembed(ours.tenant_id, plan, batch=1, moved=lambda _: None)
        models = "SELECT embedding_models AS m FROM tenants WHERE tenant_id = $1"
        [listed] = await execute(dsn, models, ours.tenant_id)
        assert set(listed["m"]) == {LOCAL, REMOTE}

        told: list[int] = []
        moved = await reembedding.reembed(ours.tenant_id, plan, batch=1, moved=told.append)
        assert moved == sum(told) == 2
        assert (await reembedding.plan(ours.tenant_id)).waiting == 0
        [listed] = await execute(dsn, models, ours.tenant_id)
        assert listed["m"] == [REMOTE]
        rows = await execute(
            dsn,
            "SELECT embedding_model AS model, vector_dims(embedding) AS dims FROM passages "
            "WHERE tenant_id = $1 UNION ALL SELECT embedding_model, vector_dims(embedding) "
            "FROM graph_entities WHERE tenant_id = $1 AND entity_id = 'e1'",
            ours.tenant_id,
        )
        assert {(row["model"], row["dims"]) for row in rows} == {(REMOTE, 64)}
        answer = await found(client, REFUNDS)
        assert (answer["embedding_models"], answer["waiting"]) == ([REMOTE], 0)
        assert answer["items"][0]["similarity"] == pytest.approx(1, abs=1e-5)
        kept = "SELECT embedding_model AS model FROM graph_entities WHERE tenant_id = $1 ORDER BY 1"
        rows = await execute(dsn, kept, ours.tenant_id)
        assert [row["model"] for row in rows] == [REMOTE, REMOTE, None]
