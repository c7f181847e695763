"""One call through all its attempts: when to retry, how long to wait, what the outcome means.

Nothing here sends or sleeps: the client sends what `request` returns, passes the outcome to
`pause`, waits, and at the end asks `result`. Retrying is safe: GET and DELETE are idempotent, a
POST has an Idempotency-Key, a PUT or PATCH without a version sets the same values again. A PUT
or PATCH with a version that got no answer is not repeated: if it succeeded, the repetition
would be refused as outdated.
"""

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeAlias, TypeVar

import httpx

from kemem.address import Service
from kemem.calls import Call
from kemem.errors import (
    ApiError,
    ConnectionFailedError,
    KememError,
    NotFoundError,
    TimedOutError,
    UnexpectedAnswerError,
    error_of,
)
from kemem.ids import in_header
from kemem.version import __version__

Result = TypeVar("Result")
Outcome: TypeAlias = httpx.Response | httpx.RequestError

CONNECT_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 8.0

_REPEATED = frozenset({429, 502, 503, 504})
# The operator switched memory off; a retry does not change that.
_FINAL_CODES = frozenset({"memory_disabled"})
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_PERMANENT = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.TooManyRedirects)
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call is retried, and its time in seconds, all attempts and waits included.

    `first_pause` is the longest wait before the first retry.
    """

    timeout: float
    max_retries: int
    first_pause: float = FIRST_PAUSE_SECONDS

    def __post_init__(self) -> None:
        if not 0 < self.timeout < float("inf"):
            raise ValueError("timeout must be a number of seconds above 0")
        if self.max_retries < 0:
            raise ValueError("max_retries must not be negative")


class Exchange(Generic[Result]):
    """One call to one service, from the first attempt to the last."""

    def __init__(
        self,
        call: Call[Result],
        service: Service,
        policy: RetryPolicy,
        *,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._call = call
        self._service = service
        self._policy = policy
        self._clock = clock
        self._jitter = jitter
        self._end = clock() + policy.timeout
        self._attempts = 0
        self._retries = 0
        self._may_have_succeeded = False

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The next attempt, as `http` would send it."""
        self._attempts += 1
        left = max(self._end - self._clock(), 0.001)
        acting_user = self._service.acting_user
        return http.build_request(
            self._call.method,
            self._service.base_url + self._call.path,
            params=dict(self._call.params),
            content=self._call.body,
            headers={
                "Authorization": f"Bearer {self._service.key}",
                "Accept": "application/json",
                "User-Agent": f"kemem-python/{__version__}",
                **({"KeMem-User": in_header(acting_user)} if acting_user else {}),
                **self._call.headers,
            },
            timeout=httpx.Timeout(left, connect=min(left, CONNECT_SECONDS)),
        )

    def pause(self, outcome: Outcome) -> float | None:
        """Seconds to wait before the next attempt; None if `outcome` is final."""
        if self._policy.max_retries == 0:
            return None
        is_in_progress = (
            not isinstance(outcome, httpx.RequestError)
            and outcome.status_code == 409
            and _code(outcome) == "request_in_progress"
        )
        if not is_in_progress:
            if not self._may_repeat(outcome) or self._retries >= self._policy.max_retries:
                return None
            self._retries += 1
        asked = None if isinstance(outcome, httpx.RequestError) else retry_after(outcome)
        first = self._policy.first_pause
        seconds = self._backoff() if asked is None else asked + first * self._jitter()
        return seconds if self._clock() + seconds < self._end else None

    def _backoff(self) -> float:
        """Doubled with each retry, of which a random half to whole, so that callers spread out."""
        doubled = self._policy.first_pause * 2.0 ** max(self._retries - 1, 0)
        return min(doubled, LONGEST_PAUSE_SECONDS) * (0.5 + 0.5 * self._jitter())

    def _may_repeat(self, outcome: Outcome) -> bool:
        if isinstance(outcome, httpx.RequestError):
            if isinstance(outcome, _PERMANENT):
                return False
            had_no_effect = isinstance(outcome, _NEVER_SENT)
        else:
            if outcome.status_code not in _REPEATED or _code(outcome) in _FINAL_CODES:
                return False
            had_no_effect = (
                outcome.status_code in {429, 503} and _code(outcome) != "outcome_unknown"
            )
        if had_no_effect:
            return True
        self._may_have_succeeded = True
        version = self._call.headers.get("If-Match", "*")
        return self._call.method not in {"PATCH", "PUT"} or version == "*"

    def result(self, outcome: Outcome) -> Result:
        """The answer that the last outcome holds.

        Raises:
            ApiError: the service refused.
            ConnectionFailedError: the service was not reached, or hung up.
            TimedOutError: there was no answer in time.
            UnexpectedAnswerError: the answer is not one of KeMem.

        """
        if isinstance(outcome, httpx.RequestError):
            raise self._unanswered(outcome) from outcome
        body = _json(outcome)
        if outcome.is_success:
            try:
                return self._call.read(body)
            except (TypeError, ValueError, KeyError):
                raise self._unexpected(outcome) from None
        if not outcome.is_error:
            raise self._unexpected(outcome)
        hint = f"(The key came from {self._service.key_origin}.)"
        error = error_of(
            outcome.status_code,
            body,
            retry_after=retry_after(outcome),
            hint=hint if outcome.status_code == 401 else "",
        )
        if self._was_deleted(error):
            return self._call.read(None)
        raise error

    def _was_deleted(self, error: ApiError) -> bool:
        """Whether an earlier attempt, whose answer was lost, probably deleted it."""
        return (
            self._call.method == "DELETE"
            and self._may_have_succeeded
            and isinstance(error, NotFoundError)
        )

    def _unanswered(self, error: httpx.RequestError) -> KememError:
        address, attempts = self._service.base_url, self._attempts
        tried = f"{attempts} attempts" if attempts > 1 else "1 attempt"
        if isinstance(error, httpx.TimeoutException):
            return TimedOutError(
                f"{address} did not answer in time ({tried}, timeout {self._policy.timeout:g} s)."
            )
        if isinstance(error, httpx.ConnectError):
            hint = (
                "Start it with `make run` or `kemem serve`, or say where it is with KEMEM_URL."
                if self._service.is_local
                else "Check the address, given as base_url or in KEMEM_URL."
            )
            return ConnectionFailedError(
                f"No service can be reached at {address} ({tried}). {hint}"
            )
        return ConnectionFailedError(
            f"{address} hung up without an answer ({type(error).__name__}, {tried})."
        )

    def _unexpected(self, answer: httpx.Response) -> UnexpectedAnswerError:
        return UnexpectedAnswerError(
            f"{self._service.base_url} answered {self._call.method} {self._call.path} with "
            f"{answer.status_code} and something that this client does not understand. Is it "
            "KeMem, and of a release that fits?"
        )


def retry_after(answer: httpx.Response) -> float | None:
    """Seconds that the service asks to wait, or None; 0 for a date in the past."""
    text = answer.headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max((date - datetime.now(UTC)).total_seconds(), 0.0)


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json() if answer.content else None
    except ValueError:
        return None


def _code(answer: httpx.Response) -> str | None:
    body = _json(answer)
    return body.get("code") if isinstance(body, dict) else None
