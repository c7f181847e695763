"""Feedback through the public routes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from app.memory.feedback.schemas import FeedbackCreate
from app.memory.feedback.service import FeedbackService
from app.memory.memories.errors import MemoryNotFoundError
from app.platform.work.unit import MemoryDisabledError, Work
from app.runtime import Runtime
from tests.support.api import dump, every_page, execute, fields, ok, problem, save, tables_with
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key
from tests.support.world import World, build_world

SECRET = "my password: hunter2-Xy9!"
NUMBER = "Her card is 4111 1111 1111 1111."


async def rate(
    client: AsyncClient, memory_id: str, rating: str = "helpful", **rest: Any
) -> Response:
    headers = rest.pop("headers", None)
    body = {"rating": rating} | rest
    return await client.post(f"/memories/{memory_id}/feedback", json=body, headers=headers)


async def comments(client: AsyncClient, memory_id: str) -> list[str]:
    rows = await every_page(client, f"/memories/{memory_id}/feedback")
    return sorted(row["comment"] for row in rows)


async def ratings(client: AsyncClient, **params: str) -> dict[str, int]:
    return ok(await client.get("/feedback/stats", params=params))["by_rating"]


@pytest.fixture
async def tea(client: AsyncClient) -> str:
    """A memory of Ana's."""
    return (await save(client, "She drinks green tea."))["memory_id"]


class TestGiving:
    async def test_feedback_is_recorded_and_changes_no_memory(
        self, client: AsyncClient, acme: Caller, tea: str
    ) -> None:
        before = ok(await client.get(f"/memories/{tea}"))

        given = ok(await rate(client, tea, "outdated", comment="  她现在喝红茶 🌱  "), 201)

        assert (given["memory_id"], given["rating"], given["version"]) == (tea, "outdated", 1)
        assert given["feedback_id"].startswith("fbk_")
        [row] = await every_page(client, f"/memories/{tea}/feedback")
        assert row == given | {"comment": "她现在喝红茶 🌱", "actor": acme.key_id}
        assert ok(await client.get(f"/memories/{tea}")) == before
        history = await every_page(client, f"/memories/{tea}/history")
        assert [line["event"] for line in history] == ["ADD"]

    async def test_feedback_names_the_memory_version(self, client: AsyncClient, tea: str) -> None:
        ok(await client.patch(f"/memories/{tea}", json={"content": "She drinks black tea."}))

        assert ok(await rate(client, tea), 201)["version"] == 2

    async def test_comment_is_optional_and_feedback_may_be_repeated(
        self, client: AsyncClient, tea: str
    ) -> None:
        for _ in range(2):
            ok(await rate(client, tea), 201)

        rows = await every_page(client, f"/memories/{tea}/feedback", limit=1)
        assert [row["comment"] for row in rows] == [None, None]
        assert await ratings(client) == {"helpful": 2, "wrong": 0, "outdated": 0}

    @for_each(
        ("body", "field"),
        [
            ({}, "rating"), ({"rating": "great"}, "rating"), ({"rating": None}, "rating"),
            ({"rating": "wrong", "comment": ""}, "comment"),
            ({"rating": "wrong", "comment": "   "}, "comment"),
            ({"rating": "wrong", "comment": "x" * 2001}, "comment"),
            ({"rating": "wrong", "comment": "a\0b"}, "comment"),
            ({"rating": "wrong", "user_id": "ana"}, "user_id"),
        ],
    )  # fmt: skip
    async def test_invalid_feedback_is_refused_by_field(
        self, client: AsyncClient, tea: str, body: dict[str, Any], field: str
    ) -> None:
        response = await client.post(f"/memories/{tea}/feedback", json=body)

        assert fields(problem(response, 422, "invalid_request")) == [f"body.{field}"]
        assert await every_page(client, f"/memories/{tea}/feedback") == []

    async def test_comment_may_have_two_thousand_characters(
        self, client: AsyncClient, tea: str
    ) -> None:
        ok(await rate(client, tea, comment="茶" * 2000), 201)

    @pytest.mark.parametrize("comment", [SECRET, NUMBER])
    async def test_sensitive_comment_is_refused(
        self, client: AsyncClient, acme: Caller, dsn: str, tea: str, comment: str
    ) -> None:
        answer = problem(await rate(client, tea, comment=comment), 422, "sensitive")

        assert fields(answer) == ["body.comment"]
        assert answer["detectors"]
        assert tables_with("hunter2", await dump(dsn, acme.tenant_id)) == []
        assert tables_with("4111", await dump(dsn, acme.tenant_id)) == []
        assert await ratings(client) == {"helpful": 0, "wrong": 0, "outdated": 0}

    async def test_deployment_may_redact_or_allow_sensitive_comment(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, tea: str
    ) -> None:
        principal = await runtime.identification.identify(acme.key)
        lenient = FeedbackService(runtime.work, secrets="redact", identifiers="allow")

        for comment in (SECRET, NUMBER):
            await lenient.add(principal, tea, FeedbackCreate(rating="wrong", comment=comment))

        seen = await comments(client, tea)
        assert NUMBER in seen
        assert any("[REDACTED:" in one for one in seen)
        assert not any("hunter2" in one for one in seen)

    async def test_a_repeated_request_counts_once(self, client: AsyncClient, tea: str) -> None:
        headers = {"Idempotency-Key": "one"}
        first = await rate(client, tea, comment="Yes.", headers=headers)

        again = await rate(client, tea, comment="Yes.", headers=headers)
        other = await rate(client, tea, "wrong", headers=headers)

        assert again.json() == ok(first, 201)
        assert again.headers["Idempotency-Replayed"] == "true"
        problem(other, 422, "idempotency_key_reused")
        assert await ratings(client) == {"helpful": 1, "wrong": 0, "outdated": 0}

    async def test_nothing_is_written_while_memory_is_switched_off(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, tea: str
    ) -> None:
        principal = await runtime.identification.identify(acme.key)
        off = FeedbackService(
            Work(runtime.database, enabled=False), secrets="reject", identifiers="reject"
        )

        with pytest.raises(MemoryDisabledError):
            await off.add(principal, tea, FeedbackCreate(rating="wrong"))
        ok(await client.patch("/users/ana", json={"status": "disabled"}))
        problem(await rate(client, tea), 409, "disabled")
        assert await every_page(client, f"/memories/{tea}/feedback") == []


