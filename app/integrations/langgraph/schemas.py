"""LangGraph's checkpoints as they cross HTTP: typed blobs, each piece of a value once."""

import base64
import binascii
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    model_validator,
)

from app.platform.values.fields import (
    Document,
    Id,
    OwnId,
    ReadSchema,
    Schema,
    Storable,
    Timestamp,
    example,
)
from app.platform.values.pagination import CursorText, Limit

Text = Annotated[str, StringConstraints(max_length=255), Storable]
Name = Annotated[str, StringConstraints(min_length=1, max_length=255), Storable]
Namespace = Annotated[
    Text, Field(description="LangGraph's `checkpoint_ns`; empty for the outermost graph.")
]
Digest = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{32}$"),
    Field(description="First 16 bytes of the SHA-256 of the decompressed chunk."),
]
ThreadId = Annotated[
    Name,
    Field(
        description="LangGraph's `thread_id`, where it is not the id of the session.",
        examples=["trips/枫叶"],
    ),
]
UserId = Annotated[
    OwnId, Field(description="The session must be this user's, else 409 `session_mismatch`.")
]
AgentId = Annotated[
    OwnId, Field(description="The session must be this agent's, else 409 `session_mismatch`.")
]
Kind = Annotated[
    str,
    StringConstraints(min_length=1, max_length=100),
    Storable,
    Field(description="What the serializer calls it, such as `msgpack`."),
]


def _decoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise ValueError("must be base64 text")  # noqa: TRY004 (Pydantic reports ValueError)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("must be base64") from None


Blob = Annotated[
    bytes,
    BeforeValidator(_decoded, json_schema_input_type=str),
    PlainSerializer(lambda value: base64.b64encode(value).decode(), return_type=str),
    Field(description="Bytes in base64.", examples=["gA=="]),
]


class TypedBlob(Schema):
    """Something a serializer wrote, and which kind it is."""

    type: Kind
    data: Blob = Field(description="Stored and returned as it is, in base64.")


class TypedChunks(Schema):
    """The value of a channel, cut into chunks."""

    type: Kind
    chunks: Annotated[list[Digest], Field(max_length=100_000)]


Content = Annotated[
    dict[Digest, Blob],
    Field(
        max_length=4096,
        description="Chunks that may be new, compressed with zlib: at most 64 KiB each and 16 MiB "
        "together, decompressed. What is missing is named by a 409 `saver_content_missing`.",
    ),
]


class SaverPut(Schema):
    model_config = example(
        user_id="ana",
        checkpoint={"type": "msgpack", "data": "gA=="},
        metadata={"source": "input", "step": -1},
        values={
            "topic": {"type": "msgpack", "chunks": ["d32f61940e393a97752652e84cd2865d"]},
        },
        content={"d32f61940e393a97752652e84cd2865d": "eJxbmptYkJMKAAoWArU="},
    )

    parent_id: Id | None = Field(
        default=None, description="The checkpoint it follows, which must be there."
    )
    user_id: OwnId | None = Field(
        default=None, description="Opens the session on first use; otherwise it must match."
    )
    agent_id: OwnId | None = None
    thread_id: ThreadId | None = None
    checkpoint: TypedBlob = Field(description="Everything but the values of channels.")
    metadata: Document = Field(default={}, description="What lists are filtered by.")
    values: Annotated[dict[Name, TypedChunks], Field(max_length=10_000)] = Field(
        default={}, description="Channels that have a new value."
    )
    kept: Annotated[list[Name], Field(max_length=10_000)] = Field(
        default=[], description="Channels with the value that they have in the parent."
    )
    content: Content = {}


class SaverContentPut(Schema):
    model_config = example(
        user_id="ana",
        create=True,
        content={"d32f61940e393a97752652e84cd2865d": "eJxbmptYkJMKAAoWArU="},
    )

    user_id: OwnId | None = Field(
        default=None, description="Opens the session on first use; otherwise it must match."
    )
    agent_id: OwnId | None = None
    create: bool = Field(
        default=False,
        description="Open the session on first use: for a checkpoint without a parent.",
    )
    content: Content


class SaverContentDone(ReadSchema):
    session_id: str
    chunks: int = Field(description="Chunks that were not stored before.")


class SaverContentQuery(Schema):
    model_config = example(chunks=["d32f61940e393a97752652e84cd2865d"])

    chunks: Annotated[list[Digest], Field(max_length=4096)]
    user_id: UserId | None = None
    agent_id: AgentId | None = None


class SaverContentRead(BaseModel):
    content: dict[str, Blob] = Field(description="Chunks by digest, compressed with zlib.")
    read: int = Field(
        description="How many of the digests were looked up, from the first on: ask for the rest "
        "again. Those of them that `content` lacks are not stored."
    )


