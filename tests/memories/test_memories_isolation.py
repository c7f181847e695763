"""Whom a key shows what: a grid of rows and keys, once by list and once by search.

`visibility_sql.py` says it to SQLAlchemy and `search_sql.py` to the hot read; where the two
differ, one of them leaks.
"""

from itertools import cycle, product

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.language.ranking.packing import stored_terms
from app.language.text.terms import terms
from app.runtime import Runtime
from tests.support.api import execute, listed, ok, problem, save
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

HOMES = {"ana": "a1", "bob": "a2", "cid": "a1"}
MEMBERS = {"p1": ("ana", "bob"), "p2": ("bob",), "p3": ()}
SESSIONS = {"s1": ("ana", "a1"), "s2": ("bob", "a2"), "s3": ("ana", "a2"), "s4": ("bob", "a1")}
AGENTS = (None, "a1", "a2")
MODES = ("hybrid", "semantic", "lexical")
QUERY = "tortoise"
VISIBILITIES = ("members", "owner_only", "public")

BUCKETS = [
    *(("user", user_id) for user_id in HOMES),
    *(("session", session_id) for session_id in SESSIONS),
    *(("project", project_id) for project_id in MEMBERS),
    *(("agent", agent_id) for agent_id in ("a1", "a2")),
]

KEYS = {
    "everything": {},
    "ana": {"user_id": "ana"},
    "bob": {"user_id": "bob"},
    "cid": {"user_id": "cid"},
    "a1": {"agent_id": "a1"},
    "a2": {"agent_id": "a2"},
    "ana at a1": {"user_id": "ana", "agent_id": "a1"},
    "ana at a2": {"user_id": "ana", "agent_id": "a2"},
    "bob at a1": {"user_id": "bob", "agent_id": "a1"},
}

INSERT = """
INSERT INTO memories (tenant_id, memory_id, user_id, agent_id, session_id, project_id, scope,
    scope_id, content, content_hash, memory_type, tier, source, confidence, visibility,
    embedding, embedding_model, terms, term_count)
SELECT $1, row.id, row.user_id, row.agent_id, row.session_id, row.project_id, row.scope,
    row.scope_id, row.id, convert_to(row.id, 'UTF8'), 'fact', 'long', 'user', 1, row.visibility,
    array_fill(0.0625::float4, ARRAY[256])::vector, 'wordllama/l2_supercat:256',
    CAST($10::text AS sparsevec), 1
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::text[]) AS row(id, user_id, agent_id, session_id, project_id, scope, scope_id, visibility)
"""


def grid() -> list[tuple[str | None, ...]]:
    """A memory of every kind that a bucket can hold."""
    rows = []
    for scope, scope_id in BUCKETS:
        owners: tuple[str | None, ...] = {
            "user": (scope_id,),
            "session": (SESSIONS.get(scope_id, ("", ""))[0],),
            "project": (None, *HOMES),
            "agent": (None,),
        }[scope]
        agents = (scope_id,) if scope == "agent" else AGENTS
        for owner, agent, visibility in product(owners, agents, VISIBILITIES):
            memory_id = f"mem:{scope}:{scope_id}:{owner}:{agent}:{visibility}"
            session = scope_id if scope == "session" else None
            project = scope_id if scope == "project" else None
            rows.append((memory_id, owner, agent, session, project, scope, scope_id, visibility))
    return rows


@pytest.fixture
async def town(client: AsyncClient, acme: Caller, dsn: str) -> dict[str, set[str]]:
    """A tenant with everything in it; ids of its memories by bucket."""
    for agent_id in ("a1", "a2"):
        ok(await client.post("/agents", json={"agent_id": agent_id, "agent_name": "A"}), 201)
    for user_id, agent_id in HOMES.items():
        ok(await client.post("/users", json={"user_id": user_id, "agent_id": agent_id}), 201)
    for project_id, members in MEMBERS.items():
        body = {"project_id": project_id, "project_name": "P"}
        ok(await client.post("/projects", json=body), 201)
        for user_id in members:
            ok(await client.put(f"/projects/{project_id}/members/{user_id}", json={}))
    for session_id, (user_id, agent_id) in SESSIONS.items():
        body = {"session_id": session_id, "user_id": user_id, "agent_id": agent_id}
        ok(await client.post("/sessions", json=body), 201)
    rows = grid()
    await execute(
        dsn,
        INSERT,
        acme.tenant_id,
        *(list(column) for column in zip(*rows, strict=True)),
        stored_terms(terms(QUERY)).vector.to_text(),
    )
    buckets: dict[str, set[str]] = {}
    for row in rows:
        buckets.setdefault(f"{row[5]}:{row[6]}", set()).add(str(row[0]))
    return buckets


