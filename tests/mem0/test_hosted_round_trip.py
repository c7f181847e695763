"""From mem0's hosted API here and back: its own client fills one tenant, and reads another."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.environments import ROOT, python, quiet_environment
from tests.support.mem0 import mem0_client, run_script
from tests.support.patience import PATIENCE
from tests.support.service import client_of, listening
from tests.support.tenants import Caller, make_tenant

pytestmark = pytest.mark.slow

FILL = Path(__file__).parent / "clients" / "fill_hosted.py"
MEMORIES = 134
"""What `fill_hosted.py` leaves there."""


def started(*arguments: str) -> subprocess.Popen[str]:
    """A command in a process of its own, with its bar as on a terminal."""
    return subprocess.Popen(
        [sys.executable, "-c", "from app.cli.main import cli; cli()", *arguments],
        cwd=ROOT, env=quiet_environment(TTY_COMPATIBLE="1", COLUMNS="120"), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


async def finished(*arguments: str) -> tuple[str, str]:
    """What a command printed, and its progress."""
    process = started(*arguments)
    out, err = await asyncio.to_thread(process.communicate)
    assert process.returncode == 0, f"{out}\n{err}"
    return out, err


async def count(client: AsyncClient) -> int:
    stats = await client.get("/memories/stats")
    assert stats.status_code == 200, stats.text
    return int(stats.json()["total"])


async def killed_amid(process: subprocess.Popen[str], client: AsyncClient) -> int:
    """Kill an import as soon as it has written something; how many memories that was."""
    async with asyncio.timeout(PATIENCE):
        while process.poll() is None and not await count(client):  # noqa: ASYNC110 (another process)
            await asyncio.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.communicate)
    return await count(client)


def same(shown: dict[str, Any]) -> dict[str, Any]:
    """An answer of mem0's without what another server says of itself."""
    return {name: one for name, one in shown.items() if name not in {"owner", "hash"}}


def without_metadata(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Changes without the metadata of their time: an imported one has what the memory has now."""
    return [{name: one for name, one in change.items() if name != "metadata"} for change in history]


async def test_memories_come_from_the_hosted_api_and_go_back(
    app: FastAPI, runtime: Runtime, acme: Caller, tmp_path: Path
) -> None:
    interpreter = python("mem0ai-2.2.1", "mem0ai==2.2.1")
    here, back = await make_tenant(runtime, "Here"), await make_tenant(runtime, "Back")
    async with listening(app) as port, client_of(app, here.key) as client:
        ours = f"http://127.0.0.1:{port}"
        filled = await run_script(interpreter, FILL, f"{ours}/mem0", acme.key, folder=tmp_path)
        source = json.loads(filled)
        command = [
            "import-mem0", "--mem0-url", f"{ours}/mem0", "--mem0-key", acme.key,
            "--url", ours, "--key", here.key, "--json",
        ]  # fmt: skip

        out, err = await finished(*command, "--dry-run")
        dry = json.loads(out)
        assert f"{MEMORIES}/{MEMORIES}" in err
        assert (dry["memories"], dry["inserted"]["memory"], dry["missed"]) == (
            MEMORIES,
            MEMORIES,
            0,
        )
        assert (dry["users"], dry["agents"], dry["runs"]) == (3, 1, 1)
        assert await count(client) == 0

        kept = await killed_amid(started(*command), client)
        assert 0 < kept < MEMORIES
        out, _ = await finished(*command)
        rest = json.loads(out)
        assert rest["inserted"]["memory"] == MEMORIES - kept
        assert rest["unchanged"].get("memory", 0) + rest["skipped"].get("memory", 0) == kept
        again = json.loads((await finished(*command))[0])
        assert (again["inserted"], again["refused"], again["skipped"]) == ({}, {}, {})
        assert await count(client) == MEMORIES

        async with mem0_client(app, here.key) as mem0:
            for name, was in source["shown"].items():
                path = f"/v1/memories/{source['ids'][name]}/"
                assert same((await mem0.get(path)).json()) == same(was["memory"]), name
                history = (await mem0.get(f"{path}history/")).json()
                assert without_metadata(history) == without_metadata(was["history"]), name
            missing = await mem0.get(f"/v1/memories/{source['ids']['gone']}/")
            assert missing.status_code == 404

        file = tmp_path / "mem0.jsonl"
        await finished("export", "--as", "mem0", "-o", str(file), "--url", ours, "--key", here.key)
        printed = await run_script(
            interpreter, FILL, f"{ours}/mem0", back.key, str(file), folder=tmp_path
        )
        returned = {one["metadata"]["kemem_id"]: one for one in json.loads(printed)}
        assert len(returned) == MEMORIES
        for name, was in source["shown"].items():
            one, memory = returned[source["ids"][name]], was["memory"]
            for field in (
                "memory",
                "user_id",
                "agent_id",
                "app_id",
                "session_id",
                "expiration_date",
            ):
                assert one.get(field) == memory.get(field), (name, field)
            assert one["metadata"].items() >= (memory["metadata"] or {}).items()
            assert one["metadata"]["created_at"][:19] == memory["created_at"][:19]
