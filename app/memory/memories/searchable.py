"""What a search reads of a memory: its words, its subject, the day it goes by. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from app.language.ranking.packing import INDEX_COLUMNS, index_values

SPEAKER_KEYS: Final = ("name", "speaker", "subject")
"""Keys of the metadata that may name the speaker or the subject; `name` is a message's."""

DERIVED_FROM: Final = frozenset({"content", "metadata_", "valid_from", "said_at", "speaker"})
"""A change of one of these changes the terms."""

NO_TERMS: Final[Mapping[str, None]] = dict.fromkeys(INDEX_COLUMNS)


def row_terms(
    content: str,
    metadata: Mapping[str, Any],
    valid_from: datetime | None,
    said_at: datetime | None = None,
    speaker: str | None = None,
) -> dict[str, Any]:
    """What the analyser makes of a memory, by column."""
    names = (speaker, *(metadata.get(key) for key in SPEAKER_KEYS))
    speakers = [name for name in names if isinstance(name, str) and name.strip()]
    return index_values(content, speakers=speakers, said_at=valid_from or said_at)


def with_terms(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Values of new rows, by attribute, with what the analyser makes of them."""
    return [
        {
            **row,
            **row_terms(
                row["content"],
                row.get("metadata_") or {},
                row.get("valid_from"),
                row.get("said_at"),
                row.get("speaker"),
            ),
        }
        for row in rows
    ]


def characters(rows: Sequence[Mapping[str, Any]]) -> int:
    """How much text there is for the analyser."""
    return sum(len(row["content"]) for row in rows)
