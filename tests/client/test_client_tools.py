"""`tools` and `call_tool`: what is sent, and a model's turn against the whole service."""

import pytest

import kemem
from kemem import AsyncMemory, NotFoundError
from tests.client.conftest import ask
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


async def test_turn_of_a_model_is_stored_with_its_tool_calls(memory_of_acme: AsyncMemory) -> None:
    memory = memory_of_acme
    await memory.append("s1", "Remember that I drink green tea.", user_id="ana")
    offered = await memory.tools(session_id="s1")
    assert "memory_save" in offered.names
    assert len(offered.tools) == len(offered.names)
    call = {"id": "c1", "type": "function",
            "function": {"name": "memory_save",
                         "arguments": '{"content": "The user drinks green tea."}'}}  # fmt: skip

    told = call["function"]
    result = await memory.call_tool(told["name"], "s1", told["arguments"], call["id"])
    await memory.append("s1", [{"role": "assistant", "tool_calls": [call]}, result.message])

    assert result.ok
    assert [one.content for one in await memory.search("tea", user_id="ana")] == [
        "The user drinks green tea."
    ]
    *_, last = await memory.messages("s1")
    assert (last.role, last.content) == ("tool", str(result))
    assert last.metadata == {"duration_ms": result.duration_ms}
    found = await memory.call_tool("memory_search", "s1", {"query": "drinks"})
    assert "green tea" in str(found)
    with pytest.raises(NotFoundError):
        await memory.call_tool("memory_search", "s2", {"query": "drinks"})
