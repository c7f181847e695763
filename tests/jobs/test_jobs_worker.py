"""A whole worker on a real database: slots, leases, time limits, draining."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from statistics import median
from time import perf_counter
from typing import Any

import asyncpg
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from app.errors import UnavailableError
from app.platform.database.roles import OWNER
from app.platform.jobs.dispatch import Listener
from app.platform.jobs.failures import DeferJobError, GiveUpJobError, LeaseLostError
from app.platform.jobs.orders import ClaimedJob, Handler
from app.platform.jobs.recurring import Ticker
from app.platform.jobs.repository import JobRepository
from app.platform.jobs.worker import POLL_SECONDS, Worker, WorkerLimits
from tests.jobs.jobs_support import MINUTE, SECOND, Queue, db_now
from tests.support.patience import PATIENCE

QUICK = WorkerLimits(slots=4, lease=timedelta(seconds=0.6), job=timedelta(seconds=PATIENCE))


def worker_on(
    queue: Queue, handlers: Mapping[str, Handler], limits: WorkerLimits = QUICK, **rest: Any
) -> Worker:
    return Worker(queue.database, handlers, name="test", limits=limits, spread=lambda: 0.0, **rest)


@asynccontextmanager
async def working(
    queue: Queue, handlers: Mapping[str, Handler], limits: WorkerLimits = QUICK, **rest: Any
) -> AsyncIterator[Worker]:
    worker = worker_on(queue, handlers, limits, **rest)
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        await worker.drain(timedelta(seconds=5))
        await running


async def eventually(condition: Callable[[], Any]) -> None:
    deadline = perf_counter() + PATIENCE
    while True:
        met = condition()
        if await met if asyncio.iscoroutine(met) else met:
            return
        assert perf_counter() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


async def status_is(queue: Queue, job_id: str, *statuses: str) -> bool:
    return (await queue.row(job_id))["status"] in statuses


def counted(kind: str, outcome: str) -> float:
    labels = {"kind": kind, "outcome": outcome}
    return REGISTRY.get_sample_value("kemem_jobs_total", labels) or 0


class Book:
    """A handler that notes its runs, and holds on to them until told otherwise."""

    def __init__(self, *, hold: bool = False, fails: bool = False) -> None:
        self.fails = fails
        self.begun: list[ClaimedJob] = []
        self.ended: list[ClaimedJob] = []
        self.cancelled: list[ClaimedJob] = []
        self.most = 0
        self.go = asyncio.Event()
        if not hold:
            self.go.set()

    async def __call__(self, job: ClaimedJob) -> dict[str, Any]:
        self.begun.append(job)
        now = len(self.begun) - len(self.ended) - len(self.cancelled)
        self.most = max(self.most, now)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(job)
            raise
        self.ended.append(job)
        if self.fails:
            raise RuntimeError
        return {"key": job.key}


@asynccontextmanager
async def read_only(queue: Queue) -> AsyncIterator[None]:
    """A server that is demoted, and promoted again: it cuts its connections both times."""
    name = await queue.owner.fetchval("SELECT current_database()")
    setting = "default_transaction_read_only"

    async def switch(change: str) -> None:
        await queue.owner.execute("RESET ROLE")
        await queue.owner.execute(f"ALTER DATABASE {name} {change}")
        await queue.owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = $1 AND pid <> pg_backend_pid()",
            name,
        )
        await queue.owner.execute(f"SET ROLE {OWNER}")

    await switch(f"SET {setting} = on")
    try:
        yield
    finally:
        await switch(f"RESET {setting}")


class TestWorking:
    async def test_what_is_owed_is_done_once(self, queue: Queue, other_queue: Queue) -> None:
        book = Book()
        for number in range(30):
            await (queue if number % 2 else other_queue).order(key=f"键{number}")
        before = counted("extract", "succeeded")
        async with working(queue, {"extract": book}):
            await eventually(lambda: len(book.ended) == 30)

        assert len({job.job_id for job in book.begun}) == 30
        for row in [*await queue.rows(), *await other_queue.rows()]:
            assert row["status"] == "succeeded"
            assert json.loads(row["result"]) == {"key": row["key"]}
        assert counted("extract", "succeeded") - before == 30
        assert REGISTRY.get_sample_value("kemem_jobs_running", {"kind": "extract"}) == 0

    @pytest.mark.parametrize("slots", [1, 2, 4])
    async def test_no_more_run_at_a_time_than_there_are_slots(
        self, queue: Queue, other_queue: Queue, slots: int
    ) -> None:
        book = Book(hold=True)
        for number in range(6):
            await queue.order(key=str(number))
            await other_queue.order(key=str(number))
        async with working(queue, {"extract": book}, WorkerLimits(slots=slots)):
            await eventually(lambda: len(book.begun) == slots)
            await asyncio.sleep(0.1)
            book.go.set()
            await eventually(lambda: len(book.ended) == 12)

        assert book.most == slots

    async def test_a_handler_may_finish_the_job_with_its_results(self, queue: Queue) -> None:
        async def finishes(job: ClaimedJob) -> None:
            async with queue.database.begin(job.tenant_id) as db:
                await JobRepository(db, job.tenant_id).finish(job, {"by": "itself"})

        before = counted("extract", "succeeded")
        made = await queue.order()
        async with working(queue, {"extract": finishes}):
            await eventually(lambda: status_is(queue, made.job_id, "succeeded"))
            await eventually(lambda: counted("extract", "succeeded") == before + 1)

        assert json.loads((await queue.row(made.job_id))["result"]) == {"by": "itself"}

    async def test_what_is_ordered_while_it_runs_runs_afterwards(self, queue: Queue) -> None:
        """At once, and never beside the first run."""
        book = Book(hold=True)
        await queue.order(signals=frozenset({"first"}))
        async with working(queue, {"extract": book}):
            await eventually(lambda: len(book.begun) == 1)
            for signal in ("second", "third"):
                await queue.order(signals=frozenset({signal}))
            await asyncio.sleep(0.1)
            assert len(book.begun) == 1
            book.go.set()
            await eventually(lambda: len(book.ended) == 2)
            await asyncio.sleep(0.2)

        assert [job.signals for job in book.ended] == [{"first"}, {"second", "third"}]
        assert book.most == 1

    async def test_debounced_work_begins_when_it_is_due(self, queue: Queue) -> None:
        """Nobody gives notice of it."""
        book = Book()
        async with working(queue, {"extract": book}):
            made = await queue.order(delay=timedelta(seconds=0.3))
            await eventually(lambda: len(book.ended) == 1)

        assert book.begun[0].started_at >= made.due_at

    async def test_urgent_work_is_heard_of(self, queue: Queue, jobs_dsn: str) -> None:
        book = Book()
        async with working(queue, {"extract": book}, listener=Listener(jobs_dsn)):
            delays = []
            for number in range(10):
                started = perf_counter()
                await queue.order(key=str(number))
                await eventually(lambda number=number: len(book.ended) == number + 1)
                delays.append(perf_counter() - started)
                # The end of a run has the worker look, too.
                await asyncio.sleep(0.1)

        # By looking alone it would take nearly a second each. A machine may stand still for some.
        assert median(delays) < 0.75 * POLL_SECONDS, delays

    async def test_without_notice_it_is_found_by_looking(self, queue: Queue) -> None:
        book = Book()
        async with working(queue, {"extract": book}):
            for number in range(2):
                await queue.order(key=str(number))
                await eventually(lambda number=number: len(book.ended) == number + 1)

        assert POLL_SECONDS <= 1

    async def test_a_listener_that_was_cut_off_listens_again(
        self, queue: Queue, jobs_dsn: str
    ) -> None:
        woken = asyncio.Event()
        listening = asyncio.create_task(Listener(jobs_dsn).listen(woken.set))
        await asyncio.wait_for(woken.wait(), PATIENCE)
        woken.clear()
        admin = await asyncpg.connect(jobs_dsn)
        cut = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = $1 AND datname = current_database()"
        )
        assert await admin.fetchval(cut, "kemem-listener")
        await admin.close()
        await asyncio.wait_for(woken.wait(), PATIENCE)
        woken.clear()
        await queue.order()
        await asyncio.wait_for(woken.wait(), PATIENCE)
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening


class TestFairness:
    async def test_one_job_of_another_tenant_does_not_wait_for_a_thousand(
        self, queue: Queue, other_queue: Queue
    ) -> None:
        """Even when all of them hang: the last slot is never theirs."""
        hanging, book = Book(hold=True), Book()
        await queue.owner.execute(
            "INSERT INTO jobs (tenant_id, job_id, kind, key) SELECT $1, 'job_' || n, 'extract', "
            "n::text FROM generate_series(1, 1000) AS n",
            queue.tenant_id,
        )
        async with working(queue, {"extract": hanging, "deliver": book}):
            await eventually(lambda: len(hanging.begun) == 3)
            await other_queue.order("deliver")
            await eventually(lambda: len(book.ended) == 1)
            assert len(hanging.begun) == 3
            hanging.go.set()

    async def test_two_with_much_to_do_share_evenly(self, queue: Queue, other_queue: Queue) -> None:
        order: list[str] = []

        async def note(job: ClaimedJob) -> dict[str, Any]:
            order.append(job.tenant_id)
            await asyncio.sleep(0.005)
            return {}

        for one in (queue, other_queue):
            await one.owner.execute(
                "INSERT INTO jobs (tenant_id, job_id, kind, key) SELECT $1, 'job_' || n, "
                "'extract', n::text FROM generate_series(1, 200) AS n",
                one.tenant_id,
            )
        async with working(queue, {"extract": note}):
            await eventually(lambda: len(order) >= 100)

        share = Counter(order[:100])[queue.tenant_id]
        assert 35 <= share <= 65


class DownError(UnavailableError):
    code = "model_unavailable"
    title = "Down"

    def __init__(self, reason: str | None = None, retry_after: float | None = None) -> None:
        super().__init__("The model is down.")
        self.reason = reason
        self.retry_after = retry_after


def raising(error: BaseException) -> Handler:
    async def handler(_job: ClaimedJob) -> None:
        raise error

    return handler


class TestFailing:
    @pytest.mark.parametrize(
        ("error", "status", "reason", "attempts"),
        [
            (DownError(), "pending", "retry", 1),
            (DownError("rate_limited", 30), "pending", "rate_limited", 0),
            (ValueError("words"), "pending", "retry", 1),
            (TimeoutError(), "pending", "retry", 1),
            (GiveUpJobError("bad", "It is bad."), "dead", None, 1),
        ],
    )
    async def test_errors_of_handlers_are_settled(
        self, queue: Queue, error: Exception, status: str, reason: str | None, attempts: int
    ) -> None:
        made = await queue.order()
        async with working(queue, {"extract": raising(error)}):
            await eventually(lambda: status_is(queue, made.job_id, "pending", "dead"))
            await eventually(lambda: settled(queue, made.job_id))

        row = await queue.row(made.job_id)
        assert (row["status"], row["deferred_reason"], row["attempts"]) == (
            status, reason, attempts,
        )  # fmt: skip

    async def test_a_deferred_job_runs_when_it_said(self, queue: Queue) -> None:
        runs: list[ClaimedJob] = []
        until = await db_now(queue) + 0.6 * SECOND

        async def waits(job: ClaimedJob) -> dict[str, Any]:
            runs.append(job)
            if len(runs) == 1:
                raise DeferJobError(until, "window_full")
            return {}

        await queue.order()
        async with working(queue, {"extract": waits}):
            await eventually(lambda: len(runs) == 2)

        assert runs[1].started_at >= until
        assert runs[1].attempts == 1

    async def test_a_result_that_is_no_json_is_a_failure_of_that_job_alone(
        self, queue: Queue
    ) -> None:
        results: dict[str, Any] = {"good": {"n": 1}, "object": {"n": object()}, "nul": {"n": "\0"}}

        async def handler(job: ClaimedJob) -> dict[str, Any]:
            return results[job.key]

        made = {key: (await queue.order(key=key)).job_id for key in results}
        async with working(queue, {"extract": handler}):
            await eventually(lambda: status_is(queue, made["good"], "succeeded"))
            for key in ("object", "nul"):
                await eventually(lambda key=key: settled(queue, made[key]))
        codes = {key: (await queue.row(made[key]))["error_code"] for key in ("object", "nul")}
        assert codes == {"object": "unexpected_error", "nul": "unstorable_text"}

    async def test_a_job_past_the_limit_is_cancelled_and_counts(self, queue: Queue) -> None:
        """Peers 2: nothing holds a slot for ever."""
        book = Book(hold=True)
        made = await queue.order()
        limits = WorkerLimits(slots=1, job=timedelta(seconds=0.2))
        async with working(queue, {"extract": book}, limits):
            await eventually(lambda: settled(queue, made.job_id))
            row = await queue.row(made.job_id)
            book.go.set()

        assert (row["error_code"], row["attempts"]) == ("timed_out", 1)
        assert len(book.cancelled) == 1

    async def test_one_that_does_not_even_notice_loses_its_slot(self, queue: Queue) -> None:
        release = asyncio.Event()

        async def deaf(job: ClaimedJob) -> dict[str, Any]:
            if job.key == "deaf":
                while not release.is_set():
                    with contextlib.suppress(asyncio.CancelledError):
                        await release.wait()
            return {}

        await queue.order(key="deaf", priority=-1)
        made = await queue.order(key="next")
        limits = WorkerLimits(slots=1, job=timedelta(seconds=0.2))
        worker = worker_on(queue, {"extract": deaf}, limits, grace_seconds=0.2)
        running = asyncio.create_task(worker.run())
        await eventually(lambda: status_is(queue, made.job_id, "succeeded"))
        release.set()
        await worker.drain(SECOND)
        await running

        [dead] = [row for row in await queue.rows() if row["key"] == "deaf"]
        assert (dead["status"], dead["error_code"]) == ("pending", "timed_out")

    async def test_exhausted_leases_are_buried(self, queue: Queue) -> None:
        book = Book()
        made = await queue.order(max_attempts=1)
        await queue.claim_one()
        await queue.pass_time(2 * MINUTE)
        async with working(queue, {"extract": book}):
            await eventually(lambda: status_is(queue, made.job_id, "dead"))

        assert (await queue.row(made.job_id))["error_code"] == "lease_expired"
        assert book.begun == []


async def settled(queue: Queue, job_id: str) -> bool:
    row = await queue.row(job_id)
    return row["status"] != "running" and (row["attempts"], row["deferred_reason"]) != (0, None)


async def passed(queue: Queue, moment: datetime) -> bool:
    return await db_now(queue) > moment


class TestKeeping:
    async def test_a_long_job_keeps_its_lease(self, queue: Queue) -> None:
        """Beside another worker, which would take it over."""
        book, limits = Book(hold=True), WorkerLimits(slots=1, lease=timedelta(seconds=3))
        made = await queue.order()
        async with (
            working(queue, {"extract": book}, limits),
            working(queue, {"extract": book}, limits),
        ):
            await eventually(lambda: len(book.begun) == 1)
            ends = (await queue.row(made.job_id))["lease_expires_at"]
            await eventually(lambda: passed(queue, ends))
            # The other has a slot, and takes what has waited longest.
            await queue.order(key="b")
            await eventually(lambda: len(book.begun) == 2)
            book.go.set()
            await eventually(lambda: status_is(queue, made.job_id, "succeeded"))

        assert [job.key for job in book.begun] == ["a", "b"]

    async def test_a_job_that_was_taken_away_is_cancelled(self, queue: Queue) -> None:
        book = Book(hold=True)
        before = counted("extract", "lost")
        made = await queue.order()
        async with working(queue, {"extract": book}):
            await eventually(lambda: len(book.begun) == 1)
            async with queue.database.begin(queue.tenant_id) as db:
                await JobRepository(db, queue.tenant_id).cancel(made.job_id)
            await eventually(lambda: len(book.cancelled) == 1)
            await eventually(lambda: counted("extract", "lost") == before + 1)

        assert (await queue.row(made.job_id))["status"] == "cancelled"

    async def test_a_handler_that_finds_out_itself_is_not_tried_again(self, queue: Queue) -> None:
        made = await queue.order()

        async def loses(job: ClaimedJob) -> None:
            await queue.set(job.job_id, lease_token="another")
            async with queue.database.begin(job.tenant_id) as db:
                await JobRepository(db, job.tenant_id).finish(job, {})

        before = counted("extract", "lost")
        async with working(queue, {"extract": loses}):
            await eventually(lambda: counted("extract", "lost") == before + 1)

        row = await queue.row(made.job_id)
        assert (row["status"], row["lease_token"]) == ("running", "another")
        with pytest.raises(LeaseLostError):
            await queue.finish(await one_of(queue, row))


async def one_of(queue: Queue, row: asyncpg.Record) -> ClaimedJob:
    await queue.order(key="b")
    job = await queue.claim_one()
    assert job.lease_token != row["lease_token"]
    await queue.set(job.job_id, lease_token="another still")
    return job


class TestDraining:
    async def test_what_runs_may_end_and_nothing_else_begins(self, queue: Queue) -> None:
        book = Book(hold=True)
        for number in range(5):
            await queue.order(key=str(number))
        worker = worker_on(queue, {"extract": book}, WorkerLimits(slots=2))
        running = asyncio.create_task(worker.run())
        await eventually(lambda: len(book.begun) == 1)
        draining = asyncio.create_task(worker.drain(timedelta(seconds=PATIENCE)))
        await asyncio.sleep(0.2)
        assert not draining.done()
        book.go.set()

        assert await draining is True
        await asyncio.wait_for(running, PATIENCE)
        statuses = Counter(row["status"] for row in await queue.rows())
        assert statuses == {"succeeded": 1, "pending": 4}

    async def test_what_outlasts_the_budget_is_given_back_uncounted(self, queue: Queue) -> None:
        book = Book(hold=True)
        made = await queue.order(signals=frozenset({"x"}))
        worker = worker_on(queue, {"extract": book})
        running = asyncio.create_task(worker.run())
        await eventually(lambda: len(book.begun) == 1)
        started = perf_counter()

        budget = timedelta(seconds=0.3)
        assert await asyncio.wait_for(worker.drain(budget), PATIENCE) is False
        assert perf_counter() - started >= 0.3
        await running
        row = await queue.row(made.job_id)
        assert (row["status"], row["attempts"], row["deferred_reason"]) == ("pending", 0, None)
        assert (await queue.claim_one()).signals == {"x"}

    async def test_what_cannot_be_given_back_is_not_said_to_be(self, queue: Queue) -> None:
        books = {kind: Book(hold=True) for kind in ("extract", "profile")}
        held, _ = await queue.order("extract"), await queue.order("profile")
        worker = worker_on(queue, books, grace_seconds=2)
        running = asyncio.create_task(worker.run())
        await eventually(lambda: all(book.begun for book in books.values()))

        async with queue.owner.transaction():
            await queue.owner.execute("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", held.job_id)
            with capture_logs() as lines:
                await worker.drain(timedelta(0))
        await running

        [said] = [line for line in lines if line["event"] == "jobs_returned"]
        assert (said["jobs"], said["not_returned"]) == (1, 1)

    @pytest.mark.parametrize("fails", [False, True])
    async def test_stop_does_not_wait_for_a_database_that_cannot_be_written_to(
        self, queue: Queue, fails: bool
    ) -> None:
        """The run has ended, as a success or not, and nobody can be told so."""
        book = Book(hold=True, fails=fails)
        await queue.order()
        worker = worker_on(queue, {"extract": book}, grace_seconds=0.3)
        running = asyncio.create_task(worker.run())
        await eventually(lambda: len(book.begun) == 1)
        async with read_only(queue):
            book.go.set()
            await eventually(lambda: len(book.ended) == 1)
            with capture_logs() as lines:
                assert await asyncio.wait_for(worker.drain(timedelta(hours=1)), PATIENCE) is False
            await running

        [said] = [line for line in lines if line["event"] == "jobs_returned"]
        assert (said["jobs"], said["not_returned"]) == (0, 1)

    async def test_end_is_written_when_the_database_comes_back_before_it_is_given_up(
        self, queue: Queue
    ) -> None:
        book = Book(hold=True)
        made = await queue.order()
        worker = worker_on(queue, {"extract": book}, grace_seconds=PATIENCE)
        running = asyncio.create_task(worker.run())
        await eventually(lambda: len(book.begun) == 1)
        async with read_only(queue):
            book.go.set()
            await eventually(lambda: len(book.ended) == 1)
            draining = asyncio.create_task(worker.drain(timedelta(hours=1)))
            await asyncio.sleep(0.5)
            assert not draining.done()

        assert await asyncio.wait_for(draining, PATIENCE) is True
        await running
        assert (await queue.row(made.job_id))["status"] == "succeeded"

    async def test_a_hurried_worker_waits_no_longer(self, queue: Queue) -> None:
        book = Book(hold=True)
        await queue.order()
        worker = worker_on(queue, {"extract": book})
        running = asyncio.create_task(worker.run())
        await eventually(lambda: len(book.begun) == 1)
        draining = asyncio.create_task(worker.drain(timedelta(hours=1)))
        await asyncio.sleep(0.1)
        worker.hurry()

        assert await asyncio.wait_for(draining, PATIENCE) is False
        await running

    async def test_an_idle_worker_is_drained_at_once(self, queue: Queue) -> None:
        worker = worker_on(queue, {"extract": Book()})
        assert await asyncio.wait_for(worker.drain(timedelta(hours=1)), PATIENCE) is True
        await asyncio.wait_for(worker.run(), PATIENCE)

        worker = worker_on(queue, {"extract": Book()})
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0.1)
        assert await asyncio.wait_for(worker.drain(timedelta(hours=1)), PATIENCE) is True
        await running

    async def test_a_worker_that_is_cancelled_leaves_its_jobs_to_be_taken_over(
        self, queue: Queue
    ) -> None:
        book = Book(hold=True)
        made = await queue.order()
        running = asyncio.create_task(worker_on(queue, {"extract": book}).run())
        await eventually(lambda: len(book.begun) == 1)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

        assert len(book.cancelled) == 1
        assert (await queue.row(made.job_id))["status"] == "running"


class TestTicking:
    async def test_tickers_run_at_the_start_and_then_at_their_interval(self, queue: Queue) -> None:
        ticks: Counter[str] = Counter()

        async def good() -> None:
            ticks["good"] += 1

        async def bad() -> None:
            ticks["bad"] += 1
            raise ValueError("words")

        tickers = (
            Ticker("good", timedelta(seconds=0.05), good),
            Ticker("bad", timedelta(seconds=0.05), bad),
            Ticker("rare", timedelta(hours=1), good),
        )
        made = await queue.order()
        async with working(queue, {"extract": Book()}, tickers=tickers):
            await eventually(lambda: ticks["good"] >= 4 and ticks["bad"] >= 3)
            await eventually(lambda: status_is(queue, made.job_id, "succeeded"))
