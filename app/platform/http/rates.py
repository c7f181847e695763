"""Rate limits of a tenant and of each of its keys: token buckets by class of request.

A bucket holds a minute's requests and fills evenly. Buckets belong to a process: with several, each
allows its part of the limit. The answers carry `RateLimit-Policy` and `RateLimit` as
draft-ietf-httpapi-ratelimit-headers-11 has them, where a limit is in force.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, get_args

from app.errors import TooManyRequestsError
from app.platform.observability.metrics import RATE_LIMITED

RequestClass = Literal["read", "write", "model"]
CLASSES: Final[tuple[RequestClass, ...]] = get_args(RequestClass)

RATE_LIMITS: Final = "rate_limits"
"""Key of a tenant's config for its limits, by policy: a class, or `key_` and a class for what each
key may do."""
POLICIES: Final = (*CLASSES, *(f"key_{kind}" for kind in CLASSES))

HEADERS: Final = "kemem.headers"
"""In a scope: headers that the answer gets."""

WINDOW_SECONDS: Final = 60
MOST_BUCKETS: Final = 10_000


class RateLimitedError(TooManyRequestsError):
    """The minute's requests of one class are used up."""

    code = "rate_limited"
    title = "Too many requests"

    def __init__(self, policies: list[str], retry_after: int, headers: Mapping[str, str]) -> None:
        names = " and ".join(policies)
        super().__init__(
            f"The limit of requests in a minute is reached: {names} of this tenant's "
            "`rate_limits`. Nothing was written.",
            retry_after=retry_after,
        )
        self.members["violated-policies"] = list(policies)
        self.headers = {**self.headers, **headers}


class _Bucket:
    __slots__ = ("_at", "most", "name", "tokens")

    def __init__(self, name: str, most: int, now: float) -> None:
        self.name = name
        self.tokens = float(most)
        self.most = most
        self._at = now

    def fill(self, most: int, now: float) -> None:
        self.tokens = min(most, self.tokens + (now - self._at) * most / WINDOW_SECONDS)
        self.most, self._at = most, now

    def seconds_until(self, tokens: float) -> float:
        return max(0.0, tokens - self.tokens) * WINDOW_SECONDS / self.most

    def is_full_at(self, now: float) -> bool:
        return now - self._at >= WINDOW_SECONDS

    @property
    def policy(self) -> str:
        return f'"{self.name}";q={self.most};w={WINDOW_SECONDS}'

    @property
    def rest(self) -> str:
        return f'"{self.name}";r={int(self.tokens)};t={math.ceil(self.seconds_until(self.most))}'


class RateLimits:
    """The buckets of this process."""

    def __init__(
        self,
        defaults: Mapping[str, int],
        *,
        processes: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Use `defaults`, requests in a minute by policy, 0 for no limit, where a tenant's config
        says nothing, and of each limit the part of one among so many `processes`.
        """
        self._defaults = {name: most for name, most in defaults.items() if most}
        self._processes = processes
        self._clock = clock
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def charge(
        self,
        tenant_id: str,
        key_id: str,
        config: Mapping[str, Any],
        kind: RequestClass,
        *,
        count: int = 1,
        counted: int = 0,
    ) -> Mapping[str, str]:
        """Count a request; the headers of its answer, none where nothing limits it.

        Args:
            count: how many requests it stands for; of a limit below that it takes all.
            counted: how many of these were counted before.

        Raises:
            RateLimitedError: the tenant or the key has too few left; no more were counted.

        """
        limits = config.get(RATE_LIMITS) or self._defaults
        if not limits:
            return {}
        if limits is not self._defaults:
            limits = self._defaults | limits
        now, buckets = self._clock(), []
        for name, owner in ((kind, tenant_id), (f"key_{kind}", key_id)):
            most = limits.get(name, 0)
            if most:
                buckets.append(self._bucket(name, owner, max(1, most // self._processes), now))
        return _take(buckets, count, counted) if buckets else {}

    def _bucket(self, name: str, owner: str, most: int, now: float) -> _Bucket:
        bucket = self._buckets.get((name, owner))
        if bucket is None:
            if len(self._buckets) >= MOST_BUCKETS:
                # A full one is as good as none.
                self._buckets = {
                    place: bucket
                    for place, bucket in self._buckets.items()
                    if not bucket.is_full_at(now)
                }
            bucket = self._buckets[name, owner] = _Bucket(name, most, now)
        bucket.fill(most, now)
        return bucket


def _take(buckets: list[_Bucket], count: int, counted: int) -> Mapping[str, str]:
    """Tokens of each, or of none.

    Raises RateLimitedError.
    """
    # Each with what the request takes in all; without a bound a large one could never pass.
    wanted = [(bucket, min(count, bucket.most)) for bucket in buckets]
    empty = [(bucket, whole) for bucket, whole in wanted if bucket.tokens < whole - counted]
    if not empty:
        for bucket, whole in wanted:
            bucket.tokens -= whole - counted
    headers = {
        "RateLimit-Policy": ", ".join(bucket.policy for bucket in buckets),
        "RateLimit": ", ".join(bucket.rest for bucket in buckets),
    }
    if empty:
        names = [bucket.name for bucket, _ in empty]
        for name in names:
            RATE_LIMITED.labels(name).inc()
        wait = max(bucket.seconds_until(whole) for bucket, whole in empty)
        raise RateLimitedError(names, max(1, math.ceil(wait)), headers)
    return headers
