"""One signed POST to a receiver and its result; no redirects, no proxies.

Signatures follow the Standard Webhooks specification: standardwebhooks.com.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any

import httpcore2
import httpx2

from app.governance.webhooks.backoff import read_retry_after
from app.governance.webhooks.targets import (
    GuardedNetwork,
    RefusedAddressError,
    Targets,
    UnresolvedError,
)

PREFIX = "whsec_"

GONE = 410
MOST_BODY_BYTES = 1024
"""Of an answer's body: read so that the connection can be reused, then dropped."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of an attempt. `error_code` is None when it succeeded."""

    error_code: str | None
    response_status: int | None = None
    retry_after: timedelta | None = None
    duration_ms: int = 0

    @property
    def gone(self) -> bool:
        return self.response_status == GONE


class Sender:
    """Posts to receivers; opened for a run, so that its events share a connection.

    `httpcore2` and not `httpx2`, because the connection is where targets are checked, and
    because it follows no redirect, keeps no cookie and asks no proxy of the environment.
    """

    def __init__(self, pool: httpcore2.AsyncConnectionPool, seconds: float) -> None:
        """Use `opened`; `seconds` is how long an attempt may take altogether."""
        self._pool = pool
        self._seconds = seconds

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, targets: Targets, trusted: ssl.SSLContext, *, seconds: float
    ) -> AsyncIterator["Sender"]:
        async with httpcore2.AsyncConnectionPool(
            ssl_context=trusted, max_connections=1, network_backend=GuardedNetwork(targets)
        ) as pool:
            yield cls(pool, seconds)

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, at: datetime
    ) -> Result:
        """Send one request; its result. Failures of the network are results, not exceptions."""
        started = perf_counter()
        answer: dict[str, Any] = {"error_code": None}
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._pool.stream(
                    "POST", _target(url), headers=list(headers.items()), content=body
                ) as response,
            ):
                answer = _read(response, at)
                await _drain(response)
        except (
            TimeoutError, UnresolvedError, RefusedAddressError, httpcore2.TimeoutException,
            httpcore2.NetworkError, httpcore2.ProtocolError,
        ) as error:  # fmt: skip
            if "response_status" not in answer:
                answer = {"error_code": _code_of(error)}
        return Result(duration_ms=int((perf_counter() - started) * 1000), **answer)


def _target(url: str) -> httpcore2.URL:
    parsed = httpx2.URL(url)
    return httpcore2.URL(
        scheme=parsed.raw_scheme,
        host=parsed.raw_host,
        port=parsed.port,
        target=parsed.raw_path,
    )


def _read(response: httpcore2.Response, at: datetime) -> dict[str, Any]:
    status = response.status
    answer: dict[str, Any] = {"response_status": status, "error_code": None}
    if 200 <= status < 300:
        return answer
    if status == GONE:
        return answer | {"error_code": "gone"}
    if 300 <= status < 400:
        return answer | {"error_code": "redirect_refused"}
    for name, value in response.headers:
        if name.lower() == b"retry-after":
            answer["retry_after"] = read_retry_after(value.decode("latin-1"), at=at)
    return answer | {"error_code": "http_status"}


async def _drain(response: httpcore2.Response) -> None:
    read = 0
    async for chunk in response.aiter_stream():
        read += len(chunk)
        if read >= MOST_BODY_BYTES:
            return


def _code_of(error: Exception) -> str:
    match error:
        case RefusedAddressError():
            return "address_refused"
        case UnresolvedError():
            return "name_not_resolved"
        case TimeoutError() | httpcore2.TimeoutException():
            return "timeout"
        case httpcore2.ConnectError(args=(ssl.SSLError(),)):
            return "tls_failed"
        case httpcore2.ConnectError():
            return "connection_failed"
    return "connection_closed"


def new_secret() -> str:
    """256 random bits, as receivers' libraries take them."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed_headers(
    keys: Sequence[str], *, event_id: str, at: datetime, body: bytes
) -> dict[str, str]:
    """Headers by which a receiver verifies that `body` is from here, recent and not a repetition.

    Args:
        keys: the secrets; one signature each, so that a receiver may hold either.
        event_id: the same whenever the event is sent again.

    """
    timestamp = str(int(at.timestamp()))
    signed = f"{event_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(_sign(key, signed) for key in keys),
    }


def _sign(key: str, signed: bytes) -> str:
    digest = hmac.new(base64.b64decode(key.removeprefix(PREFIX)), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
