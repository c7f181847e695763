"""What the gate refused is stored by hand: past the rules of its verdict, and no others."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from app.identity.tenants.access import Access
from app.memory.memories.errors import DecisionNotFoundError
from app.memory.memories.gate import RECORDED_CHARACTERS
from app.memory.memories.list_repository import DecisionRepository
from app.runtime import Runtime
from tests.support.api import append, dump, every_page, execute, found, ok, problem, save
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_key

CARD = "Her card is 4111 1111 1111 1111."


async def refuse(client: AsyncClient, text: str, **fields: Any) -> str:
    """The id of the verdict that refused a statement of Ana's."""
    body = {"messages": text, "user_id": "ana", "infer": False} | fields
    answer = await client.post("/memories", json=body)
    assert answer.status_code in {409, 422}, answer.text
    decision_id: str = answer.json()["decision_id"]
    return decision_id


async def store(client: AsyncClient, decision_id: str, **body: Any) -> Response:
    headers = body.pop("headers", None)
    path = f"/memories/decisions/{decision_id}/store"
    return await client.post(path, json=body, headers=headers)


async def verdict(client: AsyncClient, decision_id: str) -> dict[str, Any]:
    rows = await every_page(client, "/memories/decisions")
    return next(row for row in rows if row["decision_id"] == decision_id)


async def test_a_refused_text_becomes_a_memory(client: AsyncClient, acme: Caller) -> None:
    decision_id = await refuse(client, "bees", confidence=0.1)
    assert (await verdict(client, decision_id))["storable"] is True

    stored = ok(await store(client, decision_id, memory_type="habit"), 201)

    memory = stored["memory"]
    assert stored["decision_id"] == memory["source_id"] == decision_id
    assert (memory["content"], memory["memory_type"], memory["user_id"]) == ("bees", "habit", "ana")
    assert (memory["confidence"], memory["source"]) == (1.0, "user")
    assert memory["metadata"] == {"stored_past": ["low_confidence", "too_short"]}
    assert memory["creator"] == acme.key_id
    assert await found(client, "bees", user_id="ana") == [memory["memory_id"]]
    [line] = await every_page(client, f"/memories/{memory['memory_id']}/history")
    assert (line["event"], line["actor"]) == ("ADD", acme.key_id)
    after = await verdict(client, decision_id)
    assert (after["verdict"], after["event"]) == ("rejected", "STORED")
    assert (after["memory_id"], after["storable"]) == (memory["memory_id"], False)


async def test_refused_text_keeps_whose_it_is_and_what_supports_it(client: AsyncClient) -> None:
    await append(client, "s", "Hello")
    evidence = ["msg_1"]
    decision_id = await refuse(client, "bees", session_id="s", scope="session", evidence=evidence)

    memory = ok(await store(client, decision_id), 201)["memory"]

    assert (memory["scope"], memory["session_id"], memory["evidence"]) == ("session", "s", evidence)


PRIVATE = {"scope": "project", "project_id": "garden", "visibility": "owner_only"}
TIMES = {
    "valid_from": "2026-01-01T00:00:00Z", "valid_to": "2999-01-01T00:00:00Z",
    "expires_at": "2999-02-01T00:00:00Z",
}  # fmt: skip


@pytest.fixture
async def garden(client: AsyncClient) -> None:
    await save(client, "She keeps bees.")
    body = {"project_id": "garden", "project_name": "Garden"}
    ok(await client.post("/projects", json=body), 201)
    member = await client.put("/projects/garden/members/ana", json={"role": "editor"})
    assert member.status_code in {200, 201}, member.text


@pytest.mark.usefixtures("garden")
async def test_refused_text_has_what_was_asked_for(client: AsyncClient) -> None:
    asked = (
        PRIVATE | TIMES | {"tier": "short", "attribute": "user.pets", "memory_type": "correction"}
    )
    decision_id = await refuse(client, "bees", source_error="She keeps ants.", **asked)

    memory = ok(await store(client, decision_id, memory_type="correction"), 201)["memory"]

    assert {name: memory[name] for name in asked} == asked
    assert memory["source_error"] == "She keeps ants."


