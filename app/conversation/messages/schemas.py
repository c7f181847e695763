"""Messages as they cross HTTP."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)

from app.conversation.messages.tool_blocks import without_tool_blocks
from app.conversation.sessions.schemas import StateDocument
from app.identity.agents.schemas import MOST_TOKENS, TriggerRule
from app.platform.values.fields import (
    TEXT_OR_PARTS,
    ContentPart,
    Document,
    Id,
    Kind,
    Metadata,
    OwnId,
    ReadSchema,
    Schema,
    Storable,
    Timestamp,
    example,
)
from app.platform.values.pagination import ContentQuery, Order

Role = Literal["user", "assistant", "system", "tool"]
BATCH = 100
CONTENT_LENGTH = 200_000

Level = Literal["ok", "warn", "flush"]
"""Of pressure: far from the end, near to it, and past it."""

ShortText = Annotated[str, StringConstraints(min_length=1, max_length=255), Storable]


class MessageCreate(Schema):
    message_id: Id | None = Field(
        default=None,
        description="Your own id makes the append repeatable; generated when left out.",
    )
    role: Role
    content: Annotated[
        str, StringConstraints(max_length=CONTENT_LENGTH), Storable, TEXT_OR_PARTS
    ] = Field(default="", examples=["I moved to Munich last week."])
    content_type: Kind = "text"
    content_parts: list[ContentPart] | None = Field(
        default=None,
        max_length=50,
        description="Texts, images, audio and files, in the form of OpenAI or Anthropic. They are "
        "stored as they come, with their data if they have any, and rendered for whoever asks. A "
        "part of another type is kept as well, and named by a placeholder where it is shown.",
        examples=[
            [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
            ]
        ],
    )
    tool_calls: list[Document] | None = Field(
        default=None,
        max_length=50,
        description="Calls of an assistant message, each with an `id`.",
    )
    tool_call_id: ShortText | None = Field(
        default=None, description="The call that a tool message answers."
    )
    name: ShortText | None = None
    # Made anew: a default that is given would be copied deeply for each message.
    metadata: Metadata = Field(default_factory=dict, json_schema_extra={"default": {}})
    parent_message_id: Id | None = Field(
        default=None,
        description="Where a branch begins; the message before it in the session when left "
        "out, none when null.",
    )

    @model_validator(mode="before")
    @classmethod
    def _take_parts(cls, value: Any) -> Any:
        """Parts given as `content`, as OpenAI's clients send them, are `content_parts`."""
        if not isinstance(value, dict) or not isinstance(value.get("content"), list):
            return value
        if value.get("content_parts"):
            raise ValueError("give the parts once: as content or as content_parts")
        return value | {"content": "", "content_parts": value["content"]}

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        silent = not (self.content or self.tool_calls or self.content_parts)
        if silent and self.role != "tool":
            raise ValueError(
                "content may be empty only with tool_calls or content_parts, or of a tool"
            )
        if self.tool_calls and self.role != "assistant":
            raise ValueError("only an assistant message may have tool_calls")
        if self.role == "tool" and self.tool_call_id is None:
            raise ValueError("a tool message needs tool_call_id")
        if self.role != "tool" and self.tool_call_id is not None:
            raise ValueError("only a tool message may have tool_call_id")
        ids = call_ids(self.tool_calls)
        if len(ids) != len(self.tool_calls or []) or len(set(ids)) != len(ids):
            raise ValueError("each of tool_calls needs an id of its own, a text")
        return self

    @property
    def chained(self) -> bool:
        """Whether the parent is to be the message before it."""
        return "parent_message_id" not in self.model_fields_set


SaidMessages = Annotated[list[MessageCreate], BeforeValidator(without_tool_blocks)]


def call_ids(tool_calls: list[dict[str, JsonValue]] | None) -> list[str]:
    """The ids of the calls that have one."""
    ids = (call.get("id") for call in tool_calls or [])
    return [id_ for id_ in ids if isinstance(id_, str) and id_]


class CallUsage(Schema):
    """What a provider says of the call that led to these messages."""

    input_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] = Field(
        description="Of its input alone; later counts of this session are scaled by it, by 1.25 "
        "at most."
    )


