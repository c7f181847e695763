"""`kemem.mcp`: what passes on messages of a desktop, before a service that is made up."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from kemem.address import Service
from kemem.mcp import HOW, PAUSES, Relay

SERVICE = Service("http://127.0.0.1:8000", "kem_1", "a test")
Answering = Callable[[httpx.Request], Awaitable[httpx.Response]]


class Desk:
    """A desktop at the other end of the two files."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.told: list[dict[str, Any]] = []

    def say(self, message: Any) -> None:
        self.lines.put_nowait(json.dumps(message).encode() + b"\n")

    def ask(self, number: Any, method: str, **params: Any) -> None:
        self.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def close(self) -> None:
        self.lines.put_nowait(b"")

    def hear(self, line: bytes) -> None:
        assert b"\n" not in line
        self.told.append(json.loads(line))

    async def read(self) -> AsyncIterator[bytes]:
        while line := await self.lines.get():
            yield line


async def relayed(desk: Desk, answering: Answering) -> None:
    """Pass on all that the desk says until it closes."""
    async with httpx.AsyncClient(transport=httpx.MockTransport(answering)) as http:
        await Relay(SERVICE, http, desk.hear, [0.01] * len(PAUSES)).run(desk.read())


def result(request: httpx.Request, **content: Any) -> httpx.Response:
    asked = json.loads(request.content)
    return httpx.Response(200, json={"jsonrpc": "2.0", "id": asked["id"], "result": content})


async def test_the_agreed_version_goes_with_every_later_message() -> None:
    seen: list[tuple[str, str | None]] = []
    desk = Desk()

    async def answer(request: httpx.Request) -> httpx.Response:
        method = json.loads(request.content)["method"]
        seen.append((method, request.headers.get("MCP-Protocol-Version")))
        return result(request, protocolVersion="2025-06-18")

    def hear(line: bytes) -> None:
        desk.hear(line)
        if len(desk.told) == 1:
            desk.say({"jsonrpc": "2.0", "method": "tools/list", "id": 2})
        else:
            desk.close()

    desk.ask(1, "initialize", protocolVersion="2025-06-18")
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        await Relay(SERVICE, http, hear).run(desk.read())

    assert seen == [("initialize", None), ("tools/list", "2025-06-18")]


async def test_a_notification_is_passed_on_and_not_answered() -> None:
    seen: list[str] = []
    desk = Desk()

    async def answer(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content)["method"])
        return httpx.Response(202)

    desk.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    desk.close()
    await relayed(desk, answer)

    assert (seen, desk.told) == (["notifications/initialized"], [])


async def test_a_message_that_names_its_version_itself_has_the_headers_of_it() -> None:
    seen: list[httpx.Headers] = []
    desk = Desk()

    async def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return result(request)

    own = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    desk.ask(1, "tools/call", name="memory_list", _meta=own)
    desk.ask("two", "resources/read", uri="kemem://blocks/b", _meta=own)
    desk.close()
    await relayed(desk, answer)

    told = [(one["mcp-protocol-version"], one["mcp-method"], one["mcp-name"]) for one in seen]
    assert told == [
        ("2026-07-28", "tools/call", "memory_list"),
        ("2026-07-28", "resources/read", "kemem://blocks/b"),
    ]
    assert sorted(str(one["id"]) for one in desk.told) == ["1", "two"]


@pytest.mark.parametrize("name", ["記憶", "a\nb", " a", "", "=?base64?YQ==?=", "plain"])
async def test_a_name_that_no_header_can_hold_is_encoded_as_the_protocol_says(name: str) -> None:
    seen: list[str] = []
    desk = Desk()

    async def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["mcp-name"])
        return result(request)

    own = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    desk.ask(1, "tools/call", name=name, _meta=own)
    desk.close()
    await relayed(desk, answer)

    encoded = f"=?base64?{b64encode(name.encode()).decode()}?="
    assert seen == [name if name == "plain" else encoded]
    assert [one["id"] for one in desk.told] == [1]


