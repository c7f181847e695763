"""Run by mem0ai's own interpreter: address and key are its arguments; prints what it got."""

import asyncio
import json
import sys

from mem0 import AsyncMemoryClient, MemoryClient

host, key = sys.argv[1:]
text = "She drinks green tea in the morning."


def synchronously() -> dict:
    client = MemoryClient(api_key=key, host=host)
    added = client.add(
        [{"role": "user", "content": text}], user_id="ana", infer=False, metadata={"topic": "tea"}
    )
    queued = client.add("I live in Lisbon.", user_id="ana")
    found = client.search("What does she drink?", filters={"user_id": "ana"}, top_k=3)
    one = client.get(added["results"][0]["id"])
    return {"added": added, "queued": queued, "found": found, "one": one}


async def asynchronously() -> dict:
    client = AsyncMemoryClient(api_key=key, host=host)
    found = await client.search("What does she drink?", filters={"user_id": "ana"})
    one = await client.get(found["results"][0]["id"])
    return {"found": found, "one": one}


print(json.dumps({"sync": synchronously(), "async": asyncio.run(asynchronously())}))
