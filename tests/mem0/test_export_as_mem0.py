"""`kemem export --as mem0`: lines that mem0's own `add(infer=False)` takes."""

import asyncio
import json
import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from typer.testing import CliRunner, Result

from app.cli.import_export import as_mem0
from app.cli.main import cli
from tests.support.environments import python
from tests.support.mem0 import run_script
from tests.support.service import listening
from tests.support.tenants import Caller

SCRIPTS = Path(__file__).parent / "clients"


async def export(app: FastAPI, key: str, file: Path) -> Result:
    arguments = ["export", "--as", "mem0", "-o", str(file)]
    kept = {name: None for name in os.environ if name.startswith(("MEMORY_", "MEM0_"))}
    async with listening(app) as port:
        where = ["--url", f"http://127.0.0.1:{port}", "--key", key]
        done = await asyncio.to_thread(CliRunner().invoke, cli, [*arguments, *where], env=kept)
    assert done.exit_code == 0, done.output
    return done


async def store(client: AsyncClient, text: str, **fields: Any) -> str:
    body = {"messages": text, "user_id": "ana", "infer": False}
    response = await client.post("/memories", json=body | fields)
    assert response.status_code == 201, response.text
    return response.json()["results"][0]["memory_id"]


async def test_a_line_has_the_arguments_of_add(
    app: FastAPI, client: AsyncClient, acme: Caller, tmp_path: Path
) -> None:
    file = tmp_path / "mem0.jsonl"
    memory_id = await store(
        client, "She drinks green tea. 她喜欢茶。",
        session_id="trip", metadata={"role": "assistant", "topic": "tea"},
        expires_at="2031-02-01T00:00:00Z", memory_type="preference",
    )  # fmt: skip
    deleted = await store(client, "She owns a car.")
    assert (await client.delete(f"/memories/{deleted}")).is_success
    old = await store(client, "She lives in Porto.")
    newer = {"content": "She lives in Lisbon."}
    assert (await client.post(f"/memories/{old}/supersede", json=newer)).is_success

    done = await export(app, acme.key, file)

    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 2
    assert "1 memories left out: superseded." in done.stderr
    made = (await client.get(f"/memories/{memory_id}")).json()["create_time"]
    [tea] = [line for line in lines if "tea" in line["messages"][0]["content"]]
    assert tea["metadata"].pop("created_at")[:19] == made[:19]
    assert tea["metadata"].pop("kemem_id").replace("-", "") == memory_id.removeprefix("mem_")
    assert tea == {
        "messages": [{"role": "assistant", "content": "She drinks green tea. 她喜欢茶。"}],
        "user_id": "ana",
        "run_id": "trip",
        "metadata": {"topic": "tea", "memory_type": "preference"},
        "expiration_date": "2031-01-31",
        "infer": False,
    }


def memory_line(**fields: Any) -> bytes:
    row = {
        "memory_id": "mem_" + "0" * 32, "content": "She drinks tea.", "user_id": "ana",
        "agent_id": None, "session_id": None, "metadata": {"mem0_app_id": "shop"},
        "memory_type": "fact", "status": "active", "scope": "user", "expires_at": None,
        "said_at": None, "create_time": "2026-02-01T00:00:00+00:00",
    }  # fmt: skip
    return json.dumps({"type": "memory", "row": row | fields}).encode()


def test_the_date_is_when_it_was_said_and_the_app_stays_in_metadata() -> None:
    said = "2024-05-06T07:08:09+00:00"
    lines = [memory_line(said_at=said), memory_line()]

    dated, undated = [json.loads(line)["metadata"] for line in as_mem0(lines, Counter())]

    assert dated["created_at"] == said
    assert undated["created_at"] == "2026-02-01T00:00:00+00:00"
    # mem0's `add` has no argument for it.
    assert dated["mem0_app_id"] == "shop"


def test_what_has_expired_is_left_out_and_counted() -> None:
    left_out: Counter[str] = Counter()
    now = datetime.now(UTC)
    times = [now - timedelta(seconds=1), now, now + timedelta(hours=1)]
    lines = [memory_line(expires_at=one.isoformat()) for one in times]

    assert len(list(as_mem0(lines, left_out))) == 1
    assert left_out == {"expired": 2}


@pytest.mark.slow
async def test_mem0ai_takes_every_line(
    app: FastAPI, client: AsyncClient, acme: Caller, tmp_path: Path
) -> None:
    interpreter = python("mem0ai-2.2.1-stores", "mem0ai==2.2.1", "psycopg[binary,pool]==3.2.13")
    file = tmp_path / "mem0.jsonl"
    await store(client, "She drinks green tea. 她喜欢茶。", metadata={"topic": "tea"})
    await store(client, "She lives in Lisbon.", session_id="trip")
    await export(app, acme.key, file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]

    printed = await run_script(
        interpreter, SCRIPTS / "add_lines.py", str(file), str(tmp_path), folder=tmp_path
    )

    taken = {one["memory"]: one for one in json.loads(printed)}
    assert taken.keys() == {line["messages"][0]["content"] for line in lines}
    for line in lines:
        one = taken[line["messages"][0]["content"]]
        assert one["created_at"] == line["metadata"]["created_at"]
        assert one.get("run_id") == line.get("run_id")
    assert taken["She drinks green tea. 她喜欢茶。"]["metadata"]["topic"] == "tea"
