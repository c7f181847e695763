"""Long conversations, and what becomes of their windows, in the words of a client."""

from collections.abc import Sequence
from typing import Any

from httpx import AsyncClient

from tests.support.api import append, ok

TOPICS = (
    "The blue notebook with the number {n} lies on shelf {n} of the archive near the window.",
    "Please remember that order {n} has to reach Lisbon before the winter festival begins.",
    "第{n}号仓库的钥匙放在前台，周末之前请不要忘记归还给王经理。",
    "My colleague from department {n} prefers to be called in the late afternoon only.",
)


def turns(count: int, *, first: int = 1) -> list[dict[str, Any]]:
    """So many messages of some twenty tokens each, in turns of user and assistant."""
    said = []
    for number in range(first, first + count):
        role = "user" if number % 2 else "assistant"
        text = TOPICS[number % len(TOPICS)].format(n=number)
        said.append({"role": role, "content": text})
    return said


async def converse(client: AsyncClient, session_id: str, count: int, **fields: Any) -> Any:
    """Append so many messages in batches; the last answer."""
    answer = None
    for start in range(1, count + 1, 100):
        batch = turns(min(100, count + 1 - start), first=start)
        answer = await append(client, session_id, *batch, **fields)
    return answer


async def policy(client: AsyncClient, session_id: str, **keys: Any) -> None:
    """Open a session of Ana's with a window policy of its own."""
    body = {"session_id": session_id, "user_id": "ana", "window_policy": keys}
    ok(await client.post("/sessions", json=body), 201)


async def compact(client: AsyncClient, session_id: str, **body: Any) -> dict[str, Any]:
    return ok(await client.post(f"/sessions/{session_id}/compact", json=body))


async def window(client: AsyncClient, session_id: str) -> dict[str, Any]:
    return ok(await client.get(f"/sessions/{session_id}/window"))


async def summaries(client: AsyncClient, session_id: str) -> Sequence[dict[str, Any]]:
    """Newest first."""
    return ok(await client.get(f"/sessions/{session_id}/summaries"))["items"]
