"""One tenant with a row of every kind, and a way to see whether any of them changed."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from httpx import AsyncClient

from app.governance.tables import TABLES
from app.identity.tenants.access import Access
from app.identity.tenants.sign_in_service import SignInService
from app.identity.usage.repository import AnswerRepository, DailyCountRepository, UsageRepository
from app.memory.memories.bucket_repository import BucketRepository, VectorBucket
from app.memory.store.models import item_id, path_of
from app.platform.database.base import new_id
from app.platform.jobs.orders import Order
from app.platform.jobs.repository import JobRepository
from app.prompting.checkpoints.archive_service import CheckpointArchiving
from app.prompting.compaction.repository import SessionSummary, SummaryRepository
from app.prompting.context.injections import Injections, ShownContext
from app.runtime import Runtime
from tests.support.owner_connections import owner_connection
from tests.support.tenants import Caller, make_key, tenants
from tests.support.world_erasures import erase_somebody
from tests.support.world_folders import shelve
from tests.support.world_graph import relate
from tests.support.world_profiles import portray


@dataclass(frozen=True)
class World:
    """`ids` are of rows that belong to the user ana and the agent helper."""

    owner: Caller
    ids: dict[str, str]


async def send(client: AsyncClient, method: str, path: str, **rest: Any) -> dict[str, Any]:
    response = await client.request(method, path, **rest)
    assert response.is_success, response.text
    return response.json()


async def remember(client: AsyncClient, text: str, **place: Any) -> str:
    body = {"messages": text, "infer": False, "on_duplicate": "allow"} | place
    answer = await send(client, "POST", "/memories", json=body)
    return answer["results"][0]["memory_id"]


async def owe(runtime: Runtime, owner: Caller, **whose: str) -> str:
    """Put work into the queue that no worker does, note what a model was used for, and where."""
    async with runtime.database.begin(owner.tenant_id) as db:
        order = Order("nobody_does_this", "k", delay=timedelta(hours=1), **whose)
        owed = await JobRepository(db, owner.tenant_id).schedule(order)
        await UsageRepository(db, owner.tenant_id).note(
            "extract", "a-model", calls=1, input_tokens=300, output_tokens=20
        )
        await DailyCountRepository(db, owner.tenant_id).add(
            {(date(2026, 3, 1), "search", whose.get("agent_id", ""), "5"): 1}
        )
        await BucketRepository(db, owner.tenant_id).register(
            VectorBucket("user", whose["user_id"], "a-model", rows=9_000, dimension=1536)
        )
    assert owed is not None
    return owed.job_id


async def keep_answer(runtime: Runtime, owner: Caller, **whose: str) -> None:
    """An answer of a model that waits to be stored."""
    row = {"answer_key": b"k", "operation": "extract", "purpose": "job:k", "answer": b"{}"}
    async with runtime.database.begin(owner.tenant_id) as db:
        await AnswerRepository(db, owner.tenant_id).put(row | whose, asked_at=datetime.now(UTC))


async def hold(
    runtime: Runtime, client: AsyncClient, owner: Caller, session_id: str, tool_call_id: str
) -> dict[str, str]:
    """Working state, a copy of it, checkpoints, and a call that waits; their ids."""
    path = f"/sessions/{session_id}"
    await send(client, "PUT", f"{path}/state", json={"goal": "Munich"}, headers={"If-Match": "0"})
    snapshot = await send(client, "POST", f"{path}/state/snapshots")
    call = {"id": tool_call_id, "name": "book", "arguments": {"to": "Munich"}}
    contents = {"agent_state": {"goal": "Munich"}, "pending_tool_calls": [call]}
    old = await send(client, "POST", f"{path}/checkpoints", json={"contents": contents})
    checkpoint = await send(client, "POST", f"{path}/checkpoints", json={"contents": contents})
    # All but the newest.
    await CheckpointArchiving(runtime.database, timedelta(0)).run(owner.tenant_id)
    return {
        "archived_checkpoint_id": old["checkpoint_id"],
        "snapshot_id": snapshot["snapshot_id"],
        "checkpoint_id": checkpoint["checkpoint_id"],
        "tool_call_id": tool_call_id,
    }


async def summarise(runtime: Runtime, owner: Caller, session_id: str) -> str:
    """A summary of a session, as a compaction would have left it; its id."""
    summary = SessionSummary(
        summary_id=new_id("sum"),
        session_id=session_id,
        level=0,
        from_seq=1,
        to_seq=2,
        content="User: I moved to Munich.",
        tokens=6,
        evicted_messages=2,
        evicted_tokens=16,
        model="extractive/1",
        shortened=False,
        reason="manual",
        creator=owner.key_id,
    )
    async with runtime.database.begin(owner.tenant_id) as db:
        await SummaryRepository(db, Access(owner.tenant_id)).add_all([summary])
        return summary.summary_id


async def note(client: AsyncClient, agent_id: str, user_id: str) -> str:
    """A block of one user, of which something was undone."""
    body = {"label": "diary", "value": "Ana likes Munich.", "user_id": user_id}
    made = await send(client, "POST", "/blocks", json=body | {"agent_id": agent_id})
    path = f"/blocks/{made['block_id']}"
    for text in ("And Bonn.", "And Rome."):
        await send(client, "POST", f"{path}/append", json={"text": text})
    await send(client, "POST", f"{path}/undo", headers={"If-Match": "*"})
    return made["block_id"]


async def keep_step(client: AsyncClient, session_id: str, checkpoint_id: str, run_id: str) -> None:
    """Two LangGraph checkpoints of one id: the outer graph's, with a value and a pending write,
    and that of a graph within it.
    """
    path = f"/sessions/{session_id}/saver/checkpoints/{checkpoint_id}"
    step = {"checkpoint": {"type": "msgpack", "data": "gA=="}, "metadata": {"run_id": run_id}}
    digest = "d32f61940e393a97752652e84cd2865d"
    value = {
        "values": {"topic": {"type": "raw", "chunks": [digest]}},
        "content": {digest: "eJxbmptYkJMKAAoWArU="},
    }
    write = {"index": 0, "channel": "topic", "type": "null", "data": ""}
    await send(client, "PUT", path, json=step | value)
    await send(client, "PUT", f"{path}/writes", json={"task_id": "task", "writes": [write]})
    await send(client, "PUT", path, params={"namespace": "child"}, json=step)


async def store(client: AsyncClient, user_id: str) -> str:
    """An item of a user in the application's store, which a search by meaning finds; its id."""
    namespace = ["users", user_id.replace(".", "-")]
    item = {"namespace": namespace, "key": "likes", "value": {"text": "Likes green tea."}}
    body = {"operations": [{"op": "put", "user_id": user_id, "ttl_minutes": 1e6, **item}]}
    await send(client, "POST", "/store/batch", json=body)
    return item_id("/", path_of(namespace), "likes")


