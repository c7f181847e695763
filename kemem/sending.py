"""How calls are sent: the same loop twice, once with an event loop and once without."""

import asyncio
import time
from types import TracebackType
from typing import Self, TypeVar

import httpx

from kemem.base import MAX_RETRIES, TIMEOUT_SECONDS, BaseMemory
from kemem.writing import Call, Page

Result = TypeVar("Result")


class Sender(BaseMemory):
    """Sends calls and waits for them in the thread that asks."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        max_retries: int = MAX_RETRIES,
        http_client: httpx.Client | None = None,
        acting_user: str | None = None,
    ) -> None:
        super().__init__(base_url, api_key, timeout, max_retries, acting_user)
        self._owned = http_client is None
        self._http = http_client or httpx.Client(trust_env=self._uses_environment)

    def close(self) -> None:
        """Close the connections; safe to repeat. Afterwards no call works."""
        if self._owned:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, call: Call[Result]) -> Result:
        exchange = self._exchange(call)
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                outcome = self._http.send(
                    exchange.request(self._http), auth=None, follow_redirects=False
                )
            except httpx.RequestError as error:
                outcome = error
            pause = exchange.pause(outcome)
            if pause is None:
                return exchange.result(outcome)
            time.sleep(pause)

    def _collect(self, first: Call[Page[Result]], limit: int | None) -> list[Result]:
        rows: list[Result] = []
        call: Call[Page[Result]] | None = first
        while call is not None and (limit is None or len(rows) < limit):
            page = self._send(call)
            rows += page.items
            call = page.following
        return rows[:limit]


class AsyncSender(BaseMemory):
    """Sends calls in the event loop that asks."""

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
        """Close the connections; safe to repeat. Afterwards no call works."""
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
            await asyncio.sleep(pause)

    async def _collect(self, first: Call[Page[Result]], limit: int | None) -> list[Result]:
        rows: list[Result] = []
        call: Call[Page[Result]] | None = first
        while call is not None and (limit is None or len(rows) < limit):
            page = await self._send(call)
            rows += page.items
            call = page.following
        return rows[:limit]
