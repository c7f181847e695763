"""Bulk deletion past the limit of one transaction: left to a job, done in batches."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from operations_support import claim

from app.memory.memories.deletion_service import KIND, MOST_AT_ONCE, BulkDeletion
from app.memory.memories.service import MemoryService
from app.platform.http.dependencies import provider
from app.platform.jobs.failures import GiveUpJobError, LeaseLostError
from app.platform.jobs.repository import JobRepository
from app.platform.jobs.worker import Worker, WorkerLimits
from app.runtime import Runtime
from tests.support.api import counts, dump, every_page, execute, listed, ok, problem, save
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

LIMIT = 3


@pytest.fixture(autouse=True)
def small_limit(app: FastAPI, runtime: Runtime) -> Any:
    """The service as it is, but that three memories are many."""

    async def service() -> MemoryService:
        return MemoryService(runtime.work, runtime.counter, most_at_once=LIMIT)

    app.dependency_overrides[provider(MemoryService)] = service
    yield
    del app.dependency_overrides[provider(MemoryService)]


@pytest.fixture
def remember(client: AsyncClient) -> Callable[..., Awaitable[list[str]]]:
    async def remember(count: int, user_id: str = "ana", **fields: Any) -> list[str]:
        fields = {"user_id": user_id, "on_duplicate": "allow"} | fields
        return [
            (await save(client, f"{user_id} collects stamp {number}.", **fields))["memory_id"]
            for number in range(count)
        ]

    return remember


Remember = Callable[..., Awaitable[list[str]]]


async def carry_out(
    runtime: Runtime, dsn: str, caller: Caller, job_id: str, batch: int = 2
) -> dict[str, Any]:
    """What a worker does with it, to the end."""
    job = await claim(dsn, caller, job_id)
    result = await BulkDeletion(runtime.database, batch=batch)(job)
    async with runtime.database.begin(caller.tenant_id) as db:
        await JobRepository(db, caller.tenant_id).finish(job, result)
    return result


async def schedule(client: AsyncClient, **body: Any) -> str:
    """A deletion by job; its id."""
    response = await client.post("/memories/delete", json={"confirm": True} | body)
    job_id: str = ok(response, 202)["job_id"]
    return job_id


async def jobs(client: AsyncClient) -> list[dict[str, Any]]:
    return await every_page(client, "/jobs", kind=KIND)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.02)


async def fewer_than(client: AsyncClient, count: int) -> bool:
    return len(await listed(client)) < count


async def succeeded(client: AsyncClient, job_id: str) -> bool:
    return bool(ok(await client.get(f"/jobs/{job_id}"))["status"] == "succeeded")


class TestTheLimit:
    def test_limit_of_a_bulk_deletion_is_ten_thousand(self) -> None:
        assert MOST_AT_ONCE == 10_000

    @pytest.mark.parametrize("count", [LIMIT - 1, LIMIT])
    async def test_up_to_it_memories_are_deleted_at_once(
        self, client: AsyncClient, remember: Remember, count: int
    ) -> None:
        await remember(count)

        gone = ok(await client.delete("/memories", params={"user_id": "ana", "confirm": True}))

        assert gone == {"deleted": count, "dry_run": False}
        assert await listed(client) == []
        assert await jobs(client) == []

    async def test_beyond_it_a_job_is_owed_and_nothing_deleted_yet(
        self, client: AsyncClient, acme: Caller, remember: Remember
    ) -> None:
        made = await remember(LIMIT + 1)

        for response in (
            await client.delete("/memories", params={"user_id": "ana", "confirm": True}),
            await client.post("/memories/delete", json={"user_id": "ana", "confirm": True}),
        ):
            answer = ok(response, 202)
            job = ok(await client.get(f"/jobs/{answer['job_id']}"))
            assert answer == {"selected": LIMIT + 1, "job_id": job["job_id"]}
            assert (job["kind"], job["status"], job["user_id"]) == (KIND, "pending", "ana")
            assert job["creator"] == acme.key_id
        assert len(await jobs(client)) == 2
        assert sorted(await listed(client)) == sorted(made)

    async def test_a_dry_run_counts_and_owes_nothing(
        self, client: AsyncClient, acme: Caller, dsn: str, remember: Remember
    ) -> None:
        await remember(LIMIT + 1)
        before = await counts(dsn, acme.tenant_id)

        counted = ok(await client.delete("/memories", params={"user_id": "ana", "dry_run": True}))
        refused = await client.delete("/memories", params={"user_id": "ana"})

        assert counted == {"deleted": LIMIT + 1, "dry_run": True}
        assert problem(refused, 409, "confirmation_required")["holds"] == {"memories": LIMIT + 1}
        assert await counts(dsn, acme.tenant_id) == before

    async def test_a_repeated_request_owes_one_job(
        self, client: AsyncClient, remember: Remember
    ) -> None:
        await remember(LIMIT + 1)
        body, headers = {"user_id": "ana", "confirm": True}, {"Idempotency-Key": "one"}

        first = await client.post("/memories/delete", json=body, headers=headers)
        again = await client.post("/memories/delete", json=body, headers=headers)

        assert ok(again, 202) == ok(first, 202)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert len(await jobs(client)) == 1


class TestTheJob:
    async def test_bulk_deletion_deletes_what_was_selected_and_nothing_else(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, remember: Remember
    ) -> None:
        await remember(5)
        bens = await remember(5, "ben")
        job_id = await schedule(client, user_id="ana", reason="She asked for it.")
        later = (await save(client, "Ana likes green tea."))["memory_id"]

        result = await carry_out(runtime, dsn, acme, job_id)

        assert result == {"deleted": 5}
        assert sorted(await listed(client)) == sorted([*bens, later])
        job = ok(await client.get(f"/jobs/{job_id}"))
        assert (job["status"], job["result"]) == ("succeeded", {"deleted": 5})
        lines = await execute(
            dsn,
            "SELECT actor, reason, job_id, before->>'content' AS content FROM memory_history "
            "WHERE tenant_id = $1 AND event = 'DELETE'",
            acme.tenant_id,
        )
        assert {(one["actor"], one["reason"], one["job_id"]) for one in lines} == {
            (acme.key_id, "She asked for it.", job_id)
        }
        assert sorted(one["content"] for one in lines) == [
            f"ana collects stamp {number}." for number in range(5)
        ]

    @pytest.mark.parametrize("count", [4, 5, 6])
    async def test_batches_end_where_they_should(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, remember: Remember,
        count: int,
    ) -> None:  # fmt: skip
        await remember(count)
        job_id = await schedule(client, user_id="ana")

        result = await carry_out(runtime, dsn, acme, job_id, batch=5)

        assert result == {"deleted": count}
        assert await listed(client) == []

    async def test_a_filter_selects_for_it_and_its_words_go_when_it_is_done(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, remember: Remember
    ) -> None:
        await remember(5)
        other = (await save(client, "She likes blue elephants."))["memory_id"]
        job_id = await schedule(
            client, filters={"content": {"contains": "collects stamp"}}, hard=True
        )

        assert await carry_out(runtime, dsn, acme, job_id) == {"deleted": 5}

        assert await listed(client) == [other]
        rows = await dump(dsn, acme.tenant_id)
        assert not any("collects stamp" in line for lines in rows.values() for line in lines)

    async def test_a_job_that_does_not_say_what_deletes_nothing(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, remember: Remember
    ) -> None:
        made = await remember(LIMIT + 1)
        job_id = await schedule(client, user_id="ana")
        for payload in ("{}", '{"equal": {}, "filters": null}', '{"equal": {}, "filters": {}}'):
            await execute(dsn, "UPDATE jobs SET payload = $2 WHERE job_id = $1", job_id, payload)
            job = await claim(dsn, acme, job_id)
            with pytest.raises(GiveUpJobError):
                await BulkDeletion(runtime.database)(job)

        assert sorted(await listed(client)) == sorted(made)

    async def test_what_one_attempt_did_the_next_need_not_do(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, remember: Remember
    ) -> None:
        made = await remember(5)
        job_id = await schedule(client, user_id="ana")
        for memory_id in made[1:3]:
            ok(await client.delete(f"/memories/{memory_id}"), 204)

        assert await carry_out(runtime, dsn, acme, job_id) == {"deleted": 3}

        lines = await execute(
            dsn,
            "SELECT memory_id FROM memory_history WHERE tenant_id = $1 AND event = 'DELETE'",
            acme.tenant_id,
        )
        assert sorted(line["memory_id"] for line in lines) == sorted(made)

    async def test_two_at_once_delete_each_memory_once(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, remember: Remember
    ) -> None:
        await remember(12)
        claimed = [
            await claim(dsn, acme, await schedule(client, **selected))
            for selected in ({"user_id": "ana"}, {"scope": "user"})
        ]

        done = await asyncio.gather(
            *(BulkDeletion(runtime.database, batch=2)(job) for job in claimed)
        )

        assert sum(one["deleted"] for one in done) == 12
        assert await listed(client) == []

    async def test_called_off_it_stops_with_the_batch_it_is_in(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, remember: Remember
    ) -> None:
        """The second batch waits for a row that the test holds while the job is cancelled."""
        made = sorted(await remember(6))
        job_id = await schedule(client, user_id="ana")
        job = await claim(dsn, acme, job_id)
        async with runtime.database.begin(acme.tenant_id) as db:
            connection = await db.connection()
            await connection.exec_driver_sql(
                f"SELECT 1 FROM memories WHERE memory_id = '{made[2]}' FOR UPDATE"
            )
            deleting = asyncio.create_task(BulkDeletion(runtime.database, batch=2)(job))
            await until(lambda: fewer_than(client, 5))
            ok(await client.post(f"/jobs/{job_id}/cancel"))

        with pytest.raises(LeaseLostError):
            await deleting
        assert sorted(await listed(client)) == made[4:]

    async def test_bulk_deletion_goes_with_the_person_it_is_about(
        self, client: AsyncClient, acme: Caller, dsn: str, remember: Remember
    ) -> None:
        await remember(LIMIT + 1)
        await schedule(client, user_id="ana", filters={"content": {"contains": "stamp"}})

        ok(await client.delete("/users/ana", params={"confirm": True}))

        assert (await dump(dsn, acme.tenant_id))["jobs"] == []

    async def test_a_worker_does_it(
        self, client: AsyncClient, runtime: Runtime, remember: Remember
    ) -> None:
        await remember(LIMIT + 1)
        job_id = await schedule(client, user_id="ana")
        worker = Worker(
            runtime.database,
            {KIND: BulkDeletion(runtime.database, batch=2)},
            name="test",
            limits=WorkerLimits(),
            spread=lambda: 0.5,
        )
        running = asyncio.create_task(worker.run())
        await until(lambda: succeeded(client, job_id))
        await worker.drain(timedelta(seconds=5))
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

        assert await listed(client) == []
        assert ok(await client.get(f"/jobs/{job_id}"))["result"] == {"deleted": LIMIT + 1}


@pytest.fixture
async def bound(
    app: FastAPI, runtime: Runtime, acme: Caller
) -> AsyncIterator[dict[str, AsyncClient]]:
    """A key of ben, one of ben's agent, and one of the whole tenant that is no admin."""
    clients = {}
    for name, restriction in (
        ("ben", {"user_id": "ben"}), ("rival", {"agent_id": "rival"}), ("writer", {}),
    ):  # fmt: skip
        caller = await make_key(runtime, acme.tenant_id, "write", **restriction)
        clients[name] = client_of(app, caller.key)
    yield clients
    for one in clients.values():
        await one.aclose()


