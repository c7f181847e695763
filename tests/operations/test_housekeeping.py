"""What goes with time, and what stays: the house of one tenant, beside another's."""

import asyncio
from datetime import timedelta

import pytest
from httpx import AsyncClient
from operations_support import claim

from app.governance.operations.housekeeping import KIND, Housekeeping
from app.governance.operations.repository import Retention
from app.platform.database.failures import DatabaseBusyError
from app.platform.jobs.orders import Order
from app.platform.jobs.repository import JobRepository
from app.runtime import Runtime
from tests.support.api import dump, every_page, execute, found, listed, ok, problem, save
from tests.support.tenants import Caller

DAYS = 30
RETENTION = Retention(deleted=timedelta(days=DAYS))

NOTHING = {
    "expired": 0, "memories": 0, "idempotency_keys": 0, "verdicts": 0, "jobs": 0,
    "extraction_runs": 0, "webhook_deliveries": 0, "usage": 0, "daily_counts": 0,
    "model_answers": 0, "store_items": 0,
    "injected_contexts": 0,
}  # fmt: skip

JOB = """INSERT INTO jobs (tenant_id, job_id, kind, key, status, finished_at, create_time)
    VALUES ($1, $2::text, 'extract', $2::text, $4::text,
        CASE WHEN $4::text NOT IN ('pending', 'running') THEN now() - $3::interval END,
        now() - $3::interval)"""
RUN = """INSERT INTO extraction_runs (tenant_id, run_id, trigger, status, extractor, create_time)
    VALUES ($1, $2::text, 'automatic', $4::text, 'rules/1', now() - $3::interval)"""
DELIVERY = """INSERT INTO webhook_deliveries (tenant_id, delivery_id, webhook_id, event_id,
    event_type, payload, status, delivered_at, create_time, update_time)
    VALUES ($1, $2::text, 'hook', $2::text, 'job.dead', '{}', $4::text,
        CASE WHEN $4::text = 'delivered' THEN now() - $3::interval END,
        now() - $3::interval, now() - $3::interval)"""
USAGE = """INSERT INTO usage (tenant_id, day, operation, model)
    VALUES ($1, (now() AT TIME ZONE 'UTC')::date - extract(day FROM $3::interval)::int,
        $2::text, $4::text)"""
COUNT = """INSERT INTO daily_counts (tenant_id, day, name, agent_id, label, count)
    VALUES ($1, (now() AT TIME ZONE 'UTC')::date - extract(day FROM $3::interval)::int,
        $2::text, '', $4::text, 1)"""
VERDICT = """INSERT INTO gate_decisions
    (tenant_id, decision_id, verdict, scope, source, create_time)
    VALUES ($1, $2::text, $4::text, 'user', 'user', now() - $3::interval)"""
KEY = """INSERT INTO idempotency_keys
    (tenant_id, key_id, idempotency_key, request_hash, status, answer, expires_at)
    VALUES ($1, 'key', $2::text, $4::text::bytea, 200, '', now() - $3::interval)"""

ANSWER = """INSERT INTO model_answers
    (tenant_id, answer_key, operation, purpose, answer, create_time)
    VALUES ($1, $2::text::bytea, $4::text, $2::text, '{}', now() - $3::interval)"""

ITEM = """INSERT INTO store_items (tenant_id, item_id, space, path, key, value, expires_at)
    VALUES ($1, $2::text, '/', $4::text, $2::text, '{}', now() - $3::interval)"""
CONTEXT = """INSERT INTO injected_contexts
    (tenant_id, session_id, content_sha256, tokens, memory_tokens, first_at, last_at)
    VALUES ($1, $4::text, $2::text, 1, 1, now() - interval '1 year', now() - $3::interval)"""
SESSION = """WITH a AS (INSERT INTO agents (tenant_id, agent_id, agent_name)
    VALUES ($1, 'a', 'a') ON CONFLICT DO NOTHING),
    u AS (INSERT INTO users (tenant_id, user_id, agent_id) VALUES ($1, 'u', 'a')
        ON CONFLICT DO NOTHING)
    INSERT INTO sessions (tenant_id, session_id, agent_id, user_id) VALUES ($1, 's', 'a', 'u')
    ON CONFLICT DO NOTHING"""

