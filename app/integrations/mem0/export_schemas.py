"""Exports and summaries as mem0's clients ask for them."""

from typing import Annotated, Final, Self

from pydantic import Field, StringConstraints, model_validator

from app.integrations.mem0.export_fields import LONGEST_ID
from app.integrations.mem0.schemas import ClientBody, Entities
from app.platform.values.fields import Document, ReadSchema, Timestamp, example

SCHEMA_LENGTH: Final = 64 * 1024


class Chosen(Entities, ClientBody):
    """Memories, by filters and by ids beside them, as Python's client sends them."""


class ExportCreate(Chosen):
    model_config = example(
        schema={"type": "object", "properties": {"profession": {"type": "string"}}},
        filters={"user_id": "ana"},
    )

    schema_: Annotated[str, StringConstraints(max_length=SCHEMA_LENGTH)] | Document = Field(
        alias="schema"
    )
    export_instructions: str | None = None


class ExportCreated(ReadSchema):
    message: str
    id: str = Field(description="The request itself: nothing is stored until it is fetched.")


class ExportGet(Chosen):
    model_config = example(filters={"user_id": "ana"})

    memory_export_id: (
        Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_ID)] | None
    ) = None

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        chosen = bool(self.filters) or any(True for _ in self.named)
        if (self.memory_export_id is None) is not chosen:
            raise ValueError("name memory_export_id or filters")
        return self


class ExportSummaryRequest(Chosen):
    model_config = example(filters={"user_id": "ana"})


class ExportSummary(ReadSchema):
    summary: str | None = Field(description="A user's profile as text; null without a user.")
    total_memories: int
    memory_types: dict[str, int]
    last_saved: Timestamp | None
