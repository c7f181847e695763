"""DeerFlow's memory document as it crosses HTTP (its names, not ours), out of rows, and rows out of
it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from app.language.llm.extractor import MEMORY_TYPES
from app.memory.memories.models import Memory
from app.memory.memories.schemas import CONTENT_LENGTH, Confidence, Event, Reason
from app.memory.profiles.models import ProfileValue
from app.memory.profiles.slots import SECTION_CHARACTERS, SECTIONS
from app.memory.profiles.value_changes import ValueChange
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
    refused_sections: list[FactOutcome] = Field(
        description="Sections that the gate refused, by name, and why; nothing of them is written."
    )
    counts: dict[str, int] = Field(description="Facts by event.")


ORIGINAL: Final = "memory_document"
"""In the metadata of an imported memory: `createdAt` and `source` as the document had them."""

_SECTION_NAMES: Final = {
    "user": {
        "workContext": "work_context",
        "personalContext": "personal_context",
        "topOfMind": "top_of_mind",
    },
    "history": {
        "recentMonths": "recent_months",
        "earlierContext": "earlier_context",
        "longTermBackground": "long_term_background",
    },
}

_CATEGORIES: Final = {
    "preference": "preference", "constraint": "preference", "habit": "behavior",
    "goal": "goal", "decision": "goal", "correction": "correction", "knowledge": "knowledge",
    "skill": "knowledge", "experience": "knowledge", "fact": "context", "context": "context",
    "event": "context",
}  # fmt: skip
"""DeerFlow's category for each of our types."""

_TYPES: Final = {"behavior": "habit", "behaviour": "habit"}


def stamp(time: datetime) -> str:
    """ISO 8601 with Z, as DeerFlow writes it."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def document(
    values: Iterable[ProfileValue], facts: Sequence[Memory], since: datetime
) -> dict[str, Any]:
    """The document; DeerFlow's empty one for a user of whom nothing is known.

    Args:
        since: when the user was made; nothing is older.

    """
    by_slot = {value.slot: value for value in values if value.slot.startswith(f"{SECTIONS}.")}
    times = [row.update_time for row in facts] + [value.update_time for value in by_slot.values()]
    parts = {
        part: {name: _section(by_slot.get(f"{SECTIONS}.{ours}")) for name, ours in names.items()}
        for part, names in _SECTION_NAMES.items()
    }
    return {
        "version": "1.0",
        "lastUpdated": stamp(max(times, default=since)),
        **parts,
        "facts": [_fact(row) for row in facts],
    }


def _section(value: ProfileValue | None) -> dict[str, str]:
    if value is None:
        return {"summary": "", "updatedAt": ""}
    return {"summary": str(value.value), "updatedAt": stamp(value.update_time)}


def _fact(row: Memory) -> dict[str, Any]:
    kept = row.metadata_.get(ORIGINAL)
    original: Mapping[str, Any] = kept if isinstance(kept, Mapping) else {}
    fact = {
        "id": row.memory_id,
        "content": row.content.strip(),
        "category": _CATEGORIES[row.memory_type],
        "confidence": row.confidence,
        "createdAt": original.get("createdAt") or stamp(row.create_time),
        "source": original.get("source") or _source(row),
    }
    # Only where a mistake is named, which only a correction does.
    return fact | ({"sourceError": row.source_error} if row.source_error else {})


def _source(row: Memory) -> str:
    return row.session_id or row.source_id or ("manual" if row.source == "user" else "unknown")


def section_changes(body: MemoryDocument) -> list[ValueChange]:
    """What the document says of sections; an empty one says nothing."""
    changes = []
    for part, names in _SECTION_NAMES.items():
        for name, ours in names.items():
            summary = getattr(getattr(body, part), name).summary
            if summary:
                changes.append(ValueChange(f"{SECTIONS}.{ours}", summary))
    return changes


def memory_fields(fact: DocumentFact) -> dict[str, Any]:
    """The fields of a request to remember a fact, without its owner."""
    category = _TYPES.get(fact.category.lower(), fact.category.lower())
    return {
        "messages": fact.content,
        "memory_type": category if category in MEMORY_TYPES else "fact",
        "confidence": fact.confidence,
        "source": "import",
        "source_error": fact.sourceError,
        "external_id": fact.id,
        "metadata": {ORIGINAL: {"createdAt": fact.createdAt, "source": fact.source}},
    }
