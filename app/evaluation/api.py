"""The public HTTP API as the demos call it: no short cut into the service."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from app.console import REFUSED, fail

TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service said; a problem document when the status is 400 or more."""

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        return self.status < 400


class Api:
    """Calls that end the demo with a sentence when the service refuses unexpectedly."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: dict[str, Any] | None = None,
        expected: Collection[int] = (),
    ) -> Answer:
        """One request.

        Args:
            expected: statuses of 400 and more that are no failure here.

        """
        response = await self._client.request(method, f"/v1{path}", json=body, params=params)
        answer = Answer(response.status_code, _document(response))
        if not answer.ok and answer.status not in expected:
            problem = answer.body if isinstance(answer.body, dict) else {}
            fail(
                f"{method} /v1{path} was answered {answer.status} "
                f"{problem.get('code', '')}: {problem.get('detail', 'no problem document')} "
                f"(request {problem.get('request_id', 'unknown')})",
                code=REFUSED,
            )
        return answer

    async def post(self, path: str, body: Any = None, *, expected: Collection[int] = ()) -> Answer:
        return await self.call("POST", path, body, expected=expected)

    async def get(self, path: str, **params: Any) -> Any:
        return (await self.call("GET", path, params=params)).body


def _document(response: httpx2.Response) -> Any:
    """The JSON of an answer; None when it has none, as from another program on that port."""
    if not response.content or "json" not in response.headers.get("content-type", ""):
        return None
    return response.json()


@asynccontextmanager
async def open_api(url: str, key: str, *, connections: int = 4) -> AsyncIterator[Api]:
    """The API at `url`; the command ends with a sentence when nothing answers there."""
    async with httpx2.AsyncClient(
        base_url=url.rstrip("/"),
        headers={"Authorization": f"Bearer {key}"},
        timeout=TIMEOUT_SECONDS,
        limits=httpx2.Limits(max_connections=connections),
        # The service is near; a proxy for the world would not find it.
        trust_env=False,
    ) as client:
        try:
            await client.get("/livez")
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            fail(
                f"No service answers at {url} ({error}). Run `make run` (or `kemem serve`) in "
                "another terminal first, or name its address with --url.",
                code=REFUSED,
            )
        yield Api(client)
