"""A large request is read in a thread: nobody else waits for it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import thread_time

import numpy as np
from httpx import AsyncClient

from app.memory.memories.candidates import NEIGHBOURS, among_themselves, candidates
from app.memory.memories.gate import Gate
from app.memory.memories.schemas import MemoryCreate, SaidMessage
from tests.support.api import ok

LONG = "The report says that the harbour was busy and the weather was fine on that day. " * 20


@asynccontextmanager
async def longest_wait() -> AsyncIterator[list[float]]:
    """How long the event loop, which the service shares with the test, worked at a stretch."""
    waits = [0.0]

    async def tick() -> None:
        while True:
            before = thread_time()
            await asyncio.sleep(0.005)
            waits[0] = max(waits[0], thread_time() - before)

    ticker = asyncio.create_task(tick())
    try:
        yield waits
    finally:
        ticker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticker


async def test_a_batch_of_long_alike_texts_is_compared_beside_the_loop(
    client: AsyncClient,
) -> None:
    messages = [{"content": f"{LONG} There were {number} ships."} for number in range(60)]
    body = {"messages": messages, "user_id": "ana", "infer": False}

    async with longest_wait() as waits:
        results = ok(await client.post("/memories", json=body))["results"]
        checked = ok(await client.post("/memories/validate", json=body))["results"]

    assert {one["event"] for one in results} == {"ADD"}
    assert {one["event"] for one in checked} == {"NONE"}
    assert waits[0] < 1


async def test_a_mistake_that_many_messages_share_is_read_once_and_beside_the_loop(
    client: AsyncClient,
) -> None:
    body = {
        "messages": [{"content": f"It was {number}."} for number in range(100)],
        "user_id": "ana",
        "memory_type": "correction",
        "source_error": "It was not so. " * 10_000,
        "infer": False,
    }

    async with longest_wait() as waits:
        results = ok(await client.post("/memories", json=body))["results"]

    assert waits[0] < 1
    for one in results:
        [reason] = one["reasons"]
        assert (one["event"], reason["code"]) == ("REJECT", "too_long")
        assert reason["figures"] == {"field": "source_error", "length": 149_999, "maximum": 2000}


def test_a_statement_is_compared_with_its_nearest_few_alone() -> None:
    def twins_past(others: int) -> int:
        """How many twins are found where so many others lie nearer than the twin."""
        texts = ["Green tea.", *(f"It was {number}." for number in range(others)), "Tea, green."]
        body = MemoryCreate(messages=[SaidMessage(content=one) for one in texts], user_id="ana")
        fresh = candidates(body, Gate())
        for one, angle in zip(fresh, [0.5, *np.linspace(0.1, 0.2, others), 0.0], strict=True):
            one.vector = np.array([np.cos(angle), np.sin(angle)], np.float32)
        return len(among_themselves(fresh, lambda _text: 0.5))

    assert twins_past(NEIGHBOURS - 1) == 1
    assert twins_past(NEIGHBOURS) == 0
