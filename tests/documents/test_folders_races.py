"""Files that go while something is made of them, in every order of the two."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import pytest
from httpx import AsyncClient

from app.language.parsing.documents import ParseError
from app.language.parsing.parser_pool import ParserPool
from app.platform.embedded.server import EmbeddedPostgres
from app.platform.jobs.worker import Worker, WorkerLimits
from app.prompting.documents.file_service import INGEST
from app.prompting.documents.jobs import FileJobs
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import execute
from tests.support.databases import migrated_database, served
from tests.support.folders import done, folder, ingested, upload
from tests.support.locks import holding, until_somebody_waits
from tests.support.model_service import app_of
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import Caller, make_tenant
from tests.support.working import over, waiting, working

ABOUT = b"I live in Munich. I work as a nurse at the city hospital. I love hiking."
BOOK = "\n\n".join(
    f"The mill grinds {n} sacks a day, every one with its number. " * 12 for n in range(120)
)
_QUERIES = """
SELECT query FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.fixture(scope="module")
async def dsn(postgres: EmbeddedPostgres) -> str:
    """A database of this file alone: it reads what waits for a lock."""
    return await migrated_database(postgres, "folders_races")


@pytest.fixture(scope="module")
async def runtime(dsn: str) -> AsyncIterator[Runtime]:
    async with open_runtime(Settings(_env_file=None), served(dsn)) as opened:
        yield opened


@pytest.fixture(scope="module")
async def app(runtime: Runtime):
    async with app_of(runtime) as application:
        yield application


@pytest.fixture
async def acme(runtime: Runtime) -> Caller:
    return await make_tenant(runtime)


