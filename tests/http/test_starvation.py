"""A quiet tenant beside one with many callers, over the whole service: whose turn it is, by counts.

Times say nothing on a machine that does other things besides. What is counted is how many requests
of the other tenant are answered while one of the quiet tenant waits.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from statistics import median
from typing import Any

import pytest
from httpx import AsyncClient, Response

from app.runtime import Runtime
from tests.support.api import ok
from tests.support.service import client_of, service
from tests.support.tenants import make_tenant

pytestmark = pytest.mark.slow

CALLERS = 48
REQUESTS = 30
POOL = 6
MOST_BETWEEN = CALLERS // 3
"""In the order of arrival all 48 are answered first, each time that the request asks for a
connection."""

_NUMBERS = count()

Call = Callable[[AsyncClient], Awaitable[Response]]


async def append(client: AsyncClient) -> Response:
    body = {"user_id": "ana", "messages": [{"role": "user", "content": f"Day {next(_NUMBERS)}."}]}
    return await client.post(f"/sessions/s{next(_NUMBERS)}/messages", json=body)


async def save(client: AsyncClient) -> Response:
    number = next(_NUMBERS)
    body = {"user_id": f"u{number}", "messages": f"She owns boat {number}.", "infer": False}
    return await client.post("/memories", json=body)


async def search(client: AsyncClient) -> Response:
    return await client.post(
        "/memories/search", json={"user_id": "ana", "query": "What day is it?"}
    )


# Requests that hold as much of the same connections: searches have some of their own.
PAIRS = [(append, append), (append, save), (save, append), (save, save), (search, search)]


@asynccontextmanager
async def two_tenants(dsn: str, runtime: Runtime) -> AsyncIterator[tuple[AsyncClient, AsyncClient]]:
    """A loud and a quiet tenant of one service with few connections."""
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(service(dsn, database_pool_size=POOL))
        clients = [
            await stack.enter_async_context(client_of(app, (await make_tenant(runtime)).key))
            for _ in range(2)
        ]
        yield clients[0], clients[1]


class Load:
    """Callers that send one request after the other until the block ends."""

    def __init__(self, call: Callable[[], Awaitable[Response]]) -> None:
        self.answered = 0
        self.refused: list[Any] = []
        self._call = call
        self._stop = asyncio.Event()

    async def _run(self) -> None:
        while not self._stop.is_set():
            answer = await self._call()
            self.answered += 1
            if not answer.is_success:
                self.refused.append(answer.status_code)

    @asynccontextmanager
    async def running(self, callers: int) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(callers):
                tasks.create_task(self._run())
            try:
                yield
            finally:
                self._stop.set()


@pytest.mark.parametrize(
    ("quiet", "loud"), PAIRS, ids=[f"{one.__name__}-{other.__name__}" for one, other in PAIRS]
)
async def test_request_of_a_quiet_tenant_does_not_wait_for_all_of_another(
    dsn: str, runtime: Runtime, quiet: Call, loud: Call
) -> None:
    async with two_tenants(dsn, runtime) as (many, one):
        for client in (many, one):
            ok(await append(client), 201)
        load = Load(lambda: loud(many))
        between: list[int] = []
        async with load.running(CALLERS):
            while load.answered < CALLERS:  # noqa: ASYNC110 (48 callers count)
                await asyncio.sleep(0.01)
            # The other is served too, and not only after the quiet one.
            while len(between) < REQUESTS or load.answered < 2 * CALLERS:
                before = load.answered
                answer = await quiet(one)
                assert answer.is_success, answer.text
                between.append(load.answered - before)

        assert load.refused == []
        assert median(between) <= MOST_BETWEEN


async def test_tenants_are_answered_as_often_whoever_has_more_callers(
    dsn: str, runtime: Runtime
) -> None:
    async with two_tenants(dsn, runtime) as clients:
        loads = [Load(lambda client=client: append(client)) for client in clients]
        async with loads[0].running(CALLERS), loads[1].running(CALLERS // 6):
            while min(load.answered for load in loads) < 3 * CALLERS:  # noqa: ASYNC110 (many count)
                await asyncio.sleep(0.01)

        answered = [load.answered for load in loads]
        assert max(answered) <= 2 * min(answered)
        assert [load.refused for load in loads] == [[], []]
