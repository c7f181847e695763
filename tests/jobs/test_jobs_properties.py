"""Whatever happens in whatever order: one live row per key, and no signal is lost."""

import random
from collections import defaultdict
from datetime import datetime, timedelta

import pytest

from app.errors import NotFoundError, UnavailableError
from app.platform.jobs.dispatch import Dispatch
from app.platform.jobs.failures import (
    GIVEN_BACK,
    LEASE_EXPIRED,
    DeferJobError,
    GiveUpJobError,
    LeaseLostError,
    Verdict,
)
from app.platform.jobs.models import LANE_BUSY
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository
from tests.jobs.jobs_support import MINUTE, SECOND, Queue, db_now, new_dispatch

KEYS = ("ana", "ben", "cleo")
STEPS = 70


class DownError(UnavailableError):
    code = "down"
    title = "Down"


class GoneError(NotFoundError):
    code = "gone"
    title = "Gone"


class World:
    """Two workers, a few keys, and a book of what was ordered and not done yet."""

    def __init__(
        self, queue: Queue, chance: random.Random, lane: str | None, now: datetime
    ) -> None:
        self.queue = queue
        self.lane = lane
        self.now = now
        self.chance = chance
        self.dispatches = [new_dispatch(queue.database, name) for name in ("one", "two")]
        self.held: list[ClaimedJob] = []
        self.owed: dict[str, set[str]] = defaultdict(set)
        self.ordered = 0

    async def order(self) -> None:
        key = self.chance.choice(KEYS)
        signal = f"s{self.ordered}"
        self.ordered += 1
        made = await self.queue.try_order(
            key=key,
            signals=frozenset({signal}),
            payload={signal: 1},
            delay=self.chance.choice((timedelta(0), SECOND, MINUTE)),
            longest=self.chance.choice((None, 2 * MINUTE)),
            postpone_only=self.chance.random() < 0.2,
            max_attempts=3,
            lane=self.lane,
            lane_order=self.now - self.chance.randrange(9) * MINUTE,
        )
        if made is not None:
            self.owed[key].add(signal)

    async def claim(self) -> None:
        dispatch: Dispatch = self.chance.choice(self.dispatches)
        for job in await self.queue.claim(self.chance.choice((1, 3)), dispatch):
            if job.attempts > job.max_attempts:
                await self.settle(job, LEASE_EXPIRED)
            else:
                self.held.append(job)

    async def finish(self) -> None:
        if not self.held:
            return
        job = self.held.pop(self.chance.randrange(len(self.held)))
        if self.chance.random() < 0.5:
            states = await self.dispatches[0].finish([(job, "{}")])
            if states[job.lease_token] == "finished":
                self.owed[job.key] -= job.signals
            if states[job.lease_token] != "held":
                return
        try:
            await self.queue.finish(job)
        except LeaseLostError:
            return
        self.owed[job.key] -= job.signals

    async def fail(self) -> None:
        if not self.held:
            return
        job = self.held.pop(self.chance.randrange(len(self.held)))
        errors = (
            DownError("x"), ValueError(), GiveUpJobError("x", "X."), GoneError("x"),
            DeferJobError(await db_now(self.queue) + SECOND, "rate_limited"),
        )  # fmt: skip
        try:
            if self.chance.random() < 0.2:
                await self.settle(job, GIVEN_BACK)
            else:
                await self.queue.fail(job, self.chance.choice(errors))
        except LeaseLostError:
            return

    async def settle(self, job: ClaimedJob, verdict: Verdict) -> None:
        async with self.queue.database.begin(self.queue.tenant_id) as db:
            await JobRepository(db, self.queue.tenant_id).record(job, verdict)

    async def extend(self) -> None:
        lost = await self.dispatches[0].extend(self.held)
        self.held = [job for job in self.held if job.lease_token not in lost]

    async def pass_time(self) -> None:
        await self.queue.pass_time(self.chance.choice((SECOND, 30 * SECOND, 2 * MINUTE)))

    async def check(self) -> None:
        """Every signal is on a row that is owed, or on one that somebody can see is over."""
        rows = await self.queue.rows()
        for key in KEYS:
            mine = [row for row in rows if row["key"] == key]
            assert sum(row["status"] in {"pending", "running"} for row in mine) <= 1
            kept = {
                signal
                for row in mine
                if row["status"] != "succeeded"
                for signal in (*row["signals"], *row["again_signals"])
            }
            assert self.owed[key] <= kept, self.owed[key] - kept
        for row in rows:
            assert row["run_again"] is False or row["status"] == "running"
            assert row["run_again"] is (row["again_due_at"] is not None)
            assert row["attempts"] >= 0
        running = [row for row in rows if row["status"] == "running"]
        assert self.lane is None or len(running) <= 1
        if any(row["deferred_reason"] == LANE_BUSY for row in rows):
            # Somebody must look at the lane again.
            now = await db_now(self.queue)
            assert running or any(
                row["status"] == "pending" and row["due_at"] <= now for row in rows
            )

    async def work_off(self) -> None:
        for _ in range(60):
            await self.queue.pass_time(15 * MINUTE)
            for job in await self.queue.claim(5):
                if job.attempts > job.max_attempts:
                    await self.settle(job, LEASE_EXPIRED)
                    continue
                await self.queue.finish(job)
                self.owed[job.key] -= job.signals
            if not any(row["status"] in {"pending", "running"} for row in await self.queue.rows()):
                return
        pytest.fail("the queue never empties")


@pytest.mark.parametrize("lane", [None, "one"])
@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 20))]
)
async def test_no_order_of_events_loses_a_signal(queue: Queue, seed: int, lane: str | None) -> None:
    world = World(queue, random.Random(seed), lane, await db_now(queue))
    acts = [
        *[world.order] * 4, *[world.claim] * 4, *[world.finish] * 2, world.fail, world.extend,
        *[world.pass_time] * 2,
    ]  # fmt: skip
    for _ in range(STEPS):
        await world.chance.choice(acts)()
        await world.check()
    await world.work_off()
    await world.check()

    assert world.ordered > 10
    over = {
        signal
        for row in await queue.rows()
        if row["status"] in {"dead", "cancelled"}
        for signal in row["signals"]
    }
    assert set().union(*world.owed.values()) <= over
