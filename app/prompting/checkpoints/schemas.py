"""Checkpoints and approvals as they cross HTTP."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, StringConstraints, model_validator

from app.conversation.sessions.schemas import SessionRead, StateReason
from app.platform.values.fields import (
    LARGEST_INTEGER,
    Document,
    Id,
    Kind,
    Metadata,
    Name,
    OwnId,
    ReadSchema,
    Schema,
    Storable,
    Timestamp,
    example,
)
from app.platform.values.json_objects import large_object
from app.platform.values.pagination import PageQuery

CONTENTS_BYTES = 1024 * 1024

Namespace = Annotated[str, StringConstraints(max_length=255), Storable]
Step = Annotated[int, Field(ge=-1, le=2**31 - 1)]
Objects = list[dict[str, JsonValue]]


class Contents(Schema):
    """What of an agent at work is not in its session already."""

    messages: Objects | None = Field(
        default=None,
        description="Only of a caller that keeps messages elsewhere: the session's own are not "
        "copied.",
    )
    agent_state: dict[str, JsonValue] = {}
    tool_states: dict[str, JsonValue] = {}
    pending_tool_calls: Objects | None = Field(
        default=None,
        max_length=100,
        description="Calls that wait for a human. Those with an `id` that is no text are only "
        "kept, the others are asked about. When left out: what waits in the session.",
    )


class CheckpointCreate(Schema):
    model_config = example(
        namespace="planner",
        step=3,
        source="loop",
        contents={"agent_state": {"todo": ["book the train"]}},
    )

    namespace: Namespace = Field(default="", description="Of a part of the agent, such as a tool.")
    parent_id: Id | None = Field(
        default=None, description="The checkpoint of the same namespace that this one follows."
    )
    step: Step | None = None
    source: Kind | None = Field(default=None, examples=["loop"])
    metadata: Metadata = {}
    contents: Annotated[
        Contents,
        large_object(CONTENTS_BYTES),
        Field(description="At most 1 MiB of JSON, 32 levels."),
    ] = Contents()


class CheckpointRead(ReadSchema):
    checkpoint_id: str
    session_id: str
    namespace: str
    parent_id: str | None
    step: int | None
    source: str | None
    reason: StateReason = Field(description="Why it was made; `manual` when a caller asked for it.")
    metadata: dict[str, Any] = Field(validation_alias="metadata_")
    message_seq: int = Field(description="Number of the session's newest message then.")
    in_context_from: int = Field(description="The window began behind this number.")
    summary_ids: list[str] = Field(description="Summaries of the messages before it.")
    size_bytes: int = Field(description="Of contents and working state, before compression.")
    creator: str | None = Field(description="Id of the key that asked for it.")
    create_time: Timestamp
    archived: bool
    archived_at: Timestamp | None


class ContentsRead(ReadSchema):
    messages: list[dict[str, Any]] | None
    agent_state: dict[str, Any]
    tool_states: dict[str, Any]
    pending_tool_calls: list[dict[str, Any]]


class CheckpointShown(CheckpointRead):
    contents: ContentsRead
    state: dict[str, Any] = Field(description="The session's working state then.")
    state_version: int


class CheckpointQuery(PageQuery):
    namespace: Namespace | None = None
    source: Kind | None = None
    step: Step | None = None
    reason: StateReason | None = None
    before: Id | None = Field(default=None, description="Only those made before this checkpoint.")
    archived: bool = Field(default=False, description="Whether to list archived ones too.")


class CheckpointRestored(ReadSchema):
    """The session after the restore; read the checkpoint for its contents."""

    checkpoint_id: str
    session_id: str
    before_restore_id: str = Field(description="A checkpoint of the session before the restore.")
    message_seq: int = Field(description="What is appended next follows this message.")
    last_sequence_no: int = Field(description="The newest sequence number; new messages follow it.")
    in_context_from: int
    summary_ids: list[str]
    window_messages: int
    window_tokens: int
    state_version: int = Field(description="Of the working state, for `If-Match`.")


class SessionFork(Schema):
    """Where to fork, by one of the first three; behind the newest message when none is given."""

    model_config = example(at_message_id="msg_0197", session_id="trip-2")

    at_message_id: Id | None = Field(default=None, description="The last message to copy.")
    at_sequence_no: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)] | None = Field(
        default=None, description="The number of the last message to copy."
    )
    checkpoint_id: Id | None = Field(
        default=None, description="As the session was when this checkpoint of it was made."
    )
    session_id: OwnId | None = Field(
        default=None, description="Of the new session; generated when left out."
    )
    session_name: Name | None = Field(default=None, description="The same as before when left out.")

    @model_validator(mode="after")
    def _at_one_place(self) -> Self:
        places = (self.at_message_id, self.at_sequence_no, self.checkpoint_id)
        if sum(place is not None for place in places) > 1:
            raise ValueError("name one of at_message_id, at_sequence_no and checkpoint_id")
        return self


class SessionForked(SessionRead):
    """The new session."""

    copied_messages: int
    window_messages: int
    window_tokens: int
    state_version: int = Field(description="Of its working state, for `If-Match`; 0 without one.")


Decision = Literal["approved", "rejected", "modified", "timeout"]
ApprovalStatus = Literal["pending", "approved", "rejected", "modified", "timeout"]
ToolCallId = Annotated[str, StringConstraints(min_length=1, max_length=255), Storable]
Comment = Annotated[
    str, StringConstraints(min_length=1, max_length=2000, strip_whitespace=True), Storable
]


class ApprovalDecision(Schema):
    model_config = example(decision="modified", arguments={"seats": 2}, comment="Two are enough.")

    decision: Decision
    arguments: Document | None = Field(
        default=None, description="Of a call that is modified: its arguments from now on."
    )
    comment: Comment | None = None

    @model_validator(mode="after")
    def _arguments_of_a_modified_call(self) -> Self:
        if (self.decision == "modified") != (self.arguments is not None):
            raise ValueError("arguments belong to a decision of modified, and to no other")
        return self


class ApprovalQuery(PageQuery):
    status: ApprovalStatus | None = Field(
        default=None, description="`pending`: what waits now, so what was answered is left out."
    )


class ApprovalRead(ReadSchema):
    approval_id: str
    session_id: str
    tool_call_id: str
    message_id: str | None = Field(description="The message with the call, when it is stored here.")
    sequence_no: int
    status: ApprovalStatus = Field(description="`timeout` from `expires_at` on.")
    answered: bool = Field(description="Whether a tool message has brought the call's result.")
    call: dict[str, Any]
    arguments: dict[str, Any] | None = Field(description="To be used instead, when modified.")
    comment: str | None
    actor: str | None = Field(description="Id of the key that decided.")
    expires_at: Timestamp
    decided_at: Timestamp | None
    create_time: Timestamp
