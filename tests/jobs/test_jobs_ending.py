"""How runs end, one connection against another: finished, failed, cancelled, tried again."""

import asyncio
import json
from datetime import timedelta

import pytest
from sqlalchemy import text

from app.errors import ConflictError, NotFoundError, UnavailableError
from app.platform.database.engine import Database
from app.platform.jobs.failures import (
    GIVEN_BACK,
    LEASE_EXPIRED,
    DeferJobError,
    GiveUpJobError,
    JobAlreadyLiveError,
    JobNotCancellableError,
    JobNotFoundError,
    JobNotRetryableError,
    LeaseLostError,
)
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.recurring import BATCH, MOST_PER_TICK, Recurring
from app.platform.jobs.repository import JobRepository
from tests.jobs.jobs_support import MINUTE, SECOND, Queue, db_now, near, new_dispatch, new_tenant
from tests.support.patience import PATIENCE


class GoneError(NotFoundError):
    code = "session_not_found"
    title = "Gone"


class RefusedError(ConflictError):
    code = "refused"
    title = "Refused"


class DownError(UnavailableError):
    code = "model_unavailable"
    title = "Down"


async def running(queue: Queue, key: str = "a", **order) -> ClaimedJob:
    await queue.order(key=key, **order)
    return await queue.claim_one()


class TestFinishing:
    async def test_a_finished_job_keeps_its_result_and_no_words(self, queue: Queue) -> None:
        job = await running(queue, payload={"text": "我搬到慕尼黑了"}, signals=frozenset({"x"}))
        await queue.finish(job, {"added": 2, "ids": ["mem_1"]})

        row = await queue.row(job.job_id)
        assert row["status"] == "succeeded"
        assert json.loads(row["result"]) == {"added": 2, "ids": ["mem_1"]}
        assert json.loads(row["payload"]) == {}
        assert row["finished_at"] is not None
        assert row["lease_expires_at"] is None

    async def test_job_ends_with_the_handlers_transaction_or_not_at_all(
        self, queue: Queue, database: Database
    ) -> None:
        job = await running(queue)

        async def crash() -> None:
            async with database.begin(queue.tenant_id) as db:
                await JobRepository(db, queue.tenant_id).finish(job, {})
                raise RuntimeError

        with pytest.raises(RuntimeError):
            await crash()

        assert (await queue.row(job.job_id))["status"] == "running"
        await queue.finish(job)

    async def test_after_a_take_over_nothing_of_the_run_is_written(
        self, queue: Queue, database: Database
    ) -> None:
        """The first worker lives, and merely was silent for too long."""
        slow = await running(queue)
        await queue.pass_time(MINUTE + SECOND)
        quick = await queue.claim_one(new_dispatch(database, "two"))

        async def write() -> None:
            async with database.begin(queue.tenant_id) as db:
                await db.execute(text("UPDATE tenants SET tenant_name = 'written by the slow one'"))
                await JobRepository(db, queue.tenant_id).finish(slow, {"by": "slow"})

        with pytest.raises(LeaseLostError):
            await write()
        with pytest.raises(LeaseLostError):
            await queue.fail(slow, DownError("down"))
        assert (await queue.row(quick.job_id))["lease_token"] == quick.lease_token
        await queue.finish(quick, {"by": "quick"})
        with pytest.raises(LeaseLostError):
            await queue.finish(slow)
        with pytest.raises(LeaseLostError):
            await queue.fail(slow, DownError("down"))

        assert json.loads((await queue.row(slow.job_id))["result"]) == {"by": "quick"}
        name = "SELECT tenant_name FROM tenants WHERE tenant_id = $1"
        assert "slow" not in await queue.owner.fetchval(name, queue.tenant_id)

    async def test_a_finish_that_is_committing_wins_over_a_take_over(
        self, queue: Queue, database: Database
    ) -> None:
        """Two connections: the second passes the row over, and then there is nothing to take."""
        job = await running(queue)
        await queue.pass_time(MINUTE + SECOND)
        async with database.begin(queue.tenant_id) as db:
            await JobRepository(db, queue.tenant_id).finish(job, {})
            async with asyncio.timeout(PATIENCE):
                assert await queue.claim(1, new_dispatch(database, "two")) == []

        assert await queue.claim(1, new_dispatch(database, "two")) == []
        assert (await queue.row(job.job_id))["status"] == "succeeded"

    async def test_a_token_of_an_earlier_generation_finishes_nothing(self, queue: Queue) -> None:
        first = await running(queue)
        await queue.order()
        await queue.finish(first)
        second = await queue.claim_one()

        with pytest.raises(LeaseLostError):
            await queue.finish(first)
        await queue.finish(second)

    async def test_many_are_finished_at_once_as_each_is_found(
        self, queue: Queue, other_queue: Queue
    ) -> None:
        dispatch = new_dispatch(queue.database)
        for key in ("plain", "again", "ended", "taken", "gone", "locked"):
            await queue.order(key=key, payload={"text": "words"})
        await other_queue.order(key="other")
        jobs = {job.key: job for job in await queue.claim(7, dispatch)}
        await queue.order(key="again")
        await queue.finish(jobs["ended"])
        await queue.set(jobs["taken"].job_id, lease_token="another")
        await queue.owner.execute("DELETE FROM jobs WHERE key = 'gone'")
        transaction = queue.owner.transaction()
        await transaction.start()
        await queue.owner.execute("SELECT FROM jobs WHERE key = 'locked' FOR UPDATE")

        async with asyncio.timeout(PATIENCE):
            states = await dispatch.finish([(job, '{"n": 1}') for job in jobs.values()])
        await transaction.rollback()

        assert {key: states[job.lease_token] for key, job in jobs.items()} == {
            "plain": "finished", "other": "finished", "again": "held", "locked": "held",
            "ended": "ended", "taken": None, "gone": None,
        }  # fmt: skip
        row = await queue.row(jobs["plain"].job_id)
        assert (row["status"], row["payload"], row["result"]) == ("succeeded", "{}", '{"n": 1}')
        assert (await queue.row(jobs["taken"].job_id))["status"] == "running"