@pytest.fixture
async def client(app, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with client_of(app, acme.key) as opened:
        yield opened


def bucket(caller: Caller, scope: str, scope_id: str) -> str:
    """Holds the lock under which memories of a bucket are stored."""
    name = f"{caller.tenant_id}\\x1f{scope}\\x1f{scope_id}"
    return f"SELECT pg_advisory_xact_lock(hashtextextended(E'{name}', 1))"


async def of_project(client: AsyncClient) -> str:
    await client.post("/users", json={"user_id": "ana"})
    body = {"project_id": "apollo", "project_name": "A", "owner_id": "ana"}
    done(await client.post("/projects", json=body))
    return await folder(client, scope="project", project_id="apollo")


async def read_from_files(client: AsyncClient, **params: str):
    listed = await client.get("/memories", params={"source": "knowledge_base"} | params)
    return done(listed)["items"]


class TestExtracted:
    @pytest.mark.parametrize("way", ["delete", "replace", "folder", "project"])
    async def test_what_is_stored_before_the_file_goes_says_so(
        self, client, runtime, dsn, acme, way
    ):
        folder_id = await (of_project(client) if way == "project" else folder(client))
        async with working(runtime, dsn, profiles=False):
            file = await ingested(client, folder_id, "about.txt", ABOUT)
            path = f"/folders/{folder_id}/files"
            gone = {
                "delete": ("DELETE", f"{path}/{file['file_id']}", {}),
                "replace": ("POST", path, {"file_name": "about.txt", "on_same_name": way}),
                "folder": ("DELETE", f"/folders/{folder_id}", {"confirm": True}),
                "project": ("DELETE", "/projects/apollo", {"confirm": True}),
            }[way]
            method, address, params = gone
            whom = {"scope": "user", "user_id": "ana"}
            async with holding(dsn, bucket(acme, "user", "ana")) as holder:
                ordered = done(await client.post(f"/files/{file['file_id']}/extract", json=whom))
                reader = await until_somebody_waits(dsn, holder)
                going = asyncio.create_task(
                    client.request(method, address, params=params, content=ABOUT)
                    if method == "POST"
                    else client.request(method, address, params=params)
                )
                await until_somebody_waits(dsn, reader)
            done(await going)
            job = await over(client, ordered["job_id"]) if way != "project" else None
        assert job is None or job["status"] == "succeeded", job
        left = await read_from_files(client, user_id="ana")
        assert left
        assert {one["source_id"] for one in left} == {file["file_id"]}
        assert all(one["source_deleted_at"] for one in left)

    async def test_of_a_file_that_goes_first_nothing_is_stored(self, client, runtime, dsn, acme):
        folder_id = await folder(client)
        async with working(runtime, dsn, profiles=False):
            file = await ingested(client, folder_id, "about.txt", ABOUT)
            path = f"/files/{file['file_id']}/extract"
            first = done(await client.post(path, json={}))
            assert (await over(client, first["job_id"]))["status"] == "succeeded"
            rows = f"SELECT 1 FROM memories WHERE tenant_id = '{acme.tenant_id}' FOR UPDATE"
            async with holding(dsn, rows) as holder:
                going = asyncio.create_task(
                    client.delete(f"/folders/{folder_id}/files/{file['file_id']}")
                )
                deletion = await until_somebody_waits(dsn, holder)
                other = {"scope": "agent", "agent_id": "default"}
                ordered = done(await client.post(path, json=other))
                await until_somebody_waits(dsn, deletion)
            gone = done(await going)
            job = await over(client, ordered["job_id"])
        assert job["status"] == "cancelled", job
        left = await read_from_files(client)
        assert gone["memories"] == len(left) > 0
        assert all(one["scope"] == "user" and one["source_deleted_at"] for one in left)


class TestOrders:
    async def test_with_other_instructions_are_other_work(self, client, runtime, dsn):
        folder_id = await folder(client)
        async with working(runtime, dsn, profiles=False):
            file = await ingested(client, folder_id, "about.txt", ABOUT)
        path = f"/files/{file['file_id']}/extract"
        prompts = (None, "Only places.", "Only places.", "Only work.", None)
        made = [
            done(await client.post(path, json={"prompt": one} if one else {}))["job_id"]
            for one in prompts
        ]
        assert made[1] == made[2]
        assert made[0] == made[4]
        assert len(set(made)) == 3
        rows = await execute(
            dsn, "SELECT payload->>'prompt' AS said FROM jobs WHERE job_id = ANY ($1)", made
        )
        assert {row["said"] for row in rows} == set(prompts)
        async with working(runtime, dsn, profiles=False):
            for job_id in set(made):
                assert (await over(client, job_id))["status"] == "succeeded"


class Gate:
    """Stops whoever comes, from the `first` on, until it is opened."""

    def __init__(self, first: int = 1) -> None:
        self.reached, self._open = asyncio.Event(), asyncio.Event()
        self._left = first

    async def pass_through(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self.reached.set()
            await self._open.wait()

    def open(self) -> None:
        self._open.set()


class Held(ParserPool):
    """A parser that waits at a gate, or cannot read."""

    def __init__(self, gate: Gate | None = None, fault: ParseError | None = None) -> None:
        super().__init__()
        self._gate, self._fault = gate, fault

    async def read(self, kind, content):
        if self._fault is not None:
            raise self._fault
        if self._gate is not None:
            await self._gate.pass_through()
        return await super().read(kind, content)


class HeldEmbedder:
    """An embedder that waits at a gate; the same stands for the choice of one."""

    def __init__(self, embedders, gate: Gate) -> None:
        self._embedders, self._gate, self._embedder = embedders, gate, None

    async def for_writing(self, principal, agent_id):
        self._embedder = await self._embedders.for_writing(principal, agent_id)
        return self

    @property
    def name(self) -> str:
        return self._embedder.name

    async def embed(self, texts):
        await self._gate.pass_through()
        return await self._embedder.embed(texts)


@asynccontextmanager
async def reading(runtime: Runtime, parsers: ParserPool, embedders=None) -> AsyncIterator[None]:
    """A worker that reads files with such parts, and does nothing else."""
    jobs = FileJobs(
        runtime.work,
        embedders or runtime.embedders,
        parsers,
        runtime.now,
    )
    worker = Worker(
        runtime.database,
        {INGEST: jobs.ingest},
        name="held",
        limits=WorkerLimits(),
        spread=lambda: 0.5,
    )
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        await worker.drain(timedelta(seconds=10))
        await running


@asynccontextmanager
async def stopped(runtime: Runtime, where: str) -> AsyncIterator[Gate]:
    """Jobs stop at the parser, or at the embedder with their second batch."""
    gate = Gate(1 if where == "parser" else 2)
    parser = Held(gate) if where == "parser" else ParserPool()
    embedders = HeldEmbedder(runtime.embedders, gate) if where == "embedder" else None
    async with reading(runtime, parser, embedders):
        try:
            yield gate
        finally:
            gate.open()


_LEFT = " UNION ALL ".join(
    f"SELECT '{one}' AS name, count(*) AS n FROM {one} WHERE tenant_id = $1"
    for one in ("users", "folders", "files", "file_chunks", "passages", "jobs", "idempotency_keys")
)


async def left_of(dsn: str, caller: Caller) -> dict[str, int]:
    return {
        row["name"]: row["n"] for row in await execute(dsn, _LEFT, caller.tenant_id) if row["n"]
    }


class TestErased:
    @pytest.mark.parametrize("where", ["parser", "embedder"])
    async def test_a_user_whose_file_is_being_read_leaves_nothing(
        self, client, runtime, dsn, acme, where
    ):
        folder_id = await folder(client)
        async with stopped(runtime, where) as gate:
            await upload(client, folder_id, "book.txt", BOOK.encode())
            async with asyncio.timeout(PATIENCE):
                await gate.reached.wait()
            before = await left_of(dsn, acme)
            assert {"files", "jobs"} <= before.keys()
            assert ("passages" in before) == (where == "embedder")
            done(await client.delete("/users/ana", params={"hard": True, "confirm": True}))
        # The worker has ended what it had begun.
        assert await left_of(dsn, acme) == {}
        async with working(runtime, dsn):
            file = await ingested(client, await folder(client), "about.txt", ABOUT)
        assert file["state"] == "completed"

    @pytest.mark.parametrize("what", ["file", "text"])
    async def test_what_is_put_in_meanwhile_goes_too(self, client, dsn, acme, what):
        folder_id = await folder(client)
        rows = f"SELECT 1 FROM folders WHERE folder_id = '{folder_id}' FOR NO KEY UPDATE"
        sent = {
            "file": {"params": {"file_name": "a.txt"}, "content": ABOUT},
            "text": {"json": {"content": "I live in Munich."}},
        }[what]
        address = f"/folders/{folder_id}/{'files' if what == 'file' else 'passages'}"
        async with holding(dsn, rows) as holder:
            coming = asyncio.create_task(
                client.post(address, headers={"Idempotency-Key": "k"}, **sent)
            )
            writer = await until_somebody_waits(dsn, holder)
            going = asyncio.create_task(
                client.delete("/users/ana", params={"hard": True, "confirm": True})
            )
            await until_somebody_waits(dsn, writer)
            connection = await asyncpg.connect(dsn)
            waiting = [row["query"] for row in await connection.fetch(_QUERIES)]
            await connection.close()
            # The erasure has not begun to delete: neither has to begin anew.
            assert not any(query.startswith("DELETE") for query in waiting), waiting
        done(await coming)
        done(await going)
        assert await left_of(dsn, acme) == {}


async def found(client: AsyncClient, query: str) -> list[str]:
    """Ids of the passages that a search finds."""
    body = {"query": query, "user_id": "ana", "limit": 100}
    answer = done(await client.post("/passages/search", json=body))
    return sorted(one["passage_id"] for one in answer["items"])


class TestReadAnew:
    async def test_old_passages_are_found_until_the_new_ones_are_complete(
        self, client, runtime, dsn
    ):
        folder_id = await folder(client)
        async with working(runtime, dsn):
            file = await ingested(client, folder_id, "book.txt", BOOK.encode())
            before = await found(client, "mill sacks")
            path = f"/folders/{folder_id}/files/{file['file_id']}"
            listed = [
                one["passage_id"] for one in done(await client.get(f"{path}/passages"))["items"]
            ]
        async with stopped(runtime, "embedder") as gate:
            ordered = done(await client.post(f"{path}/reingest"))
            async with asyncio.timeout(PATIENCE):
                await gate.reached.wait()
            half = done(await client.get(path))
            assert half["state"] == "embedding"
            assert 0 < half["passage_count"] < half["passages_expected"]
            assert before == await found(client, "mill sacks")
            assert (
                done(await client.get(f"/folders/{folder_id}"))["passage_count"]
                == (file["passage_count"])
            )
            early = await client.post(f"/files/{file['file_id']}/extract", json={})
            assert early.json()["code"] == "file_not_ready"
            gone = f"/folders/{folder_id}/passages/{listed[0]}"
            assert (await client.delete(gone)).status_code == 204
            assert done(await client.get(path))["passage_count"] == half["passage_count"]
        done_job = await over(client, ordered["job_id"])
        assert done_job["status"] == "succeeded"
        again = done(await client.get(path))
        assert (again["state"], again["passage_count"]) == ("completed", file["passage_count"])
        after = done(await client.get(f"{path}/passages"))["items"]
        assert [one["passage_id"] for one in after] == listed
        assert [one["ordinal"] for one in after] == list(range(len(listed)))
        assert before == await found(client, "mill sacks")

    async def test_a_reading_that_fails_leaves_those_of_the_last(self, client, runtime, dsn):
        folder_id = await folder(client)
        async with working(runtime, dsn):
            file = await ingested(client, folder_id, "about.txt", ABOUT)
            before = await found(client, "Munich")
            path = f"/folders/{folder_id}/files/{file['file_id']}"
        fault = ParseError("timed_out", "Reading it takes longer than 1 s.")
        async with reading(runtime, Held(fault=fault)):
            ordered = done(await client.post(f"{path}/reingest"))
            assert (await over(client, ordered["job_id"]))["status"] == "dead"
        failed = done(await client.get(path))
        assert (failed["state"], failed["error_code"]) == ("error", "timed_out")
        assert failed["passage_count"] == file["passage_count"] == len(before) > 0
        assert before == await found(client, "Munich")
        async with working(runtime, dsn):
            ordered = done(await client.post(f"{path}/reingest"))
            await over(client, ordered["job_id"])
        again = done(await client.get(path))
        assert (again["state"], again["error_code"]) == ("completed", None)
        assert before == await found(client, "Munich")


async def test_while_memory_is_off_files_wait_and_lose_no_attempt(client, runtime, dsn) -> None:
    folder_id = await folder(client)
    async with working(runtime, dsn):
        read = await ingested(client, folder_id, "about.txt", ABOUT)
    ordered = done(await client.post(f"/files/{read['file_id']}/extract", json={}))["job_id"]
    uploaded = (await upload(client, folder_id, "more.txt", b"The pump runs."))["job_id"]

    async with (
        open_runtime(Settings(_env_file=None, enabled=False), served(dsn)) as off,
        working(off, dsn),
    ):
        jobs = [await waiting(client, one) for one in (ordered, uploaded)]

    assert {(one["status"], one["deferred_reason"], one["attempts"]) for one in jobs} == {
        ("pending", "memory_disabled", 0)
    }
    await execute(
        dsn, "UPDATE jobs SET due_at = now() WHERE job_id = ANY ($1)", [ordered, uploaded]
    )
    async with working(runtime, dsn):
        assert (await over(client, ordered))["status"] == "succeeded"
        assert (await over(client, uploaded))["status"] == "succeeded"