async def test_a_mistake_stays_with_corrections(client: AsyncClient) -> None:
    fields = {"memory_type": "correction", "source_error": "She keeps ants."}
    decision_id = await refuse(client, "bees", **fields)

    assert ok(await store(client, decision_id), 201)["memory"]["source_error"] is None


@pytest.mark.usefixtures("garden")
async def test_a_refused_change_keeps_the_visibility_of_its_memory(client: AsyncClient) -> None:
    memory = await save(client, "She keeps many bees.", **PRIVATE)
    answer = await client.patch(f"/memories/{memory['memory_id']}", json={"content": "ants"})
    decision_id = problem(answer, 422, "gate_rejected")["decision_id"]

    assert ok(await store(client, decision_id), 201)["memory"]["visibility"] == "owner_only"


@pytest.mark.usefixtures("garden")
@pytest.mark.parametrize(
    ("fields", "status"),
    [(PRIVATE, 409), ({"visibility": "owner_only"}, 201)],
    ids=["project", "user"],
)
async def test_a_verdict_that_does_not_say_who_may_see_it(
    client: AsyncClient, dsn: str, acme: Caller, fields: dict[str, Any], status: int
) -> None:
    """As releases recorded it that kept the text alone."""
    decision_id = await refuse(client, "bees", **fields)
    forget = "UPDATE gate_decisions SET request = NULL WHERE tenant_id = $1"
    await execute(dsn, forget, acme.tenant_id)
    assert (await verdict(client, decision_id))["storable"] is (status == 201)

    answer = await store(client, decision_id)

    assert answer.status_code == status
    if status == 409:
        assert problem(answer, 409, "not_storable")["reason"] == "not_kept"


