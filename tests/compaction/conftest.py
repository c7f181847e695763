"""A scripted model and long conversations, for all tests of this folder."""

import itertools
from collections.abc import Iterator

import pytest

from tests.support.openai_server import OpenAIServer, openai_server


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
def numbers() -> Iterator[int]:
    return itertools.count(1)
