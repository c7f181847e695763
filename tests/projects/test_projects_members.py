"""Who manages whom: members, roles, the hand-over, and the owner who is last."""

import asyncio
from itertools import product
from typing import Any

import pytest
from httpx import AsyncClient, Response

from app.identity.projects.policy import ROLES as ALL_ROLES
from app.identity.projects.policy import may_assign
from tests.projects.conftest import PROJECT, ROLES, WAYS, WHO, Team
from tests.support.api import every_page, ok, problem

PATH = f"/projects/{PROJECT}"
MEMBERS = f"{PATH}/members"


async def roles(client: AsyncClient) -> dict[str, str]:
    return {row["user_id"]: row["role"] for row in await every_page(client, MEMBERS)}


async def outcome(response: Response) -> Any:
    return response.json()["code"] if response.status_code >= 400 else response.status_code


class TestManaging:
    @pytest.mark.parametrize("way", WAYS)
    async def test_a_role_manages_what_it_may(self, team: Team, way: str) -> None:
        """By hand: change it, list its items, add an editor, hand it over, delete it."""
        table = {
            "owner": (200, 200, 200, 200, 200),
            "admin": (200, 200, 200, *["insufficient_role"] * 2),
            "editor": ("insufficient_role",) * 5,
            "viewer": ("insufficient_role",) * 5,
            None: ("project_not_found",) * 5,
        }
        # The owner comes last: the project is gone then.
        for role in (None, "viewer", "editor", "admin", "owner"):
            async with team.acting(WHO[role], way) as acting:
                answers = (
                    await acting.patch(PATH, json={"description": f"As {role}."}),
                    await acting.get(f"{PATH}/memories"),
                    await acting.put(f"{MEMBERS}/nora", json={"role": "editor"}),
                    await acting.post(f"{PATH}/transfer", json={"to_user_id": WHO[role]}),
                    await acting.delete(PATH, params={"confirm": True}),
                )
            assert tuple([await outcome(one) for one in answers]) == table[role], role
            await team.client.delete(f"{MEMBERS}/nora")

    async def test_whoever_is_refused_learns_what_it_takes(self, team: Team) -> None:
        async with team.acting("edda") as acting:
            refusal = problem(
                await acting.put(f"{MEMBERS}/nora", json={}), 403, "insufficient_role"
            )

        assert refusal["role"] == "editor"
        assert refusal["required_roles"] == ["owner", "admin"]

    @pytest.mark.parametrize("role", ["owner", "admin"])
    async def test_who_may_give_and_take_which_role(self, team: Team, role: str) -> None:
        async with team.acting(WHO[role]) as acting:
            for before, after in product((*ALL_ROLES, None), repeat=2):
                await team.put("nora", before)
                answer = await (
                    acting.delete(f"{MEMBERS}/nora")
                    if after is None
                    else acting.put(f"{MEMBERS}/nora", json={"role": after})
                )
                if before is after is None:
                    problem(answer, 404, "member_not_found")
                    continue
                # By hand: an owner everything, an admin editors and viewers.
                strong = {"owner", "admin"} & {before, after}
                may = role == "owner" or not strong
                assert may_assign(role, before=before, after=after) == may
                if may:
                    assert answer.status_code in {200, 204}, (before, after)
                else:
                    problem(answer, 403, "insufficient_role")
                expected = after if may else before
                assert (await roles(team.client)).get("nora") == expected

    @pytest.mark.parametrize("user_id", [name for name, role in ROLES.items() if role])
    async def test_everybody_may_leave(self, team: Team, user_id: str) -> None:
        async with team.acting(user_id) as acting:
            ok(await acting.delete(f"{MEMBERS}/{user_id}"), 204)

            problem(await acting.get(PATH), 404, "project_not_found")
            problem(await acting.delete(f"{MEMBERS}/{user_id}"), 404, "project_not_found")
        assert user_id not in await roles(team.client)

    async def test_who_leaves_reads_what_is_public_alone(self, team: Team) -> None:
        kinds = ("public", "members", "owner_only")
        own = {kind: await team.write("edda", kind) for kind in kinds}
        async with team.acting("edda") as acting:
            ok(await acting.delete(f"{MEMBERS}/edda"), 204)

            for kind, memory_id in own.items():
                status = (await acting.get(f"/memories/{memory_id}")).status_code
                assert status == (200 if kind == "public" else 404)
            change = await acting.patch(f"/memories/{own['public']}", json={"tier": "short"})
        problem(change, 403, "read_only_member")

    async def test_whoever_makes_a_project_owns_it(self, team: Team) -> None:
        async with team.acting("nora") as acting:
            made = ok(await acting.post("/projects", json={"project_name": "Hers"}), 201)
            members = await every_page(acting, f"/projects/{made['project_id']}/members")
            foreign = await acting.post(
                "/projects", json={"project_name": "His", "owner_id": "adam"}
            )

        assert [(row["user_id"], row["role"]) for row in members] == [("nora", "owner")]
        problem(foreign, 404, "user_not_found")

    async def test_somebody_new_is_made_with_the_project(self, team: Team) -> None:
        async with team.acting("somebody-new") as acting:
            ok(await acting.post("/projects", json={"project_name": "Hers"}), 201)

        assert ok(await team.client.get("/users/somebody-new"))["user_id"] == "somebody-new"

    async def test_only_users_of_the_tenant_become_members(self, team: Team) -> None:
        async with team.acting("olga") as acting:
            put = await acting.put(f"{MEMBERS}/nobody", json={})
            transfer = await acting.post(f"{PATH}/transfer", json={"to_user_id": "nobody"})

        problem(put, 404, "user_not_found")
        problem(transfer, 404, "user_not_found")

    async def test_the_application_needs_an_admin_key(self, team: Team) -> None:
        async with team.acting("olga", WAYS[0], "write") as acting:
            del acting.headers["KeMem-User"]
            refusal = problem(await acting.put(f"{MEMBERS}/nora", json={}), 403,
                              "insufficient_scope")  # fmt: skip

        assert refusal["required_scope"] == "admin"

    async def test_a_key_that_reads_stays_one(self, team: Team) -> None:
        async with team.acting("olga", WAYS[0], "read") as acting:
            refusal = problem(await acting.put(f"{MEMBERS}/nora", json={}), 403,
                              "insufficient_scope")  # fmt: skip
            ok(await acting.get(MEMBERS))

        assert refusal["required_scope"] == "write"

    async def test_an_admin_key_that_acts_for_a_viewer_is_a_viewer(self, team: Team) -> None:
        async with team.acting("vera", WAYS[0], "admin") as acting:
            put = await acting.put(f"{MEMBERS}/nora", json={})
            delete = await acting.delete(PATH, params={"confirm": True})

        problem(put, 403, "insufficient_role")
        problem(delete, 403, "insufficient_role")


