"""DeerFlow's memory document out of rows, and rows out of it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from app.language.llm.extractor import MEMORY_TYPES
from app.memory.memories.models import Memory
from app.memory.profiles.document_schemas import DocumentFact, MemoryDocument
from app.memory.profiles.models import ProfileValue
from app.memory.profiles.slots import SECTIONS
from app.memory.profiles.value_changes import ValueChange

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
