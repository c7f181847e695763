"""mem0ai as it is published, in an environment of its own, against a service on loopback."""

import json
from pathlib import Path

import pytest
from fastapi import FastAPI

from app.runtime import Runtime
from tests.support.environments import python
from tests.support.mem0 import run_script, served_with_worker
from tests.support.tenants import Caller

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent / "clients"
TEA = "She drinks green tea in the morning."
STAMPS = "He collects old stamps."


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_version_2_calls_every_method_of_memories(
    app: FastAPI, runtime: Runtime, dsn: str, acme: Caller, tmp_path: Path, kind: str
) -> None:
    interpreter = python("mem0ai-2.2.1", "mem0ai==2.2.1")
    async with served_with_worker(app, runtime, dsn) as host:
        printed = await run_script(
            interpreter, SCRIPTS / "version_2.py", host, acme.key, kind, folder=tmp_path
        )

    got = json.loads(printed)
    assert (got["org_id"], got["project_id"]) == (acme.tenant_id, acme.tenant_id)
    [added], [stamps] = got["added"]["results"], got["by_options"]["results"]
    assert (added["event"], added["data"]["memory"]) == ("ADD", TEA)
    assert got["queued"]["status"] == "PENDING"
    assert "Lisbon" in got["remembered"][0]["memory"]
    assert added["id"] in {hit["id"] for hit in got["found"]["results"]}
    assert got["by_search_options"]["results"] == [{"id": stamps["id"], "memory": STAMPS}]
    assert got["all"]["count"] == len(got["all"]["results"]) == 3
    assert (got["page"]["count"], len(got["page"]["results"])) == (3, 2)
    assert got["page"]["next"].endswith("page=2&page_size=2")
    assert (got["one"]["memory"], got["one"]["metadata"]) == (TEA, {"topic_of": "tea"})
    assert got["updated"]["memory"] == "She drinks black tea."
    assert got["by_update_options"]["metadata"] == {"a": 1}
    assert got["by_update_options"]["expiration_date"] == "2998-01-01"
    assert got["unlimited"]["expiration_date"] is None
    assert [one["event"] for one in got["history"]][:2] == ["ADD", "UPDATE"]
    assert got["errors"] == {
        "missing": "MemoryNotFoundError", "wrong_id": "ValidationError",
        "wrong_filter": "ValidationError", "refused": "ValidationError",
        "everything": "ValidationError", "unreadable": "ValidationError",
    }  # fmt: skip
    assert {(one["type"], one["name"]) for one in got["users"]["results"]} == {
        ("app", "shop"), ("run", "chat-1"), ("agent", "helper"), ("user", "ana"), ("user", "bo"),
        ("user", "lisa"),
    }  # fmt: skip
    assert got["deleted"] == {"message": "Memory deleted successfully!", "cascade_count": 0}
    assert got["gone"] == "MemoryNotFoundError"
    assert got["deleted_all"]["deleted"] == 1
    assert got["deleted_user"] == {"message": "Entity deleted successfully."}
    assert "reset successful" in got["reset"]["message"]
    assert got["left"]["results"] == []


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_version_1_calls_the_methods_of_memories(
    app: FastAPI, runtime: Runtime, dsn: str, acme: Caller, tmp_path: Path, kind: str
) -> None:
    interpreter = python("mem0ai-1.0.11", "mem0ai==1.0.11")
    async with served_with_worker(app, runtime, dsn) as host:
        printed = await run_script(
            interpreter, SCRIPTS / "version_1.py", host, acme.key, kind, folder=tmp_path
        )

    got = json.loads(printed)
    assert (got["org_id"], got["project_id"]) == (acme.tenant_id, acme.tenant_id)
    [added] = got["added"]["results"]
    assert added["event"] == "ADD"
    assert got["queued"]["results"][0]["status"] == "PENDING"
    assert "jazz" in got["read"]["results"][0]["memory"]
    for listed in ("found", "filtered", "all", "page"):
        assert [one["id"] for one in got[listed]["results"]] == [added["id"]], listed
    assert got["page"]["count"] == 1
    assert (got["one"]["memory"], got["one"]["metadata"]) == (TEA, {"topic": "tea"})
    assert got["updated"]["memory"] == "She drinks black tea."
    assert [one["event"] for one in got["history"]] == ["ADD", "UPDATE"]
    assert {one["type"] for one in got["users"]["results"]} >= {"run", "agent", "user"}
    assert got["deleted"]["message"] == "Memory deleted successfully!"
    assert got["gone"] == {"sync": "MemoryNotFoundError", "async": "HTTPStatusError"}[kind]
    assert got["deleted_all"]["deleted"] >= 1
    assert "reset successful" in got["reset"]["message"]