async def searched(client: AsyncClient, scope: str, scope_id: str, **named: str) -> set[str]:
    """Ids that a search of one bucket shows; a refusal shows none."""
    body = {"query": QUERY, "scopes": [scope], f"{scope}_id": scope_id} | named
    response = await client.post("/memories/search", json=body)
    if response.status_code in {404, 422}:
        return set()
    return {hit["memory_id"] for hit in ok(response)["results"]}


@pytest.mark.parametrize("name", KEYS)
async def test_list_and_search_show_a_key_the_same(
    app: FastAPI, runtime: Runtime, acme: Caller, town: dict[str, set[str]], name: str
) -> None:
    bound = KEYS[name]
    key = await make_key(runtime, acme.tenant_id, "read", **bound)
    async with client_of(app, key.key) as client:
        shown = set(await listed(client))

        for scope, scope_id in BUCKETS:
            expected = shown & town[f"{scope}:{scope_id}"]
            for mode in MODES:
                hits = await searched(client, scope, scope_id, mode=mode)
                assert hits == expected, (scope, scope_id, mode)
            # Naming somebody more narrows a search and opens nothing.
            for named, mode in zip(
                (
                    *({"user_id": user_id} for user_id in HOMES),
                    *({"agent_id": agent_id} for agent_id in ("a1", "a2")),
                ),
                cycle(MODES),
                strict=False,
            ):
                hits = await searched(client, scope, scope_id, mode=mode, **named)
                assert hits <= shown, (scope, scope_id, named)

        for memory_id in sorted(set().union(*town.values()))[::7]:
            status = (await client.get(f"/memories/{memory_id}")).status_code
            assert status == (200 if memory_id in shown else 404), memory_id


def seen_by_ana(scope, scope_id, owner, agent, visibility) -> bool:
    """Her own, what her projects share, what any opens to all, and the knowledge of agents."""
    if scope == "project":
        return visibility == "public" or (
            scope_id == "p1" and (visibility != "owner_only" or owner == "ana")
        )
    return scope == "agent" or owner == "ana"


def seen_by_a1(scope, scope_id, owner, agent, visibility) -> bool:
    """Its own knowledge, and of users at home with it what is not another agent's."""
    at_home = HOMES.get(owner) == "a1"
    if scope == "agent":
        return scope_id == "a1"
    if scope == "project":
        in_p1 = scope_id == "p1" and (visibility != "owner_only" or at_home)
        return agent != "a2" and (visibility == "public" or in_p1)
    return at_home and agent != "a2"


def seen_by_ana_at_a2(scope, scope_id, owner, agent, visibility) -> bool:
    """She is at home elsewhere."""
    return (scope, scope_id) == ("agent", "a2")


EXPECTED = {"ana": seen_by_ana, "a1": seen_by_a1, "ana at a2": seen_by_ana_at_a2}


@pytest.mark.parametrize("name", EXPECTED)
async def test_a_key_shows_what_its_rule_says(
    app: FastAPI, runtime: Runtime, acme: Caller, town: dict[str, set[str]], name: str
) -> None:
    key = await make_key(runtime, acme.tenant_id, "read", **KEYS[name])

    async with client_of(app, key.key) as client:
        shown = set(await listed(client))

    assert shown == {
        str(row[0]) for row in grid() if EXPECTED[name](row[5], row[6], row[1], row[2], row[7])
    }


