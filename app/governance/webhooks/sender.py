"""One signed POST to a receiver and its result, without redirects and proxies; when a failed one
is sent again and a webhook disabled; and the secrets that sign, encrypted in the database with keys
that are not in it.

Signatures follow the Standard Webhooks specification: standardwebhooks.com.

Who has the database alone, or a backup of it, can sign nothing. A hash would not do: a signature
needs the secret itself.
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
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

import httpcore2
import httpx2

from app.governance.webhooks.schemas import SecretKeyMissingError
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


DELAYS = (
    timedelta(seconds=10),
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=6),
    timedelta(hours=12),
    timedelta(hours=24),
)
MOST_ATTEMPTS = len(DELAYS) + 1
JITTER = 0.1
"""Delays vary by a tenth, so that attempts that failed together are not repeated together."""

LONGEST_WAIT = timedelta(hours=24)
"""What a receiver may ask for in `Retry-After`."""

FAILURES_BEFORE_PAUSE = 3
LONGEST_PAUSE = timedelta(minutes=5)

GIVE_UP_AFTER = timedelta(days=3)
LULL = timedelta(hours=36)
"""Longer than any delay: failures further apart than this are not one long failure."""


def next_attempt(
    attempts: int, *, at: datetime, retry_after: timedelta | None, chance: float
) -> datetime | None:
    """When to try again after `attempts` failed, or None when that was the last.

    Args:
        chance: a random number from 0 to 1.

    """
    if attempts >= MOST_ATTEMPTS:
        return None
    delay = DELAYS[attempts - 1] * (1 + JITTER * (2 * chance - 1))
    return at + max(delay, retry_after or timedelta(0))


def pause_after(failures: int, retry_after: timedelta | None) -> timedelta | None:
    """How long to pause a receiver after `failures` in a row; None for no pause.

    A pause needs several failures, since one bad event must not delay the others; without a
    pause a receiver that is down would cost a timeout for each pending event.
    """
    if retry_after:
        return retry_after
    if failures < FAILURES_BEFORE_PAUSE:
        return None
    doublings = min(failures - FAILURES_BEFORE_PAUSE, 5)
    return min(DELAYS[0] * (1 << doublings), LONGEST_PAUSE)


def read_retry_after(value: str, *, at: datetime) -> timedelta | None:
    """What a `Retry-After` header asks for, within bounds; None when it is unreadable."""
    try:
        if value.strip().isdecimal():
            # More digits than a day has seconds say no more than "long".
            asked = timedelta(seconds=int(value.strip()[:6]))
        else:
            retry_at = parsedate_to_datetime(value)
            asked = (retry_at if retry_at.tzinfo else retry_at.replace(tzinfo=UTC)) - at
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(asked, timedelta(0)), LONGEST_WAIT)


if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet


class SecretBox:
    """Encrypts secrets, and decrypts stored ones.

    What an earlier release stored begins with `whsec_` and is read as it is.

    Args:
        keys: of MEMORY_SECRET_KEY. The first encrypts; each may decrypt.

    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys

    def seal(self, secret: str) -> str:
        """The secret as it is stored: another text each time.

        Raises:
            SecretKeyMissingError: there is no key.

        """
        if not self._keys:
            raise SecretKeyMissingError
        return self._cipher().encrypt(secret.encode()).decode()

    def open(self, stored: str) -> str | None:
        """The secret that is stored; None if it was encrypted with a key that is not here."""
        if stored.startswith(PREFIX):
            return stored
        if not self._keys:
            return None
        from cryptography.fernet import InvalidToken

        try:
            return self._cipher().decrypt(stored.encode()).decode()
        except InvalidToken:
            return None

    def resealed(self, stored: str) -> str:
        """The stored secret encrypted with the first key, or as it is if that cannot be done."""
        secret = self.open(stored)
        return self.seal(secret) if self._keys and secret is not None else stored

    def _cipher(self) -> "MultiFernet":
        from cryptography.fernet import Fernet, MultiFernet

        return MultiFernet([Fernet(key) for key in self._keys])
