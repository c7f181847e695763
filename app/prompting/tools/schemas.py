"""Tools as they cross HTTP."""

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, StringConstraints

from app.platform.values.fields import OwnId, ReadSchema, Schema, Storable, example

Format = Literal["openai", "anthropic"]

MOST_TOKENS = 8000
TOKENS = 1000

ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
"""Whatever a model may call: a name that no tool has is answered with those that there are."""


class ToolsQuery(Schema):
    agent_id: OwnId | None = Field(default=None, description="Only what this agent may call.")
    session_id: OwnId | None = Field(
        default=None, description="Only what can be called in this session."
    )
    format: Format = Field(default="openai", description="The shape that a provider takes.")
    heartbeat: bool = Field(
        default=False, description="Let every tool take `request_heartbeat` as an argument."
    )


class ToolsShown(ReadSchema):
    """The tools that a model may call."""

    tools: list[dict[str, Any]] = Field(description="Hand them to the provider as they are.")
    names: list[str] = Field(description="The same by name, in that order.")


class ToolCall(Schema):
    model_config = example(
        session_id="s-1",
        arguments={"query": "What does she drink?"},
        tool_call_id="call_1",
    )

    session_id: OwnId = Field(
        description="Where the model calls it; whose memory it is follows from there."
    )
    arguments: dict[str, JsonValue] | str | None = Field(
        default=None,
        description="As the model gave them: an object, or the text of one. No ids of users, "
        "agents or sessions.",
        examples=[{"query": "What does she drink?"}],
    )
    tool_call_id: (
        Annotated[str, StringConstraints(min_length=1, max_length=255), Storable] | None
    ) = Field(default=None, description="Said back, so that the answer finds its call.")
    request_heartbeat: bool | None = Field(
        default=None,
        description="Said back; what stands in the arguments counts when this is left out.",
    )
    max_tokens: Annotated[int, Field(ge=100, le=MOST_TOKENS)] = Field(
        default=TOKENS,
        description="How much the result may hold; it ends with a whole item and says how to go "
        "on.",
    )


class ToolAnswer(ReadSchema):
    """The answer for the model: `result`, or `error` when `ok` is false."""

    tool: str
    ok: bool
    result: str | None = Field(description="Text for the model; what was stored is escaped in it.")
    error: str | None = Field(
        description="Text for the model: why nothing was done, and what to do instead."
    )
    data: dict[str, Any] = Field(
        description="The same for programs: what the result shows, or the `code` of the error."
    )
    next_cursor: str | None = Field(
        description="For the argument `cursor`: the next page. The result names it too."
    )
    request_heartbeat: bool = Field(
        description="Whether the model wants to go on before the user gets an answer."
    )
    tool_call_id: str | None
    duration_ms: int
