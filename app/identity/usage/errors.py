"""What can go wrong with the ledger."""

import math
from datetime import timedelta

from app.errors import TooManyRequestsError, UnprocessableError


class InvalidDaysError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"`since` must not lie after `until`, and at most {most} days are shown at once.",
            errors=[{"location": ["query", "since"], "detail": f"0 to {most - 1} days before"}],
        )


class QuotaExhaustedError(TooManyRequestsError):
    """The tenant's calls or tokens of the day are used up."""

    code = "quota_exhausted"
    title = "Daily quota used up"

    def __init__(self, wait: timedelta) -> None:
        seconds = max(math.ceil(wait.total_seconds()), 1)
        super().__init__(
            "The tenant's daily quota of model calls or tokens is used up; it frees up at "
            "midnight UTC. With async=true the work waits until then.",
            retry_after=seconds,
        )