class TestOthers:
    async def test_a_users_key_deletes_that_users_rows(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, remember: Remember,
        bound: dict[str, AsyncClient],
    ) -> None:  # fmt: skip
        anas = await remember(5)
        await remember(5, "ben")

        job_id = await schedule(bound["ben"], scope="user")

        assert ok(await bound["ben"].get(f"/jobs/{job_id}"))["user_id"] == "ben"
        assert await carry_out(runtime, dsn, acme, job_id) == {"deleted": 5}
        assert sorted(await listed(client)) == sorted(anas)

    async def test_an_agents_key_deletes_what_it_sees(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, remember: Remember,
        bound: dict[str, AsyncClient],
    ) -> None:  # fmt: skip
        ok(await client.post("/users", json={"user_id": "ben", "agent_id": "rival"}), 201)
        anas = await remember(5)
        await remember(5, "ben")

        job_id = await schedule(bound["rival"], scope="user")

        assert ok(await bound["rival"].get(f"/jobs/{job_id}"))["agent_id"] == "rival"
        assert await carry_out(runtime, dsn, acme, job_id) == {"deleted": 5}
        assert sorted(await listed(client)) == sorted(anas)

    async def test_knowledge_stays_unless_an_admin_asked(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, remember: Remember,
        bound: dict[str, AsyncClient],
    ) -> None:  # fmt: skip
        await remember(LIMIT + 1, agent_id="helper")
        known = (await save(client, "Refunds take 5 days.", user_id=None, agent_id="helper",
            scope="agent"))["memory_id"]  # fmt: skip

        first = await schedule(bound["writer"], agent_id="helper")
        assert await carry_out(runtime, dsn, acme, first) == {"deleted": LIMIT + 1}
        assert await listed(client) == [known]

        await remember(LIMIT, agent_id="helper")
        second = await schedule(client, agent_id="helper")
        assert await carry_out(runtime, dsn, acme, second) == {"deleted": LIMIT + 1}
        assert await listed(client) == []

    async def test_another_tenants_rows_are_never_selected(
        self, client: AsyncClient, stranger: AsyncClient, runtime: Runtime, acme: Caller, dsn: str,
        remember: Remember,
    ) -> None:  # fmt: skip
        await remember(LIMIT + 1)
        theirs = (await save(stranger, "Ana collects stamps too."))["memory_id"]

        job_id = await schedule(client, scope="user")
        await carry_out(runtime, dsn, acme, job_id)

        assert await listed(stranger) == [theirs]
        assert await listed(client) == []
        problem(await stranger.get(f"/jobs/{job_id}"), 404, "job_not_found")
