"""What is written with a change, for whom, and that nothing is without it."""

import asyncio
import json
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from webhook_desk import Desk, make_webhook

from app.platform.outbox.models import Event
from app.platform.outbox.repository import OutboxRepository
from app.runtime import Runtime
from tests.support.api import every_page, execute, ok
from tests.support.locks import until_somebody_waits
from tests.support.service import client_of
from tests.support.tenants import Caller

URL = "http://127.0.0.1:1/hook"

ADDED = Event("memory.added", {"memory_id": "mem_1", "user_id": "ana"}, "ana")

DELETED = Event("memory.deleted", {"memory_id": "mem_1", "user_id": "ana"}, "ana")

DEAD = Event("job.dead", {"job_id": "job_1", "code": "gave_up"})


async def publish(runtime: Runtime, caller: Caller, *events: Event) -> int:
    async with runtime.database.begin(caller.tenant_id) as db:
        return await OutboxRepository(db, caller.tenant_id).publish(events)


async def owed(dsn: str, caller: Caller) -> list[tuple[str, str]]:
    """Webhook and type of every delivery of the tenant, in order."""
    rows = await execute(
        dsn,
        "SELECT webhook_id, event_type FROM webhook_deliveries WHERE tenant_id = $1 "
        "ORDER BY create_time, delivery_id",
        caller.tenant_id,
    )
    return [(row["webhook_id"], row["event_type"]) for row in rows]


class TestWhoIsTold:
    async def test_nothing_is_written_when_nobody_listens(
        self, runtime: Runtime, dsn: str, acme: Caller
    ) -> None:
        assert await publish(runtime, acme, ADDED, DEAD) == 0
        assert await owed(dsn, acme) == []

    async def test_no_events_are_no_statement(self, runtime: Runtime, acme: Caller) -> None:
        assert await publish(runtime, acme) == 0

    async def test_each_webhook_is_told_what_it_wants(
        self, runtime: Runtime, dsn: str, acme: Caller, admin: AsyncClient
    ) -> None:
        every = (await make_webhook(admin, URL))["webhook_id"]
        some = (await make_webhook(admin, URL, events=["job.dead", "memory.deleted"]))["webhook_id"]
        await make_webhook(admin, URL, events=["memory.updated"])
        await make_webhook(admin, URL, enabled=False)

        assert await publish(runtime, acme, ADDED, DELETED, DEAD) == 5

        told = await owed(dsn, acme)
        assert [kind for who, kind in told if who == every] == [
            "memory.added", "memory.deleted", "job.dead",
        ]  # fmt: skip
        assert [kind for who, kind in told if who == some] == ["memory.deleted", "job.dead"]
        assert len(told) == 5

    async def test_another_tenants_webhooks_hear_nothing(
        self, runtime: Runtime, dsn: str, acme: Caller, other: Caller, hooked: FastAPI
    ) -> None:
        async with client_of(hooked, other.key) as neighbour:
            await make_webhook(neighbour, URL)

        assert await publish(runtime, acme, ADDED) == 0
        assert await owed(dsn, other) == []

    async def test_events_of_one_transaction_keep_their_order(
        self, runtime: Runtime, dsn: str, acme: Caller, admin: AsyncClient
    ) -> None:
        await make_webhook(admin, URL)
        types: list[Any] = ["memory.added", "memory.updated", "memory.deleted"] * 40

        async with runtime.database.begin(acme.tenant_id) as db:
            outbox = OutboxRepository(db, acme.tenant_id)
            for start in (0, 60):
                await outbox.publish([Event(one, {}) for one in types[start : start + 60]])

        assert [kind for _, kind in await owed(dsn, acme)] == types

    async def test_webhooks_that_are_told_the_same_share_the_event(
        self, runtime: Runtime, dsn: str, acme: Caller, admin: AsyncClient
    ) -> None:
        for _ in range(3):
            await make_webhook(admin, URL)

        await publish(runtime, acme, ADDED, ADDED)

        rows = await execute(
            dsn,
            "SELECT event_id, count(*) AS told, count(DISTINCT payload) AS payloads, "
            "min(payload ->> 'id') AS named FROM webhook_deliveries WHERE tenant_id = $1 "
            "GROUP BY event_id",
            acme.tenant_id,
        )
        assert [(row["told"], row["payloads"]) for row in rows] == [(3, 1), (3, 1)]
        assert all(row["named"] == row["event_id"] for row in rows)


