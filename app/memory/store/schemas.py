"""Operations on a store as they cross HTTP, their limits, and what can go wrong."""

import json
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from app.errors import UnprocessableError
from app.memory.store.json_values import Filter, check_json
from app.platform.values.fields import (
    LARGEST_INTEGER,
    OwnId,
    ReadSchema,
    Schema,
    Storable,
    Timestamp,
    example,
)

LABEL_LENGTH: Final = 255
NAMESPACE_DEPTH: Final = 20
NAMESPACE_BYTES: Final = 1000
"""The labels of a namespace with a period between two; an index holds them."""
KEY_LENGTH: Final = 1024
VALUE_BYTES: Final = 1024 * 1024
VALUE_DEPTH: Final = 50
PATHS: Final = 50
OPERATIONS: Final = 1000
ROWS: Final = 10_000
LONGEST_TTL: Final = 100 * 366 * 24 * 60
QUERY_LENGTH: Final = 100_000


def _label(text: str) -> str:
    if "." in text:
        raise ValueError("must not contain a period")
    return text


def _namespace(labels: list[str]) -> list[str]:
    if sum(len(label.encode()) + 1 for label in labels) - 1 > NAMESPACE_BYTES:
        raise ValueError(f"must not have more than {NAMESPACE_BYTES} bytes together")
    return labels


def _checked_value(value: Any) -> Any:
    """The value itself.

    Raises:
        ValueError: it cannot be stored, or is too large.

    """
    if isinstance(value, dict):
        check_json(value, deepest=VALUE_DEPTH)
        if len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) > VALUE_BYTES:
            raise ValueError(f"must not be larger than {VALUE_BYTES // 1024} KiB of JSON")
    return value


Label = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LABEL_LENGTH),
    Storable,
    AfterValidator(_label),
]
Namespace = Annotated[
    list[Label],
    Field(max_length=NAMESPACE_DEPTH, examples=[["users", "ana", "preferences"]]),
]
Key = Annotated[
    str, StringConstraints(max_length=KEY_LENGTH), Storable, Field(examples=["colours"])
]
Value = Annotated[
    dict[str, Any],
    BeforeValidator(_checked_value),
    Field(description="A JSON object: at most 1 MiB, 50 levels."),
]
FieldPath = Annotated[str, StringConstraints(min_length=1, max_length=1024), Storable]


class _Addressed(Schema):
    """What names an item or a part of the store."""

    namespace: Namespace

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _namespace(self.namespace)
        return self


class StoreGet(_Addressed):
    """Read an item."""

    op: Literal["get"]
    key: Key
    refresh_ttl: bool = Field(
        default=True, description="Begin the item's time to live again, if it has one."
    )


class StorePut(_Addressed):
    """Store an item, in place of the one that is there."""

    op: Literal["put"]
    namespace: Annotated[Namespace, Field(min_length=1)]
    key: Key
    value: Value
    index: Annotated[list[FieldPath], Field(max_length=PATHS)] = Field(
        default=["$"],
        description="Paths of the texts that a search by meaning compares: `title`, `author.name`, "
        "`notes[*].text`, `tags[-1]`, and `$` for the whole value. An empty list indexes nothing.",
    )
    ttl_minutes: Annotated[float, Field(ge=0, le=LONGEST_TTL)] | None = Field(
        default=None, description="Minutes until it expires, from its last use; null for never."
    )
    user_id: OwnId | None = Field(
        default=None,
        description="Whose it is: an erasure or an export of the user takes it along. The user is "
        "made on first use.",
    )


class StoreDelete(_Addressed):
    """Delete an item, if it is there."""

    op: Literal["delete"]
    key: Key


class StoreSearch(_Addressed):
    """Find items at and below a namespace."""

    op: Literal["search"]
    filter: Filter = Field(
        default={},
        description="Fields of the value and what they must be: a value, or `$eq`, `$ne`, `$gt`, "
        "`$gte`, `$lt`, `$lte` of one. `$gt` and its like compare numbers with numbers and texts "
        "with texts.",
        examples=[{"kind": "colour", "score": {"$gte": 3}}],
    )
    query: Annotated[str, StringConstraints(max_length=QUERY_LENGTH), Storable] | None = Field(
        default=None,
        description="Rank by meaning: best first, then what is not indexed. Without it the last "
        "stored is first.",
    )
    limit: Annotated[int, Field(ge=0, le=ROWS)] = 10
    offset: Annotated[int, Field(ge=0, le=LARGEST_INTEGER)] = 0
    refresh_ttl: bool = True


class StoreMatch(Schema):
    """A beginning or an end of namespaces; `*` stands for any one label."""

    type: Literal["prefix", "suffix"]
    path: Namespace


class StoreListNamespaces(Schema):
    """List namespaces that have items."""

    op: Literal["list_namespaces"]
    match: Annotated[list[StoreMatch], Field(max_length=NAMESPACE_DEPTH)] = []
    max_depth: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="Longer ones are cut to so many labels, and shown once."
    )
    limit: Annotated[int, Field(ge=0, le=ROWS)] = 100
    offset: Annotated[int, Field(ge=0, le=LARGEST_INTEGER)] = 0


StoreOperation = Annotated[
    StoreGet | StorePut | StoreDelete | StoreSearch | StoreListNamespaces, Field(discriminator="op")
]


class StoreBatch(Schema):
    model_config = example(
        operations=[
            {
                "op": "put",
                "namespace": ["notes"],
                "key": "colours",
                "value": {"text": "Likes dark green."},
                "index": ["text"],
            },
            {"op": "search", "namespace": ["notes"], "query": "favourite colour"},
        ]
    )

    operations: Annotated[list[StoreOperation], Field(max_length=OPERATIONS)]


class StoreItemRead(ReadSchema):
    namespace: list[str]
    key: str
    value: dict[str, Any]
    user_id: str | None = Field(description="Whose it is.")
    expires_at: Timestamp | None
    create_time: Timestamp
    update_time: Timestamp
    score: float | None = Field(
        default=None, description="Of a search by meaning: the cosine of its nearest text."
    )


class StoreResult(ReadSchema):
    """The field of the operation is set: `item` of a get, `items` of a search, `namespaces`."""

    item: StoreItemRead | None = None
    items: list[StoreItemRead] | None = None
    namespaces: list[list[str]] | None = None


class StoreResults(ReadSchema):
    results: list[StoreResult] = Field(description="One of each operation, in their order.")


class StoreSwept(ReadSchema):
    deleted: int = Field(description="Expired items that were deleted.")


class StoreAnswerTooLargeError(UnprocessableError):
    code = "store_answer_too_large"
    title = "Answer would be too large"

    def __init__(self, limit: int, counted: str) -> None:
        super().__init__(
            f"The answer would have more than {limit} {counted}. Ask for less in one request, "
            "with `limit` and `offset`.",
            limit=limit,
        )


class TooManyTextsError(UnprocessableError):
    code = "too_many_texts"
    title = "Too many texts to index"

    def __init__(self, ordinal: int, limit: int, counted: str) -> None:
        """Of the operation `ordinal`; `counted` says of what there are more than `limit`."""
        super().__init__(
            f"The paths in `index` lead to more than {limit} {counted}. Nothing was written.",
            limit=limit,
            errors=[
                {"location": ["body", "operations", str(ordinal), "index"], "detail": "too many"}
            ],
        )