async def test_nothing_is_kept_of_what_cannot_be_stored(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    fields = {"memory_type": "correction", "source_error": CARD}
    await refuse(client, "bees", **fields)
    await refuse(client, "bees", **fields | {"source_error": "x" * 2001})
    await save(client, "She keeps bees.")

    rows = await execute(
        dsn, "SELECT request FROM gate_decisions WHERE tenant_id = $1", acme.tenant_id
    )
    assert [row["request"] for row in rows] == [None, None, None]


async def test_what_would_end_before_it_begins_is_refused(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    decision_id = await refuse(client, "bees", **TIMES)
    turn = """UPDATE gate_decisions SET request = request || jsonb_build_object(
        'valid_to', request -> 'valid_from') WHERE tenant_id = $1"""
    await execute(dsn, turn, acme.tenant_id)

    problem(await store(client, decision_id), 422, "invalid_request")


async def test_an_empty_text_cannot_be_stored(client: AsyncClient, dsn: str, acme: Caller) -> None:
    """As it is recorded of messages that nothing was found in."""
    decision_id = await refuse(client, "bees")
    empty = "UPDATE gate_decisions SET content = '' WHERE tenant_id = $1"
    await execute(dsn, empty, acme.tenant_id)

    assert problem(await store(client, decision_id), 409, "not_storable")["reason"] == "not_kept"


async def test_a_verdict_that_goes_meanwhile_is_not_found(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    decision_id = await refuse(client, "bees")
    async with runtime.database.begin(acme.tenant_id) as db:
        decisions = DecisionRepository(db, Access(acme.tenant_id))
        await decisions.get(decision_id)
        ok(await client.delete("/users/ana", params={"hard": True, "confirm": True}))
        with pytest.raises(DecisionNotFoundError):
            await decisions.note_stored(decision_id, "mem_1")


async def test_a_near_duplicate_is_kept_beside_what_it_repeats(client: AsyncClient) -> None:
    body = {"messages": "She drinks green tea every morning.", "user_id": "ana", "infer": False}
    ok(await client.post("/memories", json=body), 201)
    decision_id = await refuse(client, "She drinks green tea every single morning.")

    ok(await store(client, decision_id), 201)

    assert len(await every_page(client, "/memories", user_id="ana")) == 2


@pytest.mark.parametrize(
    ("text", "fields", "reason"),
    [(CARD, {}, "sensitive"), ("x" * 2001, {}, "too_long"), ("She keeps bees.", {}, "accepted")],
    ids=["sensitive", "too long", "accepted"],
)
async def test_what_cannot_be_stored_is_refused_with_its_reason(
    client: AsyncClient, text: str, fields: dict[str, Any], reason: str
) -> None:
    body = {"messages": text, "user_id": "ana", "infer": False} | fields
    answer = (await client.post("/memories", json=body)).json()
    decision_id = (answer if "decision_id" in answer else answer["results"][0])["decision_id"]
    assert (await verdict(client, decision_id))["storable"] is False

    told = problem(await store(client, decision_id), 409, "not_storable")

    assert (told["reason"], told["decision_id"]) == (reason, decision_id)


@pytest.mark.parametrize(
    ("length", "status"),
    [(RECORDED_CHARACTERS - 1, 201), (RECORDED_CHARACTERS, 201), (RECORDED_CHARACTERS + 1, 409)],
)
async def test_texts_are_kept_up_to_their_limit(
    dsn: str, acme: Caller, length: int, status: int
) -> None:
    """Where the deployment takes longer memories than are recorded of a refused one."""
    async with service(dsn, max_length=5_000) as app, client_of(app, acme.key) as client:
        text = ("She keeps bees. " * length)[:length].rstrip().ljust(length, ".")
        decision_id = await refuse(client, text, confidence=0.1)

        answer = await store(client, decision_id)

        if status == 201:
            assert ok(answer, 201)["memory"]["content"] == text
        else:
            assert problem(answer, 409, "not_storable")["reason"] == "not_kept"
            shown = (await verdict(client, decision_id))["content"]
            assert shown == text[:RECORDED_CHARACTERS] + "…"


async def test_rules_that_the_verdict_does_not_name_hold(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    """Here the deployment has become stricter since."""
    decision_id = await refuse(client, "She keeps bees.", confidence=0.1)
    async with service(dsn, min_length=50) as app, client_of(app, acme.key) as stricter:
        told = problem(await store(stricter, decision_id), 422, "gate_rejected")

    assert [reason["code"] for reason in told["reasons"]] == ["too_short"]
    assert (await verdict(client, decision_id))["storable"] is True
    assert await every_page(client, "/memories", user_id="ana") == []


async def test_a_text_is_stored_once(client: AsyncClient) -> None:
    decision_id = await refuse(client, "bees")
    key = {"Idempotency-Key": "one"}

    first = ok(await store(client, decision_id, headers=key), 201)

    assert ok(await store(client, decision_id, headers=key), 201) == first
    assert problem(await store(client, decision_id), 409, "not_storable")["reason"] == "stored"


async def test_of_two_at_once_one_stores_it(client: AsyncClient) -> None:
    decision_id = await refuse(client, "bees")

    answers = await asyncio.gather(*(store(client, decision_id) for _ in range(4)))

    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    assert len(await every_page(client, "/memories", user_id="ana")) == 1


async def test_refused_text_takes_an_admin_of_the_tenant(
    client: AsyncClient, stranger: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    decision_id = await refuse(client, "bees")
    key = await make_key(runtime, acme.tenant_id, "write")

    problem(await store(stranger, decision_id), 404, "decision_not_found")
    async with client_of(app, key.key) as writer:
        problem(await store(writer, decision_id), 403, "insufficient_scope")
    assert (await verdict(client, decision_id))["storable"] is True


async def test_an_erasure_takes_the_kept_text_and_the_memory(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    for text in ("zanzibar nightingale", "zanzibar sparrow"):
        decision_id = await refuse(client, text, confidence=0.1)
    ok(await store(client, decision_id, headers={"Idempotency-Key": "one"}), 201)

    ok(await client.delete("/users/ana", params={"hard": True, "confirm": True}))

    rows = await dump(dsn, acme.tenant_id)
    assert not any("zanzibar" in line for lines in rows.values() for line in lines)
    assert await execute(
        dsn, "SELECT FROM gate_decisions WHERE tenant_id = $1", acme.tenant_id
    ) == []  # fmt: skip