ROWS = [
    # counted as, made by, in which status, days it is kept; None: for ever
    ("jobs", JOB, "succeeded", 7),
    ("jobs", JOB, "cancelled", 7),
    ("jobs", JOB, "dead", 30),
    ("jobs", JOB, "pending", None),
    ("jobs", JOB, "running", None),
    ("extraction_runs", RUN, "committed", 90),
    ("extraction_runs", RUN, "failed", 90),
    ("webhook_deliveries", DELIVERY, "delivered", 7),
    ("webhook_deliveries", DELIVERY, "dead", 30),
    ("webhook_deliveries", DELIVERY, "pending", 30),
    ("verdicts", VERDICT, "rejected", DAYS),
    ("verdicts", VERDICT, "accepted", None),
    ("idempotency_keys", KEY, "x", 0),
    ("model_answers", ANSWER, "extract", 1),
    ("store_items", ITEM, "x", 0),
    ("injected_contexts", CONTEXT, "s", 90),
]


async def make(
    dsn: str, caller: Caller, statement: str, name: str, age: timedelta, status: str
) -> None:
    await execute(
        dsn,
        "INSERT INTO webhooks (tenant_id, webhook_id, url, secret, events) "
        "VALUES ($1, 'hook', 'https://example.org', 's', '{}') ON CONFLICT DO NOTHING",
        caller.tenant_id,
    )
    await execute(dsn, SESSION, caller.tenant_id)
    await execute(dsn, statement, caller.tenant_id, name, age, status)


async def age_memory(dsn: str, memory_id: str, **ages: timedelta) -> None:
    """Move `deleted_at` or `expires_at` of a memory so far into the past."""
    for column, age in ages.items():
        statement = f"UPDATE memories SET {column} = now() - $2::interval WHERE memory_id = $1"
        await execute(dsn, statement, memory_id, age)


@pytest.fixture
def house(runtime: Runtime) -> Housekeeping:
    return Housekeeping(runtime.database, RETENTION)


