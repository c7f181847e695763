"""`processors`: what is asked, what is read of it, and that it is what the service says."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from httpx import ASGITransport

from app.runtime import Runtime
from kemem import AsyncMemory, ForbiddenError
from tests.support.tenants import Caller, make_key


@pytest.fixture
async def of(app: FastAPI) -> AsyncIterator[Any]:
    """A client of the service for a key."""
    transport = ASGITransport(app.state.reached)
    async with httpx.AsyncClient(transport=transport) as client:
        yield lambda key: AsyncMemory("http://test", key, http_client=client)


async def test_processors_take_an_admin_key(of: Any, acme: Caller, runtime: Runtime) -> None:
    reader = await make_key(runtime, acme.tenant_id, "write")

    assert list(await of(acme.key).processors()) == []
    with pytest.raises(ForbiddenError):
        await of(reader.key).processors()
