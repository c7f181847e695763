"""Lanes: one job at a time, those that are due in their order, and nobody else behind them."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from app.platform.jobs.dispatch import LANE_LOOK, Listener
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.models import LANE_BUSY
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository
from tests.jobs.jobs_support import MINUTE, SECOND, Queue, new_dispatch
from tests.jobs.test_jobs_claiming import explained, nodes
from tests.jobs.test_jobs_worker import eventually, working
from tests.support.patience import PATIENCE

HOUR = timedelta(hours=1)
MAY = datetime(2026, 5, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return MAY + timedelta(days=number)


async def put(queue: Queue, key: str, number: int = 1, *, lane: str = "ana", **rest: Any) -> str:
    made = await queue.order(key=key, lane=lane, lane_order=day(number), **rest)
    return made.job_id


async def fill(queue: Queue, jobs: int, *, lane: str = "ana") -> None:
    """So many due jobs of a lane, the one that is due last the first in the order of the lane."""
    await queue.owner.execute(
        "INSERT INTO jobs (tenant_id, job_id, kind, key, due_at, lane, lane_order) "
        "SELECT $1, 'job_' || gen_random_uuid(), 'extract', $2 || n, "
        "now() - interval '1 hour' - interval '1 ms' * n, $2, "
        "timestamptz '2026-05-01 00:00Z' + interval '1 second' * n "
        "FROM generate_series(1, $3) AS n",
        queue.tenant_id,
        lane,
        jobs,
    )


async def claimed(queue: Queue, free: int = 10) -> list[ClaimedJob]:
    """What is held after the claims that find something or put something behind."""
    dispatch = new_dispatch(queue.database)
    jobs: list[ClaimedJob] = []
    while True:
        found = await dispatch.claim(free, {})
        jobs += await dispatch.read(found.claims)
        if not found.again:
            return jobs


async def keys(queue: Queue, free: int = 10) -> list[str]:
    return [job.key for job in await claimed(queue, free)]


async def only(queue: Queue) -> ClaimedJob:
    [job] = await queue.claim(10)
    return job


class TestOneAtATime:
    async def test_two_due_jobs_of_a_lane_are_never_held_at_once(self, queue: Queue) -> None:
        await put(queue, "first", 1)
        second = await put(queue, "second", 2)
        assert await keys(queue) == ["first"]
        assert await keys(queue) == []

        row = await queue.row(second)
        assert (row["status"], row["deferred_reason"]) == ("pending", LANE_BUSY)

    async def test_other_lanes_tenants_and_jobs_without_one_are_held_beside_it(
        self, queue: Queue, other_queue: Queue
    ) -> None:
        for one in (queue, other_queue):
            await put(one, "first", 1)
            await put(one, "second", 2)
        await put(queue, "ben", 3, lane="ben")
        await queue.order(key="none")
        await queue.order(key="none too")

        assert sorted(await keys(queue)) == ["ben", "first", "first", "none", "none too"]

    @pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
    async def test_the_first_of_the_order_goes_first_whichever_was_ordered_first(
        self, queue: Queue, order: tuple[int, ...]
    ) -> None:
        for number in order:
            await put(queue, str(number), number, priority=-number)
        done = []
        for _ in order:
            job = await only(queue)
            done.append(job.key)
            await queue.finish(job)

        assert done == ["1", "2", "3"]
        assert await keys(queue) == []

    async def test_one_that_came_while_another_ran_takes_its_place(self, queue: Queue) -> None:
        await put(queue, "running", 2)
        job = await only(queue)
        await put(queue, "later", 3)
        assert await keys(queue) == []
        await put(queue, "earlier", 1)
        assert await keys(queue) == []
        await queue.finish(job)

        assert await keys(queue) == ["earlier"]

    async def test_only_those_that_are_due_take_part(self, queue: Queue) -> None:
        debounced = await put(queue, "debounced", 1, delay=MINUTE)
        await put(queue, "due", 2)
        job = await only(queue)
        assert job.key == "due"
        await queue.set(debounced, due_at=job.started_at)
        assert await keys(queue) == []
        await queue.finish(job)

        assert await keys(queue) == ["debounced"]

    @pytest.mark.parametrize("failure", ["retry", "defer"])
    async def test_one_that_waits_after_a_failure_bars_nobody(
        self, queue: Queue, failure: str
    ) -> None:
        old = await put(queue, "old", 1)
        await put(queue, "new", 2)
        await put(queue, "newest", 3)
        until = datetime.now(UTC) + HOUR
        error = DeferJobError(until, "quota_exhausted") if failure == "defer" else ValueError()
        await queue.fail(await only(queue), error)
        job = await only(queue)
        assert job.key == "new"
        await queue.set(old, due_at=job.started_at)
        assert await keys(queue) == []
        await queue.finish(job)

        assert await keys(queue) == ["old"]

    async def test_an_end_wakes_a_worker_for_the_next(self, queue: Queue, jobs_dsn: str) -> None:
        woken = asyncio.Event()
        await put(queue, "first", 1)
        await put(queue, "second", 2)
        job = await only(queue)
        assert await keys(queue) == []
        listening = asyncio.create_task(Listener(jobs_dsn).listen(woken.set))
        await asyncio.wait_for(woken.wait(), PATIENCE)
        woken.clear()
        await queue.finish(job)
        await asyncio.wait_for(woken.wait(), PATIENCE)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


class TestEnds:
    async def test_a_lease_that_ran_out_frees_the_lane(self, queue: Queue) -> None:
        await put(queue, "first", 1)
        await put(queue, "second", 2)
        await only(queue)
        await queue.pass_time(MINUTE - SECOND)
        assert await keys(queue) == []
        await queue.pass_time(2 * SECOND)

        taken = await only(queue)
        assert (taken.key, taken.attempts) == ("first", 2)
        await queue.finish(taken)
        assert await keys(queue) == ["second"]

    @pytest.mark.parametrize("running", [True, False])
    async def test_a_cancelled_job_makes_room(self, queue: Queue, running: bool) -> None:
        """Also one that was brought forward and that nobody has claimed."""
        first = await put(queue, "first", 1)
        second = await put(queue, "second", 2)
        await put(queue, "third", 3)
        job = await only(queue)
        if not running:
            await queue.finish(job)
        async with queue.database.begin(queue.tenant_id) as db:
            await JobRepository(db, queue.tenant_id).cancel(first if running else second)

        assert await keys(queue) == ["second" if running else "third"]

    async def test_batches_of_results_leave_it_to_the_statement_that_frees_the_lane(
        self, queue: Queue
    ) -> None:
        await put(queue, "first", 1)
        await put(queue, "second", 2)
        dispatch = new_dispatch(queue.database)
        [job] = await queue.claim(10, dispatch)

        assert await dispatch.finish([(job, "{}")]) == {job.lease_token: "held"}

    async def test_what_was_behind_a_deleted_row_is_found_again(self, queue: Queue) -> None:
        await put(queue, "first", 1)
        await put(queue, "second", 2)
        await only(queue)
        await queue.owner.execute("DELETE FROM jobs WHERE key = 'first'")
        assert await keys(queue) == []
        await queue.pass_time(5 * MINUTE + SECOND)

        assert await keys(queue) == ["second"]


class TestPlaces:
    async def test_an_order_that_joins_changes_no_place_for_a_later_one(self, queue: Queue) -> None:
        made = await put(queue, "a", 2, delay=MINUTE)
        await put(queue, "a", 3, delay=MINUTE)
        assert (await queue.row(made))["lane_order"] == day(2)
        await put(queue, "a", 1, delay=MINUTE)
        assert (await queue.row(made))["lane_order"] == day(1)

    async def test_the_next_run_has_the_place_of_what_was_ordered_meanwhile(
        self, queue: Queue
    ) -> None:
        made = await put(queue, "a", 1)
        job = await only(queue)
        await put(queue, "a", 5)
        await put(queue, "a", 4)
        await put(queue, "b", 3)
        assert (await queue.row(made))["lane_order"] == day(1)
        await queue.finish(job)
        assert (await queue.row(made))["lane_order"] == day(4)

        assert await keys(queue) == ["b"]

    async def test_what_was_ordered_under_a_job_that_died_keeps_lane_and_place(
        self, queue: Queue
    ) -> None:
        await put(queue, "a", 1, max_attempts=1)
        job = await only(queue)
        await put(queue, "a", 4)
        await queue.fail(job, ValueError())

        [row] = [row for row in await queue.rows() if row["status"] == "pending"]
        assert (row["lane"], row["lane_order"]) == ("ana", day(4))


class TestRaces:
    async def test_many_claimers_hold_one_of_a_lane_and_take_them_in_order(
        self, queue: Queue
    ) -> None:
        lanes = [f"lane {number}" for number in range(5)]
        for lane in lanes:
            await fill(queue, 40, lane=lane)
        held: Counter[str] = Counter()
        most: Counter[str] = Counter()
        done: dict[str, list[int]] = {lane: [] for lane in lanes}

        async def work(worker: str) -> None:
            dispatch = new_dispatch(queue.database, worker)
            while sum(map(len, done.values())) < 200:
                found = await dispatch.claim(2, {})
                for job in await dispatch.read(found.claims):
                    assert job.lane is not None
                    held[job.lane] += 1
                    most[job.lane] = max(most[job.lane], held[job.lane])
                    await asyncio.sleep(0)
                    done[job.lane].append(int(job.key.removeprefix(job.lane)))
                    held[job.lane] -= 1
                    await queue.finish(job)
                await asyncio.sleep(0)

        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(work(f"w{number}") for number in range(5)))

        assert set(most.values()) == {1}
        assert all(numbers == list(range(1, 41)) for numbers in done.values()), done

    async def test_a_claim_that_did_not_see_another_is_refused_by_the_index(
        self, queue: Queue, jobs_dsn: str
    ) -> None:
        await put(queue, "seen", 2)
        other = await asyncpg.connect(jobs_dsn)
        try:
            await other.execute("SET ROLE kemem_owner")
            async with other.transaction():
                await other.execute(
                    "INSERT INTO jobs (tenant_id, job_id, kind, key, status, lane, "
                    "lease_expires_at) VALUES ($1, 'unseen', 'extract', 'unseen', 'running', "
                    "'ana', now() + interval '1 minute')",
                    queue.tenant_id,
                )
                claiming = asyncio.create_task(new_dispatch(queue.database).claim(4, {}))
                await eventually(lambda: blocked(queue))
            found = await asyncio.wait_for(claiming, PATIENCE)
        finally:
            await other.close()

        assert (list(found.claims), found.again) == ([], True)
        assert await keys(queue) == []

    async def test_nobody_is_put_behind_a_job_that_is_just_ending(
        self, queue: Queue, jobs_dsn: str
    ) -> None:
        """The end looks whom to bring forward, and would not see him."""
        await put(queue, "first", 1)
        job = await only(queue)
        second = await put(queue, "second", 2)
        async with queue.database.begin(queue.tenant_id) as db:
            await JobRepository(db, queue.tenant_id).finish(job, {})
            found = await new_dispatch(queue.database).claim(4, {})
            assert (list(found.claims), found.again) == ([], True)
            assert (await queue.row(second))["deferred_reason"] is None

        assert await keys(queue) == ["second"]

    async def test_an_end_waits_for_a_claim_that_puts_others_behind(
        self, queue: Queue, jobs_dsn: str
    ) -> None:
        await put(queue, "first", 1)
        job = await only(queue)
        second = await put(queue, "second", 2)
        transaction = queue.owner.transaction()
        await transaction.start()
        await queue.owner.execute("SELECT FROM jobs WHERE key = 'first' FOR SHARE")
        ending = asyncio.create_task(queue.finish(job))
        await eventually(lambda: blocked(queue))
        await queue.set(second, deferred_reason=LANE_BUSY, due_at=datetime.now(UTC) + 5 * MINUTE)
        await transaction.commit()
        await asyncio.wait_for(ending, PATIENCE)

        assert await keys(queue) == ["second"]


async def blocked(queue: Queue) -> bool:
    return await queue.owner.fetchval(
        "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) "
        "WHERE datname = current_database() AND NOT granted)"
    )


class TestBacklogs:
    @pytest.mark.parametrize("jobs", [LANE_LOOK - 1, LANE_LOOK, LANE_LOOK + 1, 3 * LANE_LOOK])
    async def test_the_first_of_a_long_backlog_is_found(self, queue: Queue, jobs: int) -> None:
        await fill(queue, jobs)

        assert await keys(queue) == ["ana1"]
        behind = Counter(row["deferred_reason"] for row in await queue.rows())
        assert behind == {None: 1, LANE_BUSY: jobs - 1}

    async def test_a_look_that_sees_only_some_of_them_starts_none(self, queue: Queue) -> None:
        await fill(queue, LANE_LOOK + 1)
        found = await new_dispatch(queue.database).claim(4, {})

        assert (list(found.claims), found.again) == ([], True)

    async def test_backlog_does_not_hide_other_users_nor_other_tenants(
        self, queue: Queue, other_queue: Queue
    ) -> None:
        await fill(queue, 1000)
        await put(queue, "ben", lane="ben")
        await put(other_queue, "cleo", lane="cleo")

        assert sorted(await keys(queue, 4)) == ["ana1", "ben", "cleo"]

    async def test_who_waits_for_room_is_claimed_when_there_is(self, queue: Queue) -> None:
        """The first of a lane that found no slot puts nobody behind itself."""
        await put(queue, "first", 1)
        await put(queue, "second", 2)
        full = new_dispatch(queue.database, per_tenant=1)
        await queue.order(key="other", priority=-1)
        [job] = await full.read((await full.claim(4, {})).claims)
        assert job.key == "other"

        assert await keys(queue) == ["first"]

    @pytest.mark.parametrize("analysed", [True, False])
    async def test_a_claim_does_not_read_it(
        self, queue: Queue, other_queue: Queue, jobs_dsn: str, analysed: bool
    ) -> None:
        """Rows and pages that a claim reads stay the same, while one runs and after its end."""
        costs = []
        for jobs in (300, 10_000):
            await queue.owner.execute("DELETE FROM jobs")
            await fill(queue, jobs)
            await put(other_queue, "ben", lane="ben")
            held = {job.key: job for job in await claimed(queue, 4)}
            assert sorted(held) == ["ana1", "ben"]
            await queue.owner.execute(f"VACUUM {'ANALYZE' if analysed else ''} jobs")
            running = await cost(jobs_dsn)
            await queue.finish(held["ana1"])
            costs.append((running, await cost(jobs_dsn)))

        for few, many in zip(*costs, strict=True):
            assert many[0] <= few[0] + 2, costs
            assert many[0] < 100, costs
            assert many[1] < few[1] + 60, costs

    @pytest.mark.parametrize("analysed", [True, False])
    async def test_a_claim_that_puts_some_behind_reads_no_others(
        self, queue: Queue, jobs_dsn: str, analysed: bool
    ) -> None:
        await fill(queue, 10_000)
        await queue.owner.execute(f"VACUUM {'ANALYZE' if analysed else ''} jobs")
        rows, _pages = await cost(jobs_dsn)

        assert LANE_LOOK < rows < 6 * LANE_LOOK

    async def test_ten_thousand_are_put_behind_once(self, queue: Queue) -> None:
        await fill(queue, 10_000)
        dispatch = new_dispatch(queue.database)
        looks, again = 0, True
        while again:
            again = (await dispatch.claim(4, {})).again
            looks += 1

        assert looks <= 10_000 / LANE_LOOK + 2
        found = await dispatch.claim(4, {})
        assert (list(found.claims), found.again) == ([], False)


async def cost(dsn: str) -> tuple[float, int]:
    """Rows and pages that a claim reads; it claims nothing for good."""
    plan = await explained(dsn, 4)
    read = [one for one in nodes(plan) if "Relation Name" in one]
    assert "Seq Scan" not in {one["Node Type"] for one in read}
    rows = sum(
        one["Actual Rows"] * one["Actual Loops"] + one.get("Rows Removed by Filter", 0)
        for one in read
    )
    return rows, plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


async def test_two_workers_run_one_of_a_lane_at_a_time_and_in_order(queue: Queue) -> None:
    running: list[str] = []
    begun: list[str] = []

    async def handler(job: ClaimedJob) -> dict[str, Any]:
        running.append(job.key)
        assert len(running) == 1, running
        begun.append(job.key)
        await asyncio.sleep(0.01)
        running.remove(job.key)
        return {}

    for number in (7, 3, 9, 1, 5, 2, 8, 4, 6):
        await put(queue, str(number), number)
    async with (
        working(queue, {"extract": handler}),
        working(queue, {"extract": handler}),
    ):
        await eventually(lambda: len(begun) == 9)

    assert begun == sorted(begun)
    assert {row["status"] for row in await queue.rows()} == {"succeeded"}
