"""A real HTTP server that is told of events, remembers them, and misbehaves on request.

It speaks HTTP by hand: a server library would neither hang up in the middle of an answer nor
send one that is none. `script` queues behaviours for the next requests, `otherwise` is used
when the queue is empty.
"""

import asyncio
import contextlib
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from standardwebhooks.webhooks import Webhook

from tests.support.patience import PATIENCE


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def event_id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self, secret: str) -> Any:
        """The event, if somebody else's implementation believes the signature."""
        return Webhook(secret).verify(self.body, dict(self.headers))


Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]


# Behaviours, to be queued with `script` or set with `otherwise`.


def answering(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    async def behave(writer: asyncio.StreamWriter) -> None:
        sent = {"content-length": str(len(body))} | headers
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in sent.items()]
        writer.write("\r\n".join([f"HTTP/1.1 {status} So", *lines, "", ""]).encode() + body)
        await writer.drain()

    return behave


def slow(seconds: float) -> Behaviour:
    async def behave(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await answering(200)(writer)

    return behave


def held(released: asyncio.Event) -> Behaviour:
    async def behave(writer: asyncio.StreamWriter) -> None:
        await released.wait()
        await answering(200)(writer)

    return behave


async def hanging_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


async def talking_nonsense(writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example.com ESMTP\r\n")
    writer.close()


async def accepting_without_end(writer: asyncio.StreamWriter) -> None:
    """Says 200 and then goes on for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        while not writer.is_closing():
            writer.write(b"x" * 65536)
            await writer.drain()


async def accepting_and_falling_silent(writer: asyncio.StreamWriter) -> None:
    """Says 200 and promises a body that never comes."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n")
    await writer.drain()
    await asyncio.sleep(60)


class Receiver:
    """What a test sees of the server."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[Received] = []
        self.connections = 0
        self.otherwise: Behaviour = answering(200)
        self._script: deque[Behaviour] = deque()
        self._came = asyncio.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def event_ids(self) -> list[str]:
        return [request.event_id for request in self.requests]

    def script(self, *behaviours: Behaviour) -> None:
        """Use these for the next requests, one each."""
        self._script.extend(behaviours)

    async def received(self, count: int) -> list[Received]:
        """All requests, once there are so many."""
        async with asyncio.timeout(PATIENCE), self._came:
            await self._came.wait_for(lambda: len(self.requests) >= count)
        return self.requests

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while not writer.is_closing():
                    request = await _read(reader)
                    behave = self._script.popleft() if self._script else self.otherwise
                    async with self._came:
                        self.requests.append(request)
                        self._came.notify_all()
                    await behave(writer)
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body)


@asynccontextmanager
async def webhook_receiver(tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver on a free port of this machine."""
    receiver = Receiver()
    talks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        try:
            await receiver.serve(reader, writer)
        except asyncio.CancelledError:
            # The test is over; asyncio would report the cancellation as a failure.
            return
        finally:
            talks.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in list(talks):
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await server.wait_closed()
