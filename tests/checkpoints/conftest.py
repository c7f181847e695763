"""A session to make checkpoints of."""

import pytest
from httpx import AsyncClient

from tests.support.api import ok


@pytest.fixture
async def session(client: AsyncClient) -> None:
    ok(await client.post("/sessions", json={"session_id": "s1", "user_id": "ana"}), 201)
