"""Records the examples of the OpenAPI document: what a service answers on the routes used most.

It needs a service without data of the users it names, and its key:
`KEMEM_URL=… KEMEM_API_KEY=… python -m scripts.record_examples`.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any, Final

from httpx import AsyncClient

EXAMPLES: Final = Path(__file__).parents[1] / "app/openapi_examples.json"


async def record(client: AsyncClient) -> dict[str, Any]:
    """The answers by operation id, of a client whose base ends in `/v1`."""
    found: dict[str, Any] = {}

    async def call(name: str, method: str, path: str, body: Any = None) -> Any:
        answer = await client.request(method, path, json=body)
        answer.raise_for_status()
        found[name] = answer.json()
        return found[name]

    tea = {"messages": "I drink green tea.", "user_id": "ana", "infer": False}
    memory_id = (await call("add_memory", "POST", "/memories", tea))["results"][0]["memory_id"]
    query = {"query": "What does she drink?", "user_id": "ana", "limit": 5}
    await call("search_memories", "POST", "/memories/search", query)
    await call("get_memory", "GET", f"/memories/{memory_id}")
    await call("list_memories", "GET", "/memories?user_id=ana")
    change = {"content": "I drink black tea."}
    await call("update_memory", "PATCH", f"/memories/{memory_id}", change)
    await call("list_memory_history", "GET", f"/memories/{memory_id}/history")
    await call("get_memory_stats", "GET", "/memories/stats?user_id=ana")
    rating = {"rating": "helpful"}
    await call("add_feedback", "POST", f"/memories/{memory_id}/feedback", rating)
    session = {"session_id": "trip", "user_id": "ana"}
    await call("add_session", "POST", "/sessions", session)
    said = {"messages": [{"role": "user", "content": "I moved to Munich last week."}]}
    await call("append_messages", "POST", "/sessions/trip/messages", said)
    await call("list_messages", "GET", "/sessions/trip/messages")
    asked = {"query": "Munich", "user_id": "ana", "limit": 5}
    await call("search_messages", "POST", "/messages/search", asked)
    await call("get_session", "GET", "/sessions/trip")
    await call("list_sessions", "GET", "/sessions?user_id=ana")
    await call("build_context", "POST", "/sessions/trip/context", {"query": "Where does she live?"})
    await call("get_window", "GET", "/sessions/trip/window")
    await call("get_user", "GET", "/users/ana")
    await call("get_user_profile", "GET", "/users/ana/profile")
    block = {"label": "style", "value": "Be brief."}
    await call("add_block", "POST", "/blocks", block)
    await call("list_tools", "GET", "/tools")
    found["list_tools"]["tools"] = found["list_tools"]["tools"][:1]
    return found


async def _main() -> None:
    key = {"Authorization": f"Bearer {os.environ['KEMEM_API_KEY']}"}
    async with AsyncClient(base_url=f"{os.environ['KEMEM_URL']}/v1", headers=key) as client:
        text = json.dumps(await record(client), ensure_ascii=False, indent=1)
    EXAMPLES.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(_main())
