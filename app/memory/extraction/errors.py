"""What can be wrong with a request to extract."""

import math
from collections.abc import Sequence
from datetime import timedelta

from app.errors import NotFoundError, TooManyRequestsError, UnprocessableError


class ExtractionLimitError(TooManyRequestsError):
    """The session's runs of a rolling day are used up (B-02)."""

    code = "rate_limited"
    title = "Extraction limit reached"

    def __init__(self, limit: int, wait: timedelta) -> None:
        seconds = max(math.ceil(wait.total_seconds()), 1)
        super().__init__(
            f"The model has read this session {limit} times within 24 hours. What is not read "
            "yet stays, and is read when the limit frees up.",
            retry_after=seconds,
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


class RunNotFoundError(NotFoundError):
    code = "run_not_found"
    title = "Run not found"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"There is no extraction run {run_id}.")


class NotInferredError(UnprocessableError):
    """Fields of one statement, while `infer` is to find out how many there are."""

    code = "needs_infer_false"
    title = "Only with infer false"

    def __init__(self, fields: Sequence[str]) -> None:
        super().__init__(
            f"With infer true the service decides about {', '.join(fields)}. Leave that out, or "
            "send infer false to store the text as it stands.",
            errors=[{"location": ["body", name], "detail": "needs infer false"} for name in fields],
        )
