"""A program for mem0's self-hosted server, as it is published: its tools come from the document."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support.environments import python, quiet_environment
from tests.support.service import listening
from tests.support.tenants import Caller

pytestmark = pytest.mark.slow

ENTITY = {"entity_type": "run", "entity_id": "旅行"}


@asynccontextmanager
async def bridge(address: str, key: str) -> AsyncIterator[ClientSession]:
    """mem0-selfhosted-fastmcp, a bridge of others from MCP to mem0's server."""
    interpreter = python(
        "mem0-selfhosted-fastmcp-0.1.4", "fastmcp==3.2.4", "httpx==0.28.1",
        for_newer=["mem0-selfhosted-fastmcp==0.1.4"],
    )  # fmt: skip
    parameters = StdioServerParameters(
        command=str(interpreter),
        args=["-m", "mem0_selfhosted_fastmcp.server"],
        env=quiet_environment(MEM0_BASE_URL=address, MEM0_API_KEY=key),
        cwd=Path(interpreter).parent,
    )
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield session


async def call(session: ClientSession, tool: str, **arguments: Any) -> Any:
    answer = await session.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return json.loads(answer.content[0].text)


async def test_every_tool_of_a_bridge_for_the_server(app: FastAPI, acme: Caller) -> None:
    async with listening(app) as port:
        address = f"http://127.0.0.1:{port}/mem0-oss"
        async with bridge(address, acme.key) as session:
            tools = {tool.name for tool in (await session.list_tools()).tools}
            assert tools == {
                "add_memory", "list_memories", "search_memories", "get_memory", "update_memory",
                "delete_memory", "delete_all_memories", "memory_history", "list_entities",
                "delete_entity",
            }  # fmt: skip
            said = [{"role": "user", "content": "她喜欢绿茶。"}]
            added = await call(session, "add_memory", messages=said, user_id="ana", infer=False)
            memory_id = added["results"][0]["id"]
            trip = [{"role": "user", "content": "She rows."}]
            await call(
                session, "add_memory", messages=trip, user_id="ana", run_id="旅行", infer=False
            )

            found = await call(session, "search_memories", query="绿茶", user_id="ana", top_k=1)
            assert [one["id"] for one in found["results"]] == [memory_id]
            listed = await call(session, "list_memories", user_id="ana")
            assert {one["memory"] for one in listed["results"]} == {"她喜欢绿茶。", "She rows."}
            change = {"text": "她喜欢红茶。", "metadata": {"topic": "tea"}}
            await call(session, "update_memory", memory_id=memory_id, **change)
            one = await call(session, "get_memory", memory_id=memory_id)
            assert (one["memory"], one["metadata"]) == ("她喜欢红茶。", {"topic": "tea"})
            history = await call(session, "memory_history", memory_id=memory_id)
            events = history["result"] if isinstance(history, dict) else history
            assert [entry["event"] for entry in events] == ["ADD", "UPDATE"]

            named = await call(session, "list_entities")
            entities = named["result"] if isinstance(named, dict) else named
            assert {(one["type"], one["id"]) for one in entities} == {
                ("user", "ana"), ("run", "旅行"),
            }  # fmt: skip
            await call(session, "delete_entity", **ENTITY)
            await call(session, "delete_memory", memory_id=memory_id)
            left = await call(session, "list_memories", user_id="ana")
            assert left["results"] == []
            await call(session, "add_memory", messages=trip, user_id="ana", infer=False)
            await call(session, "delete_all_memories", user_id="ana")
            left = await call(session, "list_memories", user_id="ana")
            assert left["results"] == []
            missing = await session.call_tool("get_memory", {"memory_id": memory_id})
            assert missing.is_error
