"""Projects and their members through the public routes."""

import pytest
from httpx import AsyncClient

from tests.support.api import every_page, execute, ok, problem
from tests.support.crud_contract import CrudContract
from tests.support.tenants import Caller


class TestProjects(CrudContract):
    path = "/projects"
    id_field = "project_id"
    prefix = "prj_"
    body = {"project_name": "Payments"}
    full = {
        "project_name": "支付 payments 💳",
        "description": "Who pays whom. 谁付给谁。",
        "metadata": {"team": "核心", "size": 4},
    }
    nullable = {"description"}

    async def test_the_owner_is_the_first_member(self, client: AsyncClient) -> None:
        ok(await client.post("/users", json={"user_id": "ana"}), 201)

        await self.make(client, "p1", owner_id="ana")

        members = await every_page(client, "/projects/p1/members")
        assert [(row["user_id"], row["role"]) for row in members] == [("ana", "owner")]

    async def test_an_owner_nobody_knows_makes_no_project(self, client: AsyncClient) -> None:
        body = self.body | {"project_id": "p1", "owner_id": "nobody"}

        problem(await client.post("/projects", json=body), 404, "user_not_found")

        assert (await client.get("/projects/p1")).status_code == 404

    async def test_a_list_can_be_narrowed_to_a_member(self, client: AsyncClient) -> None:
        ok(await client.post("/users", json={"user_id": "ana"}), 201)
        await self.make(client, "p1", owner_id="ana")
        await self.make(client, "p2")
        await self.make(client, "p3")
        ok(await client.put("/projects/p3/members/ana", json={}))

        assert self.ids(await every_page(client, "/projects", user_id="ana")) == ["p3", "p1"]
        assert await every_page(client, "/projects", user_id="nobody") == []


@pytest.fixture
async def project(client: AsyncClient) -> str:
    ok(await client.post("/projects", json={"project_id": "p1", "project_name": "P"}), 201)
    for user_id in ("ana", "bob", "cid"):
        ok(await client.post("/users", json={"user_id": user_id}), 201)
    return "/projects/p1/members"


class TestMembers:
    async def test_a_member_joins_once_and_changes_role(
        self, client: AsyncClient, project: str
    ) -> None:
        joined = ok(await client.put(f"{project}/ana", json={}))
        again = ok(await client.put(f"{project}/ana", json={"role": "viewer"}))

        assert (joined["role"], again["role"]) == ("editor", "viewer")
        assert again["create_time"] == joined["create_time"]
        assert len(await every_page(client, project)) == 1

    async def test_members_are_listed_oldest_first_each_once(
        self, client: AsyncClient, project: str, acme: Caller, dsn: str
    ) -> None:
        for user_id in ("cid", "ana"):
            ok(await client.put(f"{project}/{user_id}", json={}))
        first = ok(await client.get(project, params={"limit": 1}))
        ok(await client.put(f"{project}/bob", json={}))

        rest = await every_page(client, project, limit=1, cursor=first["next_cursor"])

        names = [row["user_id"] for row in first["items"] + rest]
        assert names == ["cid", "ana", "bob"]
        await execute(
            dsn,
            "UPDATE project_members SET create_time = '2026-01-01Z' WHERE tenant_id = $1",
            acme.tenant_id,
        )
        names = [row["user_id"] for row in await every_page(client, project, limit=1)]
        assert names == ["ana", "bob", "cid"]

    async def test_a_member_leaves(self, client: AsyncClient, project: str) -> None:
        ok(await client.put(f"{project}/ana", json={}))

        ok(await client.delete(f"{project}/ana"), 204)

        assert await every_page(client, project) == []
        problem(await client.delete(f"{project}/ana"), 404, "member_not_found")

    async def test_whoever_is_missing_is_named(self, client: AsyncClient, project: str) -> None:
        no_user = await client.put(f"{project}/nobody", json={})
        no_project = await client.put("/projects/none/members/ana", json={})
        no_role = await client.put(f"{project}/ana", json={"role": "king"})

        problem(no_user, 404, "user_not_found")
        problem(no_project, 404, "project_not_found")
        problem(no_role, 422, "invalid_request")
        problem(await client.get("/projects/none/members"), 404, "project_not_found")
