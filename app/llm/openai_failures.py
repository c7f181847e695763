"""What the `openai` SDK raises, as reasons of ours.

The SDK has already retried what may pass (429, 5xx, connections), and waited as long as the
provider asked, by the time anything arrives here.
"""

import re
from dataclasses import dataclass
from typing import Final

import openai

from app.llm.errors import FailureReason

_PLAIN_CODE: Final = re.compile(r"[a-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """The part of a provider's failure that may be shown: never its message."""

    reason: FailureReason
    status: int | None = None
    code: str | None = None


def failure_of(error: openai.OpenAIError) -> ProviderFailure:
    """Why a call failed; an error of a kind not known here counts as the provider's."""
    # A timeout is also a connection error, so it goes first.
    if isinstance(error, openai.APITimeoutError):
        return ProviderFailure("timeout")
    if isinstance(error, openai.APIConnectionError):
        return ProviderFailure("connection")
    if isinstance(error, openai.APIStatusError):
        code = error.code if error.code and _PLAIN_CODE.fullmatch(error.code) else None
        return ProviderFailure(_reason(error.status_code, code), error.status_code, code)
    return ProviderFailure("provider_error")


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