class MessageAppend(Schema):
    model_config = example(
        user_id="ana",
        messages=[{"message_id": "m-1", "role": "user", "content": "I moved to Munich last week."}],
    )

    messages: SaidMessages = Field(min_length=1, max_length=BATCH)
    user_id: OwnId | None = Field(
        default=None, description="Opens the session when it is new; must match otherwise."
    )
    agent_id: OwnId | None = None
    project_id: OwnId | None = None
    usage: CallUsage | None = None
    state: StateDocument | None = Field(
        default=None,
        description="A merge patch (RFC 7386) of the session's working state, applied together "
        "with what is new among the messages. When every message was stored before, the request "
        "is a repetition: the patch is not applied, and `state_version` of the answer is null. "
        "What comes with no new message is changed at /sessions/{session_id}/state.",
    )
    state_version: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="The version of the state that the patch is for; 0 for none yet."
    )

    @model_validator(mode="after")
    def _state_has_a_version(self) -> Self:
        if (self.state is None) != (self.state_version is None):
            raise ValueError("state and state_version go together")
        return self

    @model_validator(mode="after")
    def _ids_are_different(self) -> Self:
        ids = [message.message_id for message in self.messages if message.message_id is not None]
        if len(set(ids)) != len(ids):
            raise ValueError("a message_id may stand in a batch once")
        return self


class MessageRead(ReadSchema):
    message_id: str
    session_id: str
    agent_id: str
    user_id: str
    role: Role
    content: str
    content_type: str
    content_parts: list[dict[str, Any]] | None
    tool_calls: list[dict[str, Any]] | None
    tool_call_id: str | None
    name: str | None
    metadata: dict[str, Any] = Field(validation_alias="metadata_")
    parent_message_id: str | None
    sequence_no: int
    create_time: Timestamp


class ExtractionScheduled(ReadSchema):
    """Whether and when the session is read for memories, or why not."""

    scheduled: bool
    reason: str | None = Field(
        default=None,
        description="Not scheduled: no_user_message, trivial, tool_traffic, hidden, upload_only, "
        "stop_word, memory_paused, nothing_new. Scheduled: awaiting_reply, when the assistant's "
        "answer would bring it forward.",
    )
    job_id: str | None = None
    due_at: Timestamp | None = Field(default=None, description="Later when more is said before.")
    signals: list[str] = Field(
        default=[], description="What was noticed, such as a correction.", examples=[["goal"]]
    )


class PressureRead(ReadSchema):
    """How full the window of a session is."""

    level: Level
    tokens: int = Field(
        description="Of all that is sent: messages in the window and summaries, and what the last "
        "context had besides: instructions, tools (or `reserved_tokens`, if that is more), blocks, "
        "profile, memories and what else is remembered."
    )
    budget_tokens: int
    share: float = Field(description="Tokens as a share of the budget; may be above 1.")
    notice: str | None = Field(
        description="Notice for the model, from the level warn on. It says that messages are left "
        "out, or become a summary, only where that is so."
    )
    counter: str = Field(description="What counted the tokens.", examples=["estimate/v1"])
    compaction_job_id: str | None = Field(
        default=None, description="The job that will compact the session, while it is there."
    )


class RequestWarning(ReadSchema):
    """Something in a request that was not used."""

    code: Literal["client_time_ignored", "message_not_read_whole", "parts_left_out"]
    location: list[str] = Field(examples=[["body", "messages", "0", "metadata", "client_time"]])
    detail: str


class MessageAppended(ReadSchema):
    session_id: str
    created: int = Field(description="Messages stored now.")
    existing: int = Field(description="Messages that were stored before, by their message_id.")
    dropped: int = Field(default=0, description="Messages that a processor kept from being stored.")
    messages: list[MessageRead] = Field(description="In the order of the request.")
    sensitive: dict[str, list[str]] = Field(
        description="By message_id, what was seen in its text: names of detectors, no values. "
        "A message is stored as it was said; a memory with it would be refused."
    )
    warnings: list[RequestWarning] = Field(
        default=[], description="What of the request was not used, and why."
    )
    extraction: ExtractionScheduled
    pressure: PressureRead | None = None
    state_version: int | None = Field(
        default=None, description="Of the working state, when it was changed."
    )


class WindowStrategy(Schema):
    """How a window is chosen from for one call; what it chooses is made valid and fits."""

    # What can be changed would be copied for each request that leaves it out.
    model_config = ConfigDict(frozen=True)

    name: Kind = Field(
        default="last_tokens",
        description="last_tokens, last_messages, first_last, message_fraction, or that of an "
        "installed package.",
    )
    count: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=20, description="Of last_messages: how many at most."
    )
    keep: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=3, description="Of first_last: how many of the newest stay beside the first."
    )
    fraction: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.5, description="Of message_fraction: the share of the messages that stays."
    )
    options: Document = Field(default={}, description="For an installed strategy.")