class SaverPutDone(ReadSchema):
    session_id: str
    namespace: str
    checkpoint_id: str


class PendingWrite(Schema):
    index: Annotated[int, Field(ge=-1000, le=100_000)] = Field(
        description="Place among the writes of the task. Below 0, for LangGraph's own channels, a "
        "later write replaces an earlier one; otherwise the first stays."
    )
    channel: Name
    type: Kind
    data: Blob = b""
    chunks: Annotated[list[Digest], Field(max_length=100_000)] | None = Field(
        default=None, description="Chunks of a large value, which `data` then does not have."
    )

    @model_validator(mode="after")
    def _either(self) -> Self:
        if self.data and self.chunks is not None:
            raise ValueError("a write has `data` or `chunks`")
        return self


class SaverWritesPut(Schema):
    model_config = example(
        task_id="3f1d6bb5", writes=[{"index": 0, "channel": "topic", "type": "null", "data": ""}]
    )

    task_id: Name
    task_path: Annotated[str, StringConstraints(max_length=4096), Storable] = ""
    user_id: UserId | None = None
    agent_id: AgentId | None = None
    writes: Annotated[list[PendingWrite], Field(max_length=10_000)]
    content: Content = {}


class PendingWriteRead(ReadSchema):
    task_id: str
    task_path: str
    index: int
    channel: str
    type: str
    data: Blob
    chunks: list[str] | None = Field(description="Chunks of a large value; `data` is empty then.")


class SaverCheckpointRead(ReadSchema):
    session_id: str
    thread_id: str = Field(description="LangGraph's id; `session_id` unless a put named another.")
    namespace: str
    checkpoint_id: str
    parent_id: str | None
    run_id: str | None
    checkpoint: TypedBlob
    metadata: dict[str, Any]
    values: dict[str, TypedChunks]
    writes: list[PendingWriteRead] = Field(description="By task path, task and index.")
    create_time: Timestamp


class SaverPage(BaseModel):
    """Checkpoints, and what their values and writes consist of, each chunk once.

    Of a single checkpoint with more content than fits, some chunks are left out: read them with
    `POST /v1/sessions/{session_id}/saver/content/read`.
    """

    items: list[SaverCheckpointRead]
    content: dict[str, Blob] = Field(description="Chunks by digest, compressed with zlib.")
    next_cursor: str | None = None


class SaverQuery(Schema):
    """Query parameters of a list of checkpoints."""

    user_id: UserId | None = Field(
        default=None,
        description="The session must be this user's, else 409 `session_mismatch`; of all sessions "
        "only this user's are listed.",
    )
    agent_id: AgentId | None = Field(default=None, description="As `user_id`, of the agent.")
    namespace: Namespace | None = Field(default=None, description="All when left out.")
    checkpoint_id: Id | None = None
    before: Id | None = Field(default=None, description="Only ids that sort below this one.")
    filter: Annotated[str, Field(max_length=8192)] | None = Field(
        default=None,
        description="A JSON object that the metadata must contain.",
        examples=['{"source": "loop"}'],
    )
    limit: Limit = 100
    cursor: Annotated[CursorText, Field(max_length=4096)] | None = None


class SaverCopy(Schema):
    model_config = example(target_session_id="trip-2")

    target_session_id: OwnId = Field(description="Opened for the same user and agent on first use.")
    target_thread_id: ThreadId | None = None
    user_id: UserId | None = None
    agent_id: AgentId | None = None


class SaverPrune(Schema):
    model_config = example(session_ids=["trip"], strategy="keep_latest")

    session_ids: Annotated[list[OwnId], Field(max_length=1000)]
    strategy: Literal["keep_latest", "delete"] = Field(
        default="keep_latest",
        description="`keep_latest` keeps the newest checkpoint of each namespace and what it is "
        "rebuilt from; `delete` keeps nothing.",
    )
    user_id: UserId | None = None
    agent_id: AgentId | None = None


class SaverRunsDelete(Schema):
    model_config = example(run_ids=["1f0c9e52-6f62-6f0e-8000-3f1d6bb5a001"])

    run_ids: Annotated[list[Name], Field(max_length=1000)]
    user_id: OwnId | None = Field(default=None, description="Only in the sessions of this user.")
    agent_id: OwnId | None = Field(default=None, description="Only in the sessions of this agent.")


class SaverRemoved(ReadSchema):
    checkpoints: int = Field(description="Checkpoints that are gone for good.")


class SaverCopied(ReadSchema):
    checkpoints: int = Field(description="Checkpoints that were copied; a repetition copies none.")
