"""Random walks: whatever is said, read, killed and retried in whatever order, every message is
read once, none is skipped, and the watermark only rises.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from httpx import AsyncClient

from app.builders.factory import Factory
from app.conversation.sessions.jobs import EXTRACT
from app.language.keyless.reconciler import RulesReconciler
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import Extraction, ExtractionRequest, Proposed
from app.language.llm.model_catalogue import ExtractionModel, ModelCatalogue
from app.memory.extraction.jobs import SessionJobs
from app.platform.embedded.server import EmbeddedPostgres
from app.platform.jobs.dispatch import Dispatch
from app.platform.jobs.endings import Endings
from app.platform.jobs.failures import GIVEN_BACK, GiveUpJobError, LeaseLostError, judge
from app.platform.jobs.orders import ClaimedJob
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import ok
from tests.support.databases import migrated_database, served
from tests.support.model_service import app_of
from tests.support.service import client_of
from tests.support.tenants import Caller, make_tenant

WALKS = 60
QUICK_WALKS = 2
STEPS = 30
SESSIONS = ("first", "second")

STATE = """
SELECT s.session_id, s.last_extracted_seq AS watermark, s.last_sequence_no AS last
FROM sessions s WHERE s.tenant_id = $1
"""
READ = """
SELECT message_id, count(*) AS times FROM gate_decisions, unnest(evidence) AS message_id
WHERE tenant_id = $1 GROUP BY message_id
"""
"""How often a run that was committed had a message before it: it has a verdict for each."""

OWED = """
SELECT m.message_id FROM messages m JOIN jobs j USING (tenant_id, session_id)
WHERE m.tenant_id = $1 AND j.kind = 'extract' AND (j.status IN ('pending', 'running')
    OR j.status = 'dead' AND j.started_at >= m.create_time
    OR j.status = 'cancelled' AND j.finished_at >= m.create_time)
