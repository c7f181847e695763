"""Claiming: who gets what, in which order, and what it costs to look."""

import asyncio
import json
from collections import Counter
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from app.platform.database.base import new_id
from app.platform.database.engine import Database
from app.platform.database.roles import DISPATCH
from app.platform.jobs.dispatch import CLAIM, PROBES, Dispatch
from tests.jobs.jobs_support import MINUTE, SECOND, Queue, new_dispatch, new_tenant
from tests.support.patience import PATIENCE

HOUR = timedelta(hours=1)


async def fill(
    queue: Queue,
    jobs: int,
    *,
    due_in: timedelta = -SECOND,
    priority: int = 0,
    kind: str = "extract",
) -> None:
    """So many pending jobs, the first of them the longest due."""
    await queue.owner.execute(
        "INSERT INTO jobs (tenant_id, job_id, kind, key, priority, due_at) "
        "SELECT $1, 'job_' || gen_random_uuid(), $2, gen_random_uuid()::text, $3, "
        "now() + $4::interval - interval '1 ms' * ($5 - n) FROM generate_series(1, $5) AS n",
        queue.tenant_id,
        kind,
        priority,
        due_in,
        jobs,
    )


async def several(queue: Queue, count: int) -> list[Queue]:
    return [queue.of(await new_tenant(queue.owner)) for _ in range(count)]


class TestWhatIsClaimed:
    async def test_a_claim_leases_the_job(self, queue: Queue) -> None:
        await queue.order()
        job = await queue.claim_one(new_dispatch(queue.database, "anna"))

        row = await queue.row(job.job_id)
        assert (row["status"], row["worker"], row["attempts"]) == ("running", "anna", 1)
        assert row["lease_token"] == job.lease_token
        left = row["lease_expires_at"] - row["started_at"]
        assert left == MINUTE

    async def test_each_lease_has_a_token_of_its_own(self, queue: Queue) -> None:
        await fill(queue, 20)
        jobs = await queue.claim(20)

        assert len({job.lease_token for job in jobs}) == 20

    @pytest.mark.parametrize("free", [1, 3, 5])
    async def test_no_more_than_there_is_room_for(self, queue: Queue, free: int) -> None:
        await fill(queue, 4)

        assert len(await queue.claim(free)) == min(free, 4)

    async def test_nothing_before_it_is_due(self, queue: Queue) -> None:
        await queue.order(delay=MINUTE)
        dispatch = new_dispatch(queue.database)
        found = await dispatch.claim(1, {})
        assert (found.claims, found.again) == ([], False)
        assert found.next_due is not None
        assert 55 * SECOND < found.next_due <= MINUTE
        await queue.pass_time(MINUTE)

        assert len((await dispatch.claim(1, {})).claims) == 1

    async def test_an_empty_queue_has_no_next(self, queue: Queue) -> None:
        found = await new_dispatch(queue.database).claim(1, {})

        assert (found.claims, found.again, found.next_due) == ([], False, None)

    async def test_the_longest_due_goes_first_within_a_priority(self, queue: Queue) -> None:
        await queue.order(key="low", priority=1)
        await queue.order(key="second")
        await queue.order(key="first", delay=MINUTE)
        await queue.pass_time(HOUR)
        await queue.order(key="high", priority=-1)

        assert [(await queue.claim_one()).key for _ in range(4)] == [
            "high", "second", "first", "low",
        ]  # fmt: skip

    async def test_what_is_not_due_does_not_hide_what_is_less_urgent(self, queue: Queue) -> None:
        await fill(queue, 3, due_in=HOUR)
        await queue.order(key="low", priority=1)

        assert (await queue.claim_one()).key == "low"

    async def test_kinds_that_nobody_here_knows_are_left_alone(self, queue: Queue) -> None:
        """While a release is rolled out, its new kinds wait for its workers."""
        await queue.order("other", priority=-1)
        await queue.order("extract")
        found = await queue.claim(2)
        assert [job.kind for job in found] == ["extract"]
        assert await queue.claim(2) == []

        newer = new_dispatch(queue.database, kinds=("other",))
        assert [job.kind for job in await queue.claim(2, newer)] == ["other"]


