"""Erasing an agent, a user, a project or a session: what its route says and is answered.

The service behind it reaches over all tables and so lives in `app/governance/privacy`.
"""

from typing import Literal, Protocol

from pydantic import Field, field_validator

from app.identity.tenants.access import Principal
from app.platform.values.fields import ReadSchema, Schema

ErasureKind = Literal["agent", "user", "project", "session"]


class ErasureQuery(Schema):
    confirm: bool = Field(default=False, description="Required when it holds anything.")
    dry_run: bool = Field(default=False, description="Only count.")


class UserErasureQuery(ErasureQuery):
    hard: bool = Field(
        default=True,
        description="A user is always erased for good; to keep the data and refuse new writes "
        "for the user, set `status` to disabled with PATCH.",
    )

    @field_validator("hard")
    @classmethod
    def _is_for_good(cls, hard: bool) -> bool:
        if not hard:
            raise ValueError("must be true; to only disable a user, PATCH its status")
        return hard


class Receipt(ReadSchema):
    """Receipt of an erasure: numbers of deleted rows, no content."""

    kind: ErasureKind
    id: str
    deleted: dict[str, int] = Field(
        description="Rows deleted, or that would be.",
        examples=[{"sessions": 2, "messages": 41, "memories": 17}],
    )
    dry_run: bool
    erasure_id: str | None = Field(
        default=None, description="Of the receipt that stays; none of a dry run."
    )


class Eraser(Protocol):
    """Erases a subject with all that belongs to it."""

    async def delete(
        self, principal: Principal, kind: ErasureKind, subject_id: str, query: ErasureQuery
    ) -> Receipt:
        """Erase it for good, or only count with `dry_run`."""
