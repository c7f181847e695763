"""What letting go looks like over HTTP."""

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from app.platform.values.fields import Id, Moment, Schema, Shown
from app.platform.values.pagination import PageQuery

Kind = Literal["agent", "user", "project", "session"]


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


class Receipt(Shown):
    """What went, in figures; nothing of what it said."""

    kind: Kind
    id: str
    deleted: dict[str, int] = Field(
        description="Rows deleted, or that would be.",
        examples=[{"sessions": 2, "messages": 41, "memories": 17}],
    )
    dry_run: bool
    erasure_id: str | None = Field(
        default=None, description="Of the receipt that stays; none of a dry run."
    )


class ErasureListQuery(PageQuery):
    kind: Kind | None = None
    id: Id | None = Field(
        default=None, description="What was erased, by its id; needs `kind` beside it."
    )

    @field_validator("id")
    @classmethod
    def _has_a_kind(cls, one: str | None, info: ValidationInfo) -> str | None:
        if one is not None and info.data.get("kind") is None:
            raise ValueError("needs kind beside it")
        return one


class ErasureRead(Shown):
    """A receipt as it is kept: it does not say who or what was erased."""

    erasure_id: str
    kind: Kind
    subject_hash: str = Field(
        description="HMAC-SHA-256 of kind, U+001F and id, keyed by the tenant's id, in hexadecimal "
        "digits."
    )
    deleted: dict[str, int] = Field(description="Rows that went, by what they were.")
    actor: str | None = Field(description="Id of the key that asked for it.")
    create_time: Moment

    @field_validator("subject_hash", mode="before")
    @classmethod
    def _in_digits(cls, held: object) -> object:
        return held.hex() if isinstance(held, bytes) else held
