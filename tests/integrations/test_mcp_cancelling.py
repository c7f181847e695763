"""A desktop that does not wait for the answer: the service goes on, and so does the desktop."""

import asyncio

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.desktop import called
from tests.support.locks import holding, until_somebody_waits
from tests.support.patience import PATIENCE
from tests.support.service import listening
from tests.support.tenants import Caller


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_cancelled_call_leaves_everything_as_it_was(
    app, dsn: str, acme: Caller, mode: str
) -> None:
    headers = {"Authorization": f"Bearer {acme.key}", "KeMem-User": "ana"}
    async with (
        listening(app) as port,
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
        Client(
            streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http), mode=mode
        ) as client,
    ):
        await called(client, "memory_save", content="Ana sails on Sundays.")
        async with holding(dsn, "LOCK TABLE memories IN ACCESS EXCLUSIVE MODE") as holder:
            call = asyncio.create_task(client.call_tool("memory_list", {}))
            await until_somebody_waits(dsn, holder)
            call.cancel()
            await asyncio.wait([call])
            # Others are answered meanwhile.
            assert len((await client.list_tools(cache_mode="bypass")).tools) == 9
        # More calls at once than there are connections to the database: none was lost.
        answers = await asyncio.gather(*(called(client, "memory_list") for _ in range(20)))

    assert call.cancelled()
    assert all(len(answer["items"]) == 1 for answer in answers)
