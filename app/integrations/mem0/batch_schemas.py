"""Batches of updates and deletions, and feedback, as mem0's clients send them."""

from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from app.memory.memories.schemas import Content
from app.platform.values.fields import Metadata, ReadSchema, Schema, Storable, example

MOST_AT_ONCE: Final = 1000
LONGEST_REASON: Final = 1980
"""What a comment of ours has room for behind the word that marks a very bad memory."""

MemoryUuid = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Mem0BatchUpdateItem(Schema):
    memory_id: MemoryUuid
    text: Content | None = None
    metadata: Metadata | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.text is None and self.metadata is None:
            raise ValueError("name text or metadata")
        return self


class Mem0BatchUpdate(Schema):
    model_config = example(
        memories=[{"memory_id": "0193e8a0-5c1f-7d3a-9b1e-2f6c8d4a7b10", "text": "She likes tea."}]
    )

    memories: Annotated[list[Mem0BatchUpdateItem], Field(min_length=1, max_length=MOST_AT_ONCE)]


class Mem0BatchDeleteItem(Schema):
    memory_id: MemoryUuid


class Mem0BatchDelete(Schema):
    model_config = example(memories=[{"memory_id": "0193e8a0-5c1f-7d3a-9b1e-2f6c8d4a7b10"}])

    memories: Annotated[list[Mem0BatchDeleteItem], Field(min_length=1, max_length=MOST_AT_ONCE)]


Reason = Annotated[
    str, StringConstraints(max_length=LONGEST_REASON, strip_whitespace=True), Storable
]


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


class Mem0Feedback(Schema):
    model_config = example(
        memory_id="0193e8a0-5c1f-7d3a-9b1e-2f6c8d4a7b10", feedback="NEGATIVE",
        feedback_reason="She moved.",
    )  # fmt: skip

    memory_id: MemoryUuid
    feedback: Annotated[
        Literal["POSITIVE", "NEGATIVE", "VERY_NEGATIVE"] | None, BeforeValidator(_upper)
    ] = None
    feedback_reason: Reason | None = None


class Mem0FeedbackAdded(ReadSchema):
    id: str
    feedback: str
    feedback_reason: str | None