"""
"""Messages that a job will read, or that were before one that is over without having done so."""


class Recorder:
    """An extractor that proposes one statement per message, and fails when it is told to."""

    name = "recorder/1"
    model = None
    prompt_version = None

    def __init__(self) -> None:
        self.next: Callable[[], Awaitable[None]] | None = None
        self.shown: set[str] = set()

    async def extract(self, request: ExtractionRequest) -> Extraction:
        self.shown |= {turn.message_id for turn in request.turns}
        behave, self.next = self.next, None
        if behave is not None:
            await behave()
        return Extraction(
            tuple(
                Proposed(f"The user said: {turn.content[:60]}", "fact", 0.9, (turn.message_id,))
                for turn in request.turns
                if turn.role == "user" and not turn.context
            )
        )

    async def summarise(self, request: ExtractionRequest) -> Extraction:
        return Extraction(())


@dataclass
class Message:
    """What the walk knows of a message it appended."""

    message_id: str
    session_id: str
    number: int
    said: bool
    """By the user, and not only put there."""
    captured: bool
    trivial: bool
    excused: bool = False
    """It was deleted, perhaps before it was read."""

    @property
    def worth_reading(self) -> bool:
        return self.said and self.captured and not self.trivial and not self.excused


@dataclass
class Walk:
    """One tenant's life, step by step, beside what must be true of it."""

    client: AsyncClient
    tenant: Caller
    owner: asyncpg.Connection
    jobs: SessionJobs
    recorder: Recorder
    dispatch: Dispatch
    endings: Endings
    random: random.Random
    messages: dict[str, Message] = field(default_factory=dict)
    watermarks: Counter[str] = field(default_factory=Counter)
    paused: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)
    trail: list[str] = field(default_factory=list)

    # --- what people do

    async def append(self, session_id: str | None = None) -> None:
        session_id = session_id or self.random.choice(SESSIONS)
        batch = self._batch()
        body = {"user_id": "ana", "agent_id": "helper", "messages": batch}
        answer = await self.client.post(f"/sessions/{session_id}/messages", json=body)
        if session_id in self.ended:
            assert answer.status_code == 409
            return
        captured = not {"agent", session_id} & self.paused
        for sent, row in zip(batch, ok(answer, 201)["messages"], strict=True):
            said = sent["role"] == "user" and not sent.get("metadata")
            one = Message(
                row["message_id"],
                session_id,
                row["sequence_no"],
                said,
                captured,
                trivial=sent["content"] == "ok",
            )
            self.messages[one.message_id] = one

    def _batch(self) -> list[dict[str, Any]]:
        thing = f"{self.random.choice(THINGS)} number {len(self.messages)}"
        user = {"role": "user", "content": f"I have {thing}."}
        reply = {"role": "assistant", "content": "I see."}
        call = {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        }
        result = {"role": "tool", "content": "42", "tool_call_id": "c1"}
        batches = [
            [user, reply],
            [user],
            [reply],
            [{"role": "user", "content": "ok"}, reply],
            [user | {"metadata": {"hidden": True}}],
            [user, call, result, reply],
            [call, result],
            [{"role": "system", "content": "Be kind."}, user],
        ]
        if self.random.random() < 0.05:
            # More than one run reads.
            long = {"role": "assistant", "content": "word " * 240}
            return [user, *([long] * 45), {"role": "user", "content": f"I lost {thing}."}]
        return self.random.choice(batches)

    async def delete(self) -> None:
        session_id = self.random.choice(SESSIONS)
        mine = [one for one in self.messages.values() if one.session_id == session_id]
        if not mine:
            return
        if self.random.random() < 0.5:
            body: dict[str, Any] = {"oldest": self.random.randint(1, 3)}
        else:
            body = {"message_ids": [self.random.choice(mine).message_id]}
        answer = await self.client.post(f"/sessions/{session_id}/messages/delete", json=body)
        if answer.status_code == 404:
            return
        for message_id in ok(answer)["message_ids"]:
            self.messages[message_id].excused = True

    async def pause(self) -> None:
        what = self.random.choice(["agent", *SESSIONS])
        path = "/agents/helper" if what == "agent" else f"/sessions/{what}"
        answer = await self.client.patch(path, json={"memory_enabled": what in self.paused})
        if answer.status_code != 404:
            ok(answer)
            self.paused ^= {what}

    async def extract(self) -> None:
        session_id = self.random.choice(SESSIONS)
        answer = await self.client.post(f"/sessions/{session_id}/extract", json={})
        assert answer.status_code in {200, 202, 404, 409}, answer.text

    async def end(self) -> None:
        session_id = self.random.choice(SESSIONS)
        word = "reopen" if session_id in self.ended else "end"
        answer = await self.client.post(f"/sessions/{session_id}/{word}")
        if answer.status_code != 404:
            ok(answer)
            self.ended ^= {session_id}

    async def cancel(self) -> None:
        for job in await self._listed("pending", "running"):
            answer = await self.client.post(f"/jobs/{job['job_id']}/cancel")
            assert answer.status_code in {200, 409}, answer.text
            self.cancelled.add(job["session_id"])

    async def retry(self) -> None:
        for job in await self._listed("dead", "cancelled"):
            answer = await self.client.post(f"/jobs/{job['job_id']}/retry")
            assert answer.status_code in {200, 409}, answer.text

    async def _listed(self, *statuses: str) -> list[dict[str, Any]]:
        rows = ok(await self.client.get("/jobs", params={"kind": EXTRACT, "limit": 100}))["items"]
        return [row for row in rows if row["status"] in statuses]

    # --- what workers do

    async def claim_some(self) -> ClaimedJob | None:
        """The next job; something is said first when nothing is owed."""
        job = await self.claim()
        if job is None:
            await self.append()
            job = await self.claim()
        return job

    async def claim(self) -> ClaimedJob | None:
        """The next job, as if its time had come."""
        await self.owner.execute(
            "UPDATE jobs SET due_at = least(due_at, now()) WHERE tenant_id = $1 "
            "AND status = 'pending'",
            self.tenant.tenant_id,
        )
        found = await self.dispatch.claim(1, {})
        jobs = await self.dispatch.read(found.claims)
        return jobs[0] if jobs else None

    async def carry(self, job: ClaimedJob) -> None:
        """Handle a job as a worker does, whatever comes of it."""
        try:
            await self.jobs.extract(job)
        except LeaseLostError:
            pass
        except Exception as error:  # noqa: BLE001 (as a worker)
            verdict = judge(error, attempts=job.attempts, max_attempts=job.max_attempts, spread=0)
            await self.endings.record(job, verdict)

    async def run(self) -> None:
        job = await self.claim_some()
        if job is not None:
            await self.carry(job)

    def _failure(self) -> Exception:
        return self.random.choice(
            [
                ModelUnavailableError("provider_error"),
                ModelUnavailableError("rate_limited"),
                GiveUpJobError("no_use", "No further attempt can succeed."),
                GiveUpJobError("no_hope", "No further attempt can succeed either."),
                RuntimeError("unexpected"),
            ]
        )

    async def run_and_fail(self) -> None:
        error = self._failure()

        async def fail() -> None:
            raise error

        self.recorder.next = fail
        await self.run()
        self.recorder.next = None

    async def run_and_stop(self) -> None:
        """Cancelled at any moment; given back, or left to its lease like a killed one's."""
        job = await self.claim_some()
        if job is None:
            return
        handling = asyncio.create_task(self.carry(job))
        await asyncio.sleep(self.random.random() * 0.06)
        handling.cancel()
        with suppress(asyncio.CancelledError):
            await handling
        if self.random.random() < 0.5:
            await self.endings.record(job, GIVEN_BACK)

    async def run_beside_others(self) -> None:
        """While a run reads, others act; perhaps its lease runs out and another takes over,
        and perhaps it fails after that.
        """
        job = await self.claim_some()
        if job is None:
            return
        reading, release = asyncio.Event(), asyncio.Event()
        error = self._failure() if self.random.random() < 0.5 else None

        async def hold() -> None:
            reading.set()
            await release.wait()
            if error is not None:
                raise error

        self.recorder.next = hold
        handling = asyncio.create_task(self.carry(job))
        begun = asyncio.create_task(reading.wait())
        await asyncio.wait({handling, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        self.recorder.next = None
        acts = [self.delete, self.pause, self.end, self.extract, self.cancel, self.take_over]
        for _ in range(self.random.randint(1, 3)):
            if self.random.random() < 0.5:
                await self.append(job.session_id)
            else:
                await self.random.choice(acts)()
            await self.check()
        release.set()
        await handling

    async def take_over(self) -> None:
        """Every lease runs out, and another worker begins."""
        await self.expire()
        await self.run()

    async def expire(self) -> None:
        await self.owner.execute(
            "UPDATE jobs SET lease_expires_at = now() - interval '1 second' "
            "WHERE tenant_id = $1 AND status = 'running'",
            self.tenant.tenant_id,
        )

    # --- what is always true

    async def check(self) -> None:
        read = {
            row["message_id"]: row["times"]
            for row in await self.owner.fetch(READ, self.tenant.tenant_id)
        }
        assert set(read.values()) <= {1}, f"read twice: {read}"
        for row in await self.owner.fetch(STATE, self.tenant.tenant_id):
            session_id, watermark = row["session_id"], row["watermark"]
            assert self.watermarks[session_id] <= watermark <= row["last"]
            self.watermarks[session_id] = watermark
            for one in self.messages.values():
                if one.session_id != session_id:
                    continue
                if one.number > watermark or not (one.said and one.captured):
                    assert one.message_id not in read, one
                elif not one.excused:
                    assert one.message_id in read, f"skipped: {one}"
        owed = {row["message_id"] for row in await self.owner.fetch(OWED, self.tenant.tenant_id)}
        for one in self.messages.values():
            if one.worth_reading and one.number > self.watermarks[one.session_id]:
                assert one.message_id in owed, f"nobody owes it: {one}"
        unheard = {one.message_id for one in self.messages.values() if not one.captured}
        assert not unheard & self.recorder.shown

    async def drain(self) -> None:
        """Let everything owed be done, dead jobs too: then nothing is left to read.

        Only where somebody cancelled must somebody ask again.
        """
        for what in sorted(self.paused):
            path = "/agents/helper" if what == "agent" else f"/sessions/{what}"
            answer = await self.client.patch(path, json={"memory_enabled": True})
            assert answer.status_code in {200, 404}, answer.text
        self.paused.clear()
        await self.expire()
        await self.retry()
        for session_id in sorted(self.cancelled):
            await self.client.post(f"/sessions/{session_id}/extract", json={})
        for _ in range(50):
            job = await self.claim()
            if job is None:
                break
            await self.carry(job)
            await self.check()
        assert await self._listed("pending", "running") == []
        behind = [
            one
            for one in self.messages.values()
            if one.worth_reading and one.number > self.watermarks[one.session_id]
        ]
        assert behind == []

    async def go(self) -> None:
        steps = {
            self.append: 10, self.run: 5, self.run_and_fail: 3, self.run_and_stop: 3,
            self.run_beside_others: 4, self.expire: 2, self.extract: 2, self.end: 2,
            self.pause: 2, self.delete: 2, self.retry: 2, self.cancel: 1,
        }  # fmt: skip
        for _ in range(STEPS):
            [step] = self.random.choices(list(steps), list(steps.values()))
            self.trail.append(step.__name__)
            await step()
            await self.check()
        self.trail.append("drain")
        await self.drain()
        await self.check()


THINGS = ["a red bicycle", "two old dogs", "a house in Lyon", "a violin", "many books", "a garden"]


@pytest.fixture(scope="module")
async def walks_dsn(postgres: EmbeddedPostgres) -> str:
    """A database without anybody else's jobs."""
    return await migrated_database(postgres, "walks")


@pytest.fixture(scope="module")
async def walks_runtime(walks_dsn: str) -> AsyncIterator[Runtime]:
    async with open_runtime(Settings(_env_file=None), served(walks_dsn)) as opened:
        yield opened


@pytest.fixture(scope="module")
async def walks_app(walks_runtime: Runtime):
    async with app_of(walks_runtime) as application:
        yield application


@pytest.fixture(scope="module")
async def owner(walks_dsn: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(walks_dsn)
    await connection.execute("SET ROLE kemem_owner")
    yield connection
    await connection.close()


@pytest.mark.parametrize(
    "seed",
    [
        *range(QUICK_WALKS),
        *(pytest.param(n, marks=pytest.mark.slow) for n in range(QUICK_WALKS, WALKS)),
    ],
)
async def test_every_message_is_read_once_in_whatever_order_things_happen(
    walks_app, walks_runtime: Runtime, owner: asyncpg.Connection, seed: int
) -> None:
    tenant = await make_tenant(walks_runtime)
    recorder = Recorder()
    models = ModelCatalogue("rules", rules=ExtractionModel(recorder, RulesReconciler()))
    built = Factory(walks_runtime).get(SessionJobs)
    jobs = SessionJobs(
        walks_runtime.work,
        built._pipeline,
        models,
        built._limits,
        walks_runtime.capture.tags,
        walks_runtime.now,
    )
    dispatch = Dispatch(
        walks_runtime.database,
        kinds=[EXTRACT],
        worker="walk",
        lease=timedelta(minutes=10),
        per_tenant=10,
    )
    endings = Endings(walks_runtime.database, dispatch)
    await owner.execute("DELETE FROM jobs")
    async with client_of(walks_app, tenant.key) as client:
        walk = Walk(client, tenant, owner, jobs, recorder, dispatch, endings, random.Random(seed))
        try:
            await walk.go()
        except BaseException:
            print(f"seed {seed}:", " ".join(walk.trail))  # noqa: T201 (how it came to that)
            raise
