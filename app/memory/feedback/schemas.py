"""Feedback as it crosses HTTP, and what can go wrong with it."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from app.errors import UnprocessableError
from app.platform.values.fields import Id, OwnId, ReadSchema, Schema, Storable, Timestamp, example

Rating = Literal["helpful", "wrong", "outdated"]
REPORTED: Final = 200
"""Most memories of one report: as many as a context has."""

Comment = Annotated[
    str, StringConstraints(min_length=1, max_length=2000, strip_whitespace=True), Storable
]


class FeedbackCreate(Schema):
    model_config = example(rating="outdated", comment="She moved to Bonn in March.")

    rating: Rating
    comment: Comment | None = Field(default=None, examples=["She moved to Bonn in March."])


class FeedbackAdded(ReadSchema):
    """Without the comment, so that no kept answer holds anybody's words."""

    feedback_id: str
    memory_id: str
    rating: Rating
    version: int = Field(description="The version of the memory it was given for.")
    create_time: Timestamp


class FeedbackRead(FeedbackAdded):
    comment: str | None
    actor: str | None = Field(description="Id of the key that gave it.")


class UseReport(Schema):
    """Which memories of a session's contexts an answer drew on."""

    model_config = example(session_id="s1", memory_ids=["mem_1"])

    session_id: OwnId
    memory_ids: Annotated[list[Id], Field(min_length=1, max_length=REPORTED)]


class UseReported(ReadSchema):
    session_id: str
    used: int = Field(description="Memories that are now said to be used for the first time.")
    repeated: int = Field(description="Those of which that was said before.")
    not_shown: list[str] = Field(
        description="Ids that no context of the session had, or that it had within the last "
        "second: nothing was noted of them."
    )


class FeedbackStatsQuery(Schema):
    user_id: OwnId | None = Field(default=None, description="On this user's memories.")
    agent_id: OwnId | None = Field(default=None, description="On this agent's own memories.")


class FeedbackStats(ReadSchema):
    total: int
    by_rating: dict[Rating, int]
    memories: int = Field(description="Memories it was given on.")


class SensitiveCommentError(UnprocessableError):
    code = "sensitive"
    title = "Something that must not be kept"

    def __init__(self, detectors: Sequence[str]) -> None:
        listed = ", ".join(detectors)
        super().__init__(
            "Nothing was stored: the comment holds what no memory may hold either.",
            detectors=list(detectors),
            errors=[{"location": ["body", "comment"], "detail": f"holds {listed}"}],
        )
