"""One call through all its attempts: when to try again, how long to wait, what it means.

Knows no event loop and never sleeps: `Memory` and `AsyncMemory` send what `request` gives,
hand the outcome to `pause`, wait, and in the end ask `result`. What may be repeated: GET and
DELETE have one effect by themselves, a POST by its Idempotency-Key, a PUT or a PATCH without a
version by setting the same values again. One with a version that went unanswered is not
repeated: the second would be refused for what the first has done.
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
from kemem.errors import (
    ApiError,
    ConnectionFailedError,
    KememError,
    NotFoundError,
    TimedOutError,
    UnexpectedAnswerError,
    error_of,
)
from kemem.version import __version__
from kemem.writing import Call

Result = TypeVar("Result")
Outcome: TypeAlias = httpx.Response | httpx.RequestError

CONNECT_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 8.0

_REPEATED = frozenset({429, 502, 503, 504})
# The operator's decision, which a second attempt does not change.
_FINAL_CODES = frozenset({"memory_disabled"})
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_HOPELESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.TooManyRedirects)
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a call may take, in seconds, all attempts and waits included; how many retries."""

    timeout: float
    max_retries: int

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
        patience: Patience,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._call = call
        self._service = service
        self._patience = patience
        self._clock = clock
        self._chance = chance
        self._end = clock() + patience.timeout
        self._attempts = 0
        self._retries = 0
        self._maybe_done = False

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
                **({"KeMem-User": acting_user} if acting_user else {}),
                **self._call.headers,
            },
            timeout=httpx.Timeout(left, connect=min(left, CONNECT_SECONDS)),
        )

    def pause(self, outcome: Outcome) -> float | None:
        """Seconds to wait before the next attempt; None when `outcome` is the last word."""
        if self._patience.max_retries == 0:
            return None
        waits_for_itself = (
            not isinstance(outcome, httpx.RequestError)
            and outcome.status_code == 409
            and _code(outcome) == "request_in_progress"
        )
        if not waits_for_itself:
            if not self._may_repeat(outcome) or self._retries >= self._patience.max_retries:
                return None
            self._retries += 1
        asked = None if isinstance(outcome, httpx.RequestError) else retry_after(outcome)
        seconds = self._backoff() if asked is None else asked + 0.25 * self._chance()
        return seconds if self._clock() + seconds < self._end else None

    def _backoff(self) -> float:
        """Doubled with each retry; between half and all of it, so that callers part ways."""
        doubled = FIRST_PAUSE_SECONDS * 2.0 ** max(self._retries - 1, 0)
        return min(doubled, LONGEST_PAUSE_SECONDS) * (0.5 + 0.5 * self._chance())

    def _may_repeat(self, outcome: Outcome) -> bool:
        if isinstance(outcome, httpx.RequestError):
            if isinstance(outcome, _HOPELESS):
                return False
            certain = isinstance(outcome, _NEVER_SENT)
        else:
            if outcome.status_code not in _REPEATED or _code(outcome) in _FINAL_CODES:
                return False
            certain = outcome.status_code in {429, 503} and _code(outcome) != "outcome_unknown"
        if certain:
            return True
        self._maybe_done = True
        version = self._call.headers.get("If-Match", "*")
        return self._call.method not in {"PATCH", "PUT"} or version == "*"

    def result(self, outcome: Outcome) -> Result:
        """What the last outcome means.

        Raises:
            ApiError, ConnectionFailedError, TimedOutError, UnexpectedAnswerError

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
        if self._deleted_before(error):
            return self._call.read(None)
        raise error

    def _deleted_before(self, error: ApiError) -> bool:
        """Whether an attempt whose answer was lost has deleted what is not there now."""
        return (
            self._call.method == "DELETE" and self._maybe_done and isinstance(error, NotFoundError)
        )

    def _unanswered(self, error: httpx.RequestError) -> KememError:
        address, attempts = self._service.base_url, self._attempts
        tried = f"{attempts} attempts" if attempts > 1 else "1 attempt"
        if isinstance(error, httpx.TimeoutException):
            return TimedOutError(
                f"{address} did not answer in time ({tried}, timeout {self._patience.timeout:g} s)."
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
            f"{address} broke off without an answer ({type(error).__name__}, {tried})."
        )

    def _unexpected(self, answer: httpx.Response) -> UnexpectedAnswerError:
        return UnexpectedAnswerError(
            f"{self._service.base_url} answered {self._call.method} {self._call.path} with "
            f"{answer.status_code} and something that this client does not understand. Is it "
            "KeMem, and of a release that fits?"
        )


def retry_after(answer: httpx.Response) -> float | None:
    """Seconds that the service asks to wait, or None; a moment in the past means none."""
    text = answer.headers.get("Retry-After", "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json() if answer.content else None
    except ValueError:
        return None


def _code(answer: httpx.Response) -> str | None:
    body = _json(answer)
    return body.get("code") if isinstance(body, dict) else None
