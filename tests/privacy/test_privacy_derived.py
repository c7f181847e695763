"""What an erasure leaves of others' is told anew, and what was read from a person's file goes."""

from typing import Any

from httpx import AsyncClient

from tests.support.api import dump, execute, ok, save, tables_with
from tests.support.tenants import Caller


async def live(dsn: str, tenant_id: str, kind: str) -> list[str]:
    """Keys of the jobs of a kind that are still to run."""
    rows = await execute(
        dsn,
        "SELECT key FROM jobs WHERE tenant_id = $1 AND kind = $2 AND status = 'pending' "
        "ORDER BY key",
        tenant_id,
        kind,
    )
    return [row["key"] for row in rows]


async def test_what_other_members_decided_is_derived_anew(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    """Values that stood on the erased one's words too are gone, and others' still hold."""
    for user in ("ana", "zoe"):
        ok(await client.post("/users", json={"user_id": user}), 201)
    body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"}
    ok(await client.post("/projects", json=body), 201)
    ok(await client.put("/projects/apollo/members/zoe", json={"role": "editor"}))
    shared: dict[str, Any] = {
        "project_id": "apollo", "scope": "project", "memory_type": "decision",
    }  # fmt: skip
    await save(client, "We decided to ship in March.", **shared)
    await save(client, "We decided to use PostgreSQL.", user_id="zoe", **shared)
    await execute(dsn, "DELETE FROM jobs WHERE tenant_id = $1", acme.tenant_id)

    ok(await client.delete("/users/zoe", params={"hard": "true", "confirm": "true"}))

    assert await live(dsn, acme.tenant_id, "profile") == ["project:apollo"]
    assert await live(dsn, acme.tenant_id, "graph_tidy") == ["project:apollo"]


async def test_an_erased_project_owes_nothing(client: AsyncClient, acme: Caller, dsn: str) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"}
    ok(await client.post("/projects", json=body), 201)
    await save(client, "We decided to ship in March.", project_id="apollo", scope="project")

    ok(await client.delete("/projects/apollo", params={"confirm": "true"}))

    assert await live(dsn, acme.tenant_id, "profile") == []
    assert await live(dsn, acme.tenant_id, "graph_tidy") == []


async def test_what_was_read_from_their_file_for_all_goes_with_them(
    client: AsyncClient, acme: Caller, dsn: str
) -> None:
    """It counts for an agent, and bears no user's id."""
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    body = {"folder_id": "mine", "folder_name": "Mine", "scope": "user", "user_id": "ana"}
    ok(await client.post("/folders", json=body), 201)
    upload = await client.post(
        "/folders/mine/files", params={"file_name": "a.txt"}, content=b"A zanzibar rule."
    )
    file_id = ok(upload, 202)["file"]["file_id"]
    own = {"agent_id": "coach", "scope": "agent", "user_id": None}
    await save(client, "Refunds follow the zanzibar rule.", **own)
    await save(client, "Refunds take five days.", **own)
    await execute(
        dsn,
        "UPDATE memories SET source = 'knowledge_base', source_id = $2 "
        "WHERE tenant_id = $1 AND content LIKE '%zanzibar%'",
        acme.tenant_id,
        file_id,
    )

    ok(await client.delete("/users/ana", params={"hard": "true", "confirm": "true"}))

    rows = await dump(dsn, acme.tenant_id)
    assert tables_with("zanzibar", rows) == []
    assert tables_with("take five days", rows)
