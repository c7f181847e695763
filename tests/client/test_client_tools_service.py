"""`tools` and `call_tool`: what is sent, and a model's turn against the whole service."""

import pytest

from kemem import AsyncMemory, NotFoundError


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
