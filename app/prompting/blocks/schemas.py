"""Blocks as they cross HTTP."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, computed_field, model_validator

from app.identity.agents.schemas import (
    LONGEST_VALUE,
    Label,
    Limit,
    MemoryBlockCreate,
    Tags,
    Value,
)
from app.platform.values.fields import (
    Description,
    Id,
    Kind,
    Metadata,
    OwnId,
    ReadSchema,
    Schema,
    Storable,
    Timestamp,
    example,
)
from app.platform.values.pagination import ContentQuery

Event = Literal["create", "copy", "update", "append", "replace", "insert", "rewrite"]

SomeText = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_VALUE), Storable]


class BlockCreate(MemoryBlockCreate):
    model_config = example(
        label="human", value="Her name is Ana.", limit=2000, tags=["onboarding"], per_user=True
    )

    user_id: OwnId | None = Field(
        default=None, description="Seen in this user's sessions alone; shared when left out."
    )
    agent_id: OwnId | None = Field(default=None, description="Attach it to this agent at once.")
    session_id: OwnId | None = Field(
        default=None,
        description="Seen in this session alone, in the place of any other with its label, and "
        "deleted with it. It belongs to the session's user.",
    )

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if self.session_id is not None and (
            self.user_id is not None or self.agent_id is not None or self.per_user
        ):
            raise ValueError("a block of a session has the session's user, and no agent")
        if self.per_user and self.user_id is not None:
            raise ValueError("a block of a user cannot be a template for all")
        return self


class BlockPatch(Schema):
    model_config = example(value="Her name is Ana. She moved to Bonn.", tags=["onboarding"])

    label: Label | None = None
    value: Value | None = None
    limit: Limit | None = Field(default=None, description="Stays as it is when left out.")
    description: Description | None = None
    tags: Tags | None = None
    metadata: Metadata | None = None
    read_only: bool | None = None
    hidden: bool | None = None


class BlockAppend(Schema):
    """Adds a line at the end."""

    model_config = example(text="She moved to Bonn in March.")
    event: ClassVar[Event] = "append"

    text: SomeText


class BlockReplace(Schema):
    """Replaces old text, which must occur exactly once, by new text."""

    model_config = example(old="Munich", new="Bonn")
    event: ClassVar[Event] = "replace"

    old: SomeText = Field(description="Must occur exactly once.")
    new: Value = Field(description="Empty to take the old text out.")


class BlockInsert(Schema):
    """Adds lines between others."""

    model_config = example(text="She has two cats.", line=1)
    event: ClassVar[Event] = "insert"

    text: SomeText
    line: Annotated[int, Field(ge=0, le=LONGEST_VALUE)] | None = Field(
        default=None, description="After this line; 0 for the beginning, the end when left out."
    )


class BlockRewrite(Schema):
    """Says all of it anew."""

    model_config = example(value="Ana lives in Bonn with two cats.")
    event: ClassVar[Event] = "rewrite"

    value: Value


Edit = BlockAppend | BlockReplace | BlockInsert | BlockRewrite


class BlockRead(ReadSchema):
    block_id: str
    label: str
    value: str
    limit: int = Field(validation_alias="value_limit")
    description: str | None
    tags: list[str]
    metadata: dict[str, Any] = Field(validation_alias="metadata_")
    read_only: bool
    hidden: bool
    user_id: str | None = Field(description="Whose it is; null when all users share it.")
    session_id: str | None = Field(
        description="The session that alone shows it; null when it is no session's."
    )
    per_user: bool
    template_id: str | None = Field(description="Of what it is this user's copy.")
    creator: str | None = Field(description="Id of the key that made it.")
    version: int
    create_time: Timestamp
    update_time: Timestamp

    @computed_field(  # type: ignore[prop-decorator]  # Pydantic's documented way
        description="Characters (code points) it holds."
    )
    @property
    def chars_current(self) -> int:
        return len(self.value)


class BlockQuery(ContentQuery):
    label: Label | None = None
    agent_id: OwnId | None = Field(default=None, description="Attached to this agent.")
    user_id: OwnId | None = Field(default=None, description="This user's own.")
    session_id: OwnId | None = Field(default=None, description="This session's own.")
    template_id: Id | None = Field(default=None, description="Users' copies of this template.")
    tag: Kind | None = None
    query: Annotated[str, StringConstraints(min_length=1, max_length=200), Storable] | None = Field(
        default=None, description="Text in the label or the description, in any case."
    )
    include_hidden: bool = False


class BlockHistoryRead(ReadSchema):
    """The text of the block after a change."""

    history_no: int
    event: Event
    value: str
    description: str | None
    current: bool = Field(default=False, description="Whether it is what the block says now.")
    actor: str | None = Field(description="Id of the key that made the change.")
    session_id: str | None = Field(description="Where a tool made it.")
    create_time: Timestamp


class BlockDeleteQuery(Schema):
    confirm: bool = Field(default=False, description="Required when users have copies of it.")
    dry_run: bool = Field(default=False, description="Only count.")


class BlockDeleted(ReadSchema):
    """What went, in figures; nothing of what it said."""

    block_id: str
    agents: int = Field(description="It was attached to so many.")
    copies: int = Field(description="Users' own copies, which went with it.")
    dry_run: bool
