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
        description="A person is always erased for good; to keep what is there and let nobody "
        "write for them, set `status` to disabled with PATCH.",
    )

    @field_validator("hard")
    @classmethod
    def _is_for_good(cls, hard: bool) -> bool:
        if not hard:
            raise ValueError("must be true; to only disable a user, PATCH its status")
        return hard


class Receipt(ReadSchema):
    """What went, in figures; nothing of what it said."""

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
    """Deletes what holds other things."""

    async def delete(
        self, principal: Principal, kind: ErasureKind, one: str, query: ErasureQuery
    ) -> Receipt:
        """Delete it with all it holds, for good, or count it first."""
