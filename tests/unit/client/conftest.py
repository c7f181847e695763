"""A server that fails on request, and both clients of it."""

import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest

from kemem import AsyncMemory, Memory
from tests.support.either_client import KEY, ask
from tests.support.flaky_server import FlakyServer, flaky_server

TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody: nothing here is encrypted, and reading all authorities takes 20 ms a client."""


@pytest.fixture
def server() -> Iterator[FlakyServer]:
    with flaky_server() as running:
        yield running


@pytest.fixture(params=[Memory, AsyncMemory])
async def open_memory(request, server) -> AsyncIterator[Callable[..., Memory | AsyncMemory]]:
    """Opens a client of the server with further arguments; closed at the end."""
    opened: list[Memory | AsyncMemory] = []

    def open_one(**arguments: Any) -> Memory | AsyncMemory:
        opened.append(request.param(server.address, KEY, **arguments))
        return opened[-1]

    yield open_one
    for one in opened:
        await ask(one.close)


@pytest.fixture
async def memory(open_memory, request) -> AsyncIterator[Memory | AsyncMemory]:
    """A client with connections that were given to it; `open_memory` opens one with its own."""
    if request.node.callspec.params["open_memory"] is Memory:
        with httpx.Client(verify=TRUST, trust_env=False) as connections:
            yield open_memory(timeout=20, http_client=connections)
    else:
        async with httpx.AsyncClient(verify=TRUST, trust_env=False) as connections:
            yield open_memory(timeout=20, http_client=connections)
