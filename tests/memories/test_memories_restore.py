"""Undo: any entry of a memory's history can be restored, as a new entry."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from app.runtime import Runtime
from tests.support.api import counts, every_page, execute, found, listed, ok, problem, save
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

TEA = "She drinks green tea."
CAT = "The cat sleeps on the sofa."
BONN = "她搬到了波恩"


@pytest.fixture
async def path(client: AsyncClient) -> str:
    """Of a memory about tea."""
    return f"/memories/{(await save(client, TEA))['memory_id']}"


async def history(client: AsyncClient, path: str) -> list[dict[str, Any]]:
    return await every_page(client, f"{path}/history")


async def restore(client: AsyncClient, path: str, entry: int, **rest: Any) -> Response:
    """Ask for the state after the entry at this place of the history."""
    lines = await history(client, path)
    body = {"history_id": lines[entry]["history_id"]} | rest.pop("json", {})
    return await client.post(f"{path}/restore", json=body, **rest)


class TestRestore:
    async def test_restored_content_is_found(self, client: AsyncClient, path: str) -> None:
        first = ok(await client.get(path))
        ok(await client.patch(path, json={"content": CAT, "reason": "改错了"}))

        answer = ok(await restore(client, path, 0, json={"reason": "还是茶"}))

        memory = answer["memory"]
        assert (memory["content"], memory["version"]) == (TEA, 3)
        assert memory == first | {"version": 3, "update_time": memory["update_time"]}
        assert answer["superseded_by"] is None
        assert await found(client, TEA, user_id="ana", threshold=0.99) == [first["memory_id"]]
        assert await found(client, CAT, user_id="ana", threshold=0.6) == []
        lines = await history(client, path)
        assert [line["event"] for line in lines] == ["ADD", "UPDATE", "RESTORE"]
        last = lines[-1]
        assert (last["before"]["content"], last["after"]["content"]) == (CAT, TEA)
        assert (last["reason"], last["version"]) == ("还是茶", 3)
        assert last["actor"] is not None

    async def test_an_undo_can_be_undone(self, client: AsyncClient, path: str) -> None:
        ok(await client.patch(path, json={"content": CAT}))
        ok(await restore(client, path, 0))

        again = ok(await restore(client, path, 1))

        assert (again["memory"]["content"], again["memory"]["version"]) == (CAT, 4)

    async def test_restore_empties_what_was_empty(self, client: AsyncClient, path: str) -> None:
        later = {
            "attribute": "user.drink",
            "external_id": "x",
            "valid_from": "2020-01-01T00:00:00Z",
        }
        ok(await client.patch(path, json=later))

        memory = ok(await restore(client, path, 0))["memory"]

        assert {name: memory[name] for name in later} == dict.fromkeys(later)

    async def test_restore_leaves_what_an_old_entry_does_not_know(
        self, client: AsyncClient, acme: Caller, dsn: str, path: str
    ) -> None:
        """Old entries hold each null, so they are silent only on columns that came later."""
        ok(await client.patch(path, json={"content": CAT, "attribute": "user.drink"}))
        await execute(
            dsn,
            """UPDATE memory_history SET after = after || '{"external_id": null}' """
            "WHERE tenant_id = $1 AND event = 'ADD'",
            acme.tenant_id,
        )

        memory = ok(await restore(client, path, 0))["memory"]

        assert (memory["content"], memory["attribute"]) == (TEA, "user.drink")

    async def test_restore_brings_back_every_field(self, client: AsyncClient) -> None:
        given = {
            "memory_type": "preference", "attribute": "user.drink", "confidence": 0.8125,
            "evidence": ["m1"], "metadata": {"茶": [1, {"k": 0.1}]}, "visibility": "owner_only",
            "valid_from": "2020-01-01T00:00:00.000001Z", "valid_to": "2090-01-01T00:00:00Z",
            "expires_at": "2095-01-01T00:00:00Z", "external_id": "x", "tier": "short",
        }  # fmt: skip
        first = (await save(client, TEA, **given))["memory"]
        path = f"/memories/{first['memory_id']}"
        changes: dict[str, Any] = dict.fromkeys(
            ("attribute", "valid_from", "valid_to", "expires_at", "external_id")
        )
        changes |= {
            "content": CAT, "memory_type": "fact", "confidence": 1.0, "evidence": [],
            "metadata": {}, "tier": "long", "visibility": "public", "status": "archived",
        }  # fmt: skip
        changed = ok(await client.patch(path, json=changes))
        assert all(changed[name] != first[name] for name in changes)

        restored = ok(await restore(client, path, 0))["memory"]

        assert restored == first | {"version": 3, "update_time": restored["update_time"]}

    async def test_restore_of_the_present_state_leaves_no_entry(
        self, client: AsyncClient, path: str
    ) -> None:
        before = ok(await client.get(path))

        answer = ok(await restore(client, path, 0))

        assert answer == {"memory": before, "superseded_by": None}
        assert len(await history(client, path)) == 1

    async def test_archiving_is_undone_and_done_again(self, client: AsyncClient, path: str) -> None:
        ok(await client.patch(path, json={"status": "archived"}))

        assert ok(await restore(client, path, 0))["memory"]["status"] == "active"
        assert ok(await restore(client, path, 1))["memory"]["status"] == "archived"

    async def test_a_superseded_memory_is_active_again_and_its_successor_stays(
        self, client: AsyncClient, path: str
    ) -> None:
        first = ok(await client.get(path))
        body = {"content": BONN}
        new = ok(await client.post(f"{path}/supersede", json=body), 201)["memory_id"]

        answer = ok(await restore(client, path, 0))

        memory = answer["memory"]
        assert answer["superseded_by"] == new
        assert (memory["status"], memory["superseded_by"]) == ("active", None)
        assert (memory["valid_from"], memory["valid_to"]) == (None, None)
        assert set(await listed(client)) == {first["memory_id"], new}
        assert memory["conflicts_with"] == [new]
        assert set(await listed(client, in_conflict=True)) == {first["memory_id"], new}
        lines = await history(client, f"/memories/{new}")
        assert [line["event"] for line in lines] == ["ADD", "UPDATE"]
        again = ok(await restore(client, path, 1))
        assert (again["memory"]["status"], again["memory"]["superseded_by"]) == ("superseded", new)
        assert await listed(client) == [new]

    async def test_both_hold_where_it_is_restored_once_more(
        self, client: AsyncClient, path: str
    ) -> None:
        new = ok(await client.post(f"{path}/supersede", json={"content": BONN}), 201)["memory_id"]
        ok(await restore(client, path, 0))

        answer = ok(await restore(client, path, 0))

        assert (answer["superseded_by"], answer["memory"]["conflicts_with"]) == (None, [])
        assert ok(await client.get(f"/memories/{new}"))["conflicts_with"] == []

    async def test_a_successor_that_is_gone_is_named_no_more(
        self, client: AsyncClient, path: str
    ) -> None:
        new = ok(await client.post(f"{path}/supersede", json={"content": BONN}), 201)["memory_id"]
        ok(await restore(client, path, 0))
        ok(await client.delete(f"/memories/{new}", params={"hard": True}), 204)

        memory = ok(await restore(client, path, 1))["memory"]

        assert (memory["status"], memory["superseded_by"]) == ("superseded", None)

    async def test_restore_never_changes_the_owner(
        self, client: AsyncClient, acme: Caller, dsn: str, path: str
    ) -> None:
        ok(await client.patch(path, json={"content": CAT}))
        await execute(
            dsn,
            "UPDATE memory_history SET after = after || "
            """'{"user_id": "eve", "scope_id": "eve", "creator": "eve", "memory_id": "mem_eve"}' """
            "WHERE tenant_id = $1",
            acme.tenant_id,
        )
        before = ok(await client.get(path))

        memory = ok(await restore(client, path, 0))["memory"]

        for name in ("memory_id", "user_id", "scope_id", "creator", "create_time"):
            assert memory[name] == before[name]
        assert memory["content"] == TEA


class TestRefusals:
    async def test_restore_of_a_text_saved_again_is_refused(
        self, client: AsyncClient, path: str
    ) -> None:
        ok(await client.patch(path, json={"content": CAT}))
        twin = await save(client, TEA)

        body = problem(await restore(client, path, 0), 409, "duplicate")

        assert body["memory_id"] == twin["memory_id"]
        assert ok(await client.get(path))["content"] == CAT
        assert len(await history(client, path)) == 2

    async def test_expired_duplicate_is_archived(
        self, client: AsyncClient, acme: Caller, dsn: str, path: str
    ) -> None:
        ok(await client.patch(path, json={"content": CAT}))
        twin = await save(client, TEA)
        await execute(
            dsn,
            "UPDATE memories SET expires_at = now() - interval '1 second' "
            "WHERE tenant_id = $1 AND memory_id = $2",
            acme.tenant_id,
            twin["memory_id"],
        )

        assert ok(await restore(client, path, 0))["memory"]["content"] == TEA
        gone = ok(await client.get(f"/memories/{twin['memory_id']}"))
        assert gone["status"] == "archived"

    async def test_the_gate_judges_by_the_rules_of_today(
        self, client: AsyncClient, acme: Caller, dsn: str, path: str
    ) -> None:
        ok(await client.patch(path, json={"content": CAT}))
        await execute(
            dsn,
            "UPDATE memory_history SET after = jsonb_set(after, '{content}', $2) "
            "WHERE tenant_id = $1 AND event = 'ADD'",
            acme.tenant_id,
            '"Her card is 4111 1111 1111 1111."',
        )

        body = problem(await restore(client, path, 0), 422, "gate_rejected")

        assert [reason["code"] for reason in body["reasons"]] == ["sensitive"]
        assert ok(await client.get(path))["content"] == CAT
        [verdict] = await every_page(client, "/memories/decisions", verdict="rejected")
        assert (verdict["event"], verdict["content"]) == ("REJECT", None)

    async def test_an_entry_must_be_of_this_memory(
        self, client: AsyncClient, stranger: AsyncClient, path: str
    ) -> None:
        other = (await save(client, CAT))["memory_id"]
        [line] = await history(client, f"/memories/{other}")

        for history_id in (line["history_id"], "his_missing"):
            response = await client.post(f"{path}/restore", json={"history_id": history_id})
            body = problem(response, 404, "history_not_found")
            assert body["history_id"] == history_id
        body = {"history_id": (await history(client, path))[0]["history_id"]}
        problem(await stranger.post(f"{path}/restore", json=body), 404, "memory_not_found")

    async def test_deleted_memory_is_not_restored(self, client: AsyncClient, path: str) -> None:
        body = {"history_id": (await history(client, path))[0]["history_id"]}
        ok(await client.delete(path), 204)

        problem(await client.post(f"{path}/restore", json=body), 404, "memory_not_found")

    async def test_restore_needs_the_right_to_change(
        self, client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller, path: str
    ) -> None:
        shared = await save(client, CAT, user_id=None, agent_id="a1", scope="agent")
        key = (await make_key(runtime, acme.tenant_id, "write", user_id="ana")).key
        reader = (await make_key(runtime, acme.tenant_id, "read")).key
        ok(await client.patch(path, json={"content": BONN}))

        async with client_of(app, key) as ana, client_of(app, reader) as other:
            response = await restore(ana, f"/memories/{shared['memory_id']}", 0)
            problem(response, 403, "insufficient_scope")
            problem(await restore(other, path, 0), 403, "insufficient_scope")
            assert ok(await restore(ana, path, 0))["memory"]["content"] == TEA

    async def test_content_is_not_restored_during_a_pause(
        self, client: AsyncClient, path: str
    ) -> None:
        ok(await client.patch(path, json={"content": CAT, "confidence": 0.9}))
        agent = ok(await client.get("/users/ana"))["agent_id"]
        ok(await client.patch(f"/agents/{agent}", json={"memory_enabled": False}))

        problem(await restore(client, path, 0), 409, "memory_paused")


class TestConcurrency:
    async def test_a_state_that_moved_on_is_not_overwritten(
        self, client: AsyncClient, path: str
    ) -> None:
        ok(await client.patch(path, json={"content": CAT}))

        stale = await restore(client, path, 0, headers={"If-Match": '"1"'})

        assert problem(stale, 409, "version_conflict")["current_version"] == 2
        ok(await restore(client, path, 0, headers={"If-Match": '"2"'}))

    async def test_a_repeated_request_restores_once(
        self, client: AsyncClient, path: str, acme: Caller, dsn: str
    ) -> None:
        ok(await client.patch(path, json={"content": CAT}))
        first = await restore(client, path, 0, headers={"Idempotency-Key": "k"})
        ok(await client.patch(path, json={"content": BONN}))
        before = await counts(dsn, acme.tenant_id)

        again = await restore(client, path, 0, headers={"Idempotency-Key": "k"})

        assert (again.status_code, again.json()) == (200, first.json())
        assert ok(await client.get(path))["content"] == BONN
        assert await counts(dsn, acme.tenant_id) == before

    async def test_two_at_once_leave_one_entry_each_or_none(
        self, client: AsyncClient, path: str
    ) -> None:
        ok(await client.patch(path, json={"content": CAT}))
        lines = await history(client, path)
        body = {"history_id": lines[0]["history_id"]}

        answers = await asyncio.gather(
            *(client.post(f"{path}/restore", json=body) for _ in range(5)),
            *(client.patch(path, json={"confidence": 0.75 + n / 100}) for n in range(5)),
        )

        assert {answer.status_code for answer in answers} <= {200, 409}
        versions = [line["version"] for line in await history(client, path)]
        assert versions == list(range(1, len(versions) + 1))
        assert ok(await client.get(path))["content"] == TEA
