"""Sessions as they cross HTTP, and what can go wrong with one."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, RootModel

from app.errors import ConflictError, NotFoundError, UnprocessableError
from app.identity.agents.schemas import WindowPolicyPatch
from app.platform.values.fields import (
    RUNNING,
    Document,
    Kind,
    Name,
    OwnId,
    ReadSchema,
    Schema,
    Timestamp,
    example,
    status_word,
)
from app.platform.values.json_objects import large_object
from app.platform.values.pagination import PageQuery

SessionStatus = Annotated[
    Literal["running", "ended"], BeforeValidator(lambda value: status_word(RUNNING, value))
]


class SessionCreate(Schema):
    model_config = example(session_id="trip", user_id="ana", session_name="Trip to Kyoto")

    session_id: OwnId | None = Field(default=None, description="Generated when left out.")
    user_id: OwnId | None = Field(
        default=None, description="Whom the agent talks to; a user-bound key may leave it out."
    )
    agent_id: OwnId | None = Field(
        default=None, description="The user's home agent, else the default agent, when left out."
    )
    project_id: OwnId | None = None
    session_name: Name | None = Field(default=None, examples=["Trip to Kyoto"])
    session_type: Kind | None = Field(default=None, examples=["chat"])
    context: Document = {}
    memory_enabled: bool = True
    injection_enabled: bool = True
    window_policy: WindowPolicyPatch | None = Field(
        default=None, description="How long it may become, where that differs from its agent."
    )


class SessionPatch(Schema):
    model_config = example(session_name="Trip to Kyoto in May")

    project_id: OwnId | None = None
    session_name: Name | None = None
    session_type: Kind | None = None
    context: Document | None = None
    memory_enabled: bool | None = None
    injection_enabled: bool | None = None
    window_policy: WindowPolicyPatch | None = Field(
        default=None, description="All of it: what is left out is said no more, as all by null."
    )


class ForkOrigin(ReadSchema):
    """Where a fork began; the session it is a fork of may be gone by now."""

    session_id: str
    sequence_no: int = Field(description="The last message that was copied; numbers are kept.")
    message_id: str | None = Field(description="Its id there; null where nothing was copied.")
    checkpoint_id: str | None


class SessionRead(ReadSchema):
    session_id: str
    agent_id: str
    user_id: str
    project_id: str | None
    session_name: str | None
    session_type: str | None
    context: dict[str, Any]
    status: SessionStatus
    end_time: Timestamp | None
    memory_enabled: bool
    injection_enabled: bool = Field(
        description="Off: nothing remembered goes into its context, once that can be asked for."
    )
    window_policy: dict[str, Any] | None = Field(
        description="What it says of its window itself; see GET /v1/sessions/{id}/window for all."
    )
    last_sequence_no: int = Field(description="Number of the newest message ever appended.")
    last_message_time: Timestamp | None
    last_extracted_seq: int = Field(
        description="Messages up to this number have been read for memories."
    )
    forked_from: ForkOrigin | None = Field(default=None, description="Null unless it is a fork.")
    version: int
    create_time: Timestamp
    update_time: Timestamp


class SessionEnded(SessionRead):
    job_id: str | None = Field(
        default=None,
        description="The job that extracts the rest and the experience; null when the "
        "session had ended before.",
    )


class SessionQuery(PageQuery):
    agent_id: OwnId | None = None
    user_id: OwnId | None = None
    project_id: OwnId | None = None
    status: SessionStatus | None = None
    session_type: Kind | None = None


STATE_BYTES = 256 * 1024

StateReason = Literal["manual", "periodic", "end", "before_compact", "before_restore"]

StateDocument = Annotated[
    dict[str, JsonValue],
    large_object(STATE_BYTES),
    Field(description="A JSON object: at most 256 KiB, 32 levels."),
]


class StateReplacement(RootModel[StateDocument]):
    """The whole of a new state."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"goal": "Book a train", "todo": ["dates", "seats"]}]}
    )


class StatePatch(RootModel[StateDocument]):
    """A merge patch (RFC 7386): null removes a key, an object is merged, a list is replaced."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"todo": ["seats"], "draft": None}]})


class StateRead(ReadSchema):
    session_id: str
    state: dict[str, Any]
    version: int = Field(
        description="For `If-Match`. 0 while nothing was ever written; never goes back, not even "
        "when the state is dropped at the session's end."
    )
    update_time: Timestamp | None = Field(description="Null while nothing was ever written.")


class SnapshotRead(ReadSchema):
    snapshot_id: str
    session_id: str
    seq: int = Field(description="Number of the session's newest message when it was made.")
    state_version: int
    reason: StateReason
    create_time: Timestamp


class SnapshotShown(SnapshotRead):
    state: dict[str, Any]


class SessionNotFoundError(NotFoundError):
    code = "session_not_found"
    title = "Session not found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"No session {session_id}.", session_id=session_id)


class SessionEndedError(ConflictError):
    code = "session_ended"
    title = "Session has ended"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"The session {session_id} has ended; POST …/reopen to go on with it.",
            session_id=session_id,
        )


class SessionMismatchError(ConflictError):
    code = "session_mismatch"
    title = "Session belongs to another pair"

    def __init__(self, session_id: str, field: str) -> None:
        super().__init__(
            f"The session {session_id} was opened with another {field}; leave it out, or name "
            "another session.",
            session_id=session_id,
            field=field,
        )


class StateTooLargeError(UnprocessableError):
    code = "state_too_large"
    title = "Working state too large"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"The working state would take {size} bytes of JSON, and {limit} are kept. What "
            "belongs to the conversation goes into messages.",
            size=size,
            limit=limit,
        )


class SnapshotNotFoundError(NotFoundError):
    code = "snapshot_not_found"
    title = "Snapshot not found"

    def __init__(self, snapshot_id: str) -> None:
        super().__init__(f"No snapshot {snapshot_id}.", snapshot_id=snapshot_id)
