"""POST /mcp as HTTP: who comes in, what is refused before the protocol, and what is sent again."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.main import ROUTERS
from tests.support.api import execute, ok, problem
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_key, make_tenant

VERSIONS = ["2025-06-18", "2025-11-25"]
ACCEPT = {"Accept": "application/json, text/event-stream"}
AT = "http://test/mcp"


def message(method: str, number: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(tool: str, number: int = 1, **arguments: Any) -> dict[str, Any]:
    return message("tools/call", number, name=tool, arguments=arguments)


async def sent(client: AsyncClient, body: Any, version: str = "2025-11-25", **headers: str) -> Any:
    """The result of a message."""
    headers = ACCEPT | {"MCP-Protocol-Version": version} | headers
    return ok(await client.post(AT, json=body, headers=headers))["result"]


class TestVersions:
    @pytest.mark.parametrize("version", VERSIONS)
    async def test_the_version_that_a_desktop_asks_for_is_spoken(self, client, version) -> None:
        asked = message(
            "initialize", protocolVersion=version, capabilities={},
            clientInfo={"name": "desktop", "version": "1"},
        )  # fmt: skip
        answer = await client.post(AT, json=asked, headers=ACCEPT)
        result = ok(answer)["result"]

        assert result["protocolVersion"] == version
        assert result["serverInfo"]["name"] == "kemem"
        assert {"tools", "resources"} <= result["capabilities"].keys()
        # No session: any process answers what comes next.
        assert "mcp-session-id" not in answer.headers
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        headers = ACCEPT | {"MCP-Protocol-Version": version}
        assert (await client.post(AT, json=told, headers=headers)).status_code == 202
        tools = await sent(client, message("tools/list"), version)
        assert len(tools["tools"]) == 9
        saved = await sent(
            client, call("memory_save", content="Ana sails.", user_id="ana"), version
        )
        assert saved["structuredContent"]["event"] == "ADD"
        assert saved["content"][0]["type"] == "text"

    async def test_an_unknown_version_is_refused(self, client) -> None:
        headers = ACCEPT | {"MCP-Protocol-Version": "2020-01-01"}

        answer = await client.post(AT, json=message("tools/list"), headers=headers)

        assert answer.status_code == 400
        assert answer.json()["error"]["code"] < 0

    @pytest.mark.parametrize(
        "body", [b"{", b"[]", b'{"jsonrpc": "2.0"}', b"\xff", b'{"id": 1, "method": 5}']
    )
    async def test_what_is_no_message_is_refused(self, client, body: bytes) -> None:
        headers = ACCEPT | {"Content-Type": "application/json"}

        answer = await client.post(AT, content=body, headers=headers)

        assert answer.status_code == 400

    async def test_there_are_no_streams_and_no_sessions(self, client) -> None:
        for method in ("GET", "DELETE"):
            answer = await client.request(method, AT, headers=ACCEPT)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


class TestComingIn:
    """Every way in without a right to it; one route, and it is not in the document of the API."""

    def test_there_is_one_route(self) -> None:
        routes = [
            (route.path, sorted(route.methods), route.include_in_schema)
            for router in ROUTERS
            for route in router.routes
            if route.path.startswith("/mcp")
        ]

        assert routes == [("/mcp", ["POST"], False)]

    async def test_nobody_comes_in_without_a_key(self, app: FastAPI) -> None:
        for headers in ({}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer kem_no"}):
            async with client_of(app, None) as nobody:
                body = call("memory_list")
                answer = await nobody.post(AT, json=body, headers=ACCEPT | headers)
            code = "unknown_key" if "kem_no" in str(headers) else "missing_key"
            problem(answer, 401, code)
            assert answer.headers["www-authenticate"] == "Bearer"

    async def test_a_body_is_not_read_before_its_sender_is_known(self, app: FastAPI) -> None:
        read = 0

        async def endless():
            nonlocal read
            while True:
                read += 1
                yield b" " * 1024

        async with client_of(app, "kem_no") as stranger:
            answer = await stranger.post(AT, content=endless(), headers=ACCEPT)

        problem(answer, 401, "unknown_key")
        assert read <= 2

    async def test_a_key_of_an_operator_alone_does_not_come_in(self, app, runtime) -> None:
        other = await make_tenant(runtime)
        operator = await make_key(runtime, other.tenant_id, "operator")
        async with client_of(app, operator.key) as client:
            answer = await client.post(AT, json=call("memory_list"), headers=ACCEPT)
            problem(answer, 403, "insufficient_scope")

    @pytest.mark.parametrize(
        "origin",
        ["https://evil.example", "http://localhost.evil.example", "null", "http://10.0.0.5",
         "http://test", "http://", "file://", "http://[::2]"],
    )  # fmt: skip
    async def test_a_page_of_elsewhere_is_refused(self, client, origin: str) -> None:
        headers = ACCEPT | {"Origin": origin}

        answer = await client.post(AT, json=message("tools/list"), headers=headers)

        problem(answer, 403, "origin_not_allowed")

    @pytest.mark.parametrize(
        "origin", ["http://localhost:6274", "http://127.0.0.1", "http://[::1]:8000"]
    )
    async def test_a_page_of_this_machine_is_served(self, client, origin: str) -> None:
        await sent(client, message("tools/list"), Origin=origin)


class TestSendingAgain:
    async def test_a_call_that_is_sent_again_has_one_effect(self, client) -> None:
        body = call("memory_save", content="Ana sails on Sundays.", user_id="ana")

        first = await sent(client, body, **{"Idempotency-Key": "k1"})
        again = await sent(client, body, **{"Idempotency-Key": "k1"})
        other = await sent(client, body | {"id": 2}, **{"Idempotency-Key": "k1"})

        assert first == again
        assert first["structuredContent"]["event"] == "ADD"
        assert other["_meta"]["code"] == "idempotency_key_reused"

    async def test_a_deletion_that_is_sent_again_is_answered_the_same(self, client) -> None:
        saved = await sent(client, call("memory_save", content="Ana sails.", user_id="ana"))
        memory_id = saved["structuredContent"]["memory_id"]
        body = call("memory_delete", memory_id=memory_id, user_id="ana")

        first = await sent(client, body, **{"Idempotency-Key": "k2"})
        again = await sent(client, body, **{"Idempotency-Key": "k2"})

        assert first == again
        assert not first["isError"]


class TestLimits:
    @pytest.mark.parametrize(("beyond", "status"), [(-1, 200), (0, 200), (1, 413)])
    async def test_a_body_up_to_the_limit_is_read(self, client, beyond: int, status: int) -> None:
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'.ljust(2 * 1024 * 1024 + beyond)
        headers = ACCEPT | {"Content-Type": "application/json"}

        answer = await client.post(AT, content=body, headers=headers)

        assert answer.status_code == status

    async def test_writing_tools_count_as_writes(self, dsn, acme: Caller) -> None:
        async with (
            service(dsn, writes_per_minute=1) as app,
            client_of(app, acme.key) as client,
        ):
            first, second = [
                await sent(client, call("memory_save", content=text, user_id="ana"))
                for text in ("Ana sails on Sundays.", "Ana keeps two cats.")
            ]
            read = await sent(client, call("memory_list", user_id="ana"))

        assert not first["isError"]
        assert second["_meta"]["code"] == "rate_limited"
        assert len(read["structuredContent"]["items"]) == 1

    async def test_every_message_counts_as_a_read(self, dsn, acme: Caller) -> None:
        async with (
            service(dsn, reads_per_minute=1) as app,
            client_of(app, acme.key) as client,
        ):
            await sent(client, message("tools/list"))
            answer = await client.post(AT, json=message("tools/list"), headers=ACCEPT)

        problem(answer, 429, "rate_limited")
        assert int(answer.headers["retry-after"]) > 0

    async def test_memory_that_is_switched_off_is_not_written(self, dsn, acme: Caller) -> None:
        async with service(dsn, enabled=False) as app, client_of(app, acme.key) as client:
            refused = await sent(client, call("memory_save", content="Ana sails.", user_id="ana"))
            listed = await sent(client, call("memory_list", user_id="ana"))

        assert refused["_meta"]["code"] == "memory_disabled"
        assert not listed["isError"]

    async def test_the_default_user_is_taken_where_none_is_named(self, dsn, acme: Caller) -> None:
        async with (
            service(dsn, default_user_id="me") as app,
            client_of(app, acme.key) as client,
        ):
            await sent(client, call("memory_save", content="I keep two cats."))
            mine = await sent(client, call("memory_list"))
            named = await sent(client, call("memory_list", user_id="me"))
            resources = await sent(client, message("resources/list"))

        assert mine == named
        assert len(mine["structuredContent"]["items"]) == 1
        assert resources["resources"][0]["uri"] == "kemem://users/me/profile"


class TestProcesses:
    async def test_any_process_answers_the_next_message(self, dsn, app, acme: Caller) -> None:
        async with (
            service(dsn) as second,
            client_of(app, acme.key) as here,
            client_of(second, acme.key) as there,
        ):
            body = message(
                "initialize", protocolVersion="2025-11-25", capabilities={},
                clientInfo={"name": "desktop", "version": "1"},
            )  # fmt: skip
            ok(await here.post(AT, json=body, headers=ACCEPT))
            await sent(there, call("memory_save", content="Ana sails.", user_id="ana"))
            listed = await sent(here, call("memory_list", user_id="ana"))

        assert len(listed["structuredContent"]["items"]) == 1

    async def test_calls_at_once_get_their_own_answers(self, client) -> None:
        texts = [f"Ana has {number} cats at home." for number in range(2, 12)]

        async def save(number: int, text: str) -> tuple[int, Any]:
            body = call("memory_save", number, content=text, user_id=f"u{number}")
            answer = ok(await client.post(AT, json=body, headers=ACCEPT))
            return answer["id"], answer["result"]["structuredContent"]["memory_id"]

        saved = await asyncio.gather(*(save(number, text) for number, text in enumerate(texts)))

        assert [number for number, _ in saved] == list(range(10))
        for number, memory_id in saved:
            listed = await sent(client, call("memory_list", user_id=f"u{number}"))
            assert [one["memory_id"] for one in listed["structuredContent"]["items"]] == [memory_id]


async def test_a_failure_that_nobody_expects_tells_nothing_of_it(dsn, acme: Caller) -> None:
    """The table of memories is not to be read: what PostgreSQL says of it stays in the log."""
    async with service(dsn) as app, client_of(app, acme.key) as client:
        await execute(dsn, "ALTER TABLE memories RENAME TO elsewhere")
        try:
            body = call("memory_list", user_id="secret-name")
            result = await sent(client, body)
        finally:
            await execute(dsn, "ALTER TABLE elsewhere RENAME TO memories")

    assert result["_meta"] == {"code": "internal_error"}
    assert "elsewhere" not in str(result)
    assert "memories" not in str(result)
