"""The worker that forgets killed at every step: another ends it, and each row goes once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from httpx import AsyncClient

from app.builders.factory import Factory
from app.governance.forgetting.steps import Forgetting
from app.governance.operations.housekeeping import KIND as HOUSEKEEPING
from app.platform.database.base import new_id
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import append, every_page, execute, ok, save
from tests.support.databases import migrated_database, served
from tests.support.locks import holding, until_somebody_waits
from tests.support.model_service import app_of
from tests.support.service import client_of
from tests.support.tenants import Caller, make_tenant
from tests.support.worker_processes import worker_process
from tests.support.working import over

pytestmark = pytest.mark.slow

CONFIG = {
    "max_facts": 2,
    "source_deleted_days": 5,
    "message_retention_days": 30,
}
LONG_AGO = timedelta(days=40)


@pytest.fixture(scope="module")
async def dsn(postgres: EmbeddedPostgres) -> str:
    """A database without anybody else's jobs."""
    return await migrated_database(postgres, "forgetting_crashes")


@pytest.fixture(scope="module")
async def runtime(dsn: str) -> AsyncIterator[Runtime]:
    async with open_runtime(Settings(_env_file=None), served(dsn)) as opened:
        yield opened


@pytest.fixture
async def acme(runtime: Runtime) -> Caller:
    return await make_tenant(runtime)


