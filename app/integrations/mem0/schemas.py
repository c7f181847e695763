"""Requests of mem0's clients as they cross HTTP, for one memory and for many, and their ids, which
are UUIDs: ours are a prefix and a UUID, so that one gives the other.

Fields that have no counterpart here are read all the same: `unused` says which of them were given,
so that an answer can say what it did not use.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)
from typing_extensions import override

from app.integrations.mem0.errors import InvalidMem0RequestError
from app.memory.memories.schemas import BATCH, Content, SaidMessage
from app.platform.values.fields import (
    Composed,
    Metadata,
    OwnId,
    ReadSchema,
    Schema,
    Storable,
    checked_own_id,
    example,
)
from app.platform.values.pagination import CursorText

TOP_K = 100
PAGE_SIZE = 200
LISTED_FIELDS = 100
ENTITIES = 1000
"""A reset of the clients deletes what one page lists."""


def _any_or_id(text: str) -> str:
    return text if text == "*" else checked_own_id(text)


Filters = dict[str, JsonValue]
Moment = int | float | str
TopK = Annotated[int, Field(ge=1, le=TOP_K)]
IdOrAny = Annotated[str, Composed, AfterValidator(_any_or_id)]
FieldNames = Annotated[list[str], Field(max_length=LISTED_FIELDS)]

ENTITY_IDS = ("user_id", "agent_id", "app_id", "run_id")


class ClientQuery(Schema):
    """What clients of 1.x, and the command-line client, put into the query of every request."""

    org_id: str | None = None
    project_id: str | None = None
    source: str | None = Field(default=None, max_length=50)


class Entities(Schema):
    """Ids of a request, which older clients write beside `filters` and newer ones into it."""

    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    app_id: OwnId | None = None
    run_id: OwnId | None = None
    filters: Filters | None = None

    @property
    def named(self) -> Iterator[tuple[str, str]]:
        """Each id beside `filters`."""
        return ((name, value) for name in ENTITY_IDS if (value := getattr(self, name)) is not None)


class ClientBody(Schema):
    """What clients add to bodies and nothing here depends on."""

    org_id: str | None = None
    project_id: str | None = None
    source: str | None = None
    version: str | None = None
    output_format: str | None = None
    api_version: str | None = None


class AddRequest(Entities, ClientBody):
    model_config = example(
        messages=[{"role": "user", "content": "I moved to Lisbon."}], user_id="ana"
    )

    messages: (
        Content | SaidMessage | Annotated[list[SaidMessage], Field(min_length=1, max_length=BATCH)]
    )
    metadata: Metadata | None = None
    infer: bool = True
    async_mode: bool | None = None
    custom_instructions: str | None = Field(
        default=None, max_length=8000, description="With `infer`: instructions to the extractor."
    )
    agent_custom_instructions: str | None = None
    includes: str | None = Field(default=None, max_length=2000)
    excludes: str | None = Field(default=None, max_length=2000)
    timestamp: Moment | None = Field(default=None, description="When it was said.")
    observation_date: Moment | None = Field(default=None, description="As `timestamp`.")
    observation_datetime: Moment | None = Field(default=None, description="As `timestamp`.")
    expiration_date: str | None = Field(default=None, description="Last day on which it counts.")
    immutable: bool | None = None
    structured_data_schema: dict[str, Any] | None = None
    custom_categories: list[Any] | None = None
    enable_graph: bool | None = None
    timezone: str | None = None

    @property
    def unused(self) -> list[str]:
        """Names of given fields that change nothing here."""
        names = ["custom_categories", "agent_custom_instructions", "enable_graph", "timezone"]
        if not self.infer:
            names += ["custom_instructions", "includes", "excludes"]
        return [name for name in names if getattr(self, name)]


class Narrowing(Entities, ClientBody):
    """What searches and lists share."""

    categories: list[str] | None = None
    metadata: Filters | None = None
    show_expired: bool = False
    latest_only: bool | None = Field(
        default=None, description="Replaced memories are never shown, whatever it says."
    )
    fields: FieldNames | None = Field(default=None, description="Only these fields of a memory.")
    enable_graph: bool | None = None

    @property
    def unused(self) -> list[str]:
        """Names of given fields that change nothing here."""
        return ["enable_graph"] if self.enable_graph else []


class SearchBody(Narrowing):
    model_config = example(query="Where does she live?", filters={"user_id": "ana"}, top_k=5)

    query: str = Field(max_length=100_000)
    top_k: TopK | None = Field(default=None, description="10 when left out.")
    limit: TopK | None = Field(default=None, description="The same in older clients.")
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    rerank: bool | None = None
    reference_date: Moment | None = None
    keyword_search: bool | None = Field(
        default=None, description="Words are always searched for too."
    )
    filter_memories: bool | None = None

    @property
    @override
    def unused(self) -> list[str]:
        names = ("enable_graph", "show_expired", "filter_memories")
        return [name for name in names if getattr(self, name)]


class SearchBodyV3(SearchBody):
    """As clients since 2.0 write it: ids are in `filters`."""

    @model_validator(mode="after")
    def _ids_in_filters(self) -> Self:
        if names := [name for name, _ in self.named]:
            raise ValueError(f"{', '.join(names)} must be in `filters`")
        return self


class ListRequest(Narrowing):
    model_config = example(filters={"user_id": "ana"})

    start_date: Moment | None = None
    end_date: Moment | None = None
    keywords: str | Filters | None = None
    top_k: Annotated[int, Field(ge=1, le=PAGE_SIZE)] | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_SIZE)] | None = None
    page: Annotated[int, Field(ge=1)] | None = None
    page_size: Annotated[int, Field(ge=1, le=PAGE_SIZE)] | None = None


class ListQuery(ClientQuery):
    page: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    page_size: Annotated[int, Field(ge=1, le=PAGE_SIZE)] | None = None


class EntitiesQuery(ClientQuery):
    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    page_size: Annotated[int, Field(ge=1, le=ENTITIES)] = ENTITIES


class EventQuery(ClientQuery):
    page_size: Annotated[int, Field(ge=1, le=100)] = 100
    cursor: CursorText | None = None


class UpdateRequest(ClientBody):
    model_config = example(text="She lives in Porto.")

    text: Content | None = None
    metadata: Metadata | None = None
    timestamp: Moment | None = Field(default=None, description="Since when it holds.")
    expiration_date: str | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set & {"text", "metadata", "timestamp", "expiration_date"}:
            raise ValueError("name text, metadata, timestamp or expiration_date")
        return self


class DeleteQuery(ClientQuery):
    delete_linked: bool = False


class DeleteManyQuery(ClientQuery):
    user_id: IdOrAny | None = None
    agent_id: IdOrAny | None = None
    app_id: IdOrAny | None = None
    run_id: IdOrAny | None = None
    filters: str | None = Field(
        default=None, description="An object as JSON, or as Python prints a dict."
    )
    metadata: str | None = Field(default=None, description="As `filters`.")


def shown_id(own: str) -> str:
    """The UUID in an id of ours; an id that has none is shown as it is."""
    try:
        return str(UUID(hex=own.partition("_")[2]))
    except ValueError:
        return own


def own_id(prefix: str, given: str) -> str:
    """The id of ours that a UUID stands for; one of ours is understood too.

    Raises:
        InvalidMem0RequestError: it is neither.

    """
    bare = given.removeprefix(f"{prefix}_")
    try:
        return f"{prefix}_{UUID(bare).hex}"
    except ValueError:
        raise InvalidMem0RequestError("An id must be a UUID.") from None


MOST_AT_ONCE: Final = 1000
LONGEST_REASON: Final = 1980
"""What a comment of ours has room for behind the word that marks a very bad memory."""

MemoryUuid = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Mem0BatchUpdateItem(Schema):
    memory_id: MemoryUuid
    text: Content | None = None
    metadata: Metadata | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.text is None and self.metadata is None:
            raise ValueError("name text or metadata")
        return self


class Mem0BatchUpdate(Schema):
    model_config = example(
        memories=[{"memory_id": "0193e8a0-5c1f-7d3a-9b1e-2f6c8d4a7b10", "text": "She likes tea."}]
    )

    memories: Annotated[list[Mem0BatchUpdateItem], Field(min_length=1, max_length=MOST_AT_ONCE)]


class Mem0BatchDeleteItem(Schema):
    memory_id: MemoryUuid


class Mem0BatchDelete(Schema):
    model_config = example(memories=[{"memory_id": "0193e8a0-5c1f-7d3a-9b1e-2f6c8d4a7b10"}])

    memories: Annotated[list[Mem0BatchDeleteItem], Field(min_length=1, max_length=MOST_AT_ONCE)]


Reason = Annotated[
    str, StringConstraints(max_length=LONGEST_REASON, strip_whitespace=True), Storable
]


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


class Mem0Feedback(Schema):
    model_config = example(
        memory_id="0193e8a0-5c1f-7d3a-9b1e-2f6c8d4a7b10", feedback="NEGATIVE",
        feedback_reason="She moved.",
    )  # fmt: skip

    memory_id: MemoryUuid
    feedback: Annotated[
        Literal["POSITIVE", "NEGATIVE", "VERY_NEGATIVE"] | None, BeforeValidator(_upper)
    ] = None
    feedback_reason: Reason | None = None


class Mem0FeedbackAdded(ReadSchema):
    id: str
    feedback: str
    feedback_reason: str | None
