"""Agents as they cross HTTP."""

from typing import Any, Self

from pydantic import Field

from app.identity.agents.policy_schemas import WindowPolicyPatch
from app.identity.tenants.schemas import Status
from app.platform.plugins.catalogue import LoadedProcessor, OnError
from app.platform.plugins.points import POINTS
from app.platform.values.fields import (
    Description,
    Document,
    Id,
    Kind,
    Name,
    ReadSchema,
    Schema,
    Timestamp,
    example,
)
from app.platform.values.pagination import PageQuery


class AgentCreate(Schema):
    model_config = example(agent_id="support", agent_name="Support assistant", agent_type="chatbot")

    agent_id: Id | None = Field(default=None, description="Generated when left out.")
    agent_name: Name = Field(examples=["Support assistant"])
    agent_type: Kind | None = Field(default=None, examples=["chatbot"])
    description: Description | None = None
    config: Document = Field(
        default={},
        description="Your own settings of the agent. `embedding` names its embedder, `model` what "
        "extracts memories for it (rules, openai/<model>), `extraction_prompt` instructs that, "
        "`summary_model` what summarises its conversations (extractive, openai/<model>), "
        "`profile_model` what derives profiles (rules, openai/<model>); `profile_slots` adds slots "
        "to the profiles of its users: `[{topic, sub_topic, description, max_chars}]`. `tools` "
        "lists the tools its model may call, all when left out; `enable_memory` false takes those "
        "on memories away. `processors` lists those that serve it, the tenant's when left "
        "out (docs/processors.md). `forgetting` says what of it is forgotten by itself, such as "
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
            points=[one for one in POINTS if one in loaded.points],
            timeout_seconds=loaded.timeout_seconds,
            on_error=loaded.on_error,
        )


class ProcessorList(ReadSchema):
    items: list[ProcessorRead]
