"""The worker: claims due work for its free slots, keeps the leases, ends what was done.

Handlers run beside each other on one event loop. Whatever happens to the worker, a job is
owed until a run of it was finished under its own lease: what a killed worker held is taken
over when the lease runs out, and what it still tries to write is refused.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from time import perf_counter
from typing import Any, Literal

import structlog

from app.platform.database.engine import Database
from app.platform.database.turns import BACKGROUND
from app.platform.jobs.dispatch import Dispatch, Listener
from app.platform.jobs.endings import Endings
from app.platform.jobs.failures import GIVEN_BACK, LEASE_EXPIRED, LeaseLostError, Verdict, judge
from app.platform.jobs.orders import ClaimedJob, Handler
from app.platform.jobs.recurring import Ticker, run_ticker
from app.platform.observability.metrics import JOB_LAG, JOB_RUNS, JOB_SECONDS, JOBS_RUNNING
from app.platform.observability.spans import tracing

log = structlog.get_logger()

POLL_SECONDS = 1.0
"""How often jobs are looked for without a notification: those that came due, or were missed."""

RETRY_SECONDS = 1.0
OUTRUN_SECONDS = 0.01
GRACE_SECONDS = 5.0

Stop = Literal["lost", "drained", "timed_out"]
Outcome = Literal["succeeded", "retry", "defer", "dead", "cancelled", "given_back", "lost"]


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Bounds of one worker.

    Args:
        slots: jobs at a time.
        lease: how long a worker may miss its heartbeat before its jobs are taken over.
        job: the longest that one run may take.

    """

    slots: int = 4
    lease: timedelta = timedelta(seconds=60)
    job: timedelta = timedelta(seconds=300)

    @property
    def per_tenant(self) -> int:
        """Most slots of one tenant. One is kept for others, in case all jobs of a tenant hang."""
        return max(self.slots - 1, 1)


@dataclass(slots=True, eq=False)
class _Run:
    """A job of this worker, from its claim until its end is stored."""

    job: ClaimedJob
    handling: "asyncio.Task[dict[str, Any] | None]"
    stopped: Stop | None = None
    freed: bool = False
    started: float = field(default_factory=perf_counter)

    def stop(self, reason: Stop) -> None:
        if self.stopped is None and not self.handling.done():
            self.stopped = reason
            self.handling.cancel()


