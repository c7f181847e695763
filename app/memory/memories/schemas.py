"""Memories as they cross HTTP: how they are saved and changed, and what became of them."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    AwareDatetime,
    BeforeValidator,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StringConstraints,
    model_validator,
)

from app.conversation.messages.capture import said_text
from app.conversation.messages.schemas import RequestWarning
from app.language.llm.content_parts import placeholders
from app.language.text.names import LONGEST, WANTED, checked_attribute
from app.platform.values.fields import (
    METADATA_BYTES,
    TEXT_OR_PARTS,
    ZONED,
    Description,
    Id,
    Metadata,
    OwnId,
    ReadSchema,
    Schema,
    Storable,
    Timestamp,
    example,
    metadata_size,
)

MemoryType = Annotated[
    Literal[
        "preference", "fact", "skill", "habit", "event", "context",
        "constraint", "decision", "goal", "correction", "knowledge", "experience",
    ],
    BeforeValidator(lambda value: "habit" if value == "behavior" else value),
]  # fmt: skip
Tier = Literal["short", "long"]
Scope = Literal["session", "project", "user", "agent"]
Source = Literal["user", "ai", "knowledge_base", "project_resource", "import"]
Visibility = Literal["public", "members", "owner_only"]
Status = Literal["active", "archived", "superseded"]
OnDuplicate = Literal["reject", "return", "supersede", "allow"]
Event = Literal["ADD", "UPDATE", "SUPERSEDE", "MERGE", "DELETE", "NONE", "REJECT", "SKIP"]

BATCH = 100
CONTENT_LENGTH = 200_000
"""Far above the gate's limit, so that the gate can say `too_long` and keep its verdict."""

Content = Annotated[str, StringConstraints(max_length=CONTENT_LENGTH), Storable]


