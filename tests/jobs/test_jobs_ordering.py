"""Ordering work: what joins what, when it is due, and what wakes a worker."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from app.errors import UnavailableError
from app.platform.database.engine import Database
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import CHANNEL, Order
from app.platform.jobs.repository import JobRepository
from tests.jobs.jobs_support import MINUTE, SECOND, Queue, db_now, near, new_dispatch
from tests.support.patience import PATIENCE

WAIT = 30 * SECOND
LONGEST = 5 * MINUTE


class TestNew:
    async def test_an_order_is_due_after_its_delay(self, queue: Queue) -> None:
        made = await queue.order(delay=WAIT, longest=LONGEST)

        row = await queue.row(made.job_id)
        assert (made.status, made.merged) == ("pending", False)
        assert made.due_at == row["due_at"]
        assert near(row["due_in"], WAIT)
        assert row["waiting_since"] == row["create_time"]

    async def test_the_delay_is_never_longer_than_the_longest(self, queue: Queue) -> None:
        made = await queue.order(delay=WAIT, longest=10 * SECOND)

        assert near((await queue.row(made.job_id))["due_in"], 10 * SECOND)

    async def test_everything_an_order_says_reaches_the_handler(self, queue: Queue) -> None:
        await queue.order(
            "extract",
            "s/a",
            agent_id="a",
            creator="key_1",
            signals=frozenset({"correction", "纠正"}),
            payload={"text": "我搬到慕尼黑了", "n": 1},
            priority=3,
            max_attempts=5,
        )

        job = await queue.claim_one()
        assert (job.kind, job.key, job.agent_id, job.user_id) == ("extract", "s/a", "a", None)
        assert job.creator == "key_1"
        assert job.signals == {"correction", "纠正"}
        assert job.payload == {"text": "我搬到慕尼黑了", "n": 1}
        assert (job.attempts, job.max_attempts, job.generation) == (1, 5, 1)

    async def test_new_job_is_owed_with_the_callers_transaction_or_not_at_all(
        self, queue: Queue, database: Database
    ) -> None:
        async def crash() -> None:
            async with database.begin(queue.tenant_id) as db:
                await JobRepository(db, queue.tenant_id).schedule(Order("extract", "a"))
                raise RuntimeError

        with pytest.raises(RuntimeError):
            await crash()

        assert await queue.rows() == []

    async def test_other_keys_kinds_and_tenants_stay_apart(
        self, queue: Queue, other_queue: Queue
    ) -> None:
        """Different users or agents in one thread are processed separately."""
        made = [
            await queue.order("extract", "s/ana/helper"),
            await queue.order("extract", "s/ben/helper"),
            await queue.order("extract", "s/ana/rival"),
            await queue.order("deliver", "s/ana/helper"),
            await other_queue.order("extract", "s/ana/helper"),
        ]

        assert len({one.job_id for one in made}) == 5
        assert len(await queue.claim(10)) == 5


class TestJoiningWhatWaits:
    async def test_the_second_order_joins_the_first(self, queue: Queue) -> None:
        first = await queue.order(delay=WAIT)
        second = await queue.order(delay=WAIT)

        assert (second.job_id, second.merged) == (first.job_id, True)
        assert len(await queue.rows()) == 1

    async def test_signals_are_united(self, queue: Queue) -> None:
        """A correction stays one, and both hints may stand in one prompt."""
        await queue.order(delay=WAIT, signals=frozenset({"correction"}))
        await queue.order(delay=WAIT, signals=frozenset())
        await queue.order(signals=frozenset({"reinforcement", "correction"}))

        assert (await queue.claim_one()).signals == {"correction", "reinforcement"}

    async def test_later_keys_of_the_payload_win_and_others_stay(self, queue: Queue) -> None:
        await queue.order(delay=WAIT, payload={"a": 1, "b": 1})
        await queue.order(payload={"b": 2, "c": 2})

        assert (await queue.claim_one()).payload == {"a": 1, "b": 2, "c": 2}

    async def test_the_wait_begins_again(self, queue: Queue) -> None:
        """The work begins after so much silence."""
        made = await queue.order(delay=WAIT, longest=LONGEST)
        await queue.pass_time(20 * SECOND)

        assert near((await queue.row(made.job_id))["due_in"], 10 * SECOND)
        await queue.order(delay=WAIT, longest=LONGEST)

        assert (await queue.row(made.job_id))["due_in"] > 20 * SECOND

    @pytest.mark.parametrize(
        ("waited", "due_in"),
        [
            (LONGEST - WAIT - MINUTE, WAIT),
            (LONGEST - 25 * SECOND, 25 * SECOND),
            (LONGEST - SECOND, SECOND),
        ],
    )
    async def test_but_never_past_the_longest(
        self, queue: Queue, waited: timedelta, due_in: timedelta
    ) -> None:
        made = await queue.order(delay=WAIT, longest=LONGEST)
        now = await db_now(queue)
        await queue.set(made.job_id, waiting_since=now - waited)

        joined = await queue.order(delay=WAIT, longest=LONGEST)

        assert abs(joined.due_at - now - due_in) < 3 * SECOND

    async def test_without_a_longest_the_wait_has_no_end(self, queue: Queue) -> None:
        made = await queue.order(delay=WAIT)
        await queue.set(made.job_id, waiting_since=await db_now(queue) - timedelta(days=1))
        await queue.order(delay=WAIT)

        assert near((await queue.row(made.job_id))["due_in"], WAIT)

    async def test_an_urgent_order_pulls_it_forward(self, queue: Queue) -> None:
        made = await queue.order(delay=WAIT)
        urgent = await queue.order()

        assert urgent.job_id == made.job_id
        assert (await queue.row(made.job_id))["due_in"] <= timedelta(0)

    async def test_and_nobody_pushes_it_back(self, queue: Queue) -> None:
        """A turn that is appended later does not cancel the rescue."""
        made = await queue.order()
        due = made.due_at
        await queue.order(delay=WAIT, longest=LONGEST)
        await queue.try_order(delay=WAIT, longest=LONGEST, postpone_only=True)

        assert (await queue.row(made.job_id))["due_at"] == due

    async def test_not_even_in_the_transaction_that_ordered_it(
        self, queue: Queue, database: Database
    ) -> None:
        async with database.begin(queue.tenant_id) as db:
            jobs = JobRepository(db, queue.tenant_id)
            urgent = await jobs.schedule(Order("extract", "a"))
            later = await jobs.schedule(Order("extract", "a", delay=WAIT))

        assert urgent is not None
        assert later is not None
        assert later.due_at == urgent.due_at

    async def test_what_came_due_by_itself_is_not_pushed_back_either(self, queue: Queue) -> None:
        made = await queue.order(delay=WAIT)
        await queue.pass_time(MINUTE)
        due = (await queue.row(made.job_id))["due_at"]
        await queue.order(delay=WAIT)

        assert (await queue.row(made.job_id))["due_at"] == due

    async def test_the_smaller_priority_counts(self, queue: Queue) -> None:
        made = await queue.order(delay=WAIT, priority=5)
        await queue.order(delay=WAIT, priority=7)
        assert (await queue.row(made.job_id))["priority"] == 5
        await queue.order(delay=WAIT, priority=-1)

        assert (await queue.row(made.job_id))["priority"] == -1


class TestJoiningWhatRuns:
    async def test_joined_job_runs_once_more_afterwards(self, queue: Queue) -> None:
        """One marker, honoured once, whatever is ordered meanwhile."""
        made = await queue.order(signals=frozenset({"first"}), payload={"a": 1})
        job = await queue.claim_one()
        for signal in ("second", "third"):
            joined = await queue.order(signals=frozenset({signal}), payload={signal: 1})
            assert (joined.job_id, joined.status) == (made.job_id, "running")
        assert await queue.claim() == []
        await queue.finish(job, {"run": 1})

        again = await queue.claim_one()
        assert again.job_id == job.job_id
        assert again.signals == {"second", "third"}
        assert again.payload == {"second": 1, "third": 1}
        assert (again.attempts, again.generation) == (1, 2)
        await queue.finish(again, {"run": 2})
        assert [row["status"] for row in await queue.rows()] == ["succeeded"]
        assert await queue.claim() == []

    async def test_the_wait_counts_from_the_first_order_meanwhile(self, queue: Queue) -> None:
        made = await queue.order()
        job = await queue.claim_one()
        await queue.order(delay=WAIT, longest=LONGEST)
        await queue.pass_time(20 * SECOND)
        joined = await queue.order(delay=WAIT, longest=40 * SECOND)
        row = await queue.row(made.job_id)
        assert near(row["again_in"], 20 * SECOND)
        assert joined.due_at == row["again_due_at"]
        await queue.finish(job)

        ended = await queue.row(made.job_id)
        assert (ended["status"], ended["run_again"]) == ("pending", False)
        assert ended["due_at"] == row["again_due_at"]
        assert ended["waiting_since"] == row["again_since"]
        assert ended["again_due_at"] is ended["again_since"] is ended["again_payload"] is None

    async def test_an_urgent_order_meanwhile_stays_urgent(self, queue: Queue) -> None:
        await queue.order()
        job = await queue.claim_one()
        await queue.order(delay=WAIT)
        await queue.order()
        await queue.order(delay=WAIT)
        await queue.finish(job)

        assert (await queue.claim_one()).job_id == job.job_id

    async def test_joined_job_is_never_run_twice_at_once(self, queue: Queue) -> None:
        """What is about one thing is done in order."""
        await queue.order()
        await queue.claim_one()
        await queue.order()

        assert await queue.claim(5) == []


class TestPostponing:
    async def test_nothing_is_owed_where_nothing_was(self, queue: Queue) -> None:
        assert await queue.try_order(delay=WAIT, postpone_only=True) is None
        made = await queue.order()
        await queue.finish(await queue.claim_one())
        assert await queue.try_order(delay=WAIT, postpone_only=True) is None

        assert [row["job_id"] for row in await queue.rows()] == [made.job_id]

    async def test_what_waits_waits_longer(self, queue: Queue) -> None:
        made = await queue.order(delay=10 * SECOND)
        joined = await queue.try_order(
            delay=WAIT, signals=frozenset({"x"}), payload={"n": 1}, postpone_only=True
        )

        row = await queue.row(made.job_id)
        assert joined is not None
        assert (joined.job_id, joined.merged, joined.due_at) == (made.job_id, True, row["due_at"])
        assert row["due_in"] > 20 * SECOND
        assert row["signals"] == ["x"]


class TestDeferred:
    @pytest.mark.parametrize("delay", [timedelta(0), timedelta(seconds=1), timedelta(hours=1)])
    async def test_urgent_order_during_a_run_that_is_deferred_is_not_lost(
        self, queue: Queue, delay: timedelta
    ) -> None:
        """A claim, an order on another connection, and then the run says that it must wait."""
        await queue.order()
        claimed = await queue.claim_one()
        await queue.order(delay=delay, signals=frozenset({"asked"}))
        until = await db_now(queue) + timedelta(minutes=10)

        await queue.fail(claimed, DeferJobError(until, "profile_interval"))

        row = await queue.row(claimed.job_id)
        urgent = delay == timedelta(0)
        assert (row["due_in"] <= timedelta(0)) == urgent
        assert row["deferred_reason"] == (None if urgent else "profile_interval")
        assert (row["signals"], row["attempts"]) == (["asked"], 0)

    """What waits for a quota, or after a failure, does not wait for silence."""

    @pytest.mark.parametrize("failed", [True, False])
    async def test_ordinary_orders_neither_pull_nor_push_it(
        self, queue: Queue, failed: bool
    ) -> None:
        made = await queue.order()
        job = await queue.claim_one()
        until = await db_now(queue) + 90 * SECOND
        error = DownError() if failed else DeferJobError(until, "rate_limited")
        await queue.fail(job, error)
        due = (await queue.row(made.job_id))["due_at"]
        for delay in (SECOND, 10 * MINUTE):
            await queue.order(delay=delay, longest=SECOND, signals=frozenset({"new"}))

        row = await queue.row(made.job_id)
        assert row["due_at"] == due
        assert row["signals"] == ["new"]
        assert row["deferred_reason"] == ("retry" if failed else "rate_limited")

    async def test_an_urgent_one_does(self, queue: Queue) -> None:
        made = await queue.order()
        until = await db_now(queue) + 90 * SECOND
        await queue.fail(await queue.claim_one(), DeferJobError(until, "rate_limited"))
        await queue.order()

        row = await queue.row(made.job_id)
        assert (row["due_in"] <= timedelta(0), row["deferred_reason"]) == (True, None)
        await queue.order(delay=WAIT)
        assert (await queue.row(made.job_id))["due_at"] == row["due_at"]


class DownError(UnavailableError):
    code = "model_down"
    title = "Down"

    def __init__(self) -> None:
        super().__init__("The model is down.")


class TestRaces:
    async def test_two_at_once_make_one_job(self, queue: Queue, database: Database) -> None:
        """Two connections: the second waits for the first, then joins it."""

        async def slowly(entered: asyncio.Event, leave: asyncio.Event) -> str:
            async with database.begin(queue.tenant_id) as db:
                jobs = JobRepository(db, queue.tenant_id)
                made = await jobs.schedule(Order("extract", "a", signals=frozenset({"slow"})))
                entered.set()
                await leave.wait()
            return made.job_id

        entered, leave = asyncio.Event(), asyncio.Event()
        slow = asyncio.create_task(slowly(entered, leave))
        await entered.wait()
        quick = asyncio.create_task(queue.order(signals=frozenset({"quick"})))
        await asyncio.sleep(0.1)
        assert not quick.done()
        leave.set()

        assert await slow == (await quick).job_id
        assert (await queue.claim_one()).signals == {"slow", "quick"}

    async def test_many_at_once_lose_no_signal(self, queue: Queue) -> None:
        wanted = {f"s{number}" for number in range(20)}
        await asyncio.gather(*(queue.order(delay=WAIT, signals=frozenset({one})) for one in wanted))

        [row] = await queue.rows()
        assert set(row["signals"]) == wanted

    async def test_an_order_beside_a_finish_is_never_lost(self, queue: Queue) -> None:
        """Whichever comes first: the run goes again, or a new job is made."""
        for number in range(30):
            key = f"k{number}"
            await queue.order(key=key)
            job = await queue.claim_one()
            await asyncio.gather(
                queue.finish(job), queue.order(key=key, signals=frozenset({"late"}))
            )
            again = await queue.claim_one()
            assert again.signals == {"late"}
            await queue.finish(again)

    async def test_an_order_beside_a_claim_is_never_lost(self, queue: Queue) -> None:
        for number in range(30):
            key = f"k{number}"
            await queue.order(key=key, signals=frozenset({"early"}))
            found, _ = await asyncio.gather(
                queue.claim(), queue.order(key=key, signals=frozenset({"late"}))
            )
            seen: set[str] = set()
            # The order may have held the row, or have come after the claim.
            for job in found or await queue.claim():
                seen |= job.signals
                await queue.finish(job)
            for job in await queue.claim():
                seen |= job.signals
                await queue.finish(job)
            assert seen == {"early", "late"}


async def announced(queue: Queue, heard: list[str]) -> list[str]:
    """What was announced so far: it comes in the order of the commits, so before this mark."""
    mark = f"mark {len(heard)}"
    await queue.owner.execute("SELECT pg_notify($1, $2)", CHANNEL, mark)
    async with asyncio.timeout(PATIENCE):
        while mark not in heard:  # noqa: ASYNC110 (the connection hears it)
            await asyncio.sleep(0.01)
    return [one for one in heard if not one.startswith("mark")]


class TestWaking:
    @pytest.fixture
    async def heard(self, jobs_dsn: str):
        connection = await asyncpg.connect(jobs_dsn)
        heard: list[str] = []
        await connection.add_listener(CHANNEL, lambda *said: heard.append(said[3]))
        yield heard
        await connection.close()

    async def test_only_what_is_due_at_once_is_announced(
        self, queue: Queue, heard: list[str]
    ) -> None:
        """NOTIFY takes a lock of the whole cluster at commit; an append must not."""
        await queue.order(delay=WAIT)
        await queue.order(delay=WAIT)
        assert await announced(queue, heard) == []
        await queue.order()
        assert await announced(queue, heard) == [""]

    async def test_a_run_that_goes_again_is_announced_when_it_may(
        self, queue: Queue, heard: list[str]
    ) -> None:
        await queue.order()
        job = await queue.claim_one(new_dispatch(queue.database))
        await queue.order()
        assert await announced(queue, heard) == [""]
        await queue.finish(job)
        assert await announced(queue, heard) == ["", ""]