class TestTransactions:
    async def test_what_is_rolled_back_is_not_told(
        self, runtime: Runtime, dsn: str, acme: Caller, admin: AsyncClient
    ) -> None:
        await make_webhook(admin, URL)

        async def change_and_fail() -> None:
            async with runtime.database.begin(acme.tenant_id) as db:
                assert await OutboxRepository(db, acme.tenant_id).publish([ADDED]) == 1
                raise LookupError

        with pytest.raises(LookupError):
            await change_and_fail()

        assert await owed(dsn, acme) == []

    async def test_a_webhook_deleted_meanwhile_does_not_fail_the_change(
        self, runtime: Runtime, dsn: str, acme: Caller, admin: AsyncClient
    ) -> None:
        gone = (await make_webhook(admin, URL))["webhook_id"]
        stays = (await make_webhook(admin, URL))["webhook_id"]

        async with runtime.database.begin(acme.tenant_id) as db:
            # Deleted and not committed yet: the publisher has to wait and then leave it out.
            connection = await (await db.connection()).get_raw_connection()
            assert connection.driver_connection is not None
            await connection.driver_connection.execute(
                "DELETE FROM webhooks WHERE webhook_id = $1", gone
            )
            publishing = asyncio.create_task(publish(runtime, acme, ADDED))
            await until_somebody_waits(dsn, connection.driver_connection.get_server_pid())
            assert not publishing.done()

        assert await publishing == 1
        assert [who for who, _ in await owed(dsn, acme)] == [stays]

    async def test_a_deletion_waits_for_those_who_are_telling(
        self, runtime: Runtime, dsn: str, acme: Caller, admin: AsyncClient
    ) -> None:
        webhook_id = (await make_webhook(admin, URL))["webhook_id"]

        async with runtime.database.begin(acme.tenant_id) as db:
            await OutboxRepository(db, acme.tenant_id).publish([ADDED])
            deleting = asyncio.create_task(admin.delete(f"/webhooks/{webhook_id}"))
            changing = await admin.patch(f"/webhooks/{webhook_id}", json={"description": "x"})
            assert changing.status_code == 200
            assert not deleting.done()

        ok(await deleting, 204)
        assert await owed(dsn, acme) == []


class TestWords:
    async def test_the_payload_says_what_when_and_which(self, desk: Desk) -> None:
        await desk.publish(ADDED)

        row = await desk.delivery()
        payload = json.loads(row["payload"])
        assert payload.keys() == {"id", "type", "create_time", "data"}
        assert payload["id"] == row["event_id"]
        assert payload["id"].startswith("evt_")
        assert payload["type"] == row["event_type"] == "memory.added"
        assert payload["data"] == {"memory_id": "mem_1", "user_id": "ana"}
        assert payload["create_time"] == row["create_time"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert row["user_id"] == "ana"


async def test_erasing_a_person_leaves_no_delivery_about_them(
    desk: Desk, admin: AsyncClient
) -> None:
    ok(await admin.post("/users", json={"user_id": "ana"}), 201)
    await desk.happen(2, user_id="ana")
    await desk.happen(1, user_id="ben")
    await desk.publish(DEAD)

    erased = ok(await admin.delete("/users/ana", params={"confirm": True}))

    assert erased["deleted"]["deliveries"] == 2
    log = await every_page(admin, f"/webhooks/{desk.webhook_id}/deliveries")
    assert sorted(row["payload"]["data"].get("user_id", "") for row in log) == ["", "ben"]


class TestErasure:
    async def test_erasure_tells_of_every_memory_and_names_nobody(
        self, dsn: str, acme: Caller, admin: AsyncClient
    ) -> None:
        body = {"messages": "She drinks green tea.", "user_id": "ana", "infer": False}
        saved = (await admin.post("/memories", json=body)).json()["results"][0]["memory_id"]
        await make_webhook(admin, URL)
        ok(await admin.delete("/users/ana", params={"confirm": True}))

        rows = await execute(
            dsn,
            "SELECT event_type, payload, user_id FROM webhook_deliveries WHERE tenant_id = $1",
            acme.tenant_id,
        )
        [row] = rows
        assert (row["event_type"], row["user_id"]) == ("memory.deleted", None)
        assert json.loads(row["payload"])["data"] == {"memory_id": saved, "event": "DELETE"}
        assert "ana" not in row["payload"]