@pytest.fixture
async def client(runtime: Runtime, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with app_of(runtime) as application, client_of(application, acme.key) as opened:
        yield opened


@pytest.fixture
async def ids(
    runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str
) -> dict[str, list[str]]:
    """Something for every step, by what is to become of it; no upkeep but forgetting is due."""
    await execute(
        dsn,
        "INSERT INTO jobs (tenant_id, job_id, kind, key, status, finished_at) "
        "VALUES ($1, $2, $3, $3, 'succeeded', now())",
        acme.tenant_id, new_id("job"), HOUSEKEEPING,
    )  # fmt: skip
    body = {"agent_id": "coach", "agent_name": "Coach", "config": {"forgetting": CONFIG}}
    ok(await client.post("/agents", json=body), 201)
    facts = {
        "purged": ["我喜欢绿茶。", "她住在波恩。"],
        "source_deleted": ["The stove is broken.", "火炉坏了很久了。"],
        "over_capacity": ["A horse.....", "A newt.....", "A gecko....."],
        "kept": ["A ferret.....", "An otter....."],
    }
    found: dict[str, list[str]] = {}
    for step, texts in facts.items():
        sure = 0.9 if step == "kept" else 0.8
        found[step] = [
            (await save(client, one, agent_id="coach", confidence=sure))["memory_id"]
            for one in texts
        ]
    await execute(dsn, "UPDATE memories SET source = 'ai' WHERE tenant_id = $1", acme.tenant_id)
    await forgotten_long_ago(runtime, dsn, acme, found["purged"])
    await without_source(dsn, found["source_deleted"])
    await append(client, "talk", *(f"我去了第{n}个城市。" for n in range(5)), agent_id="coach")
    await execute(
        dsn, "UPDATE messages SET create_time = create_time - $2::interval WHERE tenant_id = $1",
        acme.tenant_id, LONG_AGO,
    )  # fmt: skip
    await execute(
        dsn,
        "UPDATE sessions SET last_extracted_seq = 5, in_context_from = 3 WHERE tenant_id = $1",
        acme.tenant_id,
    )
    # What saving owes profiles and graphs would wait for the same locks.
    await execute(dsn, "DELETE FROM jobs WHERE status = 'pending'")
    return found


async def forgotten_long_ago(
    runtime: Runtime, dsn: str, caller: Caller, memory_ids: list[str]
) -> None:
    await without_source(dsn, memory_ids)
    gone = await Factory(runtime).get(Forgetting).run(caller.tenant_id, ["source_deleted"])
    assert gone == {"source_deleted": len(memory_ids)}
    await execute(
        dsn,
        "UPDATE memory_history SET create_time = now() - $2::interval "
        "WHERE tenant_id = $1 AND event = 'ARCHIVE'",
        caller.tenant_id, LONG_AGO,
    )  # fmt: skip


async def without_source(dsn: str, memory_ids: list[str]) -> None:
    await execute(
        dsn,
        "UPDATE memories SET source = 'knowledge_base', source_deleted_at = now() - $2::interval "
        "WHERE memory_id = ANY($1)",
        memory_ids, LONG_AGO,
    )  # fmt: skip


class Stop(NamedTuple):
    """Where the first worker is stopped.

    Args:
        lock: what somebody else holds, so that it waits there; `$` stands for the tenant's id.
        done: the steps that are over by then.

    """

    lock: str
    done: frozenset[str]


STOPS = {
    "in_the_middle_of_the_first_batch": Stop(
        "LOCK TABLE memory_history IN EXCLUSIVE MODE", frozenset()
    ),
    "between_two_steps": Stop(
        "SELECT pg_advisory_xact_lock("
        "hashtextextended('$' || chr(31) || 'user' || chr(31) || 'ana', 1))",
        frozenset({"source_deleted"}),
    ),
    "with_a_deletion_noted_and_the_rows_not_removed": Stop(
        "LOCK TABLE memory_feedback IN EXCLUSIVE MODE",
        frozenset({"source_deleted", "over_capacity"}),
    ),
    "with_messages_deleted_and_the_window_not_counted": Stop(
        "LOCK TABLE approvals IN EXCLUSIVE MODE",
        frozenset({"source_deleted", "over_capacity", "purged"}),
    ),
}


async def left(dsn: str, caller: Caller) -> tuple[dict[str, str], list[Any]]:
    """Status of every memory, and the history of what went: id, event, reason, job."""
    rows = await execute(
        dsn, "SELECT memory_id, status FROM memories WHERE tenant_id = $1", caller.tenant_id
    )
    lines = await execute(
        dsn,
        "SELECT memory_id, event, reason, job_id FROM memory_history "
        "WHERE tenant_id = $1 AND event <> 'ADD' ORDER BY memory_id, create_time",
        caller.tenant_id,
    )
    return {row["memory_id"]: row["status"] for row in rows}, [tuple(one) for one in lines]


def expected(
    ids: dict[str, list[str]], done: frozenset[str], job_id: str
) -> tuple[dict[str, str], list[Any]]:
    """The same, once these steps are over."""
    status: dict[str, str] = {}
    lines: list[Any] = []
    for step, memory_ids in ids.items():
        for one in memory_ids:
            if step == "purged":
                if step in done:
                    # With the words went the lines that told them.
                    lines.append((one, "DELETE", "forgotten", job_id))
                else:
                    lines.append((one, "ARCHIVE", "source_deleted", None))
                    status[one] = "archived"
            elif step in done:
                lines.append((one, "ARCHIVE", step, job_id))
                status[one] = "archived"
            else:
                status[one] = "active"
    return status, sorted(lines)


async def numbers(client: AsyncClient) -> list[int]:
    return [one["sequence_no"] for one in await every_page(client, "/sessions/talk/messages")]


@asynccontextmanager
async def killed_at(stop: Stop, dsn: str, tenant_id: str) -> AsyncIterator[None]:
    """A worker that came as far as this is killed; what holds it up is let go at the end."""
    async with holding(dsn, stop.lock.replace("$", tenant_id)) as holder:
        async with worker_process(dsn) as worker:
            await until_somebody_waits(dsn, holder)
            await worker.kill()
        yield


@pytest.mark.parametrize("where", STOPS)
async def test_a_killed_worker_leaves_whole_steps_and_another_ends_the_rest(
    client: AsyncClient, acme: Caller, dsn: str, ids: dict[str, list[str]], where: str
) -> None:
    stop = STOPS[where]
    job_id = ok(await client.post("/forgetting/run", json={"dry_run": False}), 202)["job_id"]

    async with killed_at(stop, dsn, acme.tenant_id):
        assert await left(dsn, acme) == expected(ids, stop.done, job_id)
        assert await numbers(client) == [1, 2, 3, 4, 5]
        assert ok(await client.get(f"/jobs/{job_id}"))["status"] == "running"
    async with worker_process(dsn):
        job = await over(client, job_id)

    assert (job["status"], job["attempts"]) == ("succeeded", 2)
    # Each attempt counts its own.
    due = {"source_deleted": 2, "over_capacity": 3, "purged": 2, "messages": 3}
    again = {step: count for step, count in due.items() if step not in stop.done}
    assert {step: count for step, count in job["result"].items() if count} == (
        again | {"total": sum(again.values())}
    )
    everything = frozenset({*due} - {"messages"})
    assert await left(dsn, acme) == expected(ids, everything, job_id)
    assert await numbers(client) == [4, 5]
    [window] = await execute(
        dsn,
        "SELECT window_messages, window_seq FROM sessions WHERE tenant_id = $1",
        acme.tenant_id,
    )
    assert tuple(window) == (2, 5)