async def show(runtime: Runtime, owner: Caller, session_id: str, memory_id: str) -> None:
    """A memory that stood in the session's context."""
    shown = Injections(runtime.database)
    context = ShownContext([memory_id], [], [], 100, 20, 30, datetime.now(UTC))
    shown.note_context(owner.tenant_id, session_id, "0" * 64, context)
    await shown.flush(everything=True)


async def build_world(
    runtime: Runtime, client: AsyncClient, owner: Caller, *, mark: str = ""
) -> World:
    """Rows of every kind in the tenant of `client`, an admin: ana's, and some of ben's.

    Args:
        mark: stands before every id, to tell two worlds apart.

    """
    for agent, user in ((f"{mark}helper", f"{mark}ana"), (f"{mark}rival", f"{mark}ben")):
        body = {"agent_id": agent, "agent_name": agent}
        await send(client, "POST", "/agents", json=body, headers={"Idempotency-Key": agent})
        await send(client, "POST", "/users", json={"user_id": user, "agent_id": agent})
    erasure_id = await erase_somebody(client, mark=mark)
    await send(
        client,
        "POST",
        "/projects",
        json={"project_id": f"{mark}apollo", "project_name": "Apollo", "owner_id": f"{mark}ana"},
    )
    await send(
        client,
        "POST",
        "/sessions",
        json={"session_id": f"{mark}talk", "user_id": f"{mark}ana", "project_id": f"{mark}apollo"},
    )
    await send(
        client,
        "POST",
        f"/sessions/{mark}talk/messages",
        json={
            "messages": [
                {"message_id": f"{mark}said-1", "role": "user", "content": "I moved to Munich."},
                {"message_id": f"{mark}said-2", "role": "assistant", "content": "How is it there?"},
            ]
        },
    )
    summary_id = await summarise(runtime, owner, f"{mark}talk")
    held = await hold(runtime, client, owner, f"{mark}talk", f"{mark}call-1")
    # Before the first memory, so that it is owed deliveries; nobody is at home there.
    webhook = await send(client, "POST", "/webhooks", json={"url": f"https://{mark}kemem.invalid"})
    memory_id = await remember(client, "She moved to Munich last week.", user_id=f"{mark}ana")
    session_memory_id = await remember(
        client,
        "Her train was late today.",
        user_id=f"{mark}ana",
        session_id=f"{mark}talk",
        scope="session",
    )
    project_memory_id = await remember(
        client,
        "Apollo ships in March.",
        user_id=f"{mark}ana",
        project_id=f"{mark}apollo",
        scope="project",
    )
    agent_memory_id = await remember(
        client, "Refunds take five working days.", agent_id=f"{mark}helper", scope="agent"
    )
    await remember(client, "Ben collects old maps.", user_id=f"{mark}ben")
    portrayed = await portray(
        runtime,
        client,
        tenant_id=owner.tenant_id,
        user_id=f"{mark}ana",
        project_id=f"{mark}apollo",
    )
    related = await relate(client, f"{mark}ana", memory_id)
    stored_id = await store(client, f"{mark}ana")
    block_id = await note(client, f"{mark}helper", f"{mark}ana")
    shelved = await shelve(
        runtime, client, owner, user_id=f"{mark}ana", agent_id=f"{mark}helper", mark=mark
    )
    told = await send(client, "GET", f"/webhooks/{webhook['webhook_id']}/deliveries")
    history = await send(client, "GET", f"/memories/{memory_id}/history")
    body = {"rating": "wrong", "comment": "That was years ago."}
    await send(client, "POST", f"/memories/{memory_id}/feedback", json=body)
    read = {"messages": "What time is it?", "user_id": f"{mark}ana", "session_id": f"{mark}talk"}
    run = await send(client, "POST", "/memories", json=read | {"agent_id": f"{mark}helper"})
    await keep_step(client, f"{mark}talk", held["checkpoint_id"], run["extraction_id"])
    await show(runtime, owner, f"{mark}talk", memory_id)
    refused = {"messages": "bee", "user_id": f"{mark}ana", "infer": False}
    assert (await client.post("/memories", json=refused)).status_code == 422
    verdicts = await send(client, "GET", "/memories/decisions?verdict=rejected&code=too_short")
    measured = {"name": "n", "dataset": "d", "metrics": {"recall": 0.5}}
    evaluation = await send(client, "POST", "/evaluations", json=measured)
    job_id = await owe(runtime, owner, user_id=f"{mark}ana", agent_id=f"{mark}helper")
    await keep_answer(
        runtime,
        owner,
        user_id=f"{mark}ana",
        agent_id=f"{mark}helper",
        session_id=f"{mark}talk",
        project_id=f"{mark}apollo",
    )
    key = await make_key(runtime, owner.tenant_id, "read")
    sign_in = SignInService(runtime.work, tenants(runtime), runtime.now)
    await sign_in.add_code(owner.tenant_id, ["read"])
    return World(
        owner,
        {
            "tenant_id": owner.tenant_id,
            "key_id": key.key_id,
            "agent_id": f"{mark}helper",
            "user_id": f"{mark}ana",
            "project_id": f"{mark}apollo",
            "session_id": f"{mark}talk",
            "message_id": f"{mark}said-1",
            "memory_id": memory_id,
            "history_id": history["items"][0]["history_id"],
            "job_id": job_id,
            "extraction_id": run["extraction_id"],
            "webhook_id": webhook["webhook_id"],
            "delivery_id": told["items"][0]["delivery_id"],
            "session_memory_id": session_memory_id,
            "project_memory_id": project_memory_id,
            "agent_memory_id": agent_memory_id,
            "block_id": block_id,
            "erasure_id": erasure_id,
            "decision_id": verdicts["items"][0]["decision_id"],
            "evaluation_id": evaluation["evaluation_id"],
            "item_id": stored_id,
            "summary_id": summary_id,
            # Of a tool: what a path names besides ids.
            "name": "memory_save",
            **held,
            **portrayed,
            **shelved,
            **related,
        },
    )


_EVERY_ROW = " UNION ALL ".join(
    f"SELECT '{name}' AS name, (to_jsonb(t) - '{{last_used_at,use_count}}'::text[])::text AS row "
    f"FROM {name} t WHERE tenant_id = $1"
    + " AND name !~ '^(search|context)'"
    * (name == "daily_counts")
    for name in (table.__tablename__ for table in TABLES)
)
"""Without what is written behind an answer: when a key or a memory was last used, and how many
searches and contexts there were."""


async def rows_of(dsn: str, tenant_id: str) -> set[tuple[str, str]]:
    """Every row of a tenant: its table and its content, as the owner of the tables sees it."""
    async with owner_connection(dsn) as connection:
        rows = await connection.fetch(_EVERY_ROW, tenant_id)
        return {(row["name"], row["row"]) for row in rows}
