"""Agents as they cross HTTP."""

from typing import Any

from pydantic import Field

from app.tenants.schemas import Status
from app.web.fields import Description, Document, Id, Kind, Moment, Name, Schema, Shown, example
from app.web.pagination import PageQuery


class AgentCreate(Schema):
    model_config = example(agent_id="support", agent_name="Support assistant", agent_type="chatbot")

    agent_id: Id | None = Field(default=None, description="Generated when left out.")
    agent_name: Name = Field(examples=["Support assistant"])
    agent_type: Kind | None = Field(default=None, examples=["chatbot"])
    description: Description | None = None
    config: Document = Field(
        default={},
        description="Your own settings of the agent. `embedding` names its embedder, `model` what "
        "extracts memories for it (rules, openai/<model>), `extraction_prompt` instructs that.",
    )
    status: Status = "enabled"
    memory_enabled: bool = True
    injection_enabled: bool = True


class AgentPatch(Schema):
    model_config = example(agent_name="Support", memory_enabled=False)

    agent_name: Name | None = None
    agent_type: Kind | None = None
    description: Description | None = None
    config: Document | None = None
    status: Status | None = None
    memory_enabled: bool | None = None
    injection_enabled: bool | None = None


class AgentRead(Shown):
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
    creator: str | None = Field(description="Id of the key that made it.")
    version: int
    create_time: Moment
    update_time: Moment


class AgentQuery(PageQuery):
    status: Status | None = None
    agent_type: Kind | None = None
