"""What can be wrong with a request to extract."""

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from app.errors import DomainError, NotFoundError, TooManyRequestsError
from app.language.llm.errors import EmbeddingUnavailableError, ModelUnavailableError

FAILURE: Final = "failure"
"""In the payload of a job: the code and the members of the error of its last attempt."""


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


def kept_failure(payload: Mapping[str, Any]) -> DomainError | None:
    """The error of a job's last attempt, if that was for a model."""
    members = dict(payload.get(FAILURE) or {})
    seconds = members.pop("retry_after", None)
    wait = None if seconds is None else timedelta(seconds=seconds)
    match members.pop("code", None):
        case ModelUnavailableError.code:
            return ModelUnavailableError(retry_after=wait, **members)
        case EmbeddingUnavailableError.code:
            return EmbeddingUnavailableError(retry_after=wait, **members)
    return None