class TestFailing:
    async def test_a_failure_waits_and_goes_on(self, queue: Queue) -> None:
        job = await running(queue, signals=frozenset({"x"}), payload={"n": 1})
        await queue.fail(job, DownError("The model is down."))

        row = await queue.row(job.job_id)
        assert (row["status"], row["attempts"], row["deferred_reason"]) == ("pending", 1, "retry")
        assert row["error_code"] == "model_unavailable"
        assert row["due_in"] <= 5 * SECOND
        await queue.pass_time(5 * SECOND)
        again = await queue.claim_one()
        assert (again.attempts, again.signals, again.payload) == (2, {"x"}, {"n": 1})
        await queue.finish(again)
        row = await queue.row(job.job_id)
        assert (row["error_code"], row["error_detail"]) == (None, None)

    async def test_the_words_of_an_unknown_error_are_not_kept(self, queue: Queue) -> None:
        job = await running(queue)
        await queue.fail(job, ValueError("the user said: 我的密码"))

        row = await queue.row(job.job_id)
        assert row["error_code"] == "unexpected_error"
        assert row["error_detail"] == "An error that nobody expected: ValueError."

    @pytest.mark.parametrize(("attempt", "status"), [(1, "pending"), (2, "pending"), (3, "dead")])
    async def test_after_the_last_attempt_it_is_dead(
        self, queue: Queue, attempt: int, status: str
    ) -> None:
        made = await queue.order(max_attempts=3, payload={"text": "kept for a retry"})
        await queue.set(made.job_id, attempts=attempt - 1)
        await queue.fail(await queue.claim_one(), ValueError("A fault."))

        row = await queue.row(made.job_id)
        assert (row["status"], row["attempts"]) == (status, attempt)
        assert (row["finished_at"] is not None) == (status == "dead")
        assert json.loads(row["payload"]) == {"text": "kept for a retry"}

    async def test_while_a_provider_is_down_it_never_dies(self, queue: Queue) -> None:
        made = await queue.order(max_attempts=2)
        for attempts in (1, 1, 1):
            await queue.set(made.job_id, due_at=await db_now(queue))
            await queue.fail(await queue.claim_one(), DownError("The model is down."))
            row = await queue.row(made.job_id)
            assert (row["status"], row["attempts"]) == ("pending", attempts)
            assert row["error_code"] == "model_unavailable"

    async def test_waiting_for_something_is_no_attempt(self, queue: Queue) -> None:
        made = await queue.order(max_attempts=1)
        for _ in range(3):
            until = await db_now(queue) + 10 * MINUTE
            await queue.fail(await queue.claim_one(), DeferJobError(until, "rate_limited"))
            row = await queue.row(made.job_id)
            assert (row["status"], row["attempts"], row["due_at"]) == ("pending", 0, until)
            assert row["deferred_reason"] == "rate_limited"
            assert await queue.claim() == []
            await queue.pass_time(10 * MINUTE)

        assert (await queue.claim_one()).attempts == 1

    async def test_a_hopeless_job_is_dead_at_once(self, queue: Queue) -> None:
        for number, error in enumerate((GiveUpJobError("bad", "It is bad."), RefusedError("No."))):
            job = await running(queue, key=str(number))
            await queue.fail(job, error)
            row = await queue.row(job.job_id)
            assert (row["status"], row["error_code"]) == ("dead", ["bad", "refused"][number])

    async def test_what_is_gone_needs_no_work(self, queue: Queue) -> None:
        job = await running(queue, payload={"body": "words"})
        await queue.fail(job, GoneError("There is no session."))

        row = await queue.row(job.job_id)
        assert (row["status"], row["error_code"]) == ("cancelled", "session_not_found")
        assert json.loads(row["payload"]) == {}

    async def test_a_job_that_kills_its_workers_dies(self, queue: Queue) -> None:
        """`attempts` rises with the claim, so nobody has to live to count."""
        made = await queue.order(max_attempts=2)
        for attempt in (1, 2):
            assert (await queue.claim_one()).attempts == attempt
            await queue.pass_time(MINUTE + SECOND)
        undertaker = await queue.claim_one()
        assert undertaker.attempts > undertaker.max_attempts
        async with queue.database.begin(queue.tenant_id) as db:
            await JobRepository(db, queue.tenant_id).record(undertaker, LEASE_EXPIRED)

        row = await queue.row(made.job_id)
        assert (row["status"], row["error_code"], row["attempts"]) == ("dead", "lease_expired", 2)
        assert await queue.claim() == []

    async def test_a_job_given_back_is_owed_at_once(self, queue: Queue) -> None:
        job = await running(queue)
        await queue.order(signals=frozenset({"meanwhile"}))
        async with queue.database.begin(queue.tenant_id) as db:
            await JobRepository(db, queue.tenant_id).record(job, GIVEN_BACK)

        row = await queue.row(job.job_id)
        assert (row["run_again"], row["deferred_reason"]) == (False, None)
        again = await queue.claim_one()
        assert (again.attempts, again.signals) == (1, {"meanwhile"})