class Worker:
    """Runs `handlers` until it is drained. Belongs to one event loop."""

    def __init__(
        self,
        database: Database,
        handlers: Mapping[str, Handler],
        *,
        name: str,
        limits: WorkerLimits,
        spread: Callable[[], float],
        tickers: Sequence[Ticker] = (),
        listener: Listener | None = None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """Take handlers by kind; jobs of other kinds are left to other workers.

        Args:
            name: shown with the jobs it holds; need not be unique.
            spread: random numbers from 0 to 1.
            listener: without one, jobs are found by polling every second.
            grace_seconds: how long a cancelled handler may take to end; after that it is
                abandoned, and its slot is used for others.

        """
        self._database = database
        self._handlers = dict(handlers)
        self._limits = limits
        self._spread = spread
        self._tickers = tickers
        self._listener = listener
        self._grace_seconds = grace_seconds
        self._dispatch = Dispatch(
            database,
            kinds=list(handlers),
            worker=name,
            lease=limits.lease,
            per_tenant=limits.per_tenant,
        )
        self._endings = Endings(database, self._dispatch)
        self._runs: set[_Run] = set()
        self._unwritten: set[_Run] = set()
        self._busy: Counter[str] = Counter()
        self._supervisors: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._draining = asyncio.Event()
        self._hurried = asyncio.Event()
        self._over = asyncio.Event()
        self._claiming: asyncio.Task[None] | None = None
        self._failing = False

    # --- running

    async def run(self) -> None:
        """Work until `drain` has ended. When cancelled, running jobs are left to be taken over."""
        BACKGROUND.set(True)
        self._claiming = asyncio.create_task(self._claim_repeatedly())
        loops = [self._extend_repeatedly(), self._endings.run()]
        loops += [run_ticker(ticker) for ticker in self._tickers]
        if self._listener is not None:
            loops.append(self._listener.listen(self._wake.set))
        tasks = [self._claiming, *(asyncio.create_task(loop) for loop in loops)]
        try:
            await self._over.wait()
        finally:
            for task in [*tasks, *self._supervisors]:
                task.cancel()
            await asyncio.gather(*tasks, *self._supervisors, return_exceptions=True)

    async def drain(self, budget: timedelta) -> bool:
        """Claim nothing more, and end within `budget` or when `hurry` is called.

        Jobs that still run then are cancelled and given back: they are due at once, and the
        attempt does not count. A database that takes no writes is told of neither; it is not
        waited for, and what it was not told of is taken over when its lease runs out.

        Returns:
            Whether all jobs that were begun have ended.

        """
        self._draining.set()
        self._endings.give_up_after(self._grace_seconds)
        self._wake.set()
        if self._claiming is not None:
            hurried = asyncio.create_task(self._hurried.wait())
            ended = asyncio.create_task(self._ended())
            await asyncio.wait(
                {hurried, ended},
                timeout=budget.total_seconds(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            hurried.cancel()
            ended.cancel()
        left = set(self._runs)
        for run in left:
            run.stop("drained")
        if left:
            await asyncio.wait(set(self._supervisors), timeout=self._grace_seconds)
        kept = (self._runs & left) | self._unwritten
        # A second call, such as at the end of a block, waits with the first.
        if (left or kept) and not self._over.is_set():
            log.warning("jobs_returned", jobs=len(left - kept), not_returned=len(kept))
        self._over.set()
        return not left and not kept

    def hurry(self) -> None:
        """End the wait of `drain`."""
        self._hurried.set()

    async def _ended(self) -> None:
        if self._claiming is not None:
            await asyncio.wait({self._claiming})
        while self._supervisors:
            await asyncio.wait(set(self._supervisors))

    # --- claiming

    async def _claim_repeatedly(self) -> None:
        while not self._draining.is_set():
            self._wake.clear()
            try:
                pause = await self._claim()
            except Exception as error:  # noqa: BLE001 (the loop must not end)
                self._note_failure(error)
                pause = RETRY_SECONDS
            else:
                self._note_recovery()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    async def _claim(self) -> float:
        """Fill the free slots; seconds to wait before the next claim.

        Raises DatabaseDiskFullError.
        """
        # What waits costs no room, and is claimed when there is some again.
        self._database.refuse_full()
        handling = sum(not run.freed for run in self._runs)
        # Ends of runs may be stored late, by at most as many again as there are slots.
        free = min(self._limits.slots - handling, 2 * self._limits.slots - len(self._runs))
        if free <= 0:
            return POLL_SECONDS
        held = [run.job.lease_token for run in self._runs]
        found = await self._dispatch.claim(free, self._busy, held)
        for job in await self._dispatch.read(found.claims):
            self._begin(job)
        if found.again:
            return 0.0 if found.claims else OUTRUN_SECONDS
        if found.next_due is None:
            return POLL_SECONDS
        return min(found.next_due.total_seconds(), POLL_SECONDS)

    def _begin(self, job: ClaimedJob) -> None:
        """Run the handler; a job that has used all its attempts is dead."""
        if job.attempts > job.max_attempts:
            self._supervise(self._end_exhausted(job))
            return
        JOB_LAG.labels(job.kind).observe(max((job.started_at - job.due_at).total_seconds(), 0))
        JOBS_RUNNING.labels(job.kind).inc()
        self._busy[job.tenant_id] += 1
        run = _Run(job, asyncio.create_task(self._handle(job)))
        run.handling.add_done_callback(lambda _task: self._free(run))
        self._runs.add(run)
        self._supervise(self._supervise_run(run))

    async def _handle(self, job: ClaimedJob) -> dict[str, Any] | None:
        handler = self._handlers[job.kind]
        traces = tracing()
        if traces is None:
            return await handler(job)
        result: dict[str, Any] | None = await traces.job(
            job.kind, job.job_id, job.attempts, job.traceparent, partial(handler, job)
        )
        return result

    def _free(self, run: _Run) -> None:
        """Free the slot of a handler that has ended or was abandoned."""
        if run.freed:
            return
        run.freed = True
        JOBS_RUNNING.labels(run.job.kind).dec()
        JOB_SECONDS.labels(run.job.kind).observe(perf_counter() - run.started)
        self._busy[run.job.tenant_id] -= 1
        if not self._busy[run.job.tenant_id]:
            del self._busy[run.job.tenant_id]
        self._wake.set()

    def _supervise(self, carrying: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(carrying)
        self._supervisors.add(task)
        task.add_done_callback(self._supervisors.discard)

    # --- ending

    async def _supervise_run(self, run: _Run) -> None:
        """Wait for a run and store how it ended."""
        try:
            await self._wait(run)
            outcome = await self._end(run)
        except asyncio.CancelledError:
            run.stop("drained")
            raise
        except Exception as error:  # noqa: BLE001 (its lease will run out)
            log.warning("job_end_not_written", kind=run.job.kind, error=type(error).__name__)
            outcome = "lost"
            if self._draining.is_set():
                self._unwritten.add(run)
        finally:
            self._runs.discard(run)
            self._wake.set()
        self._report(run.job, outcome)

    async def _wait(self, run: _Run) -> None:
        """Wait until the handler ends; past the limit it is cancelled, then abandoned."""
        done, _ = await asyncio.wait({run.handling}, timeout=self._limits.job.total_seconds())
        if done:
            return
        run.stop("timed_out")
        done, _ = await asyncio.wait({run.handling}, timeout=self._grace_seconds)
        if not done:
            log.error("job_stop_timed_out", kind=run.job.kind, job_id=run.job.job_id)
            self._free(run)

    async def _end(self, run: _Run) -> Outcome:
        error: BaseException | None = None
        if not run.handling.done() or run.handling.cancelled():
            if run.stopped == "lost":
                return "lost"
            if run.stopped == "drained":
                return await self._record(run.job, GIVEN_BACK)
            error = TimeoutError() if run.stopped else asyncio.CancelledError()
        else:
            error = run.handling.exception()
        if error is None:
            try:
                won = await self._endings.succeed(run.job, run.handling.result())
            except Exception as unwritable:  # noqa: BLE001 (such as a result that is not JSON)
                error = unwritable
            else:
                return "succeeded" if won else "lost"
        if isinstance(error, LeaseLostError):
            return "lost"
        job = run.job
        verdict = judge(
            error, attempts=job.attempts, max_attempts=job.max_attempts, spread=self._spread()
        )
        return await self._record(job, verdict)

    async def _record(self, job: ClaimedJob, verdict: Verdict) -> Outcome:
        return verdict.outcome if await self._endings.record(job, verdict) else "lost"

    async def _end_exhausted(self, job: ClaimedJob) -> None:
        self._report(job, await self._record(job, LEASE_EXPIRED))

    def _report(self, job: ClaimedJob, outcome: Outcome) -> None:
        JOB_RUNS.labels(job.kind, outcome).inc()
        if outcome != "succeeded":
            log.info(
                "job_not_done",
                kind=job.kind,
                job_id=job.job_id,
                outcome=outcome,
                attempts=job.attempts,
            )

    # --- leases

    async def _extend_repeatedly(self) -> None:
        third = self._limits.lease.total_seconds() / 3
        pause = third
        while True:
            await asyncio.sleep(pause)
            try:
                await self._extend()
            except Exception as error:  # noqa: BLE001 (the loop must not end)
                self._note_failure(error)
                pause = min(RETRY_SECONDS, third)
            else:
                pause = third

    async def _extend(self) -> None:
        """Extend every lease; stop handlers whose lease is lost."""
        runs = {run.job.lease_token: run for run in self._runs}
        if not runs:
            return
        for token in await self._dispatch.extend([run.job for run in runs.values()]):
            runs[token].stop("lost")

    def _note_failure(self, error: Exception) -> None:
        if not self._failing:
            log.warning("worker_backing_off", error=type(error).__name__)
        self._failing = True

    def _note_recovery(self) -> None:
        if self._failing:
            log.info("worker_recovered")
        self._failing = False
