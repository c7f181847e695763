"""The matrix: who may do what to which item, by hand, by the policy, by SQL and over HTTP."""

from itertools import product
from typing import Any, get_args

import pytest
from httpx import AsyncClient, Response
from sqlalchemy import select

from app.identity.projects.policy import ROLES as ALL_ROLES
from app.identity.projects.policy import Action, Visibility, allows
from app.identity.projects.schemas import Role
from app.identity.tenants.access import Access
from app.memory.memories.models import Memory
from app.memory.memories.visibility_sql import removable, visible
from tests.projects.conftest import PROJECT, ROLES, WAYS, WHO, Team
from tests.support.api import listed, ok, problem

READ, CREATE, EDIT, DELETE, PURGE = LETTERS = "rcedp"
ACTIONS: dict[str, Action] = dict(zip(LETTERS, get_args(Action), strict=True))
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)

# Written by hand from the table of roles: (own item, foreign item).
TABLE: dict[Role | None, dict[Visibility, tuple[str, str]]] = {
    "owner": {
        "public": ("rcedp", "redp"), "members": ("rcedp", "redp"), "owner_only": ("rcedp", "dp"),
    },
    "admin": {
        "public": ("rcedp", "redp"), "members": ("rcedp", "redp"), "owner_only": ("rcedp", "dp"),
    },
    "editor": {
        "public": ("rcedp", "r"), "members": ("rcedp", "r"), "owner_only": ("rcedp", ""),
    },
    "viewer": {"public": ("r", "r"), "members": ("r", "r"), "owner_only": ("r", "")},
    None: {"public": ("r", "r"), "members": ("", ""), "owner_only": ("", "")},
}  # fmt: skip

CASES = list(product(TABLE, VISIBILITIES, (True, False)))


def expected(role: Role | None, visibility: Visibility, *, own: bool) -> str:
    return TABLE[role][visibility][0 if own else 1]


def test_the_table_has_every_role() -> None:
    assert set(TABLE) == {*ALL_ROLES, None}
    assert all(set(row) == set(VISIBILITIES) for row in TABLE.values())
    assert len(CASES) * len(ACTIONS) == 150


@pytest.mark.parametrize(("role", "visibility", "own"), CASES)
def test_the_policy_says_what_the_table_says(
    role: Role | None, visibility: Visibility, own: bool
) -> None:
    allowed = "".join(
        letter
        for letter, action in ACTIONS.items()
        if allows(role, action, visibility=visibility, own=own)
    )

    assert allowed == expected(role, visibility, own=own)


async def test_sql_says_what_the_policy_says(team: Team) -> None:
    rows = {
        (author, visibility): await team.write(author, visibility)
        for author, visibility in product(ROLES, VISIBILITIES)
    }
    compared = 0
    for user_id, role in ROLES.items():
        access = Access(team.caller.tenant_id, user_id=user_id)
        conditions = {
            "read": visible(access), "delete": removable(access), "purge": removable(access),
        }  # fmt: skip
        for action, condition in conditions.items():
            async with team.runtime.database.begin(access.tenant_id) as db:
                found = set(await db.scalars(select(Memory.memory_id).where(condition)))
            for (author, visibility), memory_id in rows.items():
                may = allows(role, action, visibility=visibility, own=author == user_id)
                assert (memory_id in found) == may, (role, action, visibility, author)
                compared += 1
    assert compared == 5 * 3 * 15


async def test_what_is_selected_by_its_content_is_removed_by_those_who_read_it(
    team: Team,
) -> None:
    hidden, open_one = await team.write("edda", "owner_only"), await team.write("edda", "members")
    access = Access(team.caller.tenant_id, user_id="olga")
    async with team.runtime.database.begin(access.tenant_id) as db:
        statement = select(Memory.memory_id).where(removable(access, unseen=False))
        assert set(await db.scalars(statement)) == {open_one}
        statement = select(Memory.memory_id).where(removable(access))
        assert set(await db.scalars(statement)) == {open_one, hidden}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("role", "visibility", "own"), CASES)
