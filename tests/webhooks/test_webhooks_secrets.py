"""Secrets of webhooks in the database, with and without the key that encrypts them."""

import base64

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from webhook_desk import Desk, make_webhook

from app.governance.webhooks.sender import SecretBox
from app.governance.webhooks.service import SecretService
from app.runtime import Runtime
from tests.support.api import execute, ok, problem
from tests.support.service import SECRET_KEY, client_of, service
from tests.support.tenants import Caller
from tests.support.webhook_receiver import Receiver

URL = "https://8.8.8.8/hook"
NEW_KEY = base64.b64encode(b"n" * 32).decode()
BOX = SecretBox([SECRET_KEY])
BOTH = SecretBox([NEW_KEY, SECRET_KEY])


async def store(desk: Desk, secret: str, old: str | None = None) -> None:
    await execute(
        desk.dsn,
        "UPDATE webhooks SET secret = $3, old_secret = $4, "
        "old_secret_expires_at = now() + interval '1 hour' "
        "WHERE tenant_id = $1 AND webhook_id = $2",
        desk.tenant_id, desk.webhook_id, secret, old,
    )  # fmt: skip


class TestStored:
    async def test_no_secret_is_in_the_database(self, desk: Desk, admin: AsyncClient) -> None:
        path = f"/webhooks/{desk.webhook_id}/rotate-secret"
        rotated = ok(await admin.post(path))["secret"]

        row = await desk.webhook()
        assert "whsec_" not in str(row)
        assert (BOX.open(row["secret"]), BOX.open(row["old_secret"])) == (rotated, desk.secret)

    async def test_plain_secret_of_an_earlier_release_signs(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        await store(desk, desk.secret)
        await desk.happen()

        assert await desk.deliver() == {"delivered": 1}
        receiver.requests[0].verified(desk.secret)

    async def test_plain_secrets_are_encrypted_by_a_change(
        self, desk: Desk, admin: AsyncClient
    ) -> None:
        await store(desk, desk.secret, desk.secret)

        ok(await admin.patch(f"/webhooks/{desk.webhook_id}", json={"description": "paid"}))

        row = await desk.webhook()
        assert not {row["secret"][:6], row["old_secret"][:6]} & {"whsec_"}
        assert BOX.open(row["secret"]) == BOX.open(row["old_secret"]) == desk.secret

    async def test_rotation_encrypts_the_plain_secret_before_it(
        self, desk: Desk, admin: AsyncClient
    ) -> None:
        await store(desk, desk.secret)

        ok(await admin.post(f"/webhooks/{desk.webhook_id}/rotate-secret"))

        old = (await desk.webhook())["old_secret"]
        assert (old[:6] != "whsec_", BOX.open(old)) == (True, desk.secret)


class TestLostKey:
    async def test_nothing_is_sent_unsigned_and_the_delivery_says_why(
        self, desk: Desk, receiver: Receiver
    ) -> None:
        await desk.happen()

        assert await desk.deliver(secrets=SecretBox([NEW_KEY])) == {"failed": 1}

        assert receiver.requests == []
        row = await desk.delivery()
        assert (row["status"], row["error_code"]) == ("pending", "secret_unreadable")

    async def test_rotation_mends_it(
        self, desk: Desk, admin: AsyncClient, receiver: Receiver
    ) -> None:
        await store(desk, SecretBox([NEW_KEY]).seal(desk.secret))

        rotated = ok(await admin.post(f"/webhooks/{desk.webhook_id}/rotate-secret"))["secret"]
        await desk.happen()

        assert await desk.deliver() == {"delivered": 1}
        receiver.requests[0].verified(rotated)


class TestWithoutKey:
    async def test_no_webhook_is_made_and_none_rotated(
        self, dsn: str, acme: Caller, desk: Desk
    ) -> None:
        async with service(dsn, secret_key=None) as app, client_of(app, acme.key) as client:
            made = problem(
                await client.post("/webhooks", json={"url": URL}), 409, "secret_key_missing"
            )
            path = f"/webhooks/{desk.webhook_id}/rotate-secret"
            problem(await client.post(path), 409, "secret_key_missing")

            assert "MEMORY_SECRET_KEY" in made["detail"]
            shown = ok(await client.get("/webhooks"))["items"]
            assert [one["webhook_id"] for one in shown] == [desk.webhook_id]

    async def test_start_says_that_a_key_is_missing(
        self, dsn: str, desk: Desk, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert desk.webhook_id
        async with service(dsn):
            pass
        assert "secret_key_missing" not in capsys.readouterr().out

        async with service(dsn, secret_key=None):
            pass
        assert "kemem encrypt-secrets" in capsys.readouterr().out

    async def test_plain_secret_goes_on_signing(self, desk: Desk, receiver: Receiver) -> None:
        await store(desk, desk.secret)
        await desk.happen()

        assert await desk.deliver(secrets=SecretBox([])) == {"delivered": 1}
        receiver.requests[0].verified(desk.secret)


class TestMaintenance:
    async def test_all_secrets_of_the_tenant_are_encrypted_with_the_first_key(
        self, desk: Desk, runtime: Runtime
    ) -> None:
        await store(desk, desk.secret, BOX.seal(desk.secret))
        encrypting = SecretService(runtime.database, BOTH)

        for _ in range(2):
            assert await encrypting.encrypt(desk.tenant_id) == (1, 0)

            row, new = await desk.webhook(), SecretBox([NEW_KEY])
            assert not row["secret"].startswith("whsec_")
            assert new.open(row["secret"]) == new.open(row["old_secret"]) == desk.secret

    async def test_what_no_key_opens_is_counted_and_kept(
        self, desk: Desk, runtime: Runtime, hooked: FastAPI, other: Caller
    ) -> None:
        async with client_of(hooked, other.key) as client:
            await make_webhook(client, URL)
        before = await desk.webhook()

        lost = SecretService(runtime.database, SecretBox([NEW_KEY]))
        assert await lost.encrypt(desk.tenant_id) == (1, 1)

        assert await desk.webhook() == before