class TestLeases:
    async def test_a_living_lease_is_nobody_elses(self, queue: Queue) -> None:
        await queue.order()
        job = await queue.claim_one()
        await queue.pass_time(59 * SECOND)

        assert await queue.claim(1, new_dispatch(queue.database, "two")) == []
        assert (await queue.row(job.job_id))["worker"] == "one"

    async def test_one_that_ran_out_is_taken_over_before_all_other_work(self, queue: Queue) -> None:
        """Peers 1: work is never stuck because its worker died, whatever its name was."""
        await queue.order(signals=frozenset({"x"}), payload={"n": 1})
        job = await queue.claim_one()
        await queue.order(signals=frozenset({"meanwhile"}))
        await queue.order(key="b", priority=-5)
        await queue.pass_time(MINUTE + SECOND)

        taken = await queue.claim_one(new_dispatch(queue.database, "two"))
        assert (taken.job_id, taken.attempts) == (job.job_id, 2)
        assert taken.lease_token != job.lease_token
        assert (taken.signals, taken.payload) == ({"x"}, {"n": 1})
        await queue.finish(taken)
        assert (await queue.row(job.job_id))["signals"] == ["meanwhile"]

    async def test_nobody_takes_over_what_is_still_in_his_own_hands(self, queue: Queue) -> None:
        """As when the database comes back after longer than a lease."""
        await queue.order()
        dispatch = new_dispatch(queue.database)
        job = await queue.claim_one(dispatch)
        await queue.pass_time(MINUTE + SECOND)

        assert (await dispatch.claim(1, {}, [job.lease_token])).claims == []
        assert await dispatch.extend([job]) == set()
        await queue.finish(job)

    async def test_a_heartbeat_keeps_it(self, queue: Queue) -> None:
        await queue.order()
        dispatch = new_dispatch(queue.database)
        job = await queue.claim_one(dispatch)
        await queue.pass_time(50 * SECOND)
        assert await dispatch.extend([job]) == set()
        await queue.pass_time(50 * SECOND)

        assert await queue.claim(1, new_dispatch(queue.database, "two")) == []

    async def test_a_heartbeat_says_what_was_lost(self, queue: Queue, other_queue: Queue) -> None:
        """Taken over, cancelled by somebody, or gone with its person: each by its token."""
        dispatch = new_dispatch(queue.database)
        names = ("kept", "taken", "gone", "ended")
        for name in names:
            await queue.order(key=name)
        held = {job.key: job for job in await queue.claim(10, dispatch)}
        await other_queue.order(key="kept")
        held["other"] = (await other_queue.claim(1, dispatch))[0]
        await queue.set(held["taken"].job_id, lease_token="another")
        await queue.owner.execute("DELETE FROM jobs WHERE job_id = $1", held["gone"].job_id)
        await queue.finish(held["ended"])

        lost = await dispatch.extend(list(held.values()))

        assert lost == {held["taken"].lease_token, held["gone"].lease_token}

    async def test_one_locked_row_does_not_hold_up_the_heartbeat(
        self, queue: Queue, database: Database
    ) -> None:
        """Peers 13: an append that waits for something else holds the row of its job."""
        dispatch = new_dispatch(queue.database)
        for name in ("a", "b"):
            await queue.order(key=name)
        jobs = await queue.claim(2, dispatch)
        await queue.pass_time(30 * SECOND)
        transaction = queue.owner.transaction()
        await transaction.start()
        await queue.owner.execute("SELECT FROM jobs WHERE key = 'a' FOR UPDATE")
        async with asyncio.timeout(PATIENCE):
            assert await dispatch.extend(jobs) == set()
        await transaction.rollback()

        left = {row["key"]: row["lease_expires_at"] for row in await queue.rows()}
        assert left["b"] - left["a"] > 25 * SECOND


