"""Further instances of the service, for settings of their own, and what they say to PostgreSQL."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import uvicorn
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from app.deployment import open_providers
from app.language.llm.reranker_catalogue import connect_reranker
from app.runtime import open_runtime
from app.settings import Settings
from tests.support.application import started
from tests.support.databases import served
from tests.support.patience import PATIENCE

USAGE_FLUSH: Final = timedelta(milliseconds=200)
"""Tests wait for what is counted; nobody else does. At 50 ms the writing took a thirteenth of all
that they computed."""

SELDOM: Final = timedelta(hours=1)
"""For tests in which no count may be written meanwhile."""

SECRET_KEY: Final = "a" * 43 + "="
"""What encrypts the secrets of webhooks."""


def settings_of(**chosen) -> Settings:
    """Settings of a deployment that has a key for secrets; the environment is not read."""
    return Settings(_env_file=None, **({"secret_key": SECRET_KEY} | chosen))


@asynccontextmanager
async def service(
    dsn: str,
    *,
    usage_flush: timedelta = USAGE_FLUSH,
    rerank_within: timedelta | None = timedelta(seconds=PATIENCE),
    **settings,
) -> AsyncIterator[FastAPI]:
    """The whole service on the database at `dsn`, reached with `client_of`.

    A reranker has `rerank_within` for its scores, or with None as long as in a deployment.
    """
    chosen = settings_of(**settings)
    async with AsyncExitStack() as stack:
        providers = None
        if chosen.rerank_model is not None and rerank_within is not None:
            opened = await stack.enter_async_context(open_providers(chosen))
            patient = connect_reranker(chosen.rerank_model, api_key=None, timeout=rerank_within)
            stack.push_async_callback(patient.aclose)
            providers = replace(opened, reranker=patient)
        opening = open_runtime(chosen, served(dsn), usage_flush=usage_flush, providers=providers)
        yield await stack.enter_async_context(started(opening))


def client_of(app: FastAPI, key: str | None) -> AsyncClient:
    """A client that carries `key`, or none."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    transport = ASGITransport(app.state.reached, raise_app_exceptions=False)
    return AsyncClient(
        transport=transport, base_url="http://test/v1", headers=headers, timeout=PATIENCE
    )


@asynccontextmanager
async def listening(application: FastAPI) -> AsyncIterator[int]:
    """A service behind a real socket of this machine; its port."""
    config = uvicorn.Config(
        application.state.reached, port=0, lifespan="off", log_config=None,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    with closing(config.bind_socket()) as held:
        running = asyncio.create_task(server.serve([held]))
        while not server.started:  # noqa: ASYNC110 (uvicorn tells nobody)
            await asyncio.sleep(0.01)
        try:
            yield held.getsockname()[1]
        finally:
            server.should_exit = True
            await running


class Wire:
    """What a proxy before PostgreSQL saw; `round_trips` are waits of the client."""

    def __init__(self) -> None:
        self.round_trips = 0

    def read(self, data: bytes) -> bytes:
        """Count whole messages and return the rest, which is not complete yet."""
        while len(data) >= 5:
            length = 1 + int.from_bytes(data[1:5], "big")
            if len(data) < length:
                break
            # A simple query, or the Sync that ends an extended one, or a Flush before it.
            if data[:1] in b"QSH":
                self.round_trips += 1
            data = data[length:]
        return data

    async def settled(self, ask: Callable[[], Awaitable[Any]]) -> int:
        """Round trips of `ask`, once two runs of it cost the same: what is read side by side opens
        connections, and prepares statements on each, when it happens to meet.
        """
        counts = [-1]
        async with asyncio.timeout(PATIENCE):
            while True:
                before = self.round_trips
                await ask()
                counts.append(self.round_trips - before)
                if counts[-1] == counts[-2]:
                    return counts[-1]


@asynccontextmanager
async def wiretap(dsn: str) -> AsyncIterator[tuple[Wire, str]]:
    """A socket before the server of `dsn`; yields what it counts and the way through it."""
    parts = urlsplit(dsn)
    options = parse_qs(parts.query)
    port = options["port"][0]
    target = f"{options['host'][0]}/.s.PGSQL.{port}"
    wire = Wire()
    pumps: set[asyncio.Task[None]] = set()

    async def pump(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool
    ) -> None:
        rest, started = b"", False
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                if counted:
                    rest += data
                    if not started:
                        # The first message has a length and no kind.
                        rest, started = rest[int.from_bytes(rest[:4], "big") :], True
                    rest = wire.read(rest)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_unix_connection(target)
        for one in (pump(reader, forth, counted=True), pump(back, writer, counted=False)):
            task = asyncio.create_task(one)
            pumps.add(task)
            task.add_done_callback(pumps.discard)

    with tempfile.TemporaryDirectory(prefix="kemem-wire-", dir="/tmp") as folder:
        server = await asyncio.start_unix_server(connected, str(Path(folder) / f".s.PGSQL.{port}"))
        query = f"host={quote(folder, safe='')}&port={port}"
        try:
            yield wire, urlunsplit(parts._replace(query=query))
        finally:
            server.close()
            await asyncio.gather(*pumps, return_exceptions=True)
            await server.wait_closed()


@asynccontextmanager
async def tapped(dsn: str, key: str, **settings) -> AsyncIterator[tuple[Wire, AsyncClient]]:
    """A service of one client, and what it says to PostgreSQL: nobody else asks meanwhile.

    No worker looks for work or begins what was ordered, and no count is written.
    """
    async with (
        wiretap(dsn) as (wire, way),
        service(way, usage_flush=SELDOM, worker_enabled=False, **settings) as app,
        client_of(app, key) as client,
    ):
        yield wire, client