class TestTheLastOwner:
    @pytest.fixture
    async def lone(self, team: Team) -> Team:
        """Olga alone owns the project."""
        ok(await team.client.delete(f"{MEMBERS}/keeper"), 204)
        return team

    async def test_stays(self, lone: Team) -> None:
        async with lone.acting("olga") as acting:
            leaves = await acting.delete(f"{MEMBERS}/olga")
            steps_down = await acting.put(f"{MEMBERS}/olga", json={"role": "admin"})
            stays = await acting.put(f"{MEMBERS}/olga", json={"role": "owner"})
        removed = await lone.client.delete(f"{MEMBERS}/olga")
        demoted = await lone.client.put(f"{MEMBERS}/olga", json={"role": "viewer"})

        for response in (leaves, steps_down, removed, demoted):
            assert problem(response, 409, "last_owner")["user_id"] == "olga"
        ok(stays)
        assert (await roles(lone.client))["olga"] == "owner"

    async def test_hands_over_and_leaves(self, lone: Team) -> None:
        async with lone.acting("olga") as acting:
            told = ok(await acting.post(f"{PATH}/transfer", json={"to_user_id": "nora"}))
            again = await acting.post(f"{PATH}/transfer", json={"to_user_id": "olga"})

        assert told == {"project_id": PROJECT, "owner_id": "nora", "former_owners": ["olga"]}
        problem(again, 403, "insufficient_role")
        now = await roles(lone.client)
        assert (now["olga"], now["nora"]) == ("admin", "owner")

    async def test_hands_over_once_however_often_it_is_sent(self, lone: Team) -> None:
        async with lone.acting("olga") as acting:
            headers = {"Idempotency-Key": "once"}
            body = {"to_user_id": "adam"}
            first = await acting.post(f"{PATH}/transfer", json=body, headers=headers)
            second = await acting.post(f"{PATH}/transfer", json=body, headers=headers)

        assert ok(first) == ok(second)

    async def test_keeps_it_when_handing_over_to_nobody_else(self, lone: Team) -> None:
        async with lone.acting("olga") as acting:
            told = ok(await acting.post(f"{PATH}/transfer", json={"to_user_id": "olga"}))

        assert told["former_owners"] == []
        assert (await roles(lone.client))["olga"] == "owner"

    async def test_the_application_hands_over_for_all_owners(self, team: Team) -> None:
        told = ok(await team.client.post(f"{PATH}/transfer", json={"to_user_id": "edda"}))

        assert told["former_owners"] == ["keeper", "olga"]
        now = await roles(team.client)
        assert {user_id for user_id, role in now.items() if role == "owner"} == {"edda"}

    async def test_two_owners_who_leave_at_once_leave_one(self, team: Team) -> None:
        for _ in range(5):
            await team.put("olga", "owner")
            await team.put("keeper", "owner")
            async with team.acting("olga") as one, team.acting("keeper") as two:
                answers = await asyncio.gather(
                    one.delete(f"{MEMBERS}/olga"), two.delete(f"{MEMBERS}/keeper")
                )

            assert sorted(one.status_code for one in answers) == [204, 409]
            owners = [name for name, role in (await roles(team.client)).items() if role == "owner"]
            assert len(owners) == 1

    async def test_two_owners_who_demote_each_other_at_once_leave_one(self, team: Team) -> None:
        for _ in range(5):
            await team.put("olga", "owner")
            await team.put("keeper", "owner")
            async with team.acting("olga") as one, team.acting("keeper") as two:
                answers = await asyncio.gather(
                    one.put(f"{MEMBERS}/keeper", json={"role": "viewer"}),
                    two.put(f"{MEMBERS}/olga", json={"role": "viewer"}),
                )

            # Who comes second is a viewer by then.
            assert sorted(one.status_code for one in answers) == [200, 403]
            owners = [name for name, role in (await roles(team.client)).items() if role == "owner"]
            assert len(owners) == 1
            await team.put("olga" if owners == ["keeper"] else "keeper", "owner")

    async def test_an_erasure_takes_even_that_one(self, lone: Team) -> None:
        ok(await lone.client.delete("/users/olga", params={"confirm": True}))

        assert "owner" not in (await roles(lone.client)).values()
        await lone.put("adam", "owner")
        assert (await roles(lone.client))["adam"] == "owner"
