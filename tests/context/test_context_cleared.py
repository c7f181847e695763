"""Older results of tools give their room to the conversation, for one call."""

from httpx import AsyncClient

from tests.support.api import append, ok

REMEMBERED = {"memories": False, "corrections": False, "excerpts": False}
LONG = "Row of a table that nobody will look at again. " * 40


async def test_results_before_the_newest_are_cleared_and_all_of_them_stay_stored(
    client: AsyncClient,
) -> None:
    await append(client, "s1", "The code word is tangerine.")
    await append(client, "s1", {"role": "assistant", "content": "Noted."})
    for number in range(4):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "look"}}
        await append(
            client,
            "s1",
            {"role": "user", "content": f"Look {number}"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": LONG, "tool_call_id": f"c{number}"},
        )
    body = {"window_tokens": 4_000, "include": REMEMBERED}

    plain = ok(await client.post("/sessions/s1/context", json=body))
    wish = {"clear_tool_results": {"keep": 1}}
    shorter = ok(await client.post("/sessions/s1/context", json=body | wish))

    assert str(plain["messages"]).count(LONG) == 4
    assert plain["window"]["cleared"] == 0
    assert str(shorter["messages"]).count(LONG) == 1
    assert shorter["window"]["cleared"] == 3
    assert shorter["tokens"] < plain["tokens"] / 2
    assert "tangerine" in str(shorter["messages"])
    listed = ok(await client.get("/sessions/s1/messages"))
    assert sum(one["content"] == LONG for one in listed["items"]) == 4
