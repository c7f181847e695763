"""The id of an erased person, looked for in every column of every table of the whole database.

Texts of others may say it, for what others said is theirs: here nobody does.
"""

from httpx import AsyncClient

from app.runtime import Runtime
from tests.privacy.test_privacy_everywhere import tables_that_say
from tests.support.api import append, execute, ok, save
from tests.support.tenants import Caller
from tests.support.world import build_world

MARK = "quetzal.7~"
WHO = f"{MARK}ana"
NAME = "凤尾绿咬鹃"

KEPT: set[str] = set()
"""Tables in which the id may stand afterwards: none. The receipt has a keyed hash of it."""


def once(number: int) -> dict[str, str]:
    return {"Idempotency-Key": f"key-{number}"}


async def answer_in_many_ways(client: AsyncClient) -> None:
    """Kept answers that name the person, each in the words of its route."""
    ok(await client.patch(f"/users/{WHO}", json={"user_name": NAME}))
    body = {"project_name": "Zeus", "owner_id": WHO}
    made = await client.post("/projects", json=body, headers=once(1))
    project = ok(made, 201)["project_id"]
    # A shared memory, and what is asked about it.
    shared = {"project_id": project, "scope": "project", "user_id": WHO}
    await save(client, "Zeus ships in May.", **shared)
    path = f"/projects/{project}/members/{MARK}ben"
    ok(await client.put(path, json={"role": "editor"}))
    body = {"folder_name": "Notes", "scope": "user", "user_id": WHO}
    ok(await client.post("/folders", json=body, headers=once(2)), 201)
    body = {"label": "notes", "value": "", "user_id": WHO}
    ok(await client.post("/blocks", json=body, headers=once(3)), 201)
    body = {"source": "Ana", "relation": "knows", "destination": "Ben", "user_id": WHO}
    ok(await client.post("/graph/relations", json=body, headers=once(4)), 201)
    body = {"session_id": "open", "user_id": WHO}
    ok(await client.post("/sessions", json=body, headers=once(5)), 201)
    key = {"key_name": NAME, "scopes": ["read"], "user_id": WHO}
    ok(await client.post("/keys", json=key), 201)
    await append(client, "open", "我看见了一只鸟。", user_id=WHO)
    body = {"messages": "I love birds.", "user_id": WHO}
    ok(await client.post("/memories?async=true", json=body, headers=once(6)), 202)


NAMING = (
    '{"filters": {"user_id": "%s"}, "equal": {}}',
    '{"filters": {"AND": [{"user_id": {"in": ["%s", "ben"]}}]}, "equal": {}}',
    '{"filters": {"OR": [{"scope_id": "%s"}, {"scope": "project"}]}, "equal": {}}',
    '{"restriction": {"agent_id": null, "user_id": "%s"}}',
)
"""What a job may be to work on, in which the person is named and in no column."""


async def died(dsn: str, caller: Caller, job_id: str, payload: str) -> None:
    """A job that keeps what it was to do."""
    await execute(
        dsn,
        "INSERT INTO jobs (tenant_id, job_id, kind, key, status, payload, finished_at) "
        "VALUES ($1, $2::text, 'delete_memories', $2::text, 'dead', $3, now())",
        caller.tenant_id, job_id, payload,
    )  # fmt: skip


async def test_nothing_names_the_erased_person(
    runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str
) -> None:
    world = await build_world(runtime, client, acme, mark=MARK)
    assert world.ids["user_id"] == WHO
    await answer_in_many_ways(client)
    for number, payload in enumerate(NAMING):
        await died(dsn, acme, f"job_{number}", payload % WHO)
    before = await tables_that_say(dsn, acme.tenant_id, WHO)
    assert before >= {"users", "jobs", "idempotency_keys", "webhook_deliveries", "memory_history"}

    ok(await client.delete(f"/users/{WHO}", params={"confirm": True}))

    assert await tables_that_say(dsn, acme.tenant_id, WHO) == KEPT
    assert await tables_that_say(dsn, acme.tenant_id, NAME) == set()


async def test_what_bears_the_same_id_and_is_nobody_stays(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    """An agent, a project and another user whose id begins alike."""
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    others = (
        '{"filters": {"agent_id": "ana"}, "equal": {"user_id": "ana2"}}',
        '{"filters": {"project_id": {"in": ["ana"]}}, "equal": {}}',
        '{"scope": "project", "scope_id": "ana"}',
    )
    for number, payload in enumerate(others):
        await died(dsn, acme, f"job_{number}", payload)

    receipt = ok(await client.delete("/users/ana"))

    assert receipt["deleted"]["jobs"] == 0
    left = await execute(dsn, "SELECT 1 FROM jobs WHERE tenant_id = $1", acme.tenant_id)
    assert len(left) == len(others)