class TestRaces:
    async def test_two_claimers_never_get_one_job(self, queue: Queue) -> None:
        await fill(queue, 300)
        got: Counter[str] = Counter()

        async def take(worker: str) -> None:
            dispatch = new_dispatch(queue.database, worker)
            while True:
                found = await dispatch.claim(3, {})
                got.update(one.job_id for one in found.claims)
                if not found.claims and not found.again:
                    return

        await asyncio.gather(*(take(f"w{number}") for number in range(6)))

        assert len(got) == 300
        assert set(got.values()) == {1}

    async def test_rows_that_another_has_locked_are_passed_over(
        self, queue: Queue, jobs_dsn: str
    ) -> None:
        for key in ("a", "b"):
            await queue.order(key=key)
        transaction = queue.owner.transaction()
        await transaction.start()
        await queue.owner.execute("SELECT FROM jobs WHERE key = 'a' FOR UPDATE")
        async with asyncio.timeout(PATIENCE):
            assert [job.key for job in await queue.claim(2)] == ["b"]
            found = await new_dispatch(queue.database).claim(2, {})
            assert (found.claims, found.again) == ([], True)
        await transaction.rollback()

        assert [job.key for job in await queue.claim(2)] == ["a"]

    async def test_two_take_an_expired_lease_over_once(self, queue: Queue) -> None:
        await queue.order()
        await queue.claim_one()
        await queue.pass_time(MINUTE + SECOND)

        claims = await asyncio.gather(
            *(new_dispatch(queue.database, str(number)).claim(1, {}) for number in range(4))
        )

        assert sum(len(one.claims) for one in claims) == 1
        [row] = await queue.rows()
        assert row["attempts"] == 2


async def tenants_of(dispatch: Dispatch, free: int, times: int) -> list[str]:
    served = []
    for _ in range(times):
        served += [one.tenant_id for one in (await dispatch.claim(free, {})).claims]
    return served


class TestFairness:
    async def test_tenants_take_turns(self, queue: Queue) -> None:
        queues = await several(queue, 3)
        for one in queues:
            await fill(one, 10)

        served = await tenants_of(new_dispatch(queue.database), 1, 9)

        ids = sorted(one.tenant_id for one in queues)
        assert served == ids * 3

    async def test_one_job_is_not_behind_a_thousand(self, queue: Queue, other_queue: Queue) -> None:
        await fill(queue, 1000, due_in=-HOUR)
        await fill(other_queue, 1)

        served = await tenants_of(new_dispatch(queue.database), 4, 1)

        assert Counter(served) == {queue.tenant_id: 3, other_queue.tenant_id: 1}

    async def test_free_slots_go_to_those_who_have_more(self, queue: Queue) -> None:
        queues = await several(queue, 3)
        for one, jobs in zip(queues, (1, 2, 50), strict=True):
            await fill(one, jobs)

        served = Counter(await tenants_of(new_dispatch(queue.database), 8, 1))

        assert [served[one.tenant_id] for one in queues] == [1, 2, 5]

    @pytest.mark.parametrize(("running", "more"), [(0, 3), (1, 2), (2, 1), (3, 0), (4, 0)])
    async def test_no_tenant_takes_more_than_its_share(
        self, queue: Queue, running: int, more: int
    ) -> None:
        await fill(queue, 10)
        dispatch = new_dispatch(queue.database, per_tenant=3)

        found = await dispatch.claim(8, {queue.tenant_id: running} if running else {})

        assert len(found.claims) == more

    async def test_those_at_their_limit_do_not_hide_the_others(
        self, queue: Queue, other_queue: Queue
    ) -> None:
        first, second = sorted((queue, other_queue), key=lambda one: one.tenant_id)
        await fill(first, 100, due_in=-HOUR)
        await fill(second, 1)
        dispatch = new_dispatch(queue.database, per_tenant=3)

        found = await dispatch.claim(1, {first.tenant_id: 3})

        assert [one.tenant_id for one in found.claims] == [second.tenant_id]

    async def test_more_tenants_than_one_look_sees_are_all_served(self, queue: Queue) -> None:
        """Most only wait; one at the far end has something due."""
        await queue.owner.execute(
            "INSERT INTO tenants (tenant_id, tenant_name) "
            "SELECT 'crowd_' || lpad(n::text, 5, '0'), 'x' FROM generate_series(1, $1) AS n",
            PROBES + 100,
        )
        await queue.owner.execute(
            "INSERT INTO jobs (tenant_id, job_id, kind, key, due_at) "
            "SELECT tenant_id, 'job_' || tenant_id, 'extract', 'a', now() + interval '1 hour' "
            "FROM tenants WHERE tenant_id LIKE 'crowd_%'"
        )
        last = queue.of("crowd_00356")
        await fill(last, 1)
        dispatch = new_dispatch(queue.database)

        first = await dispatch.claim(1, {})
        assert (first.claims, first.again) == ([], True)
        second = await dispatch.claim(1, {})

        assert [one.tenant_id for one in second.claims] == [last.tenant_id]


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(one for child in plan.get("Plans", []) for one in nodes(child))]


