"""What can be wrong with an import."""

from collections.abc import Sequence

from pydantic import JsonValue

from app.errors import ConflictError, UnavailableError, UnprocessableError

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
            f"{len(user_ids)} users of this part were erased after the export was made. Nothing "
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