async def test_whatever_fails_a_message_is_answered() -> None:
    desk = Desk()

    async def answer(request: httpx.Request) -> httpx.Response:
        # `result` is an object where a service is one of MCP.
        asked = json.loads(request.content)
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": asked["id"], "result": []})

    desk.ask(1, "initialize")
    desk.close()
    await relayed(desk, answer)

    [told] = desk.told
    assert (told["id"], told["error"]["code"]) == (1, -32603)
    assert "AttributeError" in told["error"]["message"]


async def test_a_cancelled_call_closes_its_connection_and_is_not_answered() -> None:
    begun, gone = asyncio.Event(), asyncio.Event()
    desk = Desk()

    async def answer(request: httpx.Request) -> httpx.Response:
        if json.loads(request.content)["id"] == 2:
            return result(request)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        raise AssertionError

    desk.ask(1, "tools/call", name="memory_search")
    running = asyncio.create_task(relayed(desk, answer))
    await begun.wait()
    desk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    desk.ask(2, "ping")
    await gone.wait()
    desk.close()
    await running

    assert [one["id"] for one in desk.told] == [2]


async def test_calls_are_answered_as_they_end_and_not_in_their_order() -> None:
    second = asyncio.Event()
    desk = Desk()

    async def answer(request: httpx.Request) -> httpx.Response:
        if json.loads(request.content)["id"] == 1:
            await second.wait()
        else:
            second.set()
        return result(request)

    desk.ask(1, "tools/list")
    desk.ask(2, "tools/list")
    desk.close()
    await relayed(desk, answer)

    assert [one["id"] for one in desk.told] == [2, 1]


async def test_a_call_whose_answer_was_lost_is_sent_again_under_one_key() -> None:
    keys: list[str] = []
    desk = Desk()

    async def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) <= len(PAUSES):
            raise httpx.ReadError("gone")
        return result(request)

    desk.ask(1, "tools/call", name="memory_save")
    desk.close()
    await relayed(desk, answer)

    assert len(keys) == len(PAUSES) + 1
    assert len(set(keys)) == 1
    assert "result" in desk.told[0]


async def test_without_a_service_the_answer_says_how_to_start_one(capsys) -> None:
    desk = Desk()

    async def answer(_request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    desk.ask(1, "initialize")
    desk.close()
    await relayed(desk, answer)

    [told] = desk.told
    assert told["id"] == 1
    assert told["error"]["message"].endswith(HOW)
    assert HOW in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            httpx.Response(
                401,
                json={"title": "Unknown API key", "detail": "Not known.", "code": "unknown_key"},
            ),
            "Unknown API key: Not known.",
        ),
        (httpx.Response(404, text="nothing here"), "it answers 404"),
        (httpx.Response(200, json=["no", "message"]), "it answers 200"),
    ],
)
async def test_an_answer_that_is_none_of_the_protocol_is_explained(answer, said: str) -> None:
    desk = Desk()

    async def same(_request: httpx.Request) -> httpx.Response:
        return answer

    desk.ask(1, "tools/list")
    desk.close()
    await relayed(desk, same)

    [told] = desk.told
    assert said in told["error"]["message"]
    assert told["error"].get("data") == ({"code": "unknown_key"} if "Unknown" in said else None)


@pytest.mark.parametrize("line", [b"{", b"5", b"\xff\xfe", b"[1]"])
async def test_a_line_that_is_no_message_does_not_end_the_program(line: bytes) -> None:
    desk = Desk()

    async def answer(request: httpx.Request) -> httpx.Response:
        return result(request)

    desk.lines.put_nowait(line + b"\n")
    desk.lines.put_nowait(b"\n")
    desk.ask(1, "ping")
    desk.close()
    await relayed(desk, answer)

    assert [one["id"] for one in desk.told] == [None, 1]
    assert desk.told[0]["error"]["code"] == -32700


async def test_an_answer_keeps_its_line_and_its_letters() -> None:
    desk = Desk()

    async def answer(request: httpx.Request) -> httpx.Response:
        return result(request, text="她喝绿茶\n<b>")

    desk.ask(1, "tools/list")
    desk.close()
    await relayed(desk, answer)

    assert desk.told[0]["result"]["text"] == "她喝绿茶\n<b>"
