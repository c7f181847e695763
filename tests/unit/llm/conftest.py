"""One scripted provider and one local model for all tests of this folder."""

import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from openai import AsyncOpenAI

from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from tests.support.openai_server import OpenAIServer, openai_server


@pytest.fixture(scope="session")
def running_server() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest.fixture
def server(running_server: OpenAIServer) -> OpenAIServer:
    running_server.reset()
    return running_server


@pytest.fixture
async def client(server: OpenAIServer) -> AsyncIterator[AsyncOpenAI]:
    """Without retries, so that each failure arrives at once."""
    async with server.client() as client:
        yield client


@pytest.fixture(scope="session")
def wordllama() -> WordLlamaEmbedder:
    return WordLlamaEmbedder.load()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What a held answer waits for; none outlives its test."""
    event = threading.Event()
    yield event
    event.set()
