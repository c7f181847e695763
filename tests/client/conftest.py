"""A server that fails on request, both clients of it, and a client of the real service.

Nothing of the service is imported here, so that tests without it start fast.
"""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from httpx import ASGITransport

from kemem import AsyncMemory, Memory
from tests.support.flaky_server import FlakyServer, flaky_server

KEY = "kem_0123456789abcdef_secret"


async def ask(method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What a method of either client gives."""
    answer = method(*arguments, **named)
    return await answer if inspect.isawaitable(answer) else answer


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
def memory(open_memory) -> Memory | AsyncMemory:
    return open_memory(timeout=20)


def client_of(app, key: str) -> AsyncMemory:
    """An async client of the service in this process."""
    transport = ASGITransport(app.state.reached, raise_app_exceptions=False)
    return AsyncMemory("http://test", key, http_client=httpx.AsyncClient(transport=transport))


@pytest.fixture
async def memory_of_acme(app, acme) -> AsyncIterator[AsyncMemory]:
    """An async client of the service with the key of a tenant."""
    async with client_of(app, acme.key) as opened:
        yield opened
