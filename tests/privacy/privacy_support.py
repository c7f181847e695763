"""A person whose secret stands everywhere, and a dump in which it would be seen."""

import asyncio
import json
import zlib
from contextlib import suppress
from datetime import timedelta
from typing import Any

from httpx import AsyncClient

from app.governance.tables import TABLES
from app.prompting.checkpoints.archive_service import CheckpointArchiving
from app.runtime import Runtime
from tests.checkpoints.saver_support import b64, content, value
from tests.support.api import append, execute, ok
from tests.support.conversations import compact, policy
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller

SECRET = "zanzibar-nightingale"

OF_SESSIONS = {
    "messages", "session_summaries", "session_states", "session_state_snapshot", "checkpoints",
    "checkpoint_archive", "approvals", "saver_checkpoints", "saver_values", "saver_chunks",
    "saver_writes",
}  # fmt: skip
"""Where `fill_window` leaves words that go with the session."""

OF_THE_USER = {"blocks", "block_history", "store_items", "store_texts"}
"""And words that go with the user."""

PLAN = "plan for the garden"
"""What a block of the session says beside the secret; it goes with the session."""


def _shown(column: Any) -> str:
    """A column as text; what is compressed is read."""
    if not isinstance(column, str) or not column.startswith("\\x"):
        return json.dumps(column, ensure_ascii=False)
    held = bytes.fromhex(column[2:])
    with suppress(zlib.error):
        held = zlib.decompress(held)
    return held.decode(errors="backslashreplace")


async def dump(dsn: str, tenant_id: str) -> dict[str, list[str]]:
    """Every row of a tenant as text, by table; without what is written at leisure."""
    lines = {}
    for name in (table.__tablename__ for table in TABLES):
        rows = await execute(
            dsn,
            f"SELECT (to_jsonb(t) - '{{last_used_at,use_count}}'::text[])::text AS row "
            f"FROM {name} t WHERE tenant_id = $1 "
            + "AND name !~ '^(search|context)' " * (name == "daily_counts")
            + "ORDER BY 1",
            tenant_id,
        )
        lines[name] = [" ".join(map(_shown, json.loads(row["row"]).values())) for row in rows]
    return lines


async def fill(client: AsyncClient) -> str:
    """Ana says the secret in a session, a memory, a refused memory and a kept answer."""
    body = {"user_id": "ana", "messages": [{"role": "user", "content": f"I saw {SECRET}"}]}
    await client.post("/sessions/s1/messages", json=body, headers={"Idempotency-Key": "one"})
    saved = await client.post(
        "/memories",
        json={"messages": f"Her favourite is {SECRET}.", "user_id": "ana", "infer": False},
        headers={"Idempotency-Key": "two"},
    )
    memory_id = saved.json()["results"][0]["memory_id"]
    await client.patch(f"/memories/{memory_id}", json={"content": f"She dislikes {SECRET}."})
    refused = {"messages": SECRET, "user_id": "ana", "infer": False, "confidence": 0.1}
    await client.post("/memories", json=refused)
    for session, text in (("s1", "The tent leaks at night."), ("s2", "The stove is broken.")):
        await client.post(
            "/memories",
            json={
                "messages": text, "user_id": "ana", "session_id": session, "scope": "session",
                "infer": False,
            },
        )  # fmt: skip
    return memory_id


async def fill_window(runtime: Runtime, client: AsyncClient, caller: Caller, dsn: str) -> None:
    """The session talk of Ana's, with the secret in all that is kept beside its messages, and
    in blocks and a stored item of her own.
    """
    await policy(client, "talk", budget_tokens=600, automatic=False)
    said = [f"I heard the {SECRET} sing in garden number {number}." for number in range(30)]
    await append(client, "talk", *said)
    state = {"seen": SECRET}
    ok(await client.put("/sessions/talk/state", json=state, headers={"If-Match": "0"}))
    ok(await client.post("/sessions/talk/state/snapshots"), 201)
    await _wait_for_a_human(client)
    await CheckpointArchiving(runtime.database, timedelta(0)).run(caller.tenant_id)
    assert (await compact(client, "talk", force=True))["compacted"] is True
    await _keep_step(client)
    await _note(client)
    await _store(client)
    await _show(client, caller, dsn)


async def _wait_for_a_human(client: AsyncClient) -> None:
    """Two checkpoints, and a call that a human has changed."""
    call = {"id": "call-1", "name": "feed", "arguments": {"bird": SECRET}}
    contents = {"agent_state": {"looks_for": SECRET}, "pending_tool_calls": [call]}
    for _ in range(2):
        ok(await client.post("/sessions/talk/checkpoints", json={"contents": contents}), 201)
    changed = {"decision": "modified", "arguments": {"bird": f"two {SECRET}s"}, "comment": SECRET}
    ok(await client.post("/sessions/talk/approvals/call-1", json=changed))


async def _keep_step(client: AsyncClient) -> None:
    """A LangGraph checkpoint with a value and a pending write."""
    secret = SECRET.encode()
    path = "/sessions/talk/saver/checkpoints/step"
    step = {
        "checkpoint": {"type": "msgpack", "data": b64(secret)},
        "metadata": {"topic": SECRET},
        "values": {"topic": value(secret, kind=SECRET)},
        "content": content(secret),
    }
    ok(await client.put(path, json=step))
    write = {"index": 0, "channel": "topic", "type": "msgpack", "data": b64(secret)}
    ok(await client.put(f"{path}/writes", json={"task_id": "task", "writes": [write]}))


async def _note(client: AsyncClient) -> None:
    """A block of hers that an agent has, one of the session, and her own copy of a template of
    all.
    """
    body = {"label": "diary", "value": SECRET, "user_id": "ana", "agent_id": "default"}
    diary = ok(await client.post("/blocks", json=body), 201)["block_id"]
    ok(await client.post(f"/blocks/{diary}/append", json={"text": f"{SECRET} again"}))
    plan = {"label": "plan", "value": f"The {PLAN}: {SECRET}", "session_id": "talk"}
    ok(await client.post("/blocks", json=plan), 201)
    template = {"label": "human", "per_user": True, "agent_id": "default"}
    ok(await client.post("/blocks", json=template), 201)
    arguments = {"label": "human", "content": f"She likes the {SECRET}."}
    call = {"session_id": "talk", "arguments": arguments}
    assert ok(await client.post("/tools/core_memory_append/call", json=call))["ok"] is True


async def _store(client: AsyncClient) -> None:
    """An item of hers, with a text that searches find."""
    put = {
        "op": "put", "namespace": ["birds"], "key": "heard", "value": {"bird": SECRET},
        "user_id": "ana",
    }  # fmt: skip
    ok(await client.post("/store/batch", json={"operations": [put]}))


async def _show(client: AsyncClient, caller: Caller, dsn: str) -> None:
    """A memory of hers in the context, which is noted behind the answer."""
    saved = {"messages": f"She saw the {SECRET}.", "user_id": "ana", "infer": False}
    ok(await client.post("/memories", json=saved), 201)
    assert ok(await client.post("/sessions/talk/context", json={}))["used"]
    async with asyncio.timeout(PATIENCE):
        while True:
            rows = await dump(dsn, caller.tenant_id)
            if rows["context_injections"] and rows["injected_contexts"]:
                return
            await asyncio.sleep(0.05)
