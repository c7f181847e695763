"""Making the OpenAPI document takes a second, in which others are answered."""

import asyncio
import json
import time
from contextlib import nullcontext

from httpx import ASGITransport, AsyncClient

from app.main import create_app


async def test_the_document_is_made_beside_other_requests() -> None:
    app = create_app(nullcontext())
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
        began = last = time.perf_counter()
        longest = 0.0
        both = asyncio.gather(client.get("/openapi.json"), client.get("/openapi.json"))
        while not both.done():
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        first, second = await both

    assert longest < (last - began) / 2
    assert first.status_code == 200
    # Whoever comes while it is made gets the whole, too.
    assert first.content == second.content
    assert json.loads(first.content) == app.openapi()
    assert "securitySchemes" in first.json()["components"]
