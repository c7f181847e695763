"""Older results of tools give their room to the conversation, for one call."""

from httpx import AsyncClient

from tests.support.api import append, ok

REMEMBERED = {"memories": False, "corrections": False, "excerpts": False}
LONG = "Row of a table that nobody will look at again. " * 40


async def test_more_of_the_conversation_fits_and_all_of_it_stays_stored(
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
    body = {"window_tokens": 900, "include": REMEMBERED}

    plain = ok(await client.post("/sessions/s1/context", json=body))
    wish = {"clear_tool_results": {"keep": 1}}
    shorter = ok(await client.post("/sessions/s1/context", json=body | wish))

    # Nor alone before a gap, where it would seem to belong to what follows.
    assert "tangerine" not in str(plain["messages"])
    assert plain["window"]["cleared"] == 0
    assert "tangerine" in str(shorter["messages"])
    assert shorter["window"]["cleared"] == 3
    assert shorter["tokens"] <= 900
    listed = ok(await client.get("/sessions/s1/messages"))
    assert sum(one["content"] == LONG for one in listed["items"]) == 4
