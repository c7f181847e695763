"""`kemem purge` and `kemem reembed` beside a running service."""

import stat

import asyncpg
import numpy as np
import pytest
from cli_support import kemem

from app.builders.factory import Factory
from app.governance.webhooks.sender import SecretBox
from app.identity.usage.ledger import EmbeddingLedger
from app.language.llm.embedder import DenseShare, DuplicateThreshold
from app.language.llm.embedder_catalogue import EmbedderCatalogue
from app.memory.memories.backfill import ReembedService
from app.memory.memories.edit_service import EditService
from app.memory.memories.save_service import SaveService
from app.memory.memories.schemas import MemoryCreate, MemoryPatch
from app.platform.embedded.attachment import attach
from tests.support.openai_server import good, openai_server, refusal

pytestmark = pytest.mark.slow

MODEL = "wordllama/l2_supercat:256"
OLD = "wordllama/before:256"


async def query(service, statement, *values):
    connection = await asyncpg.connect((await attach(service.data_dir)).migration)
    try:
        await connection.execute("SET ROLE kemem_owner")
        return await connection.fetch(statement, *values)
    finally:
        await connection.close()


def command(service, *arguments, env=None):
    done = kemem(*arguments, "--data-dir", service.data_dir, cwd=service.data_dir.parent, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def save(client, text, user_id="ana"):
    body = {"messages": text, "user_id": user_id, "infer": False}
    answer = client.post("/memories", json=body, headers={"Idempotency-Key": text})
    assert answer.status_code == 201
    return answer.json()["results"][0]["memory_id"]


async def test_a_purge_removes_words_and_keeps_that_there_was_something(service):
    with service.client() as client:
        gone = save(client, "This is to be forgotten.")
        kept = save(client, "This stays where it is.")
        assert client.delete(f"/memories/{gone}").status_code == 204
    await query(
        service, "UPDATE idempotency_keys SET expires_at = now() WHERE idempotency_key LIKE 'This%'"
    )
    command(service, "purge")
    assert await query(service, "SELECT 1 FROM memories WHERE memory_id = $1", gone)
    assert not await query(service, "SELECT 1 FROM idempotency_keys")

    assert "default" in command(service, "purge", "--days", "0", "--dry-run")
    assert "default" in command(service, "purge", "--days", "0")
    [row] = await query(
        service, "SELECT array_agg(memory_id) AS ids FROM memories WHERE tenant_id = 'default'"
    )
    assert gone not in row["ids"]
    assert kept in row["ids"]
    lines = await query(
        service, "SELECT event, before, after FROM memory_history WHERE memory_id = $1", gone
    )
    assert [tuple(line) for line in lines] == [("DELETE", None, None)]
    verdicts = await query(service, "SELECT content FROM gate_decisions WHERE memory_id = $1", gone)
    assert [row["content"] for row in verdicts] == [None]


async def test_a_purge_takes_along_all_that_goes_with_time(service):
    with service.client() as client:
        expired = save(client, "She has a cold this week.", "cy")
    await query(service, "UPDATE memories SET expires_at = now() WHERE memory_id = $1", expired)
    for statement in (
        "INSERT INTO jobs (tenant_id, job_id, kind, key, status, finished_at) "
        "VALUES ('default', 'job_old', 'extract', 'k', 'succeeded', now() - interval '7 days')",
        "INSERT INTO usage (tenant_id, day, operation, model) "
        "VALUES ('default', '2020-01-01', 'extraction', 'm')",
        "INSERT INTO extraction_runs (tenant_id, run_id, trigger, status, extractor, create_time) "
        "VALUES ('default', 'run_old', 'end', 'failed', 'rules/1', now() - interval '90 days')",
    ):
        await query(service, statement)
    kinds = ("expired memories, archived", "finished jobs", "days of usage", "extraction runs")
    left = """SELECT (SELECT count(*) FROM jobs WHERE job_id = 'job_old')
        + (SELECT count(*) FROM usage WHERE day = '2020-01-01')
        + (SELECT count(*) FROM extraction_runs WHERE run_id = 'run_old')
        + (SELECT count(*) FROM memories WHERE status = 'active' AND expires_at IS NOT NULL)
        AS rows"""

    due = command(service, "purge", "--dry-run")
    assert all(kind in due for kind in kinds)
    assert "Due" in due
    assert [row["rows"] for row in await query(service, left)] == [4]
    done = command(service, "purge")
    assert all(kind in done for kind in kinds)
    assert "Done" in done
    assert [row["rows"] for row in await query(service, left)] == [0]
    assert "Nothing is due." in command(service, "purge")


async def test_reembed_brings_rows_over_and_forgets_the_old_model(service):
    with service.client() as client:
        memory_id = save(client, "He grows tomatoes on the balcony.", "bo")
        await query(service, "UPDATE memories SET embedding_model = $1", OLD)
        await query(service, "UPDATE tenants SET embedding_models = $1", [OLD])
        search = {"query": "What grows on the balcony?", "user_id": "bo"}
        before = client.post("/memories/search", json=search).json()
        assert [one["similarity"] for one in before["results"]] == [0]
        assert before["waiting"] == 1
        command(service, "reembed", "--batch", "1")
        after = client.post("/memories/search", json=search).json()
    assert after["waiting"] == 0
    assert after["results"][0]["memory_id"] == memory_id
    assert after["results"][0]["version"] == 1
    assert after["results"][0]["similarity"] > 0.3
    [tenant] = await query(
        service, "SELECT embedding_models FROM tenants WHERE tenant_id = 'default'"
    )
    assert tenant["embedding_models"] == [MODEL]
    assert "Every memory has a vector" in command(service, "reembed")


async def test_reembed_waits_as_long_as_the_endpoint_asks(service):
    with service.client() as client:
        save(client, "She mends old radios.", "di")
    with openai_server() as server:
        # The first asks for the dimension. The wait is longer than the service's inside a call.
        server.script(good, refusal(429, retry_after="5.2"))
        env = {"OPENAI_BASE_URL": server.base_url, "MEMORY_EMBEDDING_MODEL": "openai/m"}
        assert "moved" in command(service, "reembed", env=env)
        assert len(server.requests) > 2
    command(service, "reembed")


class Interrupting:
    """An embedder during whose first call somebody edits the memory."""

    name = "stand-in/interrupting:3"
    dimension = 3
    duplicate_threshold = DuplicateThreshold(latin=0.9, cjk=0.9)
    dense_share = DenseShare(latin=0.5, cjk=0.5)

    def __init__(self, interrupt):
        self._interrupt = interrupt
        self.seen = []

    async def embed(self, texts, use=None):
        self.seen.append(list(texts))
        if self._interrupt is not None:
            interrupt, self._interrupt = self._interrupt, None
            await interrupt()
        return np.tile(np.asarray([1, 0, 0], np.float32), (len(texts), 1))


async def test_an_edit_wins_over_the_vector_of_what_was_before(runtime, acme):
    principal = await runtime.identification.identify(acme.key)

    def body(text):
        return MemoryCreate(messages=text, user_id="ana", infer=False)

    saving = Factory(runtime).get(SaveService)
    added, _ = await saving.add(principal, body("She lives in Graz now."))
    other, _ = await saving.add(principal, body("Her dog is called Bello."))
    edited = added.results[0].memory_id

    async def interrupt():
        await (
            Factory(runtime)
            .get(EditService)
            .patch(principal, edited, MemoryPatch(content="She lives in Linz now."), expected=None)
        )

    embedder = Interrupting(interrupt)
    service = ReembedService(
        runtime.database,
        EmbedderCatalogue("stand-in", embedder, None),
        EmbeddingLedger(runtime.database),
    )
    plan = await service.plan(acme.tenant_id)
    assert plan.waiting == 2
    moved = await service.reembed(acme.tenant_id, plan, batch=10, moved=lambda _count: None)
    assert moved == 2
    assert [sorted(texts) for texts in embedder.seen] == [
        ["Her dog is called Bello.", "She lives in Graz now."],
        ["She lives in Linz now."],
    ]
    assert other.results[0].event == "ADD"
    assert (await service.plan(acme.tenant_id)).waiting == 0


async def test_secrets_of_webhooks_are_encrypted_with_the_key_of_the_data_folder(service):
    key = service.data_dir / "secret.key"
    with service.client() as client:
        made = client.post("/webhooks", json={"url": "https://8.8.8.8/hook"}).json()
    read = "SELECT secret FROM webhooks WHERE webhook_id = $1"
    [row] = await query(service, read, made["webhook_id"])
    assert SecretBox([key.read_text()]).open(row["secret"]) == made["secret"]
    assert stat.S_IMODE(key.stat().st_mode) == 0o600

    plain = "UPDATE webhooks SET secret = $2 WHERE webhook_id = $1"
    await query(service, plain, made["webhook_id"], made["secret"])
    assert "1 of 1 webhooks" in command(service, "encrypt-secrets")

    [row] = await query(service, read, made["webhook_id"])
    assert not row["secret"].startswith("whsec_")
    assert SecretBox([key.read_text()]).open(row["secret"]) == made["secret"]
