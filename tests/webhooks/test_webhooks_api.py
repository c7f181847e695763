"""Webhooks, their secrets and the log of their deliveries through the public routes."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from webhook_desk import Desk, make_webhook

from app.governance.webhooks.repository import MOST_WEBHOOKS, WebhookRepository
from app.platform.outbox.models import Webhook
from app.runtime import Runtime
from tests.support.api import dump, every_page, execute, fields, ok, problem, tables_with
from tests.support.locks import server_of, until_somebody_waits
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

URL = "https://8.8.8.8/hook"
LOCAL = "http://127.0.0.1:1/hook"


@pytest.fixture
async def strict(app: FastAPI, acme: Caller) -> AsyncClient:
    """The API of a deployment that calls the internet alone."""
    async with client_of(app, acme.key) as opened:
        yield opened


@pytest.fixture
async def neighbour(hooked: FastAPI, other: Caller) -> AsyncClient:
    async with client_of(hooked, other.key) as opened:
        yield opened


class TestMaking:
    async def test_the_secret_is_shown_once(self, admin: AsyncClient) -> None:
        made = await make_webhook(admin, URL, events=["job.dead", "memory.added", "job.dead"])

        secret = made.pop("secret")
        assert secret.startswith("whsec_")
        assert len(secret) == 50
        assert made["webhook_id"].startswith("whk_")
        assert made["events"] == ["job.dead", "memory.added"]
        assert (made["enabled"], made["version"], made["disabled_reason"]) == (True, 1, None)
        assert ok(await admin.get(f"/webhooks/{made['webhook_id']}")) == made
        assert ok(await admin.get("/webhooks"))["items"] == [made]

    async def test_new_webhook_wants_everything_unless_it_says_otherwise(
        self, admin: AsyncClient
    ) -> None:
        made = await make_webhook(admin, URL, description="支付的钩子 🪝", enabled=False)

        assert made["events"] == ["*"]
        assert (made["description"], made["enabled"]) == ("支付的钩子 🪝", False)

    async def test_a_repeated_request_makes_one_webhook_and_tells_no_secret(
        self, admin: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        headers = {"Idempotency-Key": "one"}
        first = ok(await admin.post("/webhooks", json={"url": URL}, headers=headers), 201)

        again = ok(await admin.post("/webhooks", json={"url": URL}, headers=headers), 201)

        assert again == first | {"secret": None}
        assert len(await every_page(admin, "/webhooks")) == 1
        rows = await dump(dsn, acme.tenant_id)
        assert tables_with(first["secret"], rows) == []

    @for_each(
        "body",
        [
            {},
            {"url": None},
            {"url": ""},
            {"url": "hooks.example.com"},
            {"url": "ftp://example.com/"},
            {"url": "file:///etc/passwd"},
            {"url": "gopher://example.com/"},
            {"url": "https://"},
            {"url": "https://ana@example.com/"},
            {"url": "https://ana:secret@example.com/"},
            {"url": "https://:secret@example.com/"},
            {"url": "https://example.com/#part"},
            {"url": "https://example.com:65536/"},
            {"url": "https://exa mple.com/"},
            {"url": f"https://example.com/{'x' * 2000}"},
        ],
    )
    async def test_an_address_nobody_could_call_is_refused(
        self, admin: AsyncClient, body: dict[str, Any]
    ) -> None:
        response = await admin.post("/webhooks", json=body)

        assert fields(problem(response, 422, "invalid_request")) == ["body.url"]
        assert "secret@" not in response.text
        assert ok(await admin.get("/webhooks"))["items"] == []

    async def test_an_address_has_at_most_2000_characters(self, admin: AsyncClient) -> None:
        start = "https://8.8.8.8/"

        longest = await make_webhook(admin, start + "x" * (2000 - len(start)))

        assert len(longest["url"]) == 2000
        response = await admin.post("/webhooks", json={"url": longest["url"] + "x"})
        problem(response, 422, "invalid_request")

    @for_each(
        "events", [[], ["memory.forgotten"], ["webhook.test"], ["memory.*"], "memory.added", [None]]
    )
    async def test_events_are_those_of_the_list(self, admin: AsyncClient, events: Any) -> None:
        response = await admin.post("/webhooks", json={"url": URL, "events": events})

        [place] = fields(problem(response, 422, "invalid_request"))
        assert place.startswith("body.events")

    async def test_a_private_target_is_refused_unless_the_deployment_allows_it(
        self, strict: AsyncClient, admin: AsyncClient
    ) -> None:
        for url in ("https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/", LOCAL):
            response = await strict.post("/webhooks", json={"url": url})

            assert fields(problem(response, 422, "target_refused")) == ["body.url"]
            await make_webhook(admin, url)

    async def test_a_public_target_is_taken(self, strict: AsyncClient) -> None:
        assert (await make_webhook(strict, URL))["url"] == URL

    async def test_a_tenant_has_a_limited_number(
        self, admin: AsyncClient, neighbour: AsyncClient
    ) -> None:
        for _ in range(MOST_WEBHOOKS - 1):
            await make_webhook(admin, URL)

        await make_webhook(admin, URL)

        refused = await admin.post("/webhooks", json={"url": URL})
        assert problem(refused, 409, "too_many_webhooks")["most"] == MOST_WEBHOOKS
        await make_webhook(neighbour, URL)
        [first, *_] = ok(await admin.get("/webhooks"))["items"]
        ok(await admin.delete(f"/webhooks/{first['webhook_id']}"), 204)
        await make_webhook(admin, URL)

    async def test_two_that_arrive_together_count_each_other(
        self, admin: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        for _ in range(MOST_WEBHOOKS - 1):
            await make_webhook(admin, URL)

        async with runtime.database.begin(acme.tenant_id) as db:
            last = Webhook(webhook_id="whk_last", url=URL, secret="s", events=["*"])
            await WebhookRepository(db, acme.tenant_id).add(last)
            second = asyncio.create_task(admin.post("/webhooks", json={"url": URL}))
            await until_somebody_waits(dsn, await server_of(db))
            assert not second.done()

        problem(await second, 409, "too_many_webhooks")


class TestLists:
    async def test_they_are_newest_first_page_by_page(
        self, admin: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        made = [(await make_webhook(admin, URL))["webhook_id"] for _ in range(5)]

        rows = await every_page(admin, "/webhooks", limit=2)

        assert [row["webhook_id"] for row in rows] == made[::-1]
        await execute(
            dsn,
            "UPDATE webhooks SET create_time = '2026-01-01Z' WHERE tenant_id = $1",
            acme.tenant_id,
        )
        rows = await every_page(admin, "/webhooks", limit=2)
        assert sorted(row["webhook_id"] for row in rows) == sorted(made)

    async def test_a_cursor_of_nobody_is_refused(self, admin: AsyncClient, desk: Desk) -> None:
        for path in ("/webhooks", f"/webhooks/{desk.webhook_id}/deliveries"):
            problem(await admin.get(path, params={"cursor": "WzEsMl0"}), 422, "invalid_cursor")


class TestChanging:
    async def test_what_is_left_out_stays(self, admin: AsyncClient) -> None:
        made = await make_webhook(admin, URL, description="d")
        del made["secret"]
        path = f"/webhooks/{made['webhook_id']}"

        for number, change in enumerate(
            [
                {"url": "https://8.8.4.4/other"},
                {"events": ["job.dead"]},
                {"description": None},
                {"enabled": False},
            ],
            start=2,
        ):
            changed = ok(await admin.patch(path, json=change))
            made |= change | {"version": number, "update_time": changed["update_time"]}
            assert changed == made
        assert ok(await admin.patch(path, json={"enabled": False})) == made
        nulls = {"url": None, "events": None, "enabled": None}
        assert ok(await admin.patch(path, json=nulls)) == made

    async def test_a_stale_version_is_refused(self, admin: AsyncClient) -> None:
        made = await make_webhook(admin, URL)
        path = f"/webhooks/{made['webhook_id']}"
        ok(await admin.patch(path, json={"enabled": False}, headers={"If-Match": "1"}))

        response = await admin.patch(path, json={"enabled": True}, headers={"If-Match": "1"})

        assert problem(response, 409, "version_conflict")["current_version"] == 2
        assert ok(await admin.get(path))["enabled"] is False

    async def test_a_new_address_is_checked_like_the_first(self, strict: AsyncClient) -> None:
        made = await make_webhook(strict, URL)
        path = f"/webhooks/{made['webhook_id']}"

        problem(await strict.patch(path, json={"url": LOCAL}), 422, "target_refused")
        problem(await strict.patch(path, json={"url": "nonsense"}), 422, "invalid_request")

        assert ok(await strict.get(path))["url"] == URL

    async def test_a_deleted_webhook_is_gone_with_its_log(
        self, admin: AsyncClient, desk: Desk
    ) -> None:
        await desk.happen(3)

        ok(await admin.delete(f"/webhooks/{desk.webhook_id}"), 204)

        assert await desk.deliveries() == []
        for answer in (
            await admin.get(f"/webhooks/{desk.webhook_id}"),
            await admin.delete(f"/webhooks/{desk.webhook_id}"),
            await admin.get(f"/webhooks/{desk.webhook_id}/deliveries"),
        ):
            problem(answer, 404, "webhook_not_found")


class TestSecrets:
    async def test_a_rotation_shows_the_new_one_once(self, admin: AsyncClient) -> None:
        made = await make_webhook(admin, URL)
        path = f"/webhooks/{made['webhook_id']}"
        headers = {"Idempotency-Key": "one"}

        rotated = ok(await admin.post(f"{path}/rotate-secret", headers=headers))
        again = ok(await admin.post(f"{path}/rotate-secret", headers=headers))

        assert rotated["secret"].startswith("whsec_")
        assert rotated["secret"] != made["secret"]
        assert again == rotated | {"secret": None}
        shown = ok(await admin.get(path))
        assert shown["old_secret_expires_at"] is not None
        assert shown["version"] == 2
        assert "whsec_" not in (await admin.get(path)).text

    async def test_secrets_stand_in_no_list_and_no_log(
        self, admin: AsyncClient, desk: Desk, capsys: pytest.CaptureFixture[str]
    ) -> None:
        await desk.happen()
        capsys.readouterr()
        rotated = ok(await admin.post(f"/webhooks/{desk.webhook_id}/rotate-secret"))
        await desk.deliver()

        seen = "".join(
            [
                (await admin.get("/webhooks")).text,
                (await admin.get(f"/webhooks/{desk.webhook_id}/deliveries")).text,
                *capsys.readouterr(),
            ]
        )
        assert desk.webhook_id in seen
        for secret in (desk.secret, rotated["secret"]):
            assert secret not in seen


class TestDeliveries:
    async def test_the_log_is_newest_first_and_narrowed_by_status_and_type(
        self, admin: AsyncClient, desk: Desk
    ) -> None:
        await desk.happen(3)
        await desk.deliver()
        ok(await admin.post(f"/webhooks/{desk.webhook_id}/test"), 202)
        await desk.happen()
        path = f"/webhooks/{desk.webhook_id}/deliveries"

        every = await every_page(admin, path, limit=2)

        times = [row["create_time"] for row in every]
        assert (len(every), times) == (5, sorted(times, reverse=True))

        async def statuses(**params: str) -> list[tuple[str, str]]:
            rows = await every_page(admin, path, limit=1, **params)
            return [(row["status"], row["event_type"]) for row in rows]

        assert await statuses(status="delivered") == [("delivered", "memory.added")] * 3
        assert await statuses(status="pending") == [
            ("pending", "memory.added"), ("pending", "webhook.test"),
        ]  # fmt: skip
        assert await statuses(status="dead") == []
        assert await statuses(event_type="webhook.test") == [("pending", "webhook.test")]
        assert await statuses(event_type="webhook.test", status="delivered") == []
        problem(await admin.get(path, params={"status": "lost"}), 422, "invalid_request")
        problem(await admin.get(path, params={"event_type": "*"}), 422, "invalid_request")

    async def test_a_line_says_what_was_sent_and_what_came_of_it(
        self, admin: AsyncClient, desk: Desk
    ) -> None:
        await desk.happen()
        await desk.deliver()

        [row] = ok(await admin.get(f"/webhooks/{desk.webhook_id}/deliveries"))["items"]

        assert row["payload"]["data"] == {"memory_id": "mem_0", "user_id": "ana", "version": 1}
        assert row["payload"]["id"] == row["event_id"]
        assert (row["status"], row["attempts"], row["response_status"]) == ("delivered", 1, 200)
        assert (row["error_code"], row["next_attempt_at"]) == (None, None)
        assert row["duration_ms"] >= 0
        assert row["create_time"] < row["attempted_at"] <= row["delivered_at"]

    async def test_a_disabled_webhook_is_sent_nothing_on_request(
        self, admin: AsyncClient, desk: Desk
    ) -> None:
        await desk.happen()
        path = f"/webhooks/{desk.webhook_id}"
        delivery = await desk.delivery()
        ok(await admin.patch(path, json={"enabled": False}))

        for answer in (
            await admin.post(f"{path}/test"),
            await admin.post(f"{path}/deliveries/{delivery['delivery_id']}/redeliver"),
        ):
            assert problem(answer, 409, "disabled")["webhook_id"] == desk.webhook_id
        assert len(await desk.deliveries()) == 1

    async def test_a_repeated_request_owes_one_event(self, admin: AsyncClient, desk: Desk) -> None:
        headers = {"Idempotency-Key": "one"}
        path = f"/webhooks/{desk.webhook_id}/test"

        answers = [ok(await admin.post(path, headers=headers), 202) for _ in range(2)]

        assert answers[0] == answers[1]
        assert len(await desk.deliveries()) == 1


class TestIsolation:
    async def test_another_tenant_finds_nothing(self, desk: Desk, neighbour: AsyncClient) -> None:
        await desk.happen()
        delivery = await desk.delivery()
        path = f"/webhooks/{desk.webhook_id}"

        for answer in (
            await neighbour.get(path),
            await neighbour.patch(path, json={"enabled": False}),
            await neighbour.delete(path),
            await neighbour.post(f"{path}/rotate-secret"),
            await neighbour.post(f"{path}/test"),
            await neighbour.get(f"{path}/deliveries"),
            await neighbour.post(f"{path}/deliveries/{delivery['delivery_id']}/redeliver"),
        ):
            problem(answer, 404, "webhook_not_found")
        assert ok(await neighbour.get("/webhooks"))["items"] == []
        assert [await desk.delivery()] == [delivery]

    async def test_a_delivery_of_another_webhook_is_not_found(
        self, admin: AsyncClient, desk: Desk
    ) -> None:
        await desk.happen()
        delivery_id = (await desk.delivery())["delivery_id"]
        other = await make_webhook(admin, URL)

        path = f"/webhooks/{other['webhook_id']}/deliveries/{delivery_id}/redeliver"

        problem(await admin.post(path), 404, "delivery_not_found")

    @pytest.mark.parametrize("scope", ["read", "write", "operator"])
    async def test_no_other_key_than_an_admins_will_do(
        self, hooked: FastAPI, runtime: Runtime, desk: Desk, scope: str
    ) -> None:
        caller = await make_key(runtime, desk.tenant_id, scope)
        path = f"/webhooks/{desk.webhook_id}"
        async with client_of(hooked, caller.key) as client:
            for answer in (
                await client.get("/webhooks"),
                await client.post("/webhooks", json={"url": URL}),
                await client.get(path),
                await client.patch(path, json={}),
                await client.delete(path),
                await client.post(f"{path}/rotate-secret"),
                await client.post(f"{path}/test"),
                await client.get(f"{path}/deliveries"),
                await client.post(f"{path}/deliveries/dlv_1/redeliver"),
            ):
                body = problem(answer, 403, "insufficient_scope")
                assert body["required_scope"] == "admin"
