"""What an agent or a session says about its window, as it crosses HTTP."""

from typing import Annotated, Any, Final, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from app.platform.values.fields import Schema

MOST_TOKENS: Final = 10_000_000

Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]


class TriggerRule(Schema):
    """When to compact: all that is named must hold."""

    tokens: Tokens | None = None
    messages: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    fraction: PositiveShare | None = Field(default=None, description="Of `budget_tokens`.")

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.tokens is None and self.messages is None and self.fraction is None:
            raise ValueError("name tokens, messages or fraction")
        return self

    @model_serializer(mode="wrap")
    def _what_is_said(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _said(handler(self))


TriggerRules = Annotated[list[TriggerRule], Field(min_length=1, max_length=10)]


class WindowPolicyPatch(Schema):
    """What an agent or a session says of its own; the rest is the deployment's."""

    budget_tokens: Annotated[int, Field(ge=100, le=MOST_TOKENS)] | None = Field(
        default=None, description="What the window may hold."
    )
    warn: PositiveShare | None = Field(
        default=None,
        description="Share of the budget from which the model is asked to save what matters; "
        "never above `flush`.",
    )
    flush: PositiveShare | None = Field(
        default=None, description="Share of the budget from which the session is compacted."
    )
    evict_fraction: PositiveShare | None = Field(
        default=None, description="Share of what fills the window then that compaction makes free."
    )
    keep_messages: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None, description="How many of the newest messages stay, as far as they fit."
    )
    trigger: TriggerRule | TriggerRules | None = Field(
        default=None,
        description="Further reasons to compact: keys of one object must all hold, of a list any "
        "object will do.",
    )
    automatic: bool | None = Field(
        default=None, description="False: compacted only when somebody asks."
    )
    reserved_tokens: Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None = Field(
        default=None,
        description="Tokens of what you send besides, such as the system prompt and tools; they "
        "count towards the pressure.",
    )
    summary_words: Annotated[int, Field(ge=10, le=2000)] | None = None
    approval_hours: Annotated[int, Field(ge=1, le=8760)] | None = Field(
        default=None, description="How long a call without a result keeps its place."
    )
    checkpoint_every: Annotated[int, Field(ge=0, le=10_000)] | None = Field(
        default=None, description="Messages between two checkpoints; 0 for none."
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.warn is not None and self.flush is not None and self.warn > self.flush:
            raise ValueError("warn must not be above flush")
        return self

    @model_serializer(mode="wrap")
    def _what_is_said(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _said(handler(self))


def _said(values: dict[str, Any]) -> dict[str, Any]:
    """Without keys that say nothing: so it is kept in a row, and so an answer shows it."""
    return {key: value for key, value in values.items() if value is not None}
