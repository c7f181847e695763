"""`tools` and `call_tool`: what is sent, and a model's turn against the whole service."""

import pytest

import kemem
from tests.support.either_client import ask
from tests.support.flaky_server import says


async def test_call_sends_its_request(server, memory) -> None:
    server.otherwise = says({"tool": "memory_search", "ok": True, "result": "Tea.", "data": {}})

    answer = await ask(
        memory.call_tool, "memory_search", "s1", '{"query": "tea"}', "c1", max_tokens=300
    )

    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/tools/memory_search/call")
    assert request.json == {
        "session_id": "s1", "arguments": '{"query": "tea"}', "tool_call_id": "c1",
        "max_tokens": 300,
    }  # fmt: skip
    assert "Idempotency-Key" in request.headers
    assert (str(answer), answer.ok) == ("Tea.", True)


async def test_tools_sends_its_filters(server, memory) -> None:
    server.otherwise = says({"tools": [], "names": []})

    await ask(memory.tools)
    await ask(memory.tools, session_id="s1", format="anthropic", heartbeat=True)

    assert [request.path for request in server.requests] == [
        "/v1/tools",
        "/v1/tools?session_id=s1&format=anthropic&heartbeat=true",
    ]


def test_tool_result_has_the_message_for_the_provider() -> None:
    refused = kemem.ToolResult(
        tool="memory_save", error="Not saved.", tool_call_id="c1", duration_ms=3
    )

    assert refused.message == {
        "role": "tool", "content": "Not saved.", "tool_call_id": "c1", "name": "memory_save",
        "metadata": {"duration_ms": 3},
    }  # fmt: skip
    with pytest.raises(ValueError, match="tool_call_id"):
        _ = kemem.ToolResult(tool="memory_save").message
