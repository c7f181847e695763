"""The connection to the deployment's endpoint, with the SDK's own retries and one bound on them,
and what the SDK raises as reasons of ours.

The SDK waits up to two minutes when the provider says how long; a worker has better things to do,
and whoever waits on a request has left. So a longer wait than a minute is reported. By the time an
error arrives here the SDK has retried what may pass (429, 5xx, connections).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from app.language.llm.authorities import authorities
from app.language.llm.errors import FailureReason

if TYPE_CHECKING:
    # Takes 0.4 s of CPU, so it is loaded where an endpoint is configured.
    import httpx2
    import openai

_PLAIN_CODE: Final = re.compile(r"[a-z0-9_.-]{1,64}")

# A provider that asks for longer is asked again after a day all the same.
_LONGEST_WAIT: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """The part of a provider's failure that may be shown: never its message."""

    reason: FailureReason
    status: int | None = None
    code: str | None = None
    retry_after: timedelta | None = None


def failure_of(error: "openai.OpenAIError") -> ProviderFailure:
    """Why a call failed; an error of a kind not known here counts as the provider's."""
    import openai

    # A timeout is also a connection error, so it goes first.
    if isinstance(error, openai.APITimeoutError):
        return ProviderFailure("timeout")
    if isinstance(error, openai.APIConnectionError):
        return ProviderFailure("connection")
    if isinstance(error, openai.APIStatusError):
        code = plain_code(error)
        return ProviderFailure(
            _reason(error.status_code, code),
            error.status_code,
            code,
            retry_after_of(error.response.headers),
        )
    return ProviderFailure("provider_error")


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


def _reason(status: int, code: str | None) -> FailureReason:
    if status in {401, 403}:
        return "authentication"
    if status == 404:
        return "model_not_found"
    if status == 408:
        return "timeout"
    if status == 429:
        # Waiting does not help here, paying does; the SDK retries both alike.
        return "quota_exhausted" if code == "insufficient_quota" else "rate_limited"
    return "provider_error" if status >= 500 else "refused"


LONGEST_WAIT: Final = timedelta(minutes=1)


def connect(
    *, api_key: str | None, base_url: str | None, timeout: timedelta, max_retries: int
) -> "openai.AsyncOpenAI":
    """A client for one event loop; the caller closes it. Nothing is sent yet."""
    import openai

    return openai.AsyncOpenAI(
        # A local endpoint may want no key, but the SDK insists on one.
        api_key=api_key or "none",
        # Given always, or the SDK would read the environment behind the settings' back.
        base_url=base_url or "https://api.openai.com/v1",
        timeout=timeout.total_seconds(),
        max_retries=max_retries,
        http_client=openai.DefaultAsyncHttpxClient(
            verify=authorities(), event_hooks={"response": [_bound_retries]}
        ),
    )


async def _bound_retries(response: "httpx2.Response") -> None:
    """Tell the SDK, by the header it obeys, what is not worth its waiting."""
    if response.status_code < 400:
        return
    wait = retry_after_of(response.headers)
    hopeless = wait is not None and wait > LONGEST_WAIT
    if response.status_code == 429 and not hopeless:
        # Waiting does not help here, paying does.
        hopeless = b"insufficient_quota" in await response.aread()
    if hopeless:
        response.headers["x-should-retry"] = "false"
