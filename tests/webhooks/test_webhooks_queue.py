"""The way from a row of the outbox over the queue to the receiver."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from webhook_desk import Desk, make_webhook

from app.governance.webhooks.delivery import KIND, DeliverySchedule
from app.platform.jobs.recurring import Ticker
from app.platform.jobs.worker import Worker, WorkerLimits
from app.platform.outbox.models import Event
from app.platform.outbox.repository import OutboxRepository
from app.runtime import Runtime
from tests.support.api import execute, ok
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import Caller
from tests.support.webhook_receiver import Receiver, answering, slow


@pytest.fixture(autouse=True)
async def no_jobs_left(dsn: str) -> AsyncIterator[None]:
    """The queue sees all tenants, those of earlier tests too, whose receivers are gone."""
    stop = "UPDATE webhooks SET enabled = false WHERE enabled"
    await execute(dsn, stop)
    yield
    await execute(dsn, stop)
    await execute(dsn, "DELETE FROM jobs WHERE kind = $1", KIND)


async def jobs(dsn: str, tenant_id: str) -> list[tuple[str, str]]:
    rows = await execute(
        dsn,
        "SELECT key, status FROM jobs WHERE tenant_id = $1 AND kind = $2 ORDER BY key",
        tenant_id,
        KIND,
    )
    return [(row["key"], row["status"]) for row in rows]


class TestScheduling:
    async def test_a_webhook_with_something_to_send_gets_one_job(
        self, desk: Desk, runtime: Runtime, admin: AsyncClient, receiver: Receiver
    ) -> None:
        schedule = DeliverySchedule(runtime.database, desk.clock)
        await make_webhook(admin, receiver.url, events=["job.dead"])
        assert await schedule.schedule_due() == 0
        await desk.happen(5)

        counts = [await schedule.schedule_due() for _ in range(3)]

        assert counts == [1, 0, 0]
        assert await jobs(desk.dsn, desk.tenant_id) == [(desk.webhook_id, "pending")]

    async def test_every_tenant_is_looked_after(
        self,
        desk: Desk,
        runtime: Runtime,
        hooked: FastAPI,
        other: Caller,
        receiver: Receiver,
        dsn: str,
    ) -> None:
        async with client_of(hooked, other.key) as client:
            theirs = await make_webhook(client, receiver.url)
        async with runtime.database.begin(other.tenant_id) as db:
            await OutboxRepository(db, other.tenant_id).publish([Event("job.dead", {})])
        await desk.happen()

        assert await DeliverySchedule(runtime.database, desk.clock).schedule_due() == 2

        assert await jobs(dsn, desk.tenant_id) == [(desk.webhook_id, "pending")]
        assert await jobs(dsn, other.tenant_id) == [(theirs["webhook_id"], "pending")]

    async def test_what_is_not_due_disabled_or_paused_is_left_alone(
        self, desk: Desk, runtime: Runtime, admin: AsyncClient, receiver: Receiver
    ) -> None:
        schedule = DeliverySchedule(runtime.database, desk.clock)
        path = f"/webhooks/{desk.webhook_id}"
        await desk.happen()
        desk.clock.stop()
        ok(await admin.patch(path, json={"enabled": False}))
        assert await schedule.schedule_due() == 0

        ok(await admin.patch(path, json={"enabled": True}))
        receiver.script(answering(500), answering(503, retry_after="60"))
        await desk.deliver()
        desk.clock.pass_by(seconds=9)
        assert await schedule.schedule_due() == 0
        desk.clock.pass_by(seconds=2)
        await desk.deliver()
        await desk.happen()
        assert await schedule.schedule_due() == 0
        desk.clock.pass_by(seconds=61)
        assert await schedule.schedule_due() == 1

    async def test_a_disabled_tenants_events_wait(self, desk: Desk, runtime: Runtime) -> None:
        schedule = DeliverySchedule(runtime.database, desk.clock)
        await desk.happen()

        for status, due in ((0, 0), (1, 1)):
            await execute(
                desk.dsn, "UPDATE tenants SET status = $2 WHERE tenant_id = $1",
                desk.tenant_id, status,
            )  # fmt: skip
            assert await schedule.schedule_due() == due


async def work(desk: Desk, until: Any, *, workers: int = 1) -> None:
    """Run workers as a deployment does, until `until` returns."""
    schedule = DeliverySchedule(desk.runtime.database, desk.clock)
    tickers = [Ticker("webhooks", timedelta(seconds=0.05), schedule.tick)]
    crew = [
        Worker(
            desk.runtime.database,
            {KIND: desk.deliverer(trusted=ssl.create_default_context()).handle},
            name=f"worker-{number}",
            limits=WorkerLimits(),
            spread=lambda: 0.5,
            tickers=tickers,
        )
        for number in range(workers)
    ]
    running = [asyncio.create_task(worker.run()) for worker in crew]
    try:
        async with asyncio.timeout(PATIENCE):
            await until
    finally:
        for worker in crew:
            await worker.drain(timedelta(seconds=PATIENCE))
        await asyncio.gather(*running)


class TestWorking:
    async def test_what_is_published_arrives_by_itself(
        self, desk: Desk, receiver: Receiver, admin: AsyncClient
    ) -> None:
        ok(await admin.post(f"/webhooks/{desk.webhook_id}/test"), 202)
        await desk.happen(3)

        await work(desk, receiver.received(4))

        types = [request.verified(desk.secret)["type"] for request in receiver.requests]
        assert types == ["webhook.test", *["memory.added"] * 3]
        assert {row["status"] for row in await desk.deliveries()} == {"delivered"}
        assert {status for _, status in await jobs(desk.dsn, desk.tenant_id)} == {"succeeded"}

    async def test_several_workers_deliver_each_event_once_and_in_order(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        receiver.otherwise = slow(0.005)
        await desk.happen(50)

        await work(desk, receiver.received(50), workers=3)

        told = [request.event["data"]["memory_id"] for request in receiver.requests]
        assert told == [f"mem_{number}" for number in range(50)]
