"""A server that fails on request, and both clients of it."""

import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
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
    """Opens clients of the server, which wait a hundredth of a second before they try again."""
    given = httpx.Client if request.param is Memory else httpx.AsyncClient
    connections = given(verify=TRUST, trust_env=False)

    def open_one(**arguments: Any) -> Memory | AsyncMemory:
        memory = request.param(server.address, KEY, http_client=connections, **arguments)
        memory._retry_policy = replace(memory._retry_policy, first_pause=0.01)
        return memory

    yield open_one
    await ask(connections.close if request.param is Memory else connections.aclose)


@pytest.fixture
def memory(open_memory) -> Memory | AsyncMemory:
    return open_memory(timeout=20)
