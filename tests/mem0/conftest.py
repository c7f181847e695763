"""A client of mem0's hosted API, with the admin key of the test's tenant."""

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from tests.support.mem0 import mem0_client
from tests.support.tenants import Caller


@pytest.fixture
async def mem0(app: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with mem0_client(app, acme.key) as opened:
        yield opened