async def test_http_says_what_the_table_says(
    team: Team, role: Role | None, visibility: Visibility, own: bool, way: str
) -> None:
    user_id, allowed = WHO[role], expected(role, visibility, own=own)
    author = user_id if own else "keeper"
    item, doomed, purged = [await team.write(author, visibility) for _ in range(3)]

    async with team.acting(user_id, way) as acting:
        readable = READ in allowed
        assert await seen_by(acting, item) == dict.fromkeys(
            ("get", "history", "list", "search", "lexical", "known"), readable
        )
        answers = {
            CREATE: await create(acting, author, visibility),
            EDIT: await acting.patch(f"/memories/{item}", json={"content": "It likes clover now."}),
            DELETE: await acting.delete(f"/memories/{doomed}"),
            PURGE: await acting.delete(f"/memories/{purged}", params={"hard": True}),
        }
        for letter, response in answers.items():
            if letter in allowed:
                assert response.status_code in {200, 201, 204}, (letter, response.text)
            elif letter == CREATE:
                refused_to_create(response, role, own=own)
            else:
                refused(response, role, readable=readable, own=own)
        # What was refused has changed nothing.
        shown = ok(await team.client.get(f"/memories/{item}"))
        assert (shown["version"] > 1) == (EDIT in allowed)
        assert shown["user_id"] == author
        for letter, memory_id in ((DELETE, doomed), (PURGE, purged)):
            gone = (await team.client.get(f"/memories/{memory_id}")).status_code == 404
            assert gone == (letter in allowed)


async def seen_by(client: AsyncClient, memory_id: str) -> dict[str, bool]:
    """By which ways a memory is shown."""
    later = "2090-01-01T00:00:00Z"
    return {
        "get": await answers(client, f"/memories/{memory_id}"),
        "history": await answers(client, f"/memories/{memory_id}/history"),
        "list": memory_id in await listed(client, project_id=PROJECT),
        "search": memory_id in await hits(client, mode="hybrid"),
        "lexical": memory_id in await hits(client, mode="lexical"),
        "known": memory_id in await listed(client, project_id=PROJECT, known_at=later)
        and memory_id in await hits(client, known_at=later),
    }


async def answers(client: AsyncClient, path: str) -> bool:
    response = await client.get(path)
    if response.status_code != 200:
        problem(response, 404, "memory_not_found")
    return response.status_code == 200


async def hits(client: AsyncClient, **how: Any) -> set[str]:
    body = {"query": "tortoise lettuce", "project_id": PROJECT, "scopes": ["project"]} | how
    response = await client.post("/memories/search", json=body)
    if response.status_code == 404:
        problem(response, 404, "project_not_found")
        return set()
    return {hit["memory_id"] for hit in ok(response)["results"]}


async def create(client: AsyncClient, author: str, visibility: Visibility) -> Response:
    body = {
        "messages": f"Another tortoise of {author}, quite {visibility}, eats clover.",
        "infer": False, "scope": "project", "project_id": PROJECT, "user_id": author,
        "visibility": visibility, "on_duplicate": "allow",
    }  # fmt: skip
    return await client.post("/memories", json=body)


def refused_to_create(response: Response, role: Role | None, *, own: bool) -> None:
    if not own:
        problem(response, 404, "user_not_found")
    elif role is None:
        problem(response, 404, "project_not_found")
    else:
        assert problem(response, 403, "read_only_member")["user_id"] == WHO[role]


def refused(response: Response, role: Role | None, *, readable: bool, own: bool) -> None:
    """What nobody may see is missing; what is only read is forbidden."""
    if not readable:
        problem(response, 404, "memory_not_found")
    elif own or role == "viewer":
        problem(response, 403, "read_only_member")
    else:
        problem(response, 403, "not_your_memory")