class TestReading:
    async def test_a_list_is_newest_first_and_each_row_is_on_one_page(
        self, client: AsyncClient, acme: Caller, dsn: str, tea: str
    ) -> None:
        given = [ok(await rate(client, tea), 201)["feedback_id"] for _ in range(5)]
        rows = await every_page(client, f"/memories/{tea}/feedback", limit=2)
        assert [row["feedback_id"] for row in rows] == given[::-1]

        await execute(
            dsn,
            "UPDATE memory_feedback SET create_time = '2026-01-01Z' WHERE tenant_id = $1",
            acme.tenant_id,
        )
        rows = await every_page(client, f"/memories/{tea}/feedback", limit=2)
        assert [row["feedback_id"] for row in rows] == given[::-1]

    async def test_counts_are_by_rating_and_filtered_by_user_and_agent(
        self, client: AsyncClient, tea: str
    ) -> None:
        dog = (await save(client, "Ben has a dog.", user_id="ben"))["memory_id"]
        own = (await save(client, "Ana likes brevity.", agent_id="helper"))["memory_id"]
        for memory_id, rating in (
            (tea, "helpful"), (tea, "wrong"), (dog, "wrong"), (own, "outdated"),
        ):  # fmt: skip
            ok(await rate(client, memory_id, rating), 201)

        whole = ok(await client.get("/feedback/stats"))

        assert whole == {
            "total": 4, "by_rating": {"helpful": 1, "wrong": 2, "outdated": 1}, "memories": 3,
        }  # fmt: skip
        assert await ratings(client, user_id="ana") == {"helpful": 1, "wrong": 1, "outdated": 1}
        assert await ratings(client, user_id="ben") == {"helpful": 0, "wrong": 1, "outdated": 0}
        assert await ratings(client, agent_id="helper") == {"helpful": 0, "wrong": 0, "outdated": 1}
        assert await ratings(client, user_id="nobody") == {"helpful": 0, "wrong": 0, "outdated": 0}


class TestForgetting:
    async def test_a_deleted_memory_has_no_feedback_and_takes_none(
        self, client: AsyncClient, acme: Caller, dsn: str, tea: str
    ) -> None:
        ok(await rate(client, tea, comment="Blue elephants."), 201)
        ok(await client.delete(f"/memories/{tea}"), 204)

        problem(await rate(client, tea), 404, "memory_not_found")
        problem(await client.get(f"/memories/{tea}/feedback"), 404, "memory_not_found")
        assert await ratings(client) == {"helpful": 0, "wrong": 0, "outdated": 0}
        assert tables_with("Blue elephants", await dump(dsn, acme.tenant_id)) == ["memory_feedback"]

    async def test_comments_are_removed_with_their_memory(
        self, client: AsyncClient, acme: Caller, dsn: str, tea: str
    ) -> None:
        ok(
            await rate(client, tea, comment="Blue elephants.", headers={"Idempotency-Key": "k"}),
            201,
        )

        ok(await client.delete(f"/memories/{tea}", params={"hard": True}), 204)

        assert tables_with("Blue elephants", await dump(dsn, acme.tenant_id)) == []

    async def test_comments_are_erased_with_the_memorys_user(
        self, client: AsyncClient, acme: Caller, dsn: str, tea: str
    ) -> None:
        ok(
            await rate(client, tea, comment="Blue elephants.", headers={"Idempotency-Key": "k"}),
            201,
        )

        ok(await client.delete("/users/ana", params={"confirm": True}))

        rows = await dump(dsn, acme.tenant_id)
        assert tables_with("Blue elephants", rows) == []
        assert rows["memory_feedback"] == []

    async def test_memory_removed_meanwhile_is_not_found(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, tea: str
    ) -> None:
        """Each of twenty callers rates a memory that is removed at the same moment."""
        principal = await runtime.identification.identify(acme.key)
        service = FeedbackService(runtime.work, secrets="reject", identifiers="reject")

        async def give() -> str:
            try:
                await service.add(principal, tea, FeedbackCreate(rating="wrong"))
            except MemoryNotFoundError:
                return "missing"
            return "given"

        *outcomes, gone = await asyncio.gather(
            *(give() for _ in range(20)),
            client.delete(f"/memories/{tea}", params={"hard": True}),
        )

        assert gone.status_code == 204
        assert set(outcomes) <= {"given", "missing"}
        assert (await dump(dsn, acme.tenant_id))["memory_feedback"] == []


