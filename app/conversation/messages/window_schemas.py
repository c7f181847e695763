"""Windows as they cross HTTP."""

from typing import Annotated

from pydantic import Field

from app.conversation.messages.schemas import MessageRead, PressureRead, WindowStrategy
from app.identity.agents.policy_schemas import MOST_TOKENS, TriggerRule
from app.platform.values.fields import ReadSchema, Schema, example


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
        description="The window holds the messages above this number; those up to it stay stored."
    )
    messages: int = Field(description="How many messages the window has.")
    tokens: int = Field(description="Theirs, as counted here, without summaries.")
    current_request: int | None = Field(
        description="Number of the user's newest message, which no compaction evicts."
    )
    summary_ids: list[str] = Field(description="Of what stands for evicted messages, oldest first.")
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
        description="False only where the current request and calls that wait for a result are "
        "longer than the budget."
    )
    waiting: list[str] = Field(description="Ids of calls among the messages without a result.")
    left_out: int = Field(description="How many messages of the window are not shown.")
    counter: str = Field(description="What counted the tokens.", examples=["estimate/v1"])
