"""A worker and a scripted model, for the tests that need one."""

from collections.abc import AsyncIterator, Iterator

import pytest

from app.runtime import Runtime
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.working import working


@pytest.fixture(scope="session")
def running_server() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest.fixture
def chat(running_server: OpenAIServer):
    """The scripted chat endpoint of the deployment."""
    running_server.reset()
    return running_server.chat


@pytest.fixture
async def worker(runtime: Runtime, dsn: str) -> AsyncIterator[None]:
    async with working(runtime, dsn):
        yield