@pytest.fixture
async def world(runtime: Runtime, client: AsyncClient, acme: Caller) -> World:
    return await build_world(runtime, client, acme)


@pytest.fixture
async def bound(
    app: FastAPI, runtime: Runtime, world: World
) -> AsyncIterator[dict[str, AsyncClient]]:
    """Keys of one tenant: of ana, of ben, of ana's agent, of ben's, and one that only reads."""
    clients = {}
    for name, scope, restriction in (
        ("ana", "write", {"user_id": "ana"}),
        ("ben", "write", {"user_id": "ben"}),
        ("helper", "write", {"agent_id": "helper"}),
        ("rival", "write", {"agent_id": "rival"}),
        ("reader", "read", {}),
    ):
        caller = await make_key(runtime, world.owner.tenant_id, scope, **restriction)
        clients[name] = client_of(app, caller.key)
    yield clients
    for client in clients.values():
        await client.aclose()


class TestOthers:
    async def test_memory_of_another_tenant_is_not_found(
        self, client: AsyncClient, stranger: AsyncClient, tea: str
    ) -> None:
        ok(await rate(client, tea), 201)

        problem(await rate(stranger, tea), 404, "memory_not_found")
        problem(await stranger.get(f"/memories/{tea}/feedback"), 404, "memory_not_found")
        assert ok(await stranger.get("/feedback/stats"))["total"] == 0
        assert ok(await client.get("/feedback/stats"))["total"] == 1

    async def test_unreadable_memory_cannot_be_rated(
        self, bound: dict[str, AsyncClient], world: World
    ) -> None:
        memory_id = world.ids["memory_id"]

        for name in ("ana", "helper"):
            ok(await rate(bound[name], memory_id), 201)
        for name in ("ben", "rival"):
            problem(await rate(bound[name], memory_id), 404, "memory_not_found")
            response = await bound[name].get(f"/memories/{memory_id}/feedback")
            problem(response, 404, "memory_not_found")
            assert ok(await bound[name].get("/feedback/stats"))["total"] == 0

    async def test_read_key_reads_feedback_and_cannot_give_it(
        self, bound: dict[str, AsyncClient], world: World
    ) -> None:
        memory_id = world.ids["memory_id"]

        problem(await rate(bound["reader"], memory_id), 403, "insufficient_scope")
        ok(await bound["reader"].get(f"/memories/{memory_id}/feedback"))
        ok(await bound["reader"].get("/feedback/stats"))

    async def test_feedback_on_shared_knowledge_is_hidden_from_other_users(
        self, client: AsyncClient, bound: dict[str, AsyncClient], world: World
    ) -> None:
        shared = world.ids["agent_memory_id"]
        for who, said in ((client, "the app"), (bound["ana"], "ana"), (bound["ben"], "ben")):
            ok(await rate(who, shared, "wrong", comment=said), 201)

        assert await comments(client, shared) == ["ana", "ben", "the app"]
        assert await comments(bound["ana"], shared) == ["ana"]
        assert await comments(bound["ben"], shared) == ["ben"]
        assert await comments(bound["helper"], shared) == ["ana", "the app"]
        problem(await bound["rival"].get(f"/memories/{shared}/feedback"), 404, "memory_not_found")
        totals = {
            name: ok(await who.get("/feedback/stats"))["total"] for name, who in bound.items()
        }
        # The world has one on a memory of ana's.
        assert totals == {"ana": 2, "ben": 1, "helper": 3, "rival": 0, "reader": 4}

    async def test_member_rates_shared_memory_and_its_owner_reads_it(
        self, client: AsyncClient, bound: dict[str, AsyncClient], world: World
    ) -> None:
        memory_id = world.ids["project_memory_id"]
        ok(await client.put("/projects/apollo/members/ben", json={"role": "viewer"}))
        ok(await rate(bound["ana"], memory_id, comment="ana"), 201)
        ok(await rate(bound["ben"], memory_id, comment="ben"), 201)

        assert await comments(bound["ana"], memory_id) == ["ana", "ben"]
        assert await comments(bound["ben"], memory_id) == ["ben"]
