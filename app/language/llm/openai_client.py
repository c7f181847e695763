"""The connection to the deployment's endpoint, with the SDK's own retries and one bound on them.

The SDK waits up to two minutes when the provider says how long; a worker has better things
to do, and whoever waits on a request has left. So a longer wait than a minute is reported.
"""

from datetime import timedelta
from typing import Final

import httpx2
import openai

from app.language.llm.openai_failures import retry_after_of

LONGEST_WAIT: Final = timedelta(minutes=1)


def connect(
    *, api_key: str | None, base_url: str | None, timeout: timedelta, max_retries: int
) -> openai.AsyncOpenAI:
    """A client for one event loop; the caller closes it. Nothing is sent yet."""
    return openai.AsyncOpenAI(
        # A local endpoint may want no key, but the SDK insists on one.
        api_key=api_key or "none",
        # Given always, or the SDK would read the environment behind the settings' back.
        base_url=base_url or "https://api.openai.com/v1",
        timeout=timeout.total_seconds(),
        max_retries=max_retries,
        http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [_bound_retries]}),
    )


async def _bound_retries(response: httpx2.Response) -> None:
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
