"""A desktop that speaks the Model Context Protocol: the official client, over either transport."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from fastapi import FastAPI
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.patience import PATIENCE

URL = "http://test/mcp"


@asynccontextmanager
async def desktop(
    app: FastAPI, key: str, *, mode: str = "legacy", **headers: str
) -> AsyncIterator[Client]:
    """The official client with a key; `mode` is `legacy` for versions up to 2025-11-25."""
    headers = {"Authorization": f"Bearer {key}"} | headers
    transport = httpx2.ASGITransport(app.state.reached, raise_app_exceptions=False)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers, timeout=PATIENCE) as http,
        Client(streamable_http_client(URL, http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def held(app: FastAPI, key: str) -> AsyncIterator[Client]:
    """A desktop for a fixture: opened and closed in one task, as the client demands."""
    opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def hold() -> None:
        async with desktop(app, key) as client:
            opened.set_result(client)
            await done.wait()

    holding = asyncio.create_task(hold())
    await asyncio.wait([holding, opened], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield opened.result() if opened.done() else await holding
    finally:
        done.set()
        await holding


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that comes to pass; the client has checked it against the
    schema of the tool.
    """
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def told(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a call that comes to pass."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.content[0].text


async def refused(client: Client, tool: str, **arguments: Any) -> tuple[str, str]:
    """The code and the sentence of a call that does not come to pass."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    code, _, sentence = result.content[0].text.partition(": ")
    assert (result.meta or {})["code"] == code
    return code, sentence
