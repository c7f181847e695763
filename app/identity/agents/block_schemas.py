"""Blocks as an agent begins with them; what they are for is in `app/prompting/blocks`."""

from typing import Annotated

from pydantic import Field, StringConstraints

from app.identity.agents.schemas import AgentCreate
from app.platform.values.fields import Description, Id, Kind, Metadata, Schema, Storable, example

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
