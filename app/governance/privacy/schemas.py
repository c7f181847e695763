"""Receipts of erasures as they cross HTTP."""

from pydantic import Field, ValidationInfo, field_validator

from app.identity.tenants.schemas import ErasureKind
from app.platform.values.fields import OwnId, ReadSchema, Timestamp
from app.platform.values.pagination import PageQuery


class ErasureListQuery(PageQuery):
    kind: ErasureKind | None = None
    id: OwnId | None = Field(
        default=None, description="Id of what was erased; needs `kind` beside it."
    )

    @field_validator("id")
    @classmethod
    def _has_a_kind(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("kind") is None:
            raise ValueError("needs kind beside it")
        return value


class ErasureRead(ReadSchema):
    """A receipt of an erasure: it does not name what was erased."""

    erasure_id: str
    kind: ErasureKind
    subject_hash: str = Field(
        description="HMAC-SHA-256 of kind, U+001F and id, keyed by the tenant's id, in hexadecimal "
        "digits."
    )
    deleted: dict[str, int] = Field(description="Rows deleted, by kind.")
    actor: str | None = Field(description="Id of the key that asked for it.")
    create_time: Timestamp

    @field_validator("subject_hash", mode="before")
    @classmethod
    def _in_digits(cls, held: object) -> object:
        return held.hex() if isinstance(held, bytes) else held
