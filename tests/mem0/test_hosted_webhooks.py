"""mem0's hosted API over HTTP: webhooks and projects."""

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import ok
from tests.support.mem0 import mem0_client
from tests.support.tenants import Caller, make_key, tenants

URL = "https://8.8.8.8/hook"


@pytest.fixture
async def mem0(app: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with mem0_client(app, acme.key) as opened:
        yield opened


@pytest.fixture
def hooks(acme: Caller) -> str:
    return f"/api/v1/webhooks/projects/{acme.tenant_id}/"


@pytest.fixture
def project(acme: Caller) -> str:
    return f"/api/v1/orgs/organizations/{acme.tenant_id}/projects/{acme.tenant_id}/"


def refused(response, *words: str) -> None:
    assert (response.status_code, response.json()["code"]) == (400, "no_counterpart")
    for word in words:
        assert word in response.json()["detail"]


class TestWebhooks:
    async def test_a_webhook_gets_our_events_for_theirs(
        self, mem0: AsyncClient, client: AsyncClient, acme: Caller, hooks: str
    ) -> None:
        wanted = ["memory_add", "memory_update"]
        body = {"url": URL, "name": "Billing 钩子", "event_types": wanted}
        made = ok(await mem0.post(hooks, json=body), 201)

        assert made.pop("secret").startswith("whsec_")
        assert (made["name"], made["url"], made["event_types"]) == ("Billing 钩子", URL, wanted)
        assert (made["is_active"], made["project"]) == (True, acme.tenant_id)
        ours = ok(await client.get(f"/webhooks/{made['webhook_id']}"))
        assert ours["events"] == ["memory.added", "memory.superseded", "memory.updated"]
        [listed] = ok(await mem0.get(hooks))
        assert listed.pop("secret") is None
        assert listed == made

    async def test_what_is_named_is_changed_and_the_rest_stays(
        self, mem0: AsyncClient, hooks: str
    ) -> None:
        body = {"url": URL, "name": "Billing", "event_types": ["memory_add"]}
        made = ok(await mem0.post(hooks, json=body), 201)
        place = f"/api/v1/webhooks/{made['webhook_id']}/"

        changes = {"event_types": ["memory_delete"], "is_active": False}
        shown = ok(await mem0.put(place, json=changes))

        assert shown == {"message": "Webhook updated successfully"}
        [listed] = ok(await mem0.get(hooks))
        assert (listed["event_types"], listed["is_active"]) == (["memory_delete"], False)
        assert (listed["name"], listed["url"]) == ("Billing", URL)
        assert ok(await mem0.delete(place)) == {"message": "Webhook deleted successfully"}
        assert ok(await mem0.get(hooks)) == []
        assert (await mem0.delete(place)).status_code == 404

    async def test_events_without_counterpart_are_refused_by_name(
        self, mem0: AsyncClient, hooks: str
    ) -> None:
        made = ok(
            await mem0.post(hooks, json={"url": URL, "name": "A", "event_types": ["memory_add"]}),
            201,
        )
        for event in ("memory_categorize", "ingest_job_completed", "memory.added", "*"):
            body = {"url": URL, "name": "B", "event_types": ["memory_add", event]}
            refused(await mem0.post(hooks, json=body), event, "memory_delete")
            changed = {"event_types": [event]}
            refused(await mem0.put(f"/api/v1/webhooks/{made['webhook_id']}/", json=changed), event)
        [listed] = ok(await mem0.get(hooks))
        assert listed["event_types"] == ["memory_add"]

    async def test_a_webhook_of_ours_shows_the_events_that_both_have(
        self, mem0: AsyncClient, client: AsyncClient, hooks: str
    ) -> None:
        for events in (["*"], ["memory.superseded", "job.dead"], ["job.dead"]):
            ok(await client.post("/webhooks", json={"url": URL, "events": events}), 201)
        shown = [one["event_types"] for one in reversed(ok(await mem0.get(hooks)))]
        assert shown == [["memory_add", "memory_update", "memory_delete"], ["memory_update"], []]

    async def test_another_project_and_other_keys_are_refused(
        self, app: FastAPI, runtime: Runtime, acme: Caller, mem0: AsyncClient, hooks: str
    ) -> None:
        elsewhere = "/api/v1/webhooks/projects/elsewhere/"
        body = {"url": URL, "name": "B", "event_types": ["memory_add"]}
        assert (await mem0.get(elsewhere)).status_code == 404
        assert (await mem0.post(elsewhere, json=body)).status_code == 404
        writer = await make_key(runtime, acme.tenant_id, "write")
        async with mem0_client(app, writer.key) as opened:
            assert (await opened.get(hooks)).status_code == 403
            assert (await opened.post(hooks, json=body)).status_code == 403
        assert ok(await mem0.get(hooks)) == []


class TestProject:
    async def test_a_key_of_one_user_or_agent_reads_no_instructions(
        self, app: FastAPI, mem0: AsyncClient, runtime: Runtime, acme: Caller, project: str
    ) -> None:
        ok(await mem0.patch(project, json={"custom_instructions": "Leave out what is secret."}))
        for bound in ({"user_id": "ana"}, {"agent_id": "helper"}):
            key = (await make_key(runtime, acme.tenant_id, "read", **bound)).key
            async with mem0_client(app, key) as opened:
                response = await opened.get(project)
            assert (response.status_code, response.json()["code"]) == (403, "key_restricted")
        reader = await make_key(runtime, acme.tenant_id, "read")
        async with mem0_client(app, reader.key) as opened:
            assert ok(await opened.get(project))["custom_instructions"]

    async def test_instructions_are_the_tenants(
        self, mem0: AsyncClient, runtime: Runtime, acme: Caller, project: str
    ) -> None:
        """And go with whatever else the tenant is configured with."""
        given = {"custom_instructions": "只记住颜色。", "multilingual": True, "decay": False}
        ids = {"org_id": acme.tenant_id, "project_id": acme.tenant_id}

        shown = ok(await mem0.patch(project, json=given | ids))

        assert shown == {"message": "Project updated successfully"}
        tenant = await tenants(runtime).get(acme.tenant_id)
        assert tenant.config == {"extraction_prompt": "只记住颜色。"}
        whole = ok(await mem0.get(project))
        assert (whole["id"], whole["custom_instructions"]) == (acme.tenant_id, "只记住颜色。")
        fields = ["custom_instructions", "custom_categories", "decay"]
        some = ok(await mem0.get(project, params=ids | {"fields": fields}))
        assert some == dict(zip(fields, ("只记住颜色。", None, False), strict=True))

        ok(await mem0.patch(project, json={"custom_instructions": " "}))
        assert (await tenants(runtime).get(acme.tenant_id)).config == {}

    async def test_instructions_have_at_most_8000_characters(
        self, mem0: AsyncClient, project: str
    ) -> None:
        for length, status in ((7999, 200), (8000, 200), (8001, 400)):
            body = {"custom_instructions": "a" * length}
            assert (await mem0.patch(project, json=body)).status_code == status, length

    async def test_settings_without_counterpart_are_refused_and_change_nothing(
        self, mem0: AsyncClient, project: str
    ) -> None:
        for name, value in (
            ("custom_categories", []), ("agent_custom_instructions", "x"), ("multilingual", False),
            ("decay", True), ("memory_depth", "deep"), ("usecase_setting", 1), ("version", "v2"),
        ):  # fmt: skip
            body = {"custom_instructions": "Colours alone.", name: value}
            refused(await mem0.patch(project, json=body), name)
        assert (await mem0.patch(project, json={"unheard": 1})).status_code == 400
        assert ok(await mem0.get(project))["custom_instructions"] is None
        refused(await mem0.get(project, params={"fields": "unheard"}), "unheard")

    async def test_projects_and_members_are_managed_elsewhere(
        self, mem0: AsyncClient, acme: Caller, project: str
    ) -> None:
        members = f"{project}members/"
        assert ok(await mem0.get(members)) == {"members": []}
        made = await mem0.post(
            f"/api/v1/orgs/organizations/{acme.tenant_id}/projects/", json={"name": "New"}
        )
        refused(made, "operator")
        refused(await mem0.delete(project), "operator")
        person = {"email": "ana@example.com", "role": "READER"}
        refused(await mem0.post(members, json=person), "key")
        refused(await mem0.put(members, json=person), "key")
        refused(await mem0.delete(members, params={"email": "ana@example.com"}), "key")
        assert ok(await mem0.get("/v1/ping/"))["status"] == "ok"

    async def test_only_an_admin_key_changes_the_project(
        self, app: FastAPI, runtime: Runtime, acme: Caller, project: str
    ) -> None:
        writer = await make_key(runtime, acme.tenant_id, "write")
        async with mem0_client(app, writer.key) as opened:
            body = {"custom_instructions": "Colours alone."}
            assert (await opened.patch(project, json=body)).status_code == 403
            assert ok(await opened.get(project))["custom_instructions"] is None
            elsewhere = project.replace(f"projects/{acme.tenant_id}", "projects/elsewhere")
            assert (await opened.get(elsewhere)).status_code == 404
