"""The lines of docs/mcp.md that a desktop is configured with, each used as that desktop does."""

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from app.integrations.mcp.toolset import MCP_TOOLS
from tests.support.desktop import called
from tests.support.patience import PATIENCE
from tests.support.service import listening
from tests.support.tenants import Caller, make_key

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8000"
# Where each desktop looks for servers in its file.
TABLES = {
    "Claude Desktop": "mcpServers", "Claude Code": "mcpServers", "Cursor": "mcpServers",
    "VS Code": "servers", "Codex": "mcp_servers", "Zed": "context_servers",
}  # fmt: skip


def section(desktop: str) -> str:
    return PAGE.split(f"### {desktop}\n")[1].split("\n### ")[0]


def configured(desktop: str) -> dict[str, Any]:
    """The entry of the server in the file of a desktop."""
    kind, block = re.findall(r"```(json|toml)\n(.*?)```", section(desktop), re.DOTALL)[-1]
    file = json.loads(block) if kind == "json" else tomllib.loads(block)
    return file[TABLES[desktop]]["kemem"]


def headers_of(entry: Mapping[str, Any], key: str) -> dict[str, str]:
    """With what the desktop puts in: an environment variable, or what its user typed."""
    headers: dict[str, str] = dict(entry.get("headers", {}))
    if "bearer_token_env_var" in entry:
        assert entry["bearer_token_env_var"] == "KEMEM_API_KEY"
        headers["Authorization"] = f"Bearer {key}"
    places = r"\$\{(env:)?KEMEM_API_KEY\}|\$\{input:kemem-key\}|YOUR_KEY"
    return {name: re.sub(places, key, value) for name, value in headers.items()}


@pytest.fixture
async def key(runtime, acme: Caller) -> str:
    return (await make_key(runtime, acme.tenant_id, "write", user_id="ana")).key


@pytest.mark.parametrize("desktop", [name for name in TABLES if name != "Claude Desktop"])
async def test_a_desktop_connects_by_address(app, key: str, desktop: str) -> None:
    entry = configured(desktop)
    assert entry["url"] == f"{ADDRESS}/mcp"
    async with (
        listening(app) as port,
        httpx2.AsyncClient(headers=headers_of(entry, key), timeout=PATIENCE) as http,
        Client(
            streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http), mode="legacy"
        ) as client,
    ):
        assert (await called(client, "memory_save", content="Ana sails."))["event"] == "ADD"


async def test_claude_desktop_starts_the_program(app, key: str) -> None:
    entry = configured("Claude Desktop")
    assert entry["command"].endswith("/kemem-mcp")
    assert entry["env"]["KEMEM_URL"] == ADDRESS
    async with listening(app) as port:
        environment = {
            name: value.replace("YOUR_KEY", key).replace(":8000", f":{port}")
            for name, value in entry["env"].items()
        }
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "kemem.mcp", *entry.get("args", ())],
            env={"PYTHONPATH": str(ROOT)} | environment,
        )
        async with Client(server, mode="legacy") as client:
            assert (await called(client, "memory_save", content="Ana sails."))["event"] == "ADD"


async def test_the_command_of_claude_code_has_the_same_in_it() -> None:
    [command] = re.findall(r"```sh\n(claude .*?)```", PAGE, re.DOTALL)
    words = shlex.split(command)

    assert words[:6] == ["claude", "mcp", "add", "--transport", "http", "kemem"]
    assert words[6] == configured("Claude Code")["url"]
    assert words[7:] == ["--header", "Authorization: Bearer YOUR_KEY"]


def test_every_tool_is_listed_with_its_scope() -> None:
    listed = dict(re.findall(r"^\| `(\w+)` \|.*\| (read|write) \|$", PAGE, re.MULTILINE))

    assert listed == {name: tool.scope for name, tool in MCP_TOOLS.items()}
