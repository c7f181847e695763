"""mem0's clients as they are published, method by method, against a service on loopback."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from app.runtime import Runtime
from tests.support.environments import node, python
from tests.support.mem0 import run_script, served_with_worker
from tests.support.tenants import Caller, tenants

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent / "clients"
CHOSEN = {"shoe_size": None, "unfilled": ["shoe_size"]}


def memories(export: dict[str, Any]) -> list[str]:
    return sorted(one["memory"] for one in export["memories"])


async def test_every_method_of_the_package_for_node(
    app: FastAPI, runtime: Runtime, dsn: str, acme: Caller, tmp_path: Path
) -> None:
    folder = node("mem0ai-js-3.3.1", "mem0ai@3.3.1")
    async with served_with_worker(app, runtime, dsn) as host:
        printed = await run_script(
            Path("node"), SCRIPTS / "every_method.mjs", str(folder), host, acme.key,
            folder=tmp_path, MEM0_TELEMETRY="false",
        )  # fmt: skip
    got = json.loads(printed)

    [added] = got["added"]["results"]
    assert (added["event"], added["data"]) == ("ADD", {"memory": "She drinks green tea."})
    assert got["queued"]["status"] == "PENDING"
    assert (got["one"]["id"], got["one"]["metadata"]) == (added["id"], {"topic_name": "tea"})
    assert (got["one"]["userId"], got["one"]["agentId"]) == ("ana", "helper")
    assert (got["one"]["runId"], got["one"]["appId"]) == ("chat-1", "shop")
    assert got["found"]["results"][0]["id"] == added["id"]
    assert got["updated"]["memory"] == "She drinks black tea."
    assert got["updated"]["metadata"] == {"topic_name": "x"}
    assert [entry["event"] for entry in got["history"]] == ["ADD", "UPDATE"]
    assert got["history"][1]["oldMemory"] == "She drinks green tea."

    assert (got["page"]["count"], len(got["page"]["results"])) == (4, 2)
    assert got["page"]["next"] is not None
    named = {(one["type"], one["name"]) for one in got["users"]["results"]}
    assert {("user", "ana"), ("agent", "helper"), ("run", "chat-1"), ("app", "shop")} <= named
    assert got["batchUpdated"] == {"message": "Successfully updated 1 memories"}
    assert got["batchDeleted"] == {"message": "Successfully deleted 2 memories"}
    left = {one["memory"] for one in got["left"]["results"]}
    assert left == {"She drinks black tea.", "She plays the viola."}
    assert got["feedback"]["feedback"] == "NEGATIVE"
    assert got["feedback"]["feedbackReason"] == "It was black tea."

    assert got["project"] == {"customInstructions": "Colours alone.", "customCategories": None}
    assert (await tenants(runtime).get(acme.tenant_id)).config == {
        "extraction_prompt": "Colours alone."
    }
    assert got["webhook"]["eventTypes"] == ["memory_add"]
    [webhook] = got["webhooks"]
    assert (webhook["webhookId"], webhook["eventTypes"]) == (
        got["webhook"]["webhookId"], ["memory_delete"],
    )  # fmt: skip
    for name in ("projectRefused", "webhookRefused", "settingsRefused"):
        assert got[name]["name"] == "ValidationError", name
        assert "not served" in got[name]["message"]

    assert got["settings"] == got["settingsUpdated"]
    assert got["settings"]["entities"]["user"]["schema"] is None
    assert got["jobAgain"] == got["job"] | {"replayed": True}
    assert (got["jobDone"]["job"]["status"], got["jobDone"]["job"]["succeeded"]) == ("succeeded", 1)
    assert got["profile"]["entityId"] == "ana"
    assert got["profile"]["status"] in {"succeeded", "insufficient_data"}
    assert (got["sample"]["sampled"], got["sampleRead"]["job"]["total"]) == (1, 1)

    assert "shoe_size" in got["exported"]["message"]
    assert got["export"]["unfilled"] == ["shoe_size"]
    assert set(memories(got["export"])) == left == set(memories(got["exportByFilters"]))
    refused_and_deleted(got)


def refused_and_deleted(got: dict[str, Any]) -> None:
    assert got["missing"]["name"] == "MemoryNotFoundError"
    assert got["wrongKey"]["name"] == "AuthenticationError"
    assert got["deleted"]["message"]
    assert got["deletedAll"]["message"]
    assert got["none"]["results"] == []
    assert got["deletedUser"]["message"]
    assert got["deletedUsers"]["message"] == "Entity deleted successfully."
    assert got["deletedEverybody"]["message"] == "All users, agents, apps and runs deleted."
    assert got["nobody"]["results"] == []


async def test_the_rest_of_pythons_methods(
    app: FastAPI, runtime: Runtime, dsn: str, acme: Caller, tmp_path: Path
) -> None:
    interpreter = python("mem0ai-2.2.1", "mem0ai==2.2.1")
    async with served_with_worker(app, runtime, dsn) as host:
        printed = await run_script(
            interpreter, SCRIPTS / "rest_of_methods.py", host, acme.key, folder=tmp_path
        )
    both = json.loads(printed)
    got = both["sync"]

    assert got["updated"] == {"message": "Successfully updated 1 memories"}
    assert got["deleted"] == {"message": "Successfully deleted 2 memories"}
    assert got["missing"] == "MemoryNotFoundError"
    assert (got["feedback"]["feedback"], got["feedback"]["feedback_reason"]) == (
        "POSITIVE", "It is so.",
    )  # fmt: skip
    assert got["no_feedback"] == "ValidationError"
    texts = ["She drinks coffee.", "She is a nurse."]
    assert memories(got["export"]) == texts == memories(got["export_by_user"])
    assert {name: got["export"][name] for name in CHOSEN} == CHOSEN
    assert (got["summary"]["summary"], got["summary"]["total_memories"]) == (None, 2)
    assert got["summary_of_user"]["total_memories"] == 2

    assert got["project"] == {"custom_instructions": "Colours alone."}
    assert got["project_before"] == got["project"] | {"decay": False}
    assert got["members"] == {"members": []}
    assert set(got["refused"]) == {"ValidationError"}
    assert got["webhook_refused"] == "ValidationError"
    assert [one["event_types"] for one in got["webhooks"]] == [["memory_update"]]
    assert got["webhook"]["secret"].startswith("whsec_")

    assert got["settings"] == got["settings_updated"]
    assert got["job_again"] == got["job"] | {"replayed": True}
    assert (got["job_done"]["status"], got["job_done"]["succeeded"]) == ("succeeded", 1)
    assert got["profile"]["status"] in {"succeeded", "insufficient_data"}
    assert got["sample"]["entity_ids"] == ["ana"]
    assert got["unknown_user"] == "MemoryNotFoundError"

    other = both["async"]
    assert other["updated"] == {"message": "Successfully updated 1 memories"}
    assert other["feedback"]["feedback"] == "VERY_NEGATIVE"
    assert other["summary"]["total_memories"] == 1
    assert other["project"] == got["project"]
    assert other["profile"]["entity_id"] == "bo"
    assert other["deleted"] == {"message": "Successfully deleted 1 memories"}
    assert other["webhooks"] == []


async def test_the_commands_of_the_cli(
    app: FastAPI, runtime: Runtime, dsn: str, acme: Caller, tmp_path: Path
) -> None:
    program = python("mem0-cli-0.2.13", "mem0-cli==0.2.13").parent / "mem0"
    file = tmp_path / "memories.json"
    file.write_text(json.dumps([{"memory": "He rows.", "user_id": "bo"}]))

    async with served_with_worker(app, runtime, dsn) as host:

        async def printed(command: str, *arguments: str, as_: str = "json") -> str:
            return await run_script(
                program, Path(command), *arguments, "--output", as_,
                folder=tmp_path, MEM0_API_KEY=acme.key, MEM0_BASE_URL=host, COLUMNS="300",
            )  # fmt: skip

        async def shown(command: str, *arguments: str) -> Any:
            return json.loads(await printed(command, *arguments))

        status = await shown("status")
        assert status["data"] == {"connected": True, "backend": "platform", "base_url": host}
        raw = ("--user-id", "ana", "--no-infer")
        added = await shown("add", "She drinks green tea.", *raw, "--metadata", '{"topic": "tea"}')
        memory_id = added["results"][0]["id"]
        await shown("add", "She plays the cello.", *raw, "--agent-id", "helper")
        [one] = await shown("add", "I live in Lisbon.", "--user-id", "ana")
        queued = one["event_id"]

        found = await shown("search", "What does she drink?", "--user-id", "ana")
        assert found[0]["id"] == memory_id
        table = await printed("search", "What does she drink?", "--user-id", "ana", as_="table")
        assert "green tea" in table
        got = await shown("get", memory_id)
        assert (got["memory"], got["metadata"]) == ("She drinks green tea.", {"topic": "tea"})
        changed = await shown("update", memory_id, "She drinks black tea.")
        assert changed["memory"] == "She drinks black tea."
        listed = (await shown("list", "--user-id", "ana", "--page-size", "50"))["data"]
        texts = {one["memory"] for one in listed}
        assert {"She drinks black tea.", "She plays the cello."} <= texts

        assert queued in {one["id"] for one in await shown("event", "list")}
        event = await shown("event", "status", queued)
        assert event["status"] in {"PENDING", "RUNNING", "SUCCEEDED"}
        assert [one["name"] for one in await shown("entity", "list", "users")] == ["ana"]
        assert [one["name"] for one in await shown("entity", "list", "agents")] == ["helper"]
        assert (await shown("import", str(file)))["data"] == {"added": 1, "failed": 0}

        assert (await shown("delete", memory_id, "--force", "--delete-linked"))["message"]
        left = (await shown("list", "--user-id", "ana"))["data"]
        assert memory_id not in {one["id"] for one in left}
        assert (await shown("delete", "--all", "--user-id", "ana", "--force"))["message"]
        assert (await shown("list", "--user-id", "ana"))["data"] == []
        await shown("add", "She sails.", *raw)
        assert await shown("entity", "delete", "--user-id", "ana", "--force")
        await shown("add", "He is a pilot.", "--user-id", "carl", "--no-infer")
        await shown("delete", "--all", "--project", "--force")
        assert (await shown("list"))["data"] == []