def _number(value: Any) -> Any:
    """Raises ValueError for true and false, which would count as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be a number")  # noqa: TRY004 (a ValueError names the field)
    return value


Confidence = Annotated[float, Field(ge=0.0, le=1.0), BeforeValidator(_number)]
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=255), Storable]
Attribute = Annotated[
    str,
    StringConstraints(max_length=LONGEST),
    AfterValidator(checked_attribute),
    Field(
        description="What it gives the value of, where only one value can hold, as "
        f"{WANTED}. Read in NFC and lower case.",
        examples=["user.residence"],
        json_schema_extra={"pattern": r"\.[A-Za-z0-9_]+$"},
    ),
]
Evidence = Annotated[
    list[Id], Field(max_length=100, description="Ids of the messages that support it.")
]


OldExtractionId = Annotated[
    str | None,
    Field(
        validation_alias="extraction_id",
        description="Deprecated: use `extraction_id`.",
        deprecated=True,
    ),
]


class Aliases(Schema):
    """Names other products use are understood, and contradictions refused."""

    @model_validator(mode="before")
    @classmethod
    def _understand(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        given = dict(value)
        for alias, name in (
            ("run_id", "session_id"),
            ("thread_id", "session_id"),
            ("category", "memory_type"),
        ):
            if alias in given and alias not in cls.model_fields and name in cls.model_fields:
                other = given.pop(alias)
                if given.setdefault(name, other) != other:
                    raise ValueError(f"{alias} and {name} name different things")
        # A tuple: what has no hash is refused with a sentence later.
        if given.get("memory_type") in ("short", "long") and "tier" in cls.model_fields:
            tier = given.pop("memory_type")
            if given.setdefault("tier", tier) != tier:
                raise ValueError("memory_type and tier name different things")
        return given


def _text_of(content: Any) -> Any:
    return said_text(content) if isinstance(content, list) else content


class SaidMessage(Schema):
    """One message whose text is to be remembered."""

    role: Literal["user", "assistant", "system", "tool"] = "user"
    content: Annotated[Content, BeforeValidator(_text_of), TEXT_OR_PARTS]
    name: ShortText | None = None
    # Made anew: a default that is given would be copied deeply for each message.
    metadata: Metadata = Field(
        default_factory=dict,
        description="Added to the metadata of the request.",
        json_schema_extra={"default": {}},
    )
    # In its own zone, which says where its day begins.
    said_at: AwareDatetime | None = Field(
        default=None,
        description=f"When it was said, {ZONED} Relative dates (yesterday) are read from there, "
        "in that zone; with `infer`, `metadata.client_time` where left out. Not before 1900, and "
        "not later than a day from now.",
    )
    _left_out: tuple[str, ...] = PrivateAttr()  # A default is copied for each message.

    @model_validator(mode="wrap")
    @classmethod
    def _name_parts(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        message = handler(value)
        content = value.get("content") if isinstance(value, dict) else None
        if isinstance(content, list):
            message._left_out = tuple(placeholders(content))  # noqa: SLF001 (its own)
        return message


class MemoryCreate(Aliases):
    model_config = example(
        messages="She drinks green tea in the morning.", user_id="ana", infer=False
    )

    messages: (
        Content | SaidMessage | Annotated[list[SaidMessage], Field(min_length=1, max_length=BATCH)]
    ) = Field(
        description="A text, one message, or up to 100 of them.",
        examples=["She drinks green tea in the morning."],
    )
    user_id: OwnId | None = None
    agent_id: OwnId | None = Field(
        default=None, description="Private to this agent; every agent of the user when left out."
    )
    session_id: OwnId | None = Field(default=None, description="Alias: run_id, thread_id.")
    project_id: OwnId | None = None
    scope: Scope | None = Field(
        default=None,
        description="For whom it counts; `session` for tier short with a session, else `user`.",
    )
    memory_type: MemoryType = "fact"
    attribute: Attribute | None = None
    tier: Tier = "long"
    confidence: Confidence = 1.0
    source: Source = "user"
    source_id: Id | None = None
    source_error: (
        Annotated[Content, Field(description="The mistake that a correction corrects.")] | None
    ) = None
    evidence: Evidence = []
    visibility: Visibility = "members"
    metadata: Metadata = {}
    external_id: ShortText | None = None
    valid_from: Timestamp | None = Field(
        default=None,
        description=f"From when it holds, {ZONED} With `infer`: when those messages were said "
        "that do not say so; then not before 1900, and not later than a day from now.",
    )
    valid_to: Timestamp | None = None
    expires_at: Timestamp | None = None
    infer: bool = Field(
        default=True,
        description="True extracts statements and reconciles them with what is remembered; "
        "false stores the text as given.",
    )
    prompt: Annotated[str, StringConstraints(min_length=1, max_length=8000), Storable] | None = (
        Field(default=None, description="With infer: your own instructions to the extractor.")
    )
    on_duplicate: OnDuplicate = "reject"

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.source_error is not None and self.memory_type != "correction":
            raise ValueError("source_error goes with memory_type correction only")
        given = (said.metadata for said in self.given_messages)
        if any(data and metadata_size(self.metadata | data) > METADATA_BYTES for data in given):
            raise ValueError("metadata of the request and of a message together are too large")
        if self.valid_from and self.valid_to and self.valid_from >= self.valid_to:
            raise ValueError("valid_from must lie before valid_to")
        return self

    @property
    def batch(self) -> list[SaidMessage]:
        """The messages one by one; a text is one of the user's."""
        if isinstance(self.messages, str):
            return [SaidMessage(content=self.messages)]
        return self.messages if isinstance(self.messages, list) else [self.messages]

    @property
    def given_messages(self) -> list[SaidMessage]:
        """As `batch`, but nothing for a text, which has neither a time nor parts."""
        return [] if isinstance(self.messages, str) else self.batch

    @property
    def part_warnings(self) -> list[RequestWarning]:
        """A warning for each message of which parts are left out."""
        listed = isinstance(self.messages, list)
        return [
            RequestWarning(
                code="parts_left_out",
                location=["body", "messages", *([str(place)] if listed else []), "content"],
                detail=f"Only text is remembered, so that these are not: {', '.join(left)}.",
            )
            for place, message in enumerate(self.given_messages)
            if (left := (message.__pydantic_private__ or {}).get("_left_out"))
        ]


class MemoryPatch(Aliases):
    model_config = example(content="She drinks black tea in the morning.", reason="She said so.")

    content: Content | None = None
    memory_type: MemoryType | None = None
    attribute: Attribute | None = None
    tier: Tier | None = None
    confidence: Confidence | None = None
    source_error: Content | None = None
    evidence: Evidence | None = None
    visibility: Visibility | None = None
    status: Literal["active", "archived"] | None = None
    metadata: Metadata | None = None
    external_id: ShortText | None = None
    valid_from: Timestamp | None = None
    valid_to: Timestamp | None = None
    expires_at: Timestamp | None = None
    reason: Description | None = Field(default=None, description="Kept in the history.")


class MemorySupersede(Aliases):
    model_config = example(content="She drinks black tea now.")

    content: Content
    memory_type: MemoryType | None = None
    attribute: Attribute | None = Field(default=None, description="That of the old one if absent.")
    confidence: Confidence = 1.0
    source_error: Content | None = None
    evidence: Evidence = []
    metadata: Metadata | None = None
    valid_from: Timestamp | None = Field(
        default=None,
        description="Since when the newer statement holds, now when left out; the old one holds "
        "until then, and stays active as long as that lies ahead.",
    )
    valid_to: Timestamp | None = None
    reason: Description | None = Field(default=None, description="Kept in the history.")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.valid_from and self.valid_to and self.valid_from >= self.valid_to:
            raise ValueError("valid_from must lie before valid_to")
        return self


