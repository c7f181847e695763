"""Sending calls over HTTP: attempts, pauses, pages."""

from asyncio import sleep
from types import TracebackType
from typing import Protocol, Self, TypeVar

import httpx

from kemem.calls import Call, Operation, Page
from kemem.client import MAX_RETRIES, TIMEOUT_SECONDS, BaseMemory
from kemem.errors import ApiError

Result = TypeVar("Result")


class AsyncSend(Protocol):
    async def __call__(self, call: Call[Result]) -> Result: ...


class AsyncCollect(Protocol):
    async def __call__(self, first: Call[Page[Result]], limit: int | None) -> list[Result]: ...


class AsyncSender(BaseMemory):
    """The connections of a client, and how calls are sent over them."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        max_retries: int = MAX_RETRIES,
        http_client: httpx.AsyncClient | None = None,
        acting_user: str | None = None,
    ) -> None:
        super().__init__(base_url, api_key, timeout, max_retries, acting_user)
        self._owned = http_client is None
        self._http = http_client or httpx.AsyncClient(trust_env=self._uses_environment)

    async def close(self) -> None:
        """Close the connections, unless `http_client` was given; safe to repeat.

        No call works afterwards.
        """
        if self._owned:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _send(self, call: Call[Result]) -> Result:
        exchange = self._exchange(call)
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = await self._http.send(
                    exchange.request(self._http), auth=None, follow_redirects=False
                )
            except httpx.RequestError as error:
                outcome = error
            pause = exchange.pause(outcome)
            if pause is None:
                return exchange.result(outcome)
            await sleep(pause)

    async def _collect(self, first: Call[Page[Result]], limit: int | None) -> list[Result]:
        """The rows of as many pages as `limit` needs; None means all pages."""
        rows: list[Result] = []
        call: Call[Page[Result]] | None = first
        while call is not None and (limit is None or len(rows) < limit):
            page = await self._send(call)
            rows += page.items
            call = page.following
        return rows[:limit]

    async def _run(self, operation: Operation[Result]) -> Result:
        """Run an operation to its end and return its result."""
        try:
            request = next(operation)
            while True:
                if isinstance(request, float):
                    await sleep(request)
                    request = next(operation)
                    continue
                try:
                    answer = await self._send(request)
                except ApiError as error:
                    request = operation.throw(error)
                else:
                    request = operation.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result


class AsyncResource:
    """A group of methods, such as `memory.blocks`, that uses the connections of its client."""

    def __init__(self, send: AsyncSend, collect: AsyncCollect) -> None:
        self._send = send
        self._collect = collect
