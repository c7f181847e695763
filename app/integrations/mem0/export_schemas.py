"""Exports and summaries as mem0's clients ask for them, what of their JSON Schema can be filled,
and the id that says which export it is.

mem0 has a model write an object of any schema. Here a property is filled where a profile has a
field of that name, and is null otherwise; the memories themselves are always there.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from pydantic import Field, StringConstraints, model_validator

from app.integrations.mem0.errors import InvalidMem0RequestError
from app.integrations.mem0.schemas import ClientBody, Entities
from app.platform.values.fields import Document, ReadSchema, Timestamp, example

MEMORIES: Final = "memories"
UNFILLED: Final = "unfilled"
MOST_FIELDS: Final = 100
LONGEST_ID: Final = 20_000


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Which memories, and which fields of a profile beside them."""

    filters: Mapping[str, Any]
    fields: Sequence[str]

    @property
    def export_id(self) -> str:
        """The request as a text, so that nothing has to be stored: an export is read when it is
        fetched, by whoever may read it then.
        """
        written = json.dumps([self.filters, list(self.fields)], ensure_ascii=False)
        return base64.urlsafe_b64encode(written.encode()).decode().rstrip("=")

    @classmethod
    def of(cls, export_id: str) -> "ExportRequest":
        """The request of an id.

        Raises:
            InvalidMem0RequestError: it is no id of an export.

        """
        try:
            padded = export_id + "=" * (-len(export_id) % 4)
            filters, fields = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (binascii.Error, ValueError, TypeError, RecursionError):
            raise _no_export() from None
        if not isinstance(filters, dict) or not isinstance(fields, list):
            raise _no_export()
        if not all(isinstance(field, str) for field in fields):
            raise _no_export()
        return cls(filters, fields)


def _no_export() -> InvalidMem0RequestError:
    return InvalidMem0RequestError("There is no export of this id.")


def fields_of(schema: str | Mapping[str, Any]) -> list[str]:
    """The properties of a JSON Schema, which may be written as text.

    Raises:
        InvalidMem0RequestError: it is no schema of an object.

    """
    if isinstance(schema, str):
        try:
            parsed = json.loads(schema)
        except (ValueError, RecursionError):
            raise InvalidMem0RequestError("`schema` must be a JSON Schema.") from None
    else:
        parsed = schema
    properties = parsed.get("properties") if isinstance(parsed, Mapping) else None
    if not isinstance(properties, dict) or not 1 <= len(properties) <= MOST_FIELDS:
        raise InvalidMem0RequestError(
            f"`schema` must be a JSON Schema of an object with 1 to {MOST_FIELDS} properties."
        )
    return [name for name in properties if name not in {MEMORIES, UNFILLED}]


def filled(
    fields: Sequence[str], profile: Mapping[str, Any], memories: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The export: the fields, the memories, and the names of the fields that are null."""
    values = {field: profile.get(field) for field in fields}
    return values | {
        MEMORIES: list(memories),
        UNFILLED: [field for field, value in values.items() if value is None],
    }


def summary(profile: Mapping[str, Any]) -> str:
    """What is known of a user, a line for each field."""
    return "\n".join(f"{name.replace('_', ' ')}: {_text(value)}" for name, value in profile.items())


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name.replace('_', ' ')}: {_text(part)}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


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
