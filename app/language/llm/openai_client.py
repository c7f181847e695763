"""The connection to the deployment's endpoint, with the SDK's own retries and one bound on them,
the authorities it trusts, and what the SDK raises as reasons of ours.

The SDK waits up to two minutes when the provider says how long; a worker has better things to do,
and whoever waits on a request has left. So a longer wait than some seconds is reported: a job waits
in its queue, which tells until when. A command has no queue and is given more. By the time an error
arrives here the SDK has retried what may pass (429, 5xx, connections), all of it within the time of
one call.
"""

import asyncio
import math
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from app.language.llm.errors import FailureReason
from app.language.llm.openai_dialect import error_in


@cache
def authorities() -> ssl.SSLContext:
    """What an HTTP client trusts by itself, read once: it takes each client 20 ms."""
    import httpx2

    return httpx2.create_ssl_context()


if TYPE_CHECKING:
    # Takes 0.4 s of CPU, so it is loaded where an endpoint is configured.
    import httpx2
    import openai

_PLAIN_CODE: Final = re.compile(r"[a-z0-9_.-]{1,64}")

# Providers have a status and a code of their own for each, or none; their words tell.
_TOO_LONG: Final = re.compile(
    r"context[ _](?:length|size|window)|n_ctx|prompt is too long|input (?:length|token count)"
)
_NOT_PAID: Final = re.compile(r"insufficient[ _](?:quota|balance)|credit balance|arrearage")
_FILTERED: Final = re.compile(
    r"content_filter|content exists risk|data_?inspection_?failed|flagged_input"
)
# A refusal that repeats the request has the words of its messages.
_REPEATS_REQUEST: Final = re.compile(r"""["']role\\*["']\s*:""")

# A provider that asks for longer is asked again after a day all the same.
_LONGEST_WAIT: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """The part of a provider's failure that may be shown: never its message."""

    reason: FailureReason
    status: int | None = None
    code: str | None = None
    retry_after: timedelta | None = None
    filtered: bool = False
    """What was sent may not be answered."""


def failure_of(error: "openai.OpenAIError") -> ProviderFailure:
    """Why a call failed; an error of a kind not known here counts as the provider's."""
    import openai

    # A timeout is also a connection error, so it goes first.
    if isinstance(error, openai.APITimeoutError):
        return ProviderFailure("timeout")
    if isinstance(error, openai.APIConnectionError):
        return ProviderFailure("connection")
    if isinstance(error, openai.APIStatusError):
        words = words_of(error)
        told = "" if _REPEATS_REQUEST.search(words) else words
        return ProviderFailure(
            _reason(error.status_code, told),
            error.status_code,
            plain_code(error),
            retry_after_of(error.response.headers),
            filtered=_FILTERED.search(told) is not None,
        )
    return ProviderFailure("provider_error")


def words_of(error: "openai.APIError") -> str:
    """All that a provider says of a failure, in small letters; never to be shown.

    The SDK's message holds only a part, and nothing of an error that is a list or a text.
    """
    return f"{error.message} {error.body}".lower()


def refusal_in(response: "httpx2.Response") -> "openai.APIStatusError | None":
    """What the SDK would have raised if an error that came with status 200 had one of its own."""
    import openai

    found: Any = error_in(response.content)
    if found is None:
        return None
    error = openai.APIStatusError("An error in an answer", response=response, body=found)
    code = found.get("code") if isinstance(found, dict) else None
    if isinstance(code, int) and 400 <= code < 600:
        error.status_code = code
    return error


def plain_code(error: "openai.APIError") -> str | None:
    """The provider's code for it, if that is a plain word; some send a sentence."""
    return error.code if error.code and _PLAIN_CODE.fullmatch(error.code) else None


