"""Extraction as it crosses HTTP, and what can be wrong with a request for one."""

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from app.errors import DomainError, NotFoundError, TooManyRequestsError
from app.language.llm.errors import EmbeddingUnavailableError, ModelUnavailableError
from app.memory.memories.schemas import OldExtractionId
from app.platform.values.fields import Id, OwnId, ReadSchema, Schema, Storable, Timestamp, example
from app.platform.values.pagination import PageQuery

Prompt = Annotated[str, StringConstraints(min_length=1, max_length=8000), Storable]
Trigger = Literal["automatic", "continued", "explicit", "end", "infer", "rescue", "reread"]
RunStatus = Literal["extracted", "committed", "failed"]


class ExtractRequest(Schema):
    model_config = example(wait=True)

    wait: bool = Field(
        default=False,
        description="Wait until it is done, at most a minute, then 202 as without, and at once if "
        "the job is deferred for longer. When a model fails, the answer is that error, and the job "
        "tries again.",
    )
    prompt: Prompt | None = Field(
        default=None, description="Your own instructions to the extractor, for this time."
    )


class ExtractAnswer(ReadSchema):
    """How far a session is read."""

    session_id: str
    scheduled: bool = Field(description="False when everything was read already.")
    done: bool = Field(description="Whether everything said before the request is read.")
    job_id: str | None = None
    status: str | None = Field(default=None, description="Of the job.")
    due_at: Timestamp | None = None
    deferred_reason: str | None = Field(
        default=None, description="Why the job waits until `due_at`, as in `GET /v1/jobs`."
    )
    last_extracted_seq: int = Field(description="Messages up to this number are read.")
    result: dict[str, Any] | None = Field(
        default=None, description="Of the last run: its id, and how many proposals ended as what."
    )


class RunRead(ReadSchema):
    """One run of an extractor over some messages."""

    extraction_id: str
    run_id: OldExtractionId
    job_id: str | None
    trigger: Trigger
    status: RunStatus = Field(
        description="extracted: the extractor answered and nothing is stored yet, or never was."
    )
    error_code: str | None
    agent_id: str | None
    user_id: str | None
    session_id: str | None
    first_sequence_no: int | None
    last_sequence_no: int | None
    messages: int = Field(description="How many were new to it.")
    extractor: str
    model: str | None
    prompt_version: str | None
    calls: int
    input_tokens: int
    output_tokens: int
    latency_ms: int
    proposals: int
    outcomes: dict[str, int] = Field(description="How many proposals ended as what.")
    upkeep: dict[str, Any] = Field(
        description="What a model looked at besides: how many memories it reviewed and kept, "
        "extended or removed, and how many merges it made of which type."
    )
    create_time: Timestamp
    finish_time: Timestamp | None


class RunQuery(PageQuery):
    session_id: OwnId | None = None
    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    job_id: Id | None = None
    status: RunStatus | None = None


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