class TestOrderedWhileItFailed:
    async def test_the_order_joins_what_is_tried_again(self, queue: Queue) -> None:
        job = await running(queue, signals=frozenset({"a"}), payload={"a": 1})
        await queue.order(signals=frozenset({"b"}), payload={"b": 2}, delay=MINUTE)
        await queue.fail(job, DownError("down"))

        [row] = await queue.rows()
        assert (row["signals"], row["run_again"]) == (["a", "b"], False)
        assert json.loads(row["payload"]) == {"a": 1, "b": 2}
        assert row["again_payload"] is row["again_due_at"] is row["again_since"] is None

    @pytest.mark.parametrize(
        ("error", "status"), [(GiveUpJobError("x", "X."), "dead"), (GoneError("x"), "cancelled")]
    )
    async def test_or_becomes_a_job_of_its_own(
        self, queue: Queue, error: Exception, status: str
    ) -> None:
        job = await running(queue, signals=frozenset({"a"}), payload={"a": 1}, priority=2)
        await queue.order(signals=frozenset({"b"}), payload={"b": 2}, delay=MINUTE, priority=3)
        await queue.fail(job, error)

        old, new = await queue.rows()
        assert (old["job_id"], old["status"], old["run_again"]) == (job.job_id, status, False)
        assert (new["status"], new["attempts"], new["priority"]) == ("pending", 0, 2)
        assert new["signals"] == ["a", "b"]
        assert json.loads(new["payload"]) == {"b": 2}
        assert near(new["due_at"] - await db_now(queue), MINUTE)
        assert new["waiting_since"] > old["waiting_since"]


async def webhook(queue: Queue, *events: str) -> None:
    await queue.owner.execute(
        "INSERT INTO webhooks (tenant_id, webhook_id, url, secret, events) "
        "VALUES ($1, 'whk', 'https://example.org', 's', $2)",
        queue.tenant_id,
        list(events),
    )


class TestDeathIsTold:
    async def test_with_ids_and_codes_alone(self, queue: Queue) -> None:
        await webhook(queue, "job.dead")
        job = await running(queue, key="a b 慕尼黑", agent_id="helper", payload={"text": "words"})
        await queue.fail(job, GiveUpJobError("bad_answer", "It is bad."))

        [told] = await queue.owner.fetch(
            "SELECT event_type, payload FROM webhook_deliveries WHERE tenant_id = $1",
            queue.tenant_id,
        )
        assert told["event_type"] == "job.dead"
        data = json.loads(told["payload"])["data"]
        assert data == {
            "job_id": job.job_id, "kind": "extract", "error_code": "bad_answer", "attempts": 1,
            "agent_id": "helper", "user_id": None, "session_id": None,
        }  # fmt: skip

    async def test_and_nothing_else_is(self, queue: Queue) -> None:
        await webhook(queue, "*")
        await queue.finish(await running(queue))
        await queue.fail(await running(queue, key="b"), DownError("down"))
        await queue.fail(await running(queue, key="c"), GoneError("gone"))

        count = "SELECT count(*) FROM webhook_deliveries WHERE tenant_id = $1"
        assert await queue.owner.fetchval(count, queue.tenant_id) == 0


