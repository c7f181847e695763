"""A server that fails on request, and both clients of it."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from kemem import AsyncMemory, Memory
from tests.support.either_client import KEY, ask
from tests.support.flaky_server import FlakyServer, flaky_server


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
