"""Agents as they cross HTTP."""

from typing import Annotated, Any, Final, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from app.identity.tenants.schemas import Status
from app.platform.plugins.catalogue import LoadedProcessor, OnError
from app.platform.plugins.points import POINTS
from app.platform.values.fields import (
    Description,
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
from app.platform.values.pagination import PageQuery

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
    automatic: bool | None = Field(default=None, description="False: compacted only on request.")
    reserved_tokens: Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None = Field(
        default=None,
        description="Tokens of what you send besides, such as the system prompt and tools. Of "
        "these and what a context counts as instructions and tools, the larger counts.",
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


class AgentCreate(Schema):
    model_config = example(agent_id="support", agent_name="Support assistant", agent_type="chatbot")

    agent_id: OwnId | None = Field(default=None, description="Generated when left out.")
    agent_name: Name = Field(examples=["Support assistant"])
    agent_type: Kind | None = Field(default=None, examples=["chatbot"])
    description: Description | None = None
    config: Document = Field(
        default={},
        description="Your own settings of the agent. `embedding` names its embedder, `model` what "
        "extracts memories for it (rules, openai/<model>), `extraction_prompt` instructs that, "
        "`summary_model` what summarises its conversations (extractive, openai/<model>), "
        "`profile_model` what derives profiles (rules, openai/<model>); `profile_slots` adds slots "
        "to the profiles of its users: `[{topic, sub_topic, description, max_chars}]`. "
        "`system_prompt` is its instructions, at the beginning of every context; variables in it "
        "are replaced. `tools` lists the tools its model may call, by the names of GET /v1/tools, "
        "all when left out; `enable_memory` false takes those on memories away. `processors` lists "
        "those that serve it, the tenant's when left "
        "out (docs/processors.md). `forgetting` says what is forgotten automatically, such as "
        '{"max_facts": 50, "message_retention_days": 90}; docs/forgetting.md names its keys.',
    )
    status: Status = "enabled"
    memory_enabled: bool = True
    injection_enabled: bool = True
    window_policy: WindowPolicyPatch | None = Field(
        default=None,
        description="How long its sessions may become, where that differs from the deployment.",
    )


class AgentPatch(Schema):
    model_config = example(agent_name="Support", memory_enabled=False)

    agent_name: Name | None = None
    agent_type: Kind | None = None
    description: Description | None = None
    config: Document | None = None
    status: Status | None = None
    memory_enabled: bool | None = None
    injection_enabled: bool | None = None
    window_policy: WindowPolicyPatch | None = Field(
        default=None, description="All of it: what is left out is said no more, as all by null."
    )


class AgentRead(ReadSchema):
    agent_id: str
    agent_name: str
    agent_type: str | None
    description: str | None
    config: dict[str, Any]
    status: Status
    memory_enabled: bool = Field(description="Off: nothing is remembered for this agent.")
    injection_enabled: bool = Field(
        description="Off: nothing remembered goes into its context, once that can be asked for."
    )
    window_policy: dict[str, Any] | None = Field(
        description="What it says of its window itself; see GET /v1/sessions/{id}/window for all."
    )
    creator: str | None = Field(description="Id of the key that made it.")
    version: int
    create_time: Timestamp
    update_time: Timestamp


class AgentQuery(PageQuery):
    status: Status | None = None
    agent_type: Kind | None = None


class ProcessorRead(ReadSchema):
    name: str
    points: list[str] = Field(description="Where it is asked; see docs/processors.md.")
    timeout_seconds: float = Field(description="What one call may take.")
    on_error: OnError = Field(
        description="`skip`: work goes on without it. `refuse`: nothing goes on."
    )

    @classmethod
    def of(cls, loaded: LoadedProcessor) -> Self:
        return cls(
            name=loaded.name,
            points=[point for point in POINTS if point in loaded.points],
            timeout_seconds=loaded.timeout_seconds,
            on_error=loaded.on_error,
        )


class ProcessorList(ReadSchema):
    items: list[ProcessorRead]


LONGEST_VALUE = 100_000
DEFAULT_LIMIT = 5000

Label = Annotated[
    str,
    StringConstraints(pattern=r"^\w(?:[\w -]{0,48}\w)?$", min_length=1, max_length=50),
    Field(
        description="What the block is about: 1 to 50 letters, digits, spaces, _ or -.",
        examples=["human"],
    ),
    Storable,
]
Value = Annotated[str, StringConstraints(max_length=LONGEST_VALUE), Storable]
Limit = Annotated[
    int, Field(ge=1, le=LONGEST_VALUE, description="Most characters (code points) it may hold.")
]
Tags = Annotated[list[Kind], Field(max_length=20)]


class MemoryBlockCreate(Schema):
    """A block that is made with its agent."""

    block_id: Id | None = Field(default=None, description="Generated when left out.")
    label: Label
    value: Value = Field(default="", examples=["Her name is Ana. She lives in Bonn."])
    limit: Limit = DEFAULT_LIMIT
    description: Description | None = Field(
        default=None,
        description="Tells the model what belongs in it; `human` and `persona` have one already.",
    )
    tags: Tags = []
    metadata: Metadata = {}
    read_only: bool = Field(
        default=False,
        description="Tools and edits may not change it; a PATCH needs an admin key.",
    )
    hidden: bool = Field(default=False, description="Kept out of the context and of lists.")
    per_user: bool | None = Field(
        default=None,
        description="A template: the first edit in a session makes that user's own copy, so that "
        "nothing crosses users. True for `human` and `persona` unless you say otherwise.",
    )


class AgentEquip(AgentCreate):
    """An agent, with the blocks that its model always sees."""

    model_config = example(
        agent_id="support",
        agent_name="Support assistant",
        agent_type="chatbot",
        memory_blocks=[
            {"label": "persona", "value": "You are patient and to the point."},
            {"label": "human"},
        ],
    )

    memory_blocks: list[MemoryBlockCreate] = Field(
        default=[], max_length=20, description="Made with the agent and attached to it."
    )
    block_ids: list[Id] = Field(
        default=[], max_length=20, description="Blocks there are, to be attached to it."
    )
