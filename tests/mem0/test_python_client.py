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


async def test_version_2_adds_searches_and_gets(
    app: FastAPI, runtime: Runtime, dsn: str, acme: Caller, tmp_path: Path
) -> None:
    interpreter = python("mem0ai-2.2.1", "mem0ai==2.2.1")
    async with served_with_worker(app, runtime, dsn) as host:
        printed = await run_script(
            interpreter, SCRIPTS / "add_search_get.py", host, acme.key, folder=tmp_path
        )

    got = json.loads(printed)
    [added] = got["sync"]["added"]["results"]
    assert added["event"] == "ADD"
    assert got["sync"]["queued"]["status"] == "PENDING"
    assert got["sync"]["one"]["metadata"] == {"topic": "tea"}
    for answers in (got["sync"], got["async"]):
        assert added["id"] in {hit["id"] for hit in answers["found"]["results"]}
