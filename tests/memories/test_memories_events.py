"""What a change leaves behind for others: events in the outbox, and verdicts with their grounds."""

import json
from datetime import timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from app.memory.memories.deletion_service import PurgeService
from app.runtime import Runtime
from tests.support.api import every_page, execute, fields, ok, problem, save
from tests.support.rows import for_each
from tests.support.tenants import Caller

TEA = "She drinks green tea."
CAT = "The cat sleeps on the sofa."


@pytest.fixture
async def webhook(acme: Caller, dsn: str) -> None:
    """Somebody who wants to be told of everything."""
    await execute(
        dsn,
        "INSERT INTO webhooks (tenant_id, webhook_id, url, secret, events) "
        "VALUES ($1, 'whk_1', 'https://example.org/', 's', '{*}')",
        acme.tenant_id,
    )


async def told(dsn: str, tenant_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Events in the order in which they were written, each with its data."""
    rows = await execute(
        dsn,
        "SELECT event_type, payload->>'data' AS data, user_id FROM webhook_deliveries "
        "WHERE tenant_id = $1 ORDER BY delivery_id",
        tenant_id,
    )
    assert {row["user_id"] for row in rows} <= {"ana"}
    return [(row["event_type"], json.loads(row["data"])) for row in rows]


@pytest.mark.usefixtures("webhook")
class TestEvents:
    async def test_every_change_publishes_ids_alone(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        old = (await save(client, TEA))["memory_id"]
        path = f"/memories/{old}"
        ok(await client.patch(path, json={"confidence": 0.9}))
        ok(await client.patch(path, json={"status": "archived"}))
        [first, *_] = await every_page(client, f"{path}/history")
        ok(await client.post(f"{path}/restore", json={"history_id": first["history_id"]}))
        new = ok(await client.post(f"{path}/supersede", json={"content": CAT}), 201)["memory_id"]
        ok(await client.delete(f"/memories/{new}"), 204)

        events = await told(dsn, acme.tenant_id)

        assert [(kind, data["event"], data["memory_id"]) for kind, data in events] == [
            ("memory.added", "ADD", old),
            ("memory.updated", "UPDATE", old),
            ("memory.updated", "ARCHIVE", old),
            ("memory.updated", "RESTORE", old),
            ("memory.added", "ADD", new),
            ("memory.superseded", "SUPERSEDE", old),
            ("memory.deleted", "DELETE", new),
        ]
        assert [data["version"] for _, data in events] == [1, 2, 3, 4, 1, 5, 1]
        assert events[5][1] == {
            "memory_id": old, "event": "SUPERSEDE", "version": 5, "memory_type": "fact",
            "scope": "user", "scope_id": "ana", "user_id": "ana", "agent_id": None,
            "session_id": None, "project_id": None, "superseded_by": new, "job_id": None,
        }  # fmt: skip

    async def test_refusal_is_published_with_its_codes(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        body = {"messages": "Hi.", "user_id": "ana", "infer": False, "confidence": 0.5}

        refused = problem(await client.post("/memories", json=body), 422, "gate_rejected")

        [(kind, data)] = await told(dsn, acme.tenant_id)
        assert (kind, data["event"], data["memory_id"]) == ("memory.rejected", "REJECT", None)
        assert data["codes"] == ["low_confidence", "too_short"]
        assert data["decision_id"] == refused["decision_id"]

    async def test_each_of_many_deletions_is_published_once(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        batch = [{"content": f"Locker {n} is hers."} for n in range(4)]
        await save(client, batch, on_duplicate="allow")
        ok(await client.post("/memories/delete", json={"user_id": "ana", "confirm": True}))
        # What is hidden already goes without another word.
        purge = PurgeService(runtime.database)
        purged = await purge.purge(acme.tenant_id, age=timedelta(0), removed=lambda _count: None)
        assert purged.memories == 4
        await save(client, TEA)
        hard = {"user_id": "ana", "confirm": True, "hard": True}
        ok(await client.post("/memories/delete", json=hard))

        kinds = [kind for kind, _ in await told(dsn, acme.tenant_id)]

        assert kinds == [
            *["memory.added"] * 4, *["memory.deleted"] * 4, "memory.added", "memory.deleted",
        ]  # fmt: skip

    async def test_rolled_back_change_publishes_nothing(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        memory = await save(client, TEA)
        before = await told(dsn, acme.tenant_id)
        path = f"/memories/{memory['memory_id']}"
        ok(await client.patch(path, json={"confidence": 1.0}))
        stale = {"If-Match": '"9"'}
        problem(
            await client.patch(path, json={"confidence": 0.8}, headers=stale),
            409,
            "version_conflict",
        )
        ok(await client.post("/memories/validate", json={"messages": "Hi.", "infer": False} | {
            "user_id": "ana"}))  # fmt: skip

        assert await told(dsn, acme.tenant_id) == before


class TestVerdicts:
    async def test_decision_shows_its_event_and_reasons(self, client: AsyncClient) -> None:
        memory = await save(client, TEA, evidence=["m1", "m2"])
        path = f"/memories/{memory['memory_id']}"
        await save(client, TEA)
        ok(await client.patch(path, json={"confidence": 0.9}))
        [first, *_] = await every_page(client, f"{path}/history")
        ok(await client.post(f"{path}/restore", json={"history_id": first["history_id"]}))
        body = {"content": CAT, "evidence": ["m3"]}
        ok(await client.post(f"{path}/supersede", json=body), 201)
        refused = {"messages": "Hi.", "user_id": "ana", "infer": False}
        problem(await client.post("/memories", json=refused), 422, "gate_rejected")

        rows = await every_page(client, "/memories/decisions")

        grounds = [(row["event"], row["evidence"]) for row in reversed(rows)]
        assert grounds == [
            ("ADD", ["m1", "m2"]),
            ("NONE", []),
            ("UPDATE", ["m1", "m2"]),
            ("RESTORE", ["m1", "m2"]),
            ("SUPERSEDE", ["m3"]),
            ("REJECT", []),
        ]
        assert {(row["job_id"], row["extraction_id"], row["run_id"]) for row in rows} == {
            (None, None, None)
        }

    async def test_decisions_of_one_job_or_run_are_listed(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        for text in (TEA, CAT):
            await save(client, text)
        ids = [row["decision_id"] for row in await every_page(client, "/memories/decisions")]
        await execute(
            dsn,
            "UPDATE gate_decisions SET job_id = 'job_1', run_id = 'run_1' "
            "WHERE tenant_id = $1 AND decision_id = $2",
            acme.tenant_id,
            ids[0],
        )

        for asked in (
            {"job_id": "job_1"},
            {"extraction_id": "run_1"},
            {"run_id": "run_1"},
            {"run_id": "run_1", "extraction_id": "run_1"},
        ):
            rows = await every_page(client, "/memories/decisions", **asked)
            assert [row["decision_id"] for row in rows] == ids[:1]
            assert (rows[0]["extraction_id"], rows[0]["run_id"]) == ("run_1", "run_1")
        both = {"run_id": "run_1", "extraction_id": "run_2"}
        refused = problem(
            await client.get("/memories/decisions", params=both), 422, "invalid_request"
        )
        assert fields(refused) == ["query.extraction_id"]
        assert "run_id and extraction_id" in refused["errors"][0]["detail"]
        assert await every_page(client, "/memories/decisions", job_id="job_2") == []

    async def test_the_history_names_the_job(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        memory = await save(client, TEA)
        path = f"/memories/{memory['memory_id']}/history"
        assert [line["job_id"] for line in await every_page(client, path)] == [None]
        await execute(
            dsn, "UPDATE memory_history SET job_id = 'job_1' WHERE tenant_id = $1", acme.tenant_id
        )

        assert [line["job_id"] for line in await every_page(client, path)] == ["job_1"]


class TestAttribute:
    @pytest.mark.parametrize(
        "name", ["user.home", "a.b", "user.name_2.given", "a." + "b" * 98], ids=len
    )
    async def test_attribute_is_kept_and_published(self, client: AsyncClient, name: str) -> None:
        memory = (await save(client, TEA, attribute=name))["memory"]
        path = f"/memories/{memory['memory_id']}"
        body = {"content": CAT}
        successor = ok(await client.post(f"{path}/supersede", json=body), 201)["memory"]
        cleared = f"/memories/{successor['memory_id']}"

        assert memory["attribute"] == successor["attribute"] == name
        assert ok(await client.patch(cleared, json={"attribute": None}))["attribute"] is None
        assert ok(await client.patch(cleared, json={"attribute": "a.b"}))["attribute"] == "a.b"

    @pytest.mark.parametrize(
        ("given", "name"),
        [
            ("User.Home", "user.home"),
            ("Élodie.job", "élodie.job"),
            ("jose\u0301.job", "josé.job"),
            ("\U00020bb7田.job", "\U00020bb7田.job"),
        ],
    )
    async def test_attribute_has_one_form(self, client: AsyncClient, given: str, name: str) -> None:
        memory = (await save(client, TEA, attribute=given))["memory"]
        path = f"/memories/{memory['memory_id']}"

        assert memory["attribute"] == name
        assert ok(await client.patch(path, json={"attribute": "a.b"}))["attribute"] == "a.b"
        assert ok(await client.patch(path, json={"attribute": given}))["attribute"] == name

    @for_each(
        "name",
        [
            "",
            "user",
            "1.b",
            "a..b",
            "a.b.",
            "用户.名",
            "老周。.job",
            "老\u202e周.job",
            "a." + "b" * 99,
        ],
    )
    async def test_invalid_attribute_is_refused(self, client: AsyncClient, name: str) -> None:
        body = {"messages": TEA, "user_id": "ana", "infer": False, "attribute": name}

        response = await client.post("/memories", json=body)

        assert fields(problem(response, 422, "invalid_request")) == ["body.attribute"]
