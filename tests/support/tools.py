"""Calling tools, in the words of a client."""

from typing import Any

from httpx import AsyncClient

from tests.support.api import ok


async def called(client: AsyncClient, tool: str, arguments: Any = None, **body: Any) -> Any:
    """The answer to a tool called in the session s1, unless `body` says otherwise."""
    told = {"session_id": "s1", "arguments": arguments} | body
    return ok(await client.post(f"/tools/{tool}/call", json=told))


async def result(client: AsyncClient, tool: str, arguments: Any = None, **body: Any) -> str:
    """What a model is told of a call that comes to pass."""
    answer = await called(client, tool, arguments, **body)
    assert (answer["ok"], answer["error"]) == (True, None), answer
    return answer["result"]


async def refusal(client: AsyncClient, tool: str, arguments: Any = None, **body: Any) -> str:
    """What a model is told of a call that does not."""
    answer = await called(client, tool, arguments, **body)
    assert (answer["ok"], answer["result"], answer["next_cursor"]) == (False, None, None), answer
    return answer["error"]