class TestOperators:
    async def jobs(self, queue: Queue, act: str, *args, **rest):
        async with queue.database.begin(queue.tenant_id) as db:
            return await getattr(JobRepository(db, queue.tenant_id), act)(*args, **rest)

    async def test_lists_are_newest_first_and_paged(self, queue: Queue, other_queue: Queue) -> None:
        made = [(await queue.order(key=str(number))).job_id for number in range(5)]
        await other_queue.order()

        first = await self.jobs(queue, "list_jobs", limit=2)
        assert [row.job_id for row in first] == [made[4], made[3], made[2]]
        start = (first[1].create_time, first[1].job_id)
        rest = await self.jobs(queue, "list_jobs", start=start, limit=10)
        assert [row.job_id for row in rest] == [made[2], made[1], made[0]]

    async def test_lists_are_filtered(self, queue: Queue) -> None:
        await queue.order("extract", "a", agent_id="helper")
        await queue.finish(await queue.claim_one())
        await queue.order("deliver", "b", agent_id="rival")

        for filters, keys in (
            ({"kind": "extract"}, {"a"}),
            ({"status": "succeeded"}, {"a"}),
            ({"status": "pending"}, {"b"}),
            ({"status": "dead"}, set()),
            ({"agent_id": "rival"}, {"b"}),
            ({"agent_id": "rival", "kind": "extract"}, set()),
            ({"user_id": "ana"}, set()),
            ({"session_id": "s"}, set()),
            ({}, {"a", "b"}),
        ):
            found = await self.jobs(queue, "list_jobs", **filters)
            assert {row.key for row in found} == keys, filters

    async def test_another_tenants_job_is_missing(self, queue: Queue, other_queue: Queue) -> None:
        made = await queue.order()
        for act in ("get", "cancel", "retry"):
            with pytest.raises(JobNotFoundError):
                await self.jobs(other_queue, act, made.job_id)
            with pytest.raises(JobNotFoundError):
                await self.jobs(queue, act, "job_missing")

        assert (await self.jobs(queue, "get", made.job_id)).status == "pending"

    async def test_a_pending_job_is_cancelled(self, queue: Queue) -> None:
        made = await queue.order(payload={"body": "words"})
        row = await self.jobs(queue, "cancel", made.job_id)

        assert (row.status, row.error_code, row.payload) == ("cancelled", "cancelled", {})
        assert await queue.claim() == []
        with pytest.raises(JobNotCancellableError):
            await self.jobs(queue, "cancel", made.job_id)

    async def test_a_running_one_loses_its_lease(self, queue: Queue) -> None:
        dispatch = new_dispatch(queue.database)
        await queue.order()
        job = await queue.claim_one(dispatch)
        await queue.order()
        row = await self.jobs(queue, "cancel", job.job_id)

        assert (row.status, row.run_again) == ("cancelled", False)
        assert await dispatch.extend([job]) == {job.lease_token}
        with pytest.raises(LeaseLostError):
            await queue.finish(job)
        assert (await dispatch.finish([(job, None)])) == {job.lease_token: None}

    @pytest.mark.parametrize("status", ["dead", "cancelled"])
    async def test_what_is_over_is_tried_again_from_the_start(
        self, queue: Queue, status: str
    ) -> None:
        made = await queue.order(max_attempts=1, signals=frozenset({"x"}))
        if status == "dead":
            await queue.fail(await queue.claim_one(), ValueError("down"))
        else:
            await self.jobs(queue, "cancel", made.job_id)
        row = await self.jobs(queue, "retry", made.job_id)

        assert (row.status, row.attempts, row.generation) == ("pending", 0, 2)
        assert (row.error_code, row.finished_at) == (None, None)
        job = await queue.claim_one()
        assert (job.job_id, job.signals) == (made.job_id, {"x"})

    async def test_flags_are_no_words_and_stay(self, queue: Queue) -> None:
        made = await queue.order(payload={"end": True, "prompt": "words"})
        await self.jobs(queue, "cancel", made.job_id)
        row = await self.jobs(queue, "retry", made.job_id)

        assert (row.status, row.payload) == ("pending", {"end": True})

    async def test_words_that_were_emptied_cannot_be_tried_again(self, queue: Queue) -> None:
        made = await queue.order(payload={"body": "words"})
        await self.jobs(queue, "cancel", made.job_id)

        with pytest.raises(JobNotRetryableError, match="send it again"):
            await self.jobs(queue, "retry", made.job_id)

    @pytest.mark.parametrize("status", ["pending", "running", "succeeded"])
    async def test_nothing_else_is_tried_again(self, queue: Queue, status: str) -> None:
        made = await queue.order()
        if status != "pending":
            job = await queue.claim_one()
            if status == "succeeded":
                await queue.finish(job)

        with pytest.raises(JobNotRetryableError, match=status):
            await self.jobs(queue, "retry", made.job_id)

    async def test_nor_what_another_job_does_by_now(self, queue: Queue) -> None:
        made = await queue.order()
        await self.jobs(queue, "cancel", made.job_id)
        live = await queue.order()

        with pytest.raises(JobAlreadyLiveError) as raised:
            await self.jobs(queue, "retry", made.job_id)
        assert raised.value.members == {"live_job_id": live.job_id}

    async def test_two_retries_and_an_order_leave_one_live(self, queue: Queue) -> None:
        for number in range(15):
            key = str(number)
            made = await queue.order(key=key)
            await self.jobs(queue, "cancel", made.job_id)
            outcomes = await asyncio.gather(
                self.jobs(queue, "retry", made.job_id),
                self.jobs(queue, "retry", made.job_id),
                queue.order(key=key),
                return_exceptions=True,
            )
            assert all(
                isinstance(one, JobAlreadyLiveError | JobNotRetryableError)
                for one in outcomes
                if isinstance(one, Exception)
            )
            assert sum(row["status"] == "pending" for row in await queue.rows()) == number + 1