async def explained(dsn: str, free: int) -> dict[str, Any]:
    """The claim as a worker runs it: as its role, with a plan for any values."""
    connection = await asyncpg.connect(
        dsn, server_settings={"plan_cache_mode": "force_generic_plan"}
    )
    try:
        await connection.execute(f"SET ROLE {DISPATCH}")
        types = "text, bigint, interval, text, varchar[], bigint, varchar[], jsonb, varchar[]"
        await connection.execute(f"PREPARE claim ({types}) AS {CLAIM}")
        async with connection.transaction():
            text = await connection.fetchval(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE claim("
                f"'', {free}, '1 minute', 'w', '{{extract}}', 100, '{{}}', '{{}}', '{{}}')"
            )
        return json.loads(text)[0]["Plan"]
    finally:
        await connection.close()


class TestCost:
    @pytest.mark.parametrize("analysed", [True, False])
    async def test_a_backlog_is_not_read(
        self, queue: Queue, other_queue: Queue, jobs_dsn: str, analysed: bool
    ) -> None:
        """Rows and pages read stay the same when one tenant's backlog grows a hundredfold."""
        costs = []
        for backlog in (100, 10_000):
            await queue.owner.execute("DELETE FROM jobs")
            await fill(queue, backlog, due_in=-HOUR)
            await fill(queue, backlog, due_in=HOUR)
            await fill(other_queue, 1)
            await queue.owner.execute(f"VACUUM {'ANALYZE' if analysed else ''} jobs")
            plan = await explained(jobs_dsn, 4)
            read = [one for one in nodes(plan) if "Relation Name" in one]
            assert "Seq Scan" not in {one["Node Type"] for one in read}
            rows = sum(
                one["Actual Rows"] * one["Actual Loops"] + one.get("Rows Removed by Filter", 0)
                for one in read
            )
            costs.append((rows, plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]))

        (few_rows, few_pages), (many_rows, many_pages) = costs
        assert many_rows <= few_rows + 2
        assert many_rows < 100
        assert many_pages < few_pages + 60, costs

    async def test_a_look_is_bounded_however_many_tenants_there_are(
        self, queue: Queue, jobs_dsn: str
    ) -> None:
        await queue.owner.execute(
            "INSERT INTO tenants (tenant_id, tenant_name) "
            "SELECT 'many_' || n, 'x' FROM generate_series(1, 3000) AS n"
        )
        await queue.owner.execute(
            "INSERT INTO jobs (tenant_id, job_id, kind, key, due_at) SELECT tenant_id, "
            "'job_' || md5(tenant_id), 'extract', 'a', now() + interval '1 hour' "
            "FROM tenants WHERE tenant_id LIKE 'many_%'"
        )
        await queue.owner.execute("VACUUM ANALYZE jobs")

        plan = await explained(jobs_dsn, 4)

        read = sum(
            one["Actual Rows"] * one["Actual Loops"]
            for one in nodes(plan)
            if "Relation Name" in one
        )
        assert PROBES <= read <= PROBES + 10


async def test_the_role_that_claims_cannot_read_what_is_in_a_job(
    queue: Queue, jobs_dsn: str
) -> None:
    await queue.order(payload={"text": "secret"})
    connection = await asyncpg.connect(jobs_dsn)
    await connection.execute(f"SET ROLE {DISPATCH}")
    for column in ("payload", "signals", "again_payload", "again_signals", "result", "user_id"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch(f"SELECT {column} FROM jobs")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute("DELETE FROM jobs")
    assert await connection.fetchval("SELECT count(kind) FROM jobs") == 1
    await connection.close()


async def test_claims_of_a_person_that_was_erased_meanwhile_are_dropped(queue: Queue) -> None:
    await queue.order()
    dispatch = new_dispatch(queue.database)
    found = await dispatch.claim(1, {})
    await queue.owner.execute("DELETE FROM jobs")

    assert await dispatch.read(found.claims) == []
    assert new_id("job").startswith("job_")
