"""What an export holds and for whom, in one snapshot and in constant memory."""

import asyncio
import hashlib
import json
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.governance.exports.schemas import ExportQuery, ExportsBusyError
from app.governance.exports.service import ExportService, ExportSlots
from app.runtime import Runtime
from tests.exports.exports_support import exported, many, principal_of, reading, rows_in
from tests.support.api import append, execute, fields, problem, save
from tests.support.model_service import app_of
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant


async def two_users(client: AsyncClient) -> None:
    for user in ("ana", "ben"):
        body = {"user_id": user, "agent_id": "default"}
        await client.post("/agents", json={"agent_id": "default", "agent_name": "Default"})
        await client.post("/users", json=body)
        await save(client, f"The favourite tree of {user} is an oak.", user_id=user)
        await append(client, f"of-{user}", f"I am {user}.", user_id=user)


class TestWhose:
    async def test_the_lines_are_framed_and_counted(self, client: AsyncClient) -> None:
        await two_users(client)

        lines = await exported(client)

        manifest, end = json.loads(lines[0]), json.loads(lines[-1])
        assert manifest["type"] == "manifest"
        assert manifest["format"] == 1
        assert manifest["scope"] == {"kind": "tenant"}
        assert manifest["vectors"] is True
        assert manifest["embedding_models"]
        assert sum(end["counts"].values()) == len(lines) - 2
        whole = b"".join(line + b"\n" for line in lines[:-1])
        assert end["sha256"] == hashlib.sha256(whole).hexdigest()

    async def test_nothing_secret_is_in_it(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await two_users(client)
        await client.post("/webhooks", json={"url": "https://kemem.invalid/hook"})
        [row] = await execute(
            dsn, "SELECT secret FROM webhooks WHERE tenant_id = $1", acme.tenant_id
        )

        text = b"\n".join(await exported(client)).decode()

        assert row["secret"] not in text
        assert "kemem.invalid" not in text
        assert acme.key.split("_")[1] not in text
        assert acme.tenant_id not in text

    async def test_a_user_s_export_holds_nobody_else(self, client: AsyncClient) -> None:
        await two_users(client)

        lines = await exported(client, user_id="ana")

        assert b"ben" not in b"\n".join(lines)
        assert {one["type"] for one in rows_in(lines)} >= {"user", "session", "message", "memory"}
        [agent] = [one for one in rows_in(lines) if one["type"] == "agent"]
        assert agent == {
            "type": "agent",
            "parent": True,
            "row": {"agent_id": "default", "agent_name": "Default"},
        }

    async def test_a_key_of_the_user_may_take_them_along(
        self, app: FastAPI, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        await two_users(client)
        key = await make_key(runtime, acme.tenant_id, "read", user_id="ana")
        async with client_of(app, key.key) as ana:
            own = await exported(ana, user_id="ana")
            assert own[1:-1] == (await exported(client, user_id="ana"))[1:-1]
            problem(await ana.get("/export", params={"user_id": "ben"}), 404, "user_not_found")
            problem(await ana.get("/export"), 403, "key_restricted")
            problem(await ana.get("/export", params={"agent_id": "default"}), 403, "key_restricted")

    async def test_anybody_else_needs_admin(
        self, app: FastAPI, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        await two_users(client)
        bound = await make_key(runtime, acme.tenant_id, "read", agent_id="default")
        writer = await make_key(runtime, acme.tenant_id, "write")
        ana = {"user_id": "ana"}
        async with client_of(app, bound.key) as one, client_of(app, writer.key) as other:
            problem(await one.get("/export", params=ana), 403, "insufficient_scope")
            problem(await other.get("/export", params=ana), 403, "insufficient_scope")

    async def test_who_is_not_there_cannot_be_exported(self, client: AsyncClient) -> None:
        for name in ("user", "agent", "project"):
            answer = await client.get("/export", params={f"{name}_id": "nobody"})
            problem(answer, 404, f"{name}_not_found")

    async def test_one_of_them_is_named(self, client: AsyncClient) -> None:
        answer = await client.get("/export", params={"user_id": "a", "agent_id": "b"})

        assert fields(problem(answer, 422, "invalid_request")) == ["query"]


class TestSnapshot:
    async def test_export_is_of_one_moment(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        """Two connections: the export has begun when another writes."""
        await two_users(client)
        service = ExportService(runtime.database, runtime.export_slots, runtime.now)
        lines = service.export(principal_of(acme), ExportQuery())
        await anext(lines)
        await append(client, "of-ana", "This is too late.")

        told = b"".join([piece async for piece in lines])

        assert b"I am ana." in told
        assert b"too late" not in told
        assert b'"last_sequence_no":2' not in told

    async def test_who_hangs_up_leaves_no_transaction(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await two_users(client)
        before = await reading(dsn)
        service = ExportService(runtime.database, runtime.export_slots, runtime.now)
        lines = service.export(principal_of(acme), ExportQuery())
        await anext(lines)
        assert await reading(dsn) == before + 1

        await lines.aclose()

        assert await reading(dsn) == before

    async def test_memory_does_not_grow_with_the_rows(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await append(client, "talk", "I am ana.")
        service = ExportService(runtime.database, runtime.export_slots, runtime.now)

        async def peak() -> tuple[int, int]:
            size = 0
            tracemalloc.start()
            try:
                async for piece in service.export(principal_of(acme), ExportQuery()):
                    size += len(piece)
                    await asyncio.sleep(0)
                return tracemalloc.get_traced_memory()[1], size
            finally:
                tracemalloc.stop()

        await many(dsn, acme, 500)
        await peak()
        small, less = await peak()
        await execute(
            dsn, "DELETE FROM messages WHERE tenant_id = $1 AND sequence_no > 1", acme.tenant_id
        )
        await many(dsn, acme, 5_000)
        large, more = await peak()

        assert more > 9 * less
        assert large < 1.3 * small


def exporting(runtime: Runtime, caller: Caller) -> aclosing[AsyncGenerator[bytes]]:
    """An export that is read piece by piece."""
    service = ExportService(runtime.database, runtime.export_slots, runtime.now)
    return aclosing(service.export(principal_of(caller), ExportQuery()))  # type: ignore[type-var]


class TestSlots:
    async def test_a_third_at_a_time_is_told_to_come_back(
        self, runtime: Runtime, acme: Caller, other: Caller
    ) -> None:
        third = await make_tenant(runtime)
        async with (
            app_of(runtime) as application,
            client_of(application, third.key) as client,
            exporting(runtime, acme) as first,
            exporting(runtime, other) as second,
        ):
            await anext(first)
            await exported(client)
            await anext(second)

            refused = await client.get("/export")

            problem(refused, 503, "exports_busy")
            assert int(refused.headers["retry-after"]) > 0
            # One is read to its end, and one is left in the middle.
            assert [piece async for piece in first]
            await exported(client)
            await second.aclose()
            for _ in range(3):
                await exported(client)

    async def test_a_tenant_has_one_of_them(
        self, runtime: Runtime, acme: Caller, other: Caller
    ) -> None:
        async with (
            app_of(runtime) as application,
            client_of(application, acme.key) as client,
            client_of(application, other.key) as stranger,
            exporting(runtime, acme) as first,
        ):
            await anext(first)

            problem(await client.get("/export"), 503, "exports_busy")
            # Nor did the refusal take one, or give that of the first back.
            problem(await client.get("/export"), 503, "exports_busy")
            await exported(stranger)

            await first.aclose()
            await exported(client)

    async def test_a_refused_export_takes_none(self, client: AsyncClient) -> None:
        for _ in range(3):
            answer = await client.get("/export", params={"user_id": "nobody"})
            problem(answer, 404, "user_not_found")

        await exported(client)

    @pytest.mark.parametrize(("connections", "most"), [(1, 1), (2, 1), (3, 2), (100, 2)])
    def test_a_connection_is_left_for_requests(self, connections: int, most: int) -> None:
        slots = ExportSlots(connections)
        with ExitStack() as running:
            for number in range(most):
                running.enter_context(slots.taken(f"tenant-{number}"))
            with pytest.raises(ExportsBusyError), slots.taken("another"):
                pass
        with slots.taken("another"):
            pass


@pytest.mark.parametrize("scope", [{}, {"user_id": "ana"}, {"agent_id": "default"}], ids=str)
async def test_vectors_are_left_out_on_request(client: AsyncClient, scope: dict) -> None:
    await two_users(client)

    lines = await exported(client, **scope, vectors=False)

    assert json.loads(lines[0])["vectors"] is False
    assert not any("embedding" in one["row"] for one in rows_in(lines))
