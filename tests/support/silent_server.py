"""A server that takes every connection and never answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """Its base URL."""

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Until the client has gone.
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1"
