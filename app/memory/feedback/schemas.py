"""Feedback as it crosses HTTP."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from app.platform.values.fields import Id, ReadSchema, Schema, Storable, Timestamp, example

Rating = Literal["helpful", "wrong", "outdated"]
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


class FeedbackStatsQuery(Schema):
    user_id: Id | None = Field(default=None, description="On this user's memories.")
    agent_id: Id | None = Field(default=None, description="On this agent's own memories.")


class FeedbackStats(ReadSchema):
    total: int
    by_rating: dict[Rating, int]
    memories: int = Field(description="Memories it was given on.")