class TestWhatGoes:
    @pytest.mark.parametrize(
        ("kind", "statement", "status", "days"), ROWS, ids=[f"{row[0]}-{row[2]}" for row in ROWS]
    )
    async def test_rows_go_when_they_are_old_enough(
        self,
        house: Housekeeping,
        acme: Caller,
        other: Caller,
        dsn: str,
        kind: str,
        statement: str,
        status: str,
        days: int | None,
    ) -> None:
        limit = timedelta(days=days if days is not None else 10_000)
        for name, age in (
            ("younger", limit - timedelta(minutes=1)),
            ("due", limit),
            ("older", limit + timedelta(days=1)),
        ):
            await make(dsn, acme, statement, f"{name}-{acme.tenant_id}", age, status)
            await make(dsn, other, statement, f"{name}-{other.tenant_id}", age, status)
        theirs = await dump(dsn, other.tenant_id)
        before = await dump(dsn, acme.tenant_id)
        gone = 0 if days is None else 2

        due = await house.due(acme.tenant_id)
        assert await dump(dsn, acme.tenant_id) == before
        done = await house.run(acme.tenant_id)

        assert due == done == NOTHING | {kind: gone}
        table = "gate_decisions" if kind == "verdicts" else kind
        left = (await dump(dsn, acme.tenant_id))[table]
        assert len(left) == 3 - gone
        assert gone == 0 or "younger-" in left[0]
        assert await dump(dsn, other.tenant_id) == theirs
        assert await house.run(acme.tenant_id) == NOTHING

    @pytest.mark.parametrize(("table", "statement"), [("usage", USAGE), ("daily_counts", COUNT)])
    async def test_what_is_counted_by_day_goes_by_whole_days(
        self, house: Housekeeping, acme: Caller, dsn: str, table: str, statement: str
    ) -> None:
        for days in (399, 400, 401, 402):
            await make(dsn, acme, statement, f"after-{days}", timedelta(days=days), "m")

        assert await house.due(acme.tenant_id) == NOTHING | {table: 2}
        assert await house.run(acme.tenant_id) == NOTHING | {table: 2}

        left = (await dump(dsn, acme.tenant_id))[table]
        assert [any(f"after-{days}" in row for row in left) for days in (399, 400, 401)] == [
            True, True, False,
        ]  # fmt: skip

    async def test_a_deleted_memory_goes_with_its_words(
        self, client: AsyncClient, house: Housekeeping, acme: Caller, dsn: str
    ) -> None:
        kept, due = [
            (await save(client, text))["memory_id"]
            for text in ("She keeps yellow bees.", "She keeps blue elephants.")
        ]
        for memory_id, age in ((kept, timedelta(days=DAYS, minutes=-1)), (due, timedelta(DAYS))):
            ok(await client.delete(f"/memories/{memory_id}"), 204)
            await age_memory(dsn, memory_id, deleted_at=age)

        assert await house.due(acme.tenant_id) == NOTHING | {"memories": 1}
        assert await house.run(acme.tenant_id) == NOTHING | {"memories": 1}

        rows = await dump(dsn, acme.tenant_id)
        assert not any("blue elephants" in line for lines in rows.values() for line in lines)
        assert any("yellow bees" in line for line in rows["memories"])

    async def test_rows_go_in_small_transactions(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        for number in range(5):
            await make(dsn, acme, JOB, f"{acme.tenant_id}-{number}", timedelta(days=8), "succeeded")
            await make(dsn, acme, KEY, f"k{number}", timedelta(0), "x")
        batches: list[int] = []

        house = Housekeeping(runtime.database, RETENTION, batch=2)
        done = await house.run(acme.tenant_id, removed=batches.append)

        assert done == NOTHING | {"jobs": 5, "idempotency_keys": 5}
        assert batches == [2, 2, 1, 2, 2, 1]

    async def test_rows_that_somebody_holds_are_left_for_the_next_time(
        self, runtime: Runtime, house: Housekeeping, acme: Caller, dsn: str
    ) -> None:
        for number in range(2):
            await make(dsn, acme, JOB, f"{acme.tenant_id}-{number}", timedelta(days=8), "dead")
            await make(dsn, acme, RUN, f"{acme.tenant_id}-{number}", timedelta(days=91), "failed")
        async with runtime.database.begin(acme.tenant_id) as db:
            held = await (await db.connection()).exec_driver_sql(
                "SELECT 1 FROM extraction_runs ORDER BY run_id LIMIT 1 FOR UPDATE"
            )
            assert held.rowcount == 1
            first = await house.run(acme.tenant_id)

        assert first == NOTHING | {"extraction_runs": 1}
        assert await house.run(acme.tenant_id) == NOTHING | {"extraction_runs": 1}


class TestExpiry:
    async def expire(self, client: AsyncClient, dsn: str, text: str, age: timedelta) -> str:
        memory_id: str = (await save(client, text, expires_at="2999-01-01T00:00:00Z"))["memory_id"]
        await age_memory(dsn, memory_id, expires_at=age)
        return memory_id

    async def test_a_memory_is_archived_when_it_has_expired(
        self, client: AsyncClient, house: Housekeeping, acme: Caller, dsn: str
    ) -> None:
        valid = await self.expire(client, dsn, "She has a cold.", -timedelta(minutes=1))
        expired = await self.expire(client, dsn, "她这周在慕尼黑。", timedelta(0))
        before = ok(await client.get(f"/memories/{expired}"))

        assert await house.due(acme.tenant_id) == NOTHING | {"expired": 1}
        assert ok(await client.get(f"/memories/{expired}")) == before
        assert await house.run(acme.tenant_id) == NOTHING | {"expired": 1}

        after = ok(await client.get(f"/memories/{expired}"))
        assert (after["status"], after["version"]) == ("archived", 2)
        changed = {"status", "version", "update_time"}
        assert {k: v for k, v in after.items() if k not in changed} == {
            k: v for k, v in before.items() if k not in changed
        }
        assert await listed(client) == [valid]
        assert await listed(client, status="archived") == [expired]
        assert expired not in await found(client, "慕尼黑")
        assert await house.run(acme.tenant_id) == NOTHING

    async def test_the_history_says_what_it_was_and_that_it_expired(
        self, client: AsyncClient, house: Housekeeping, acme: Caller, dsn: str
    ) -> None:
        memory_id = await self.expire(client, dsn, "She has a cold.", timedelta(days=1))

        await house.run(acme.tenant_id, job_id="job_1")

        line = (await every_page(client, f"/memories/{memory_id}/history"))[-1]
        assert (line["event"], line["reason"], line["actor"]) == ("ARCHIVE", "expired", None)
        assert (line["version"], line["job_id"]) == (2, "job_1")
        assert (line["before"]["status"], line["after"]["status"]) == ("active", "archived")
        assert (line["before"]["version"], line["after"]["version"]) == (1, 2)
        assert line["after"]["content"] == "She has a cold."
        assert line["before"]["update_time"] < line["after"]["update_time"]

    async def test_its_text_can_be_remembered_anew(
        self, client: AsyncClient, house: Housekeeping, acme: Caller, dsn: str
    ) -> None:
        old = await self.expire(client, dsn, "She has a cold.", timedelta(days=1))
        await house.run(acme.tenant_id)

        new = await save(client, "She has a cold.")

        assert new["event"] == "ADD"
        assert new["memory_id"] != old

    async def test_expired_memory_goes_for_good_when_that_was_long_ago(
        self, client: AsyncClient, house: Housekeeping, acme: Caller, dsn: str
    ) -> None:
        younger = await self.expire(
            client, dsn, "She has a cold.", timedelta(days=DAYS, minutes=-1)
        )
        older = await self.expire(client, dsn, "Blue elephants visit.", timedelta(days=DAYS))
        put_away = (await save(client, "She sang in a choir."))["memory_id"]
        ok(await client.patch(f"/memories/{put_away}", json={"status": "archived"}))

        # Archived first, so that the second round finds it.
        assert await house.run(acme.tenant_id) == NOTHING | {"expired": 2, "memories": 1}

        problem(await client.get(f"/memories/{older}"), 404, "memory_not_found")
        assert set(await listed(client, status="archived")) == {younger, put_away}
        rows = await dump(dsn, acme.tenant_id)
        assert not any("Blue elephants" in line for lines in rows.values() for line in lines)
        lines = await execute(
            dsn, "SELECT event, before, after FROM memory_history WHERE memory_id = $1", older
        )
        assert [tuple(line) for line in lines] == [("DELETE", None, None)]


class TestTwiceAtOnce:
    async def test_each_row_goes_once(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        for number in range(20):
            await make(dsn, acme, JOB, f"{acme.tenant_id}-{number}", timedelta(days=8), "succeeded")
            await make(dsn, acme, VERDICT, f"v{number}", timedelta(days=DAYS), "rejected")
        for number in range(6):
            gone = (await save(client, f"She has {number} bees."))["memory_id"]
            ok(await client.delete(f"/memories/{gone}"), 204)
            await age_memory(dsn, gone, deleted_at=timedelta(days=DAYS))
            expired = (await save(client, f"He has {number} cats."))["memory_id"]
            await age_memory(dsn, expired, expires_at=timedelta(minutes=number))
        house = Housekeeping(runtime.database, RETENTION, batch=3)

        done = await asyncio.gather(*(house.run(acme.tenant_id) for _ in range(4)))

        sums = {name: sum(one[name] for one in done) for name in NOTHING}
        rest = await house.run(acme.tenant_id)
        total = {name: sums[name] + rest[name] for name in NOTHING}
        assert total == NOTHING | {"jobs": 20, "verdicts": 20, "memories": 6, "expired": 6}
        history = await execute(
            dsn,
            "SELECT event, count(*) AS lines FROM memory_history WHERE tenant_id = $1 "
            "AND event IN ('ARCHIVE', 'DELETE') GROUP BY event",
            acme.tenant_id,
        )
        assert {row["event"]: row["lines"] for row in history} == {"ARCHIVE": 6, "DELETE": 6}


async def test_as_a_job_it_says_what_it_did(
    house: Housekeeping, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    await make(dsn, acme, KEY, "k", timedelta(0), "x")
    async with runtime.database.begin(acme.tenant_id) as db:
        owed = await JobRepository(db, acme.tenant_id).schedule(Order(KIND, "hourly"))
    assert owed is not None

    job = await claim(dsn, acme, owed.job_id)

    assert await house(job) == NOTHING | {"idempotency_keys": 1}


async def test_what_is_old_goes_when_it_cannot_be_counted(runtime, dsn, acme) -> None:
    async def busy(_tenant_id: str) -> dict[str, int]:
        raise DatabaseBusyError

    await make(dsn, acme, JOB, "old", timedelta(days=8), "succeeded")

    counts = await Housekeeping(runtime.database, RETENTION, statistics=busy).run(acme.tenant_id)

    assert counts["jobs"] == 1