class TestRecurring:
    @pytest.fixture
    async def alone(self, queue: Queue) -> Queue:
        await queue.owner.execute(
            "UPDATE tenants SET status = 0 WHERE tenant_id <> $1", queue.tenant_id
        )
        return queue

    async def test_one_job_is_owed_until_it_is_done(self, alone: Queue) -> None:
        recurring = Recurring(alone.database, "housekeeping", timedelta(hours=1))
        assert await recurring.make() == 1
        assert await recurring.make() == 0
        dispatch = new_dispatch(alone.database, kinds=("housekeeping",))
        job = await alone.claim_one(dispatch)
        assert (job.kind, job.key) == ("housekeeping", "housekeeping")
        assert await recurring.make() == 0
        await alone.finish(job)
        assert await recurring.make() == 0

    @pytest.mark.parametrize(("ago", "made"), [(59, 0), (60, 1), (61, 1)])
    async def test_recurring_job_is_due_again_after_the_interval(
        self, alone: Queue, ago: int, made: int
    ) -> None:
        recurring = Recurring(alone.database, "housekeeping", timedelta(hours=1))
        await recurring.make()
        await alone.finish(
            await alone.claim_one(new_dispatch(alone.database, kinds=("housekeeping",)))
        )
        await alone.order("extract")
        await alone.finish(await alone.claim_one())
        await alone.pass_time(ago * MINUTE)

        assert await recurring.make() == made

    async def test_disabled_tenants_are_left_alone(self, alone: Queue) -> None:
        await alone.owner.execute("UPDATE tenants SET status = 0")

        assert await Recurring(alone.database, "housekeeping", MINUTE).make() == 0

    async def test_one_look_owes_a_share_of_many_tenants_and_the_next_goes_on(
        self, alone: Queue
    ) -> None:
        """All at once would stand before what users wait for."""
        for _ in range(MOST_PER_TICK + 1):
            await new_tenant(alone.owner)
        recurring = Recurring(alone.database, "housekeeping", timedelta(hours=1))
        owed = "SELECT count(*) FROM jobs WHERE kind = 'housekeeping'"
        before = await alone.owner.fetchval(owed)

        counts = []
        for _ in range(3):
            await recurring.tick()
            counts.append(await alone.owner.fetchval(owed) - before)

        assert counts == [MOST_PER_TICK, MOST_PER_TICK + 2, MOST_PER_TICK + 2]

    async def test_many_workers_make_one_job_for_each_of_many_tenants(self, alone: Queue) -> None:
        for _ in range(BATCH + 20):
            await new_tenant(alone.owner)
        made = await asyncio.gather(
            *(Recurring(alone.database, "housekeeping", MINUTE).make() for _ in range(3))
        )

        assert sum(made) == BATCH + 21
        assert await alone.owner.fetchval("SELECT count(*) FROM jobs") == BATCH + 21
