"""The working state of a session as it crosses HTTP."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, RootModel

from app.platform.values.fields import ReadSchema, Timestamp
from app.platform.values.json_objects import large_object

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
