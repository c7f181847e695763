"""A reader that takes nothing loses stream, transaction and slot; a slow one does not."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from time import monotonic

from httpx import AsyncClient
from starlette.types import Message

from app.governance.exports.router import PIECE_BYTES
from app.governance.exports.service import ExportSlots
from app.runtime import Runtime
from tests.exports.exports_support import many, reading
from tests.support.api import append
from tests.support.model_service import app_of
from tests.support.patience import PATIENCE
from tests.support.service import client_of, listening
from tests.support.tenants import Caller


@asynccontextmanager
async def asking(port: int, caller: Caller) -> AsyncIterator[socket.socket]:
    """A socket by which an export was asked for, and which takes little at a time."""
    loop = asyncio.get_running_loop()
    with closing(socket.socket()) as asked:
        asked.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        asked.setblocking(False)
        await loop.sock_connect(asked, ("127.0.0.1", port))
        request = f"GET /v1/export HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {caller.key}\r\n"
        await loop.sock_sendall(asked, f"{request}\r\n".encode())
        assert (await loop.sock_recv(asked, 12)).startswith(b"HTTP/1.1 200")
        yield asked


async def until_free(client: AsyncClient) -> None:
    """Wait until an export may begin."""
    async with asyncio.timeout(PATIENCE):
        while (await client.get("/export")).status_code == 503:  # noqa: ASYNC110 (time brings it)
            await asyncio.sleep(0.1)


async def test_who_reads_nothing_loses_transaction_and_slot(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    """More is to be sent than sockets hold."""
    await append(client, "talk", "I am ana.")
    await many(dsn, acme, 10_000)
    before = await reading(dsn)
    hasty = replace(runtime, export_slots=ExportSlots(3, stalled_seconds=1.0))
    async with (
        app_of(hasty) as application,
        listening(application) as port,
        asking(port, acme) as asked,
        client_of(application, acme.key) as again,
    ):
        await until_free(again)
        assert await reading(dsn) == before

        told = b""
        async with asyncio.timeout(PATIENCE):
            while more := await asyncio.get_running_loop().sock_recv(asked, 1_000_000):
                told = told[-100:] + more

    # Neither the end of the export, nor that of the answer.
    assert b'"type":"end"' not in told
    assert not told.endswith(b"0\r\n\r\n")


async def test_who_reads_slowly_gets_all(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    """Every piece takes a while, and all together longer than a reader may pause."""
    await append(client, "talk", "I am ana.")
    await many(dsn, acme, 900)
    hasty = replace(runtime, export_slots=ExportSlots(3, stalled_seconds=2.0))
    pieces: list[bytes] = []

    async def slowly(message: Message) -> None:
        await asyncio.sleep(0.1)
        pieces.append(message.get("body", b""))

    async def silent() -> Message:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
        "method": "GET", "scheme": "http", "path": "/v1/export", "query_string": b"",
        "headers": [(b"authorization", f"Bearer {acme.key}".encode())],
    }  # fmt: skip
    async with app_of(hasty) as application:
        started = monotonic()
        await application.state.reached(scope, silent, slowly)

    assert monotonic() - started > 2
    assert max(map(len, pieces)) == PIECE_BYTES
    assert b'"type":"end"' in b"".join(pieces)