def retry_after_of(headers: Mapping[str, str]) -> timedelta | None:
    """How long the provider wants to be left alone; None when it does not say, or says no time.

    A date counts from the answer's own `Date`, so that the two clocks need not agree.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        return _wait(seconds)
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
        return _wait((until - parsedate_to_datetime(headers.get("date", ""))).total_seconds())
    except (TypeError, ValueError):
        # Also when only one of the two names its time zone.
        return None


def _wait(seconds: float) -> timedelta | None:
    if math.isnan(seconds) or seconds <= 0:
        return None
    return timedelta(seconds=min(seconds, _LONGEST_WAIT.total_seconds()))


_REASONS: Final[dict[int, FailureReason]] = {
    401: "authentication",
    402: "quota_exhausted",
    403: "authentication",
    404: "model_not_found",
    408: "timeout",
    413: "too_long",
    429: "rate_limited",
}


def _reason(status: int, words: str) -> FailureReason:
    if _NOT_PAID.search(words):
        # Waiting does not help here, paying does; the SDK retries 429 alike.
        return "quota_exhausted"
    if status in _REASONS:
        return _REASONS[status]
    if _TOO_LONG.search(words):
        return "too_long"
    return "refused" if 400 <= status < 500 else "provider_error"


LONGEST_WAIT: Final = timedelta(seconds=5)
"""For which the provider may ask within a call of the service; after a longer one it is called
anew."""

_limit_of_call: ContextVar[asyncio.Timeout] = ContextVar("limit_of_call")


_Result = TypeVar("_Result")


async def within_timeout(client: "openai.AsyncOpenAI", call: Awaitable[_Result]) -> _Result:
    """The result of a call with all its retries, within the client's timeout.

    The SDK gives each try the whole of it, so that an endpoint that hangs costs three. What the
    provider asks of a client with longer waits than the service's comes on top.

    Raises:
        openai.APITimeoutError: it is over.
        openai.OpenAIError: as the call does.

    """
    import httpx2
    import openai

    seconds = client.timeout if isinstance(client.timeout, int | float) else None
    try:
        async with asyncio.timeout(seconds) as limit:
            token = _limit_of_call.set(limit)
            try:
                return await call
            finally:
                _limit_of_call.reset(token)
    except TimeoutError as error:
        raise openai.APITimeoutError(httpx2.Request("POST", client.base_url)) from error


def connect(
    *,
    api_key: str | None,
    base_url: str | None,
    timeout: timedelta,
    max_retries: int,
    longest_wait: timedelta = LONGEST_WAIT,
) -> "openai.AsyncOpenAI":
    """A client for one event loop; the caller closes it. Nothing is sent yet.

    Args:
        api_key: None for an endpoint that wants none.
        base_url: None for OpenAI's own.
        timeout: of a call with all its retries.
        max_retries: of a call.
        longest_wait: that the provider may ask for between two tries.

    """
    import openai

    # Given always, or the SDK would read the environment behind the settings' back.
    address, query = _endpoint(base_url or "https://api.openai.com/v1")
    return openai.AsyncOpenAI(
        # A local endpoint may want no key, but the SDK insists on one.
        api_key=api_key or "none",
        base_url=address,
        default_query=query,
        # An endpoint that is called by a dated version takes the key under this name.
        default_headers={"api-key": api_key} if api_key and "api-version" in query else None,
        timeout=timeout.total_seconds(),
        max_retries=max_retries,
        http_client=openai.DefaultAsyncHttpxClient(
            verify=authorities(), event_hooks={"response": [retry_bound(longest_wait)]}
        ),
    )


def _endpoint(base_url: str) -> tuple[str, dict[str, str]]:
    """The address under which the routes are, and what stands behind each of them.

    The SDK would put routes behind a query. A server alone means its first version; one whose
    routes have no version is written with a `/`.
    """
    scheme, server, path, query, _ = urlsplit(base_url)
    return urlunsplit((scheme, server, path or "/v1", "", "")), dict(parse_qsl(query))


def retry_bound(longest_wait: timedelta) -> Callable[["httpx2.Response"], Awaitable[None]]:
    """What tells the SDK, by the header it obeys, which answers are not worth its waiting."""

    async def bound(response: "httpx2.Response") -> None:
        if response.status_code < 400:
            return
        wait = retry_after_of(response.headers)
        hopeless = wait is not None and wait > longest_wait
        if response.status_code == 429 and not hopeless:
            # Waiting does not help here, paying does.
            hopeless = b"insufficient_quota" in await response.aread()
        if hopeless:
            response.headers["x-should-retry"] = "false"
        elif wait is not None and longest_wait > LONGEST_WAIT:
            _extend(wait)

    return bound


def _extend(wait: timedelta) -> None:
    limit = _limit_of_call.get(None)
    end = limit.when() if limit is not None else None
    if limit is not None and end is not None:
        limit.reschedule(end + wait.total_seconds())