class MessageQuery(ContentQuery):
    order: Order = "asc"
    role: Role | None = None
    query: Annotated[str, StringConstraints(min_length=1, max_length=200), Storable] | None = Field(
        default=None, description="Only messages with this text in their content, in any case."
    )
    before: Id | None = Field(
        default=None, description="Id of a message: only those before it in the session."
    )
    since: Timestamp | None = Field(default=None, description="Only messages from then on.")
    until: Timestamp | None = Field(default=None, description="Only messages before then.")
    branch: Id | None = Field(
        default=None, description="Id of a leaf: only the messages from it up to the root."
    )


class MessageDelete(Schema):
    model_config = example(oldest=10, dry_run=True)

    message_ids: list[Id] | None = Field(default=None, min_length=1, max_length=1000)
    oldest: Annotated[int, Field(ge=1, le=10_000)] | None = None
    dry_run: bool = False

    @model_validator(mode="after")
    def _one_selector(self) -> Self:
        if (self.message_ids is None) == (self.oldest is None):
            raise ValueError("name either message_ids or oldest")
        return self


class DeleteAllQuery(Schema):
    confirm: bool = False
    dry_run: bool = False


class MessagesDeleted(ReadSchema):
    deleted: int = Field(description="Messages deleted, or that would be.")
    message_ids: list[str] = Field(description="Which ones, oldest first; at most 1000 listed.")
    pairs: list[str] = Field(
        description="Those among them that had to go with the other half of a tool call."
    )
    dry_run: bool


class WindowPolicyRead(ReadSchema):
    """The policy that holds: session over agent over deployment, key by key."""

    budget_tokens: int
    warn: float
    flush: float
    evict_fraction: float
    keep_messages: int
    triggers: list[TriggerRule]
    automatic: bool
    reserved_tokens: int
    summary_words: int
    approval_hours: int
    checkpoint_every: int


class WindowRead(ReadSchema):
    session_id: str
    in_context_from: int = Field(
        description="The window holds the messages above this number; those up to it stay stored. "
        "Where that is inside a turn, the request of the turn is shown before them."
    )
    messages: int = Field(description="How many messages the window has.")
    tokens: int = Field(description="Theirs, as counted here, without summaries.")
    current_request: int | None = Field(
        description="Number of the user's newest message, which stays in the context whole. It is "
        "not above `in_context_from` where the window begins inside its turn."
    )
    summary_ids: list[str] = Field(
        description="Of the summaries of evicted messages, oldest first."
    )
    summary_tokens: int
    token_scale: float = Field(description="How much more a provider counted, 1 to 1.25.")
    set_aside: int = Field(
        description="How many numbers are on another branch, since a checkpoint was restored."
    )
    policy: WindowPolicyRead
    pressure: PressureRead


class WindowTrim(Schema):
    model_config = example(strategy={"name": "last_tokens"}, max_tokens=2000)

    strategy: WindowStrategy = WindowStrategy()
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = Field(
        default=None,
        description="What the messages may take; what the policy's budget leaves for them when "
        "left out.",
    )


class LeftOutRange(ReadSchema):
    """Messages that are not shown, first and last included."""

    from_sequence_no: int
    to_sequence_no: int


class WindowTrimmed(ReadSchema):
    session_id: str
    strategy: str
    messages: list[MessageRead] = Field(
        description="In the order of the conversation; instructions from before the window first."
    )
    tokens: int
    max_tokens: int
    starts_with_user: bool = Field(
        description="Whether the user is the first to speak, system messages aside."
    )
    fits: bool = Field(
        description="Always true: where not even the shortest form of what must be shown fits, the "
        "answer is 422 `window_too_small`."
    )
    waiting: list[str] = Field(description="Ids of calls among the messages without a result.")
    left_out: int = Field(description="How many messages of the window are not shown.")
    left_out_ranges: list[LeftOutRange] = Field(description="Which ones, by their numbers.")
    shortened: list[str] = Field(
        description="Ids of those that are cut, or replaced by a line; it says where the rest is."
    )
    counter: str = Field(description="What counted the tokens.", examples=["estimate/v1"])
