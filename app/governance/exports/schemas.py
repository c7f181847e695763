"""What exports and imports look like over HTTP, and what can be wrong with an import."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from app.errors import ConflictError, UnavailableError, UnprocessableError
from app.platform.values.fields import OwnId, ReadSchema, Schema

FORMAT = 1
"""Version of the lines; an import refuses other versions."""

MEDIA_TYPE = "application/x-ndjson"


class ExportQuery(Schema):
    user_id: OwnId | None = Field(default=None, description="All rows of one user.")
    agent_id: OwnId | None = Field(default=None, description="All rows of one agent.")
    project_id: OwnId | None = Field(default=None, description="All rows shared in one project.")
    vectors: bool = Field(
        default=True,
        description="Without them the file is smaller; `kemem reembed` makes them again.",
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(owner is not None for owner in (self.user_id, self.agent_id, self.project_id)) > 1:
            raise ValueError("name a user, an agent or a project, or none of them for everything")
        return self


class RowImportQuery(Schema):
    dry_run: bool = Field(default=False, description="Check and count; write nothing.")
    on_conflict: Literal["fail", "skip"] = Field(
        default="fail",
        description="What to do with rows that exist with other content: refuse the part, or "
        "skip them, together with the rows that refer to a skipped row.",
    )
    restore_erased: bool = Field(
        default=False,
        description="Also write rows of users who were erased after the export was made.",
    )


class ExportLine(ReadSchema):
    """One line: the manifest first, then a row each, and the end."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "created_at": "2026-11-23T12:00:00Z",
                    "embedding_models": [],
                    "format": FORMAT,
                    "kinds": [],
                    "schema": "0007",
                    "scope": {"kind": "tenant"},
                    "service": "0.1.0",
                    "type": "manifest",
                    "vectors": True,
                }
            ]
        }
    )

    type: str = Field(description="`manifest`, a kind of row such as `memory`, or `end`.")
    row: dict[str, Any] | None = Field(default=None, description="Its columns.")
    parent: bool | None = Field(
        default=None, description="True: a stub, exported because other rows refer to it."
    )
    format: int | None = Field(default=None, description="Of a manifest: of these lines.")
    schema_: str | None = Field(
        default=None, alias="schema", description="Of a manifest: revision of the tables."
    )
    scope: dict[str, str] | None = Field(default=None, description="Of a manifest: whose rows.")
    kinds: list[str] | None = Field(default=None, description="Of a manifest: kinds of row.")
    embedding_models: list[str] | None = Field(
        default=None, description="Of a manifest: models that made the vectors."
    )
    vectors: bool | None = Field(
        default=None, description="Of a manifest: whether vectors are included."
    )
    created_at: str | None = Field(
        default=None, description="Of a manifest: the time of the snapshot."
    )
    service: str | None = Field(default=None, description="Of a manifest: the release.")
    counts: dict[str, int] | None = Field(default=None, description="Of the end: rows by kind.")
    rows_sha256: str | None = Field(
        default=None, description="Of the end: over the lines of rows alone."
    )
    sha256: str | None = Field(default=None, description="Of the end: over all bytes before it.")


class ImportReport(ReadSchema):
    """Result of importing one part."""

    inserted: Annotated[
        dict[str, int], Field(description="Rows that are new.", examples=[{"memory": 17}])
    ]
    unchanged: dict[str, int] = Field(description="Rows that existed with the same content.")
    skipped: dict[str, int] = Field(
        description="Rows that exist with other content, or refer to a row that does not exist."
    )
    conflicts: list[dict[str, JsonValue]] = Field(
        description="The first hundred skipped rows: line, kind, key and reason."
    )
    dry_run: bool


MOST_LISTED = 100
"""Faults or conflicts that one answer lists."""


class InvalidImportError(UnprocessableError):
    code = "invalid_import"
    title = "Import is not valid"

    def __init__(self, faults: Sequence[tuple[Sequence[str], str]]) -> None:
        """`faults`: where each is, from the number of its line on, and what it is."""
        errors: list[JsonValue] = [
            {"location": ["body", *where], "detail": detail}
            for where, detail in faults[:MOST_LISTED]
        ]
        super().__init__(
            "Nothing of this part was written; `errors` names the lines.",
            errors=errors,
        )


class ExportsBusyError(UnavailableError):
    code = "exports_busy"
    title = "Enough exports are running"

    def __init__(self) -> None:
        super().__init__(
            "An export of this tenant is running, or as many as may run at a time. Try again later."
        )


class ErasedError(ConflictError):
    code = "erased"
    title = "Erased since the export"

    def __init__(self, user_ids: Sequence[str]) -> None:
        listed: list[JsonValue] = [*user_ids[:MOST_LISTED]]
        super().__init__(
            f"{'1 user' if len(user_ids) == 1 else f'{len(user_ids)} users'} of this part "
            f"{'was' if len(user_ids) == 1 else 'were'} erased after the export was made. Nothing "
            "of it was written; `restore_erased=true` brings them back.",
            user_ids=listed,
            count=len(user_ids),
        )


class ImportConflictError(ConflictError):
    code = "import_conflict"
    title = "Other rows are there"
    advice = (
        "are there with another content. Nothing of this part was written; `on_conflict=skip` "
        "leaves them as they are."
    )

    def __init__(self, conflicts: Sequence[dict[str, JsonValue]]) -> None:
        listed: list[JsonValue] = [*conflicts[:MOST_LISTED]]
        super().__init__(
            f"{len(conflicts)} rows {self.advice}",
            conflicts=listed,
            count=len(conflicts),
        )


class AnotherRowError(ImportConflictError):
    """The same to a caller, but that no `on_conflict` helps."""

    advice = (
        "are other rows here, made at another time or for somebody else. What hangs on them must "
        "not be mixed up, so nothing of this part was written, and `on_conflict=skip` does not "
        "pass over them: import into another tenant, or delete them here first."
    )
