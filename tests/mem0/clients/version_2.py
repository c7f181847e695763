"""Run by the interpreter of mem0ai 2: calls every method of memories, and prints what it got.

Arguments: the address, the key, and sync or async.
"""

import asyncio
import inspect
import json
import sys

from mem0 import AsyncMemoryClient, MemoryClient
from mem0.client.types import (
    AddMemoryOptions,
    DeleteAllMemoryOptions,
    GetAllMemoryOptions,
    SearchMemoryOptions,
    UpdateMemoryOptions,
)
from mem0.exceptions import (
    AuthenticationError,
    MemoryNotFoundError,
    ValidationError,
)

host, key, kind = sys.argv[1:]
client = (MemoryClient if kind == "sync" else AsyncMemoryClient)(api_key=key, host=host)
TEA = "She drinks green tea in the morning."
ANA = {"user_id": "ana"}
MISSING = "01997b6a-5c7e-7f8a-9b0c-1d2e3f4a5b6c"
got: dict = {"org_id": client.org_id, "project_id": client.project_id}


async def call(method: str, *args, **kwargs):
    answer = getattr(client, method)(*args, **kwargs)
    return await answer if inspect.isawaitable(answer) else answer


async def failed(method: str, *args, **kwargs) -> str:
    try:
        await call(method, *args, **kwargs)
    except (AuthenticationError, MemoryNotFoundError, ValidationError) as error:
        return type(error).__name__
    return "nothing was raised"


async def remembered() -> list:
    """What `add` in the background has led to."""
    for _ in range(3000):
        found = (await call("get_all", filters={"user_id": "lisa"}))["results"]
        if found:
            return found
        await asyncio.sleep(0.1)
    return []


async def main() -> None:
    messages = [{"role": "user", "content": TEA}]
    got["added"] = await call(
        "add", messages, user_id="ana", infer=False, metadata={"topic_of": "tea"}
    )
    got["by_options"] = await call(
        "add",
        {"role": "user", "content": "He collects old stamps."},
        AddMemoryOptions(
            filters={"user_id": "bo", "agent_id": "helper", "app_id": "shop", "run_id": "chat-1"},
            infer=False,
            expiration_date="2999-12-31",
            timestamp=1700000000,
        ),
    )
    got["queued"] = await call("add", "I live in Lisbon.", filters={"user_id": "lisa"})
    got["remembered"] = await remembered()
    memory_id = got["added"]["results"][0]["id"]
    got["found"] = await call("search", "What does she drink?", filters=ANA, top_k=3)
    got["by_search_options"] = await call(
        "search",
        "What does he collect?",
        SearchMemoryOptions(
            filters={"AND": [{"user_id": "bo"}, {"app_id": "*"}]},
            top_k=5, rerank=True, threshold=0.0, fields=["memory"], categories=["fact"],
            latest_only=True, keyword_search=True, reference_date="2026-01-01",
        ),
    )  # fmt: skip
    got["all"] = await call("get_all", filters={"user_id": "*"})
    got["page"] = await call(
        "get_all", GetAllMemoryOptions(filters={"user_id": "*"}, page=1, page_size=2)
    )
    got["one"] = await call("get", memory_id)
    got["updated"] = await call("update", memory_id, text="She drinks black tea.")
    got["by_update_options"] = await call(
        "update", memory_id, UpdateMemoryOptions(metadata={"a": 1}, expiration_date="2998-01-01")
    )
    got["unlimited"] = await call("update", memory_id, expiration_date=None)
    got["history"] = await call("history", memory_id)
    got["errors"] = {
        "missing": await failed("get", MISSING),
        "wrong_id": await failed("get", "not-a-uuid"),
        "wrong_filter": await failed("search", "tea", filters={"colour": "red"}),
        "refused": await failed("add", "ok", user_id="ana", infer=False),
        "everything": await failed("delete_all"),
        "unreadable": await failed("delete_all", DeleteAllMemoryOptions(filters={})),
    }
    got["users"] = await call("users")
    got["deleted"] = await call("delete", memory_id, delete_linked=True)
    got["gone"] = await failed("get", memory_id)
    got["deleted_all"] = await call(
        "delete_all", DeleteAllMemoryOptions(filters={"AND": [{"user_id": "bo"}]})
    )
    await call("add", messages, user_id="ana", infer=False)
    got["deleted_user"] = await call("delete_users", user_id="ana")
    await call("add", messages, user_id="bo", run_id="chat-2", app_id="desk", infer=False)
    got["reset"] = await call("reset")
    got["left"] = await call("users")


asyncio.run(main())
print(json.dumps(got))
