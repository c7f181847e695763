"""What can be wrong with a request to extract."""

import math
from datetime import timedelta

from app.errors import NotFoundError, TooManyRequestsError


class ExtractionLimitError(TooManyRequestsError):
    """The session's runs of a rolling day are used up."""

    code = "rate_limited"
    title = "Extraction limit reached"

    def __init__(self, limit: int, wait: timedelta) -> None:
        seconds = max(math.ceil(wait.total_seconds()), 1)
        super().__init__(
            f"The model has read this session {limit} times within 24 hours. What is not read "
            "yet stays, and is read when the limit frees up.",
            retry_after=seconds,
        )


class RunNotFoundError(NotFoundError):
    """The caller may see no such run."""

    code = "run_not_found"
    title = "Run not found"

    def __init__(self, extraction_id: str) -> None:
        super().__init__(f"There is no extraction run {extraction_id}.")
