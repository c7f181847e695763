"""Run by the interpreter of mem0ai 1: calls the methods of memories, and prints what it got.

Arguments: the address, the key, and sync or async.
"""

import asyncio
import inspect
import json
import sys

import httpx
from mem0 import AsyncMemoryClient, MemoryClient
from mem0.exceptions import MemoryNotFoundError

host, key, kind = sys.argv[1:]
client = (MemoryClient if kind == "sync" else AsyncMemoryClient)(api_key=key, host=host)
got: dict = {"org_id": client.org_id, "project_id": client.project_id}


async def call(method: str, *args, **kwargs):
    answer = getattr(client, method)(*args, **kwargs)
    return await answer if inspect.isawaitable(answer) else answer


async def main() -> None:
    messages = [{"role": "user", "content": "She drinks green tea in the morning."}]
    names = {"user_id": "ana", "agent_id": "helper", "run_id": "chat-1"}
    got["added"] = await call("add", messages, **names, infer=False, metadata={"topic": "tea"})
    got["queued"] = await call("add", "I live in Lisbon.", user_id="bo")
    got["read"] = await call("add", "I like jazz very much.", user_id="bo", async_mode=False)
    memory_id = got["added"]["results"][0]["id"]
    got["found"] = await call("search", "What does she drink?", user_id="ana", top_k=3)
    got["filtered"] = await call("search", "tea", filters={"AND": [{"run_id": "chat-1"}]})
    got["all"] = await call("get_all", user_id="ana")
    got["page"] = await call("get_all", filters={"user_id": "ana"}, page=1, page_size=1)
    got["one"] = await call("get", memory_id)
    got["updated"] = await call("update", memory_id, text="She drinks black tea.")
    got["history"] = await call("history", memory_id)
    got["users"] = await call("users")
    got["deleted"] = await call("delete", memory_id)
    try:
        await call("get", memory_id)
    except (MemoryNotFoundError, httpx.HTTPStatusError) as error:
        # The async client of this version translates no error of `get`.
        got["gone"] = type(error).__name__
    got["deleted_all"] = await call("delete_all", user_id="bo")
    await call("add", messages, user_id="ana", infer=False)
    got["reset"] = await call("reset")


asyncio.run(main())
print(json.dumps(got))
