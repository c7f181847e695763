"""DeerFlow's memory document as it crosses HTTP: its names, not ours."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from app.memory.memories.schemas import CONTENT_LENGTH, Confidence, Event, Reason
from app.memory.profiles.slots import SECTION_CHARACTERS
from app.platform.values.fields import OwnId, ReadSchema, Schema, Storable, example

MOST_FACTS = 1_000

Stamp = Annotated[str, StringConstraints(max_length=64), Storable]
"""ISO 8601 with Z; empty in an empty document."""


class DocumentSection(Schema):
    summary: Annotated[
        str, StringConstraints(max_length=SECTION_CHARACTERS, strip_whitespace=True), Storable
    ] = ""
    updatedAt: Stamp = ""  # noqa: N815 (DeerFlow's name)


class DocumentUser(Schema):
    workContext: DocumentSection = DocumentSection()  # noqa: N815
    personalContext: DocumentSection = DocumentSection()  # noqa: N815
    topOfMind: DocumentSection = DocumentSection()  # noqa: N815


class DocumentHistory(Schema):
    recentMonths: DocumentSection = DocumentSection()  # noqa: N815
    earlierContext: DocumentSection = DocumentSection()  # noqa: N815
    longTermBackground: DocumentSection = DocumentSection()  # noqa: N815


class DocumentFact(Schema):
    id: Annotated[str, StringConstraints(min_length=1, max_length=255), Storable]
    content: Annotated[
        str,
        StringConstraints(min_length=1, max_length=CONTENT_LENGTH, strip_whitespace=True),
        Storable,
    ]
    category: Annotated[str, StringConstraints(min_length=1, max_length=50), Storable] = "context"
    confidence: Confidence = 0.5
    createdAt: Stamp = ""  # noqa: N815
    source: Annotated[str, StringConstraints(max_length=255), Storable] = "unknown"
    sourceError: (  # noqa: N815
        Annotated[str, StringConstraints(min_length=1, max_length=CONTENT_LENGTH), Storable] | None
    ) = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.sourceError is not None and self.category != "correction":
            raise ValueError("sourceError goes with category correction only")
        return self


class MemoryDocument(Schema):
    """What an import takes; what is empty in it changes nothing."""

    model_config = example(
        version="1.0",
        lastUpdated="2026-11-22T12:00:00Z",
        user={"workContext": {"summary": "Nurse at a clinic.", "updatedAt": ""}},
        history={},
        facts=[
            {
                "id": "fact_1a2b3c4d",
                "content": "She drinks green tea in the morning.",
                "category": "preference",
                "confidence": 0.9,
                "createdAt": "2026-11-22T12:00:00Z",
                "source": "manual",
            }
        ],
    )

    version: Literal["1.0"] = "1.0"
    lastUpdated: Stamp = ""  # noqa: N815
    user: DocumentUser = DocumentUser()
    history: DocumentHistory = DocumentHistory()
    facts: Annotated[list[DocumentFact], Field(max_length=MOST_FACTS)] = []

    @model_validator(mode="after")
    def _names_each_once(self) -> Self:
        if len({fact.id for fact in self.facts}) < len(self.facts):
            raise ValueError("two facts have the same id")
        return self


class DocumentQuery(Schema):
    agent_id: OwnId | None = Field(
        default=None, description="Only what this agent may know; all of it when left out."
    )


class DocumentImportQuery(Schema):
    agent_id: OwnId | None = Field(
        default=None, description="Facts become private to this agent; of all when left out."
    )
    dry_run: bool = Field(default=False, description="Only tell what would happen.")


class FactOutcome(ReadSchema):
    """What became of one fact."""

    id: str
    event: Event
    memory_id: str | None = Field(description="The memory that says it, if there is one.")
    reasons: list[Reason] = Field(description="Why it was refused, or is there already.")


class DocumentImported(ReadSchema):
    dry_run: bool
    facts: list[FactOutcome] = Field(description="In the order of the document.")
    sections: list[str] = Field(description="Sections that were written, as the user's own.")
    counts: dict[str, int] = Field(description="Facts by event.")
