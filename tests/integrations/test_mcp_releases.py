"""Earlier releases of the official client, each in an environment of its own, on both transports.

A release speaks the newest version of the protocol that it knows: 1.12 is of 2025-06-18, 1.27 of
2025-11-25.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.environments import python
from tests.support.service import listening
from tests.support.tenants import Caller, make_key

ROOT = Path(__file__).parents[2]
RELEASES = {"1.12.4": "2025-06-18", "1.27.2": "2025-11-25"}

PROGRAM = """
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

def opened():
    if sys.argv[1] == "http":
        key = os.environ["KEMEM_API_KEY"]
        headers = {"Authorization": f"Bearer {key}"}
        return streamablehttp_client(os.environ["KEMEM_URL"] + "/mcp", headers=headers)
    return stdio_client(StdioServerParameters(
        command=os.environ["PROGRAM"], args=["-m", "kemem.mcp"], env=dict(os.environ)))

async def main():
    async with opened() as streams, ClientSession(streams[0], streams[1]) as session:
        hello = await session.initialize()
        tools = (await session.list_tools()).tools
        saved = await session.call_tool("memory_save", {"content": "Ana sails on Sundays."})
        found = await session.call_tool("memory_search", {"query": "When does Ana sail?"})
        wrong = await session.call_tool("memory_search", {"query": "tea", "k": 51})
        resources = (await session.list_resources()).resources
        templates = (await session.list_resource_templates()).resourceTemplates
        read = await session.read_resource(resources[0].uri)
        try:
            await session.read_resource("kemem://blocks/blk_no")
        except Exception as error:
            missing = error.error.code
    print(json.dumps({
        "version": hello.protocolVersion, "server": hello.serverInfo.name,
        "tools": len(tools), "hints": tools[0].annotations.readOnlyHint,
        "saved": saved.structuredContent["event"], "found": len(found.structuredContent["items"]),
        "text": found.content[0].text, "wrong": wrong.isError, "missing": missing,
        "resource": str(resources[0].uri), "templates": len(templates),
        "mime": read.contents[0].mimeType,
    }))

asyncio.run(main())
"""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("release", RELEASES)
async def test_a_release_saves_finds_and_reads(
    app, runtime, acme: Caller, release: str, transport: str
) -> None:
    interpreter = python(f"mcp-{release}", f"mcp=={release}", "httpx==0.28.1", "pydantic==2.11.9")
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
    async with listening(app) as port:
        environment = {
            "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PROGRAM": str(interpreter),
            "KEMEM_URL": f"http://127.0.0.1:{port}", "KEMEM_API_KEY": key.key,
        }  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            interpreter, "-c", PROGRAM, transport, env=environment,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    told: dict[str, Any] = json.loads(out)

    assert "Ana sails on Sundays." in told.pop("text")
    assert told == {
        "version": RELEASES[release], "server": "kemem", "tools": 9, "hints": True, "saved": "ADD",
        "found": 1, "wrong": True, "missing": -32002, "resource": "kemem://users/ana/profile",
        "templates": 2, "mime": "text/plain",
    }  # fmt: skip
