"""What an export keeps away from the event loop.

Measured is the processor's time of the loop's thread between two of its turns: other processes have
no part in it.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from httpx import AsyncClient

from tests.support.api import ok, save

MOST_SECONDS = 0.006
"""Half of what putting together the statements of one table takes."""


@asynccontextmanager
async def longest_turn() -> AsyncIterator[list[float]]:
    """The longest that the loop's thread worked within the block without a turn for others."""
    longest = [0.0]

    async def watch() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest[0] = max(longest[0], now - before)
            before = now

    gc.collect()
    gc.disable()
    watching = asyncio.create_task(watch())
    try:
        yield longest
    finally:
        watching.cancel()
        gc.enable()


async def test_export_puts_its_statements_together_beside_the_loop(client: AsyncClient) -> None:
    await save(client, "She drinks green tea.")
    ok(await client.get("/users/ana"))

    for params in ({}, {"user_id": "ana"}):
        async with longest_turn() as longest:
            answer = await client.get("/export", params=params)
        assert answer.text.splitlines()[-1].startswith('{"counts"')
        assert longest[0] < MOST_SECONDS
