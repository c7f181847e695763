"""What a user is called in a graph: only what all its readers may know (review 6, M3)."""

import pytest
from httpx import AsyncClient

from app.identity.tenants.access import Access
from app.memory.graph.owner_repository import SpeakerRepository
from app.memory.graph.statements import GraphOwner
from app.runtime import Runtime
from tests.support.api import ok, save
from tests.support.tenants import Caller

SHARED = GraphOwner("user", "u7", "u7", None, None)
THERAPIST = GraphOwner("user", "u7", "u7", "therapist", None)
APOLLO = GraphOwner("project", "apollo", "u7", None, "apollo")
AGENT = GraphOwner("agent", "therapist", None, "therapist", None)


@pytest.fixture(autouse=True)
async def _people(client: AsyncClient) -> None:
    ok(await client.post("/agents", json={"agent_id": "therapist", "agent_name": "T"}), 201)
    for user_id in ("u7", "ben"):
        ok(await client.post("/users", json={"user_id": user_id}), 201)
    body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "u7"}
    ok(await client.post("/projects", json=body), 201)
    ok(await client.put("/projects/apollo/members/ben", json={"role": "editor"}))


async def call(client: AsyncClient, name: str, **where: str) -> None:
    text = f"The user's name is {name}."
    await save(client, text, **({"user_id": "u7", "attribute": "user.name"} | where))


async def named(runtime: Runtime, acme: Caller, owner: GraphOwner) -> str:
    async with runtime.database.begin(acme.tenant_id) as db:
        return await SpeakerRepository(db, Access(acme.tenant_id)).name_of(owner, "u7")


async def test_name_said_to_all_agents_is_used_in_every_graph(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    await call(client, "Ana Lopez")

    assert await named(runtime, acme, SHARED) == "Ana Lopez"
    assert await named(runtime, acme, THERAPIST) == "Ana Lopez"


async def test_name_said_to_one_agent_is_used_in_its_graph_alone(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    await call(client, "Ana Lopez")
    await call(client, "Ana Kovac", agent_id="therapist")

    assert await named(runtime, acme, THERAPIST) == "Ana Kovac"
    assert await named(runtime, acme, SHARED) == "Ana Lopez"


async def test_private_name_is_not_used_in_project_and_agent_graphs(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    await call(client, "Ana Kovac")
    await call(client, "Ana Kovac", agent_id="therapist")
    in_project = {"scope": "project", "project_id": "apollo"}
    await call(client, "Ana Secret", **in_project, visibility="owner_only")
    await call(client, "Ben", **in_project, user_id="ben")

    assert await named(runtime, acme, APOLLO) == "u7"
    assert await named(runtime, acme, AGENT) == "u7"
    ok(await client.patch("/users/u7", json={"user_name": "Ana L."}))
    assert await named(runtime, acme, APOLLO) == "Ana L."
    await call(client, "Ana Lopez", **in_project)
    assert await named(runtime, acme, APOLLO) == "Ana Lopez"


async def test_entity_of_a_shared_graph_keeps_its_name(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    await call(client, "Ana Kovac", agent_id="therapist")

    async with runtime.database.begin(acme.tenant_id) as db:
        speakers = SpeakerRepository(db, Access(acme.tenant_id))
        assert (await speakers.ensure(SHARED, "u7")).name == "u7"
        assert (await speakers.ensure(THERAPIST, "u7")).name == "Ana Kovac"