class MemoryRestore(Schema):
    model_config = example(
        history_id="his_01997b6a5c7e7f8a9b0c1d2e3f4a5b6c", reason="The edit was a mistake."
    )

    history_id: Id = Field(
        description="An entry of the memory's history. The memory becomes what it was right "
        "after that entry: to undo a change, name the entry before it."
    )
    reason: Description | None = Field(default=None, description="Kept in the history.")


class MemoryRead(ReadSchema):
    memory_id: str
    content: str
    memory_type: MemoryType
    attribute: str | None
    tier: Tier
    scope: Scope
    scope_id: str
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    project_id: str | None
    source: Source
    source_id: str | None
    source_deleted_at: Timestamp | None = Field(
        default=None,
        description="When the file or session it was read from was deleted: its source is gone.",
    )
    source_error: str | None
    evidence: list[str]
    speaker: str | None = Field(
        description="Whose words the content is, where it is somebody's own: the name of the "
        "message, else the id of the user. Null for a statement in the third person."
    )
    said_at: Timestamp | None = Field(
        description="When the newest message that says it was said: its `metadata.client_time`, "
        "else its `create_time`. Null for what was not read from messages."
    )
    confidence: float
    visibility: Visibility
    status: Status
    superseded_by: str | None
    conflicts_with: list[str] = Field(
        default=[],
        description="Ids of memories that it may contradict, newest first. Nothing told which of "
        "them holds, so all count until one of them is edited, superseded, archived or deleted. "
        "Empty with `known_at`.",
    )
    newer_conflicts: list[str] = Field(
        default=[],
        description="Those of `conflicts_with` that were said later, or hold since later.",
    )
    valid_from: Timestamp | None
    valid_to: Timestamp | None
    expected_valid_days: int | None = Field(
        description="How long the extractor thought that it would hold, when it could tell."
    )
    reviewed_at: Timestamp | None = Field(
        description="When a model last looked whether it still holds, or it was said again."
    )
    expires_at: Timestamp | None
    external_id: str | None
    metadata: dict[str, Any] = Field(
        validation_alias=AliasChoices("metadata_", "metadata"),
    )
    embedding_model: str
    creator: str | None
    use_count: int
    last_used_at: Timestamp | None
    version: int
    create_time: Timestamp
    update_time: Timestamp


class MemoryRestored(ReadSchema):
    """A memory as it is again."""

    memory: MemoryRead
    superseded_by: str | None = Field(
        description="The successor it had before, when it had one; that one stays as it is."
    )


class Reason(ReadSchema):
    """One rule that was broken."""

    code: str = Field(examples=["too_short"])
    detail: str
    figures: dict[str, JsonValue] = {}


class Outcome(ReadSchema):
    """What became of one statement."""

    index: int = Field(
        description="Which message of the request; with infer, which proposal, and behind them one "
        "for each message that led to none, its number in `figures.message`."
    )
    event: Event
    memory_id: str | None = None
    memory: MemoryRead | None = None
    content: str | None = Field(
        default=None, description="With infer: what was proposed; null when it is sensitive."
    )
    previous: str | None = Field(default=None, description="The text it replaced.")
    replaced: list[str] = Field(
        default=[], description="Ids of the memories that ended for it, or that it merged."
    )
    reason: str | None = Field(default=None, description="With infer: why it was decided so.")
    similarity: float | None = Field(default=None, description="To the nearest duplicate.")
    reasons: list[Reason] = []
    decision_id: str | None = Field(default=None, description="The gate's verdict.")


class MemoryAdded(ReadSchema):
    results: list[Outcome] = Field(
        description="One per message, in order; with infer, one per proposal, then one for each "
        "message of a user that led to none."
    )
    extractor: str | None = Field(
        default=None, description="With infer: what read the messages.", examples=["rules/2"]
    )
    extraction_id: str | None = Field(
        default=None, description="With infer: the run in the log, `GET /v1/extractions/{id}`."
    )
    run_id: OldExtractionId = None
    warnings: list[RequestWarning] = Field(
        default=[], description="What of the request was not used, and why."
    )


class MemoryValidated(ReadSchema):
    valid: bool = Field(description="Whether every statement would be stored.")
    results: list[Outcome]
    warnings: list[RequestWarning] = Field(default=[], description="As adding it would give.")


class AddQuery(Schema):
    async_: bool = Field(
        default=False,
        alias="async",
        description="Answer 202 at once with a job that does the work; see GET /v1/jobs/{job_id}.",
    )


class JobAccepted(ReadSchema):
    """Work that was put into the queue."""

    job_id: str
    status: Literal["pending", "running"] = Field(
        description="running: the present run is followed by another."
    )
    due_at: Timestamp


class AddAccepted(JobAccepted):
    """The job that adds memories, and what of the request it will not use."""

    warnings: list[RequestWarning] = []