async def test_a_users_key_changes_that_users_memories_alone(
    app: FastAPI, runtime: Runtime, acme: Caller, town: dict[str, set[str]], client: AsyncClient
) -> None:
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
    before = len(await listed(client))
    async with client_of(app, key.key) as bound:
        shared = "mem:project:p1:bob:None:members"
        knowledge = "mem:agent:a1:None:a1:members"
        hidden = "mem:project:p1:bob:None:owner_only"
        for method, path, body in (
            ("PATCH", "", {"tier": "short"}),
            ("POST", "/supersede", {"content": "Something newer."}),
            ("DELETE", "", None),
        ):
            for memory_id, status, code in (
                (shared, 403, "not_your_memory"),
                (knowledge, 403, "insufficient_scope"),
                (hidden, 404, "memory_not_found"),
            ):
                response = await bound.request(method, f"/memories/{memory_id}{path}", json=body)
                problem(response, status, code)
        params = {"project_id": "p1", "confirm": True}
        deleted = ok(await bound.delete("/memories", params=params))["deleted"]
        other = await bound.delete("/memories", params={"user_id": "bob", "confirm": True})

    problem(other, 404, "user_not_found")
    mine = {one for one in town["project:p1"] if ":ana:" in one}
    assert deleted == len(mine)
    left = set(await listed(client))
    assert len(left) == before - deleted
    assert not mine & left


TEA = "She drinks green tea in the morning."
SAME = "In the morning she drinks green tea."
NEWS = "The cat sleeps on the sofa."
ON_DUPLICATE = ("reject", "return", "supersede", "allow")


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ({"user_id": "ana", "agent_id": "a2"}, "id_not_allowed"),
        (
            {"user_id": None, "agent_id": "a2", "scope": "project", "project_id": "p3"},
            "project_not_found",
        ),
    ],
    ids=["a guest", "a project of others"],
)
async def test_a_key_cannot_probe_for_what_it_may_not_see(
    app: FastAPI,
    runtime: Runtime,
    acme: Caller,
    town: dict,
    client: AsyncClient,
    place: dict,
    code: str,
) -> None:
    hidden = (await save(client, TEA, **place))["memory_id"]
    key = await make_key(runtime, acme.tenant_id, "write", agent_id="a2")

    async with client_of(app, key.key) as bound:
        problem(await bound.get(f"/memories/{hidden}"), 404, "memory_not_found")
        for on_duplicate in ON_DUPLICATE:
            told: dict[str, set] = {"/memories": set(), "/memories/validate": set()}
            for (path, answers), text in product(told.items(), (TEA, TEA.upper(), SAME, NEWS)):
                body = {"messages": text, "infer": False, "on_duplicate": on_duplicate} | place
                response = await bound.post(path, json=body)
                assert hidden not in response.text
                document = response.json()
                outcome = document.get("results", [{}])[0]
                answers.add(
                    (
                        response.status_code,
                        document.get("code"),
                        document.get("detail"),
                        outcome.get("event"),
                        outcome.get("similarity"),
                    )
                )
            # What is there and what is not are answered alike.
            assert [len(answers) for answers in told.values()] == [1, 1], told
            assert {answer[1] for answer in told["/memories"]} == {code}


async def test_a_hidden_text_that_bars_a_visible_place_is_known_without_its_id(
    app: FastAPI, runtime: Runtime, acme: Caller, town: dict, client: AsyncClient
) -> None:
    place = {"user_id": None, "agent_id": "a2", "scope": "project", "project_id": "p2"}
    hidden = (await save(client, TEA, **place, visibility="owner_only"))["memory_id"]
    key = await make_key(runtime, acme.tenant_id, "write", agent_id="a2")

    async with client_of(app, key.key) as bound:
        problem(await bound.get(f"/memories/{hidden}"), 404, "memory_not_found")
        for on_duplicate in ON_DUPLICATE:
            body = {"messages": TEA, "infer": False, "on_duplicate": on_duplicate} | place
            response = await bound.post("/memories", json=body)
            [outcome] = ok(response)["results"]
            assert (outcome["event"], outcome["memory_id"], outcome["memory"]) == (
                "NONE",
                None,
                None,
            )
            assert hidden not in response.text
        body = {"messages": SAME, "infer": False} | place
        near = ok(await bound.post("/memories", json=body), 201)["results"][0]
        taken = await bound.patch(f"/memories/{near['memory_id']}", json={"content": TEA})

    assert (near["event"], near["similarity"]) == ("ADD", None)
    assert problem(taken, 409, "duplicate")["memory_id"] is None
