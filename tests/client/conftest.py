"""A client of the real service. Nothing of the service is imported here."""

from collections.abc import AsyncIterator

import httpx
import pytest
from httpx import ASGITransport

from kemem import AsyncMemory


def client_of(app, key: str) -> AsyncMemory:
    """An async client of the service in this process."""
    transport = ASGITransport(app.state.reached, raise_app_exceptions=False)
    return AsyncMemory("http://test", key, http_client=httpx.AsyncClient(transport=transport))


@pytest.fixture
async def memory_of_acme(app, acme) -> AsyncIterator[AsyncMemory]:
    """An async client of the service with the key of a tenant."""
    async with client_of(app, acme.key) as opened:
        yield opened
