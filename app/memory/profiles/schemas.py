"""Profiles as they cross HTTP, and what can go wrong with one."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from app.errors import UnprocessableError
from app.memory.profiles.slots import (
    ENTRIES,
    ENTRY_CHARACTERS,
    INSTRUCTION_CHARACTERS,
    MOST_DECISIONS,
    SECTION_CHARACTERS,
    TEXT_CHARACTERS,
    is_language_tag,
)
from app.platform.values.fields import OwnId, ReadSchema, Schema, Storable, Timestamp, example


def _tag(text: str) -> str:
    if not is_language_tag(text):
        raise ValueError("must be a BCP 47 tag, such as zh-CN, en or ja")
    return text


Text = Annotated[
    str,
    StringConstraints(min_length=1, max_length=TEXT_CHARACTERS, strip_whitespace=True),
    Storable,
]
SectionText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=SECTION_CHARACTERS, strip_whitespace=True),
    Storable,
]
Instructions = Annotated[
    str,
    StringConstraints(min_length=1, max_length=INSTRUCTION_CHARACTERS, strip_whitespace=True),
    Storable,
]
Entry = Annotated[
    str,
    StringConstraints(min_length=1, max_length=ENTRY_CHARACTERS, strip_whitespace=True),
    Storable,
]
Entries = Annotated[list[Entry], Field(min_length=1, max_length=ENTRIES)]
Sentences = Annotated[list[Text], Field(min_length=1, max_length=ENTRIES)]
LanguageTag = Annotated[
    str, StringConstraints(min_length=2, max_length=35), AfterValidator(_tag), Storable
]
SlotWord = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,49}$")]
Origin = Literal["user", "derived"]


class UserAttributes(Schema):
    username: Text | None = None
    background: Text | None = None
    profession: Text | None = None
    characteristics: Text | None = None
    communication_style: Literal["concise", "detailed", "technical"] | None = None
    response_format: Literal["markdown", "plain", "code"] | None = None
    language_preference: LanguageTag | None = Field(
        default=None, description="A BCP 47 tag.", examples=["zh-CN"]
    )
    expertise_areas: Entries | None = None
    programming_languages: Entries | None = None
    frequently_used_tools: Entries | None = None


class ProfileSections(Schema):
    work_context: SectionText | None = None
    personal_context: SectionText | None = None
    top_of_mind: SectionText | None = None
    recent_months: SectionText | None = None
    earlier_context: SectionText | None = None
    long_term_background: SectionText | None = None


class UserProfilePatch(Schema):
    """What is named becomes the user's own, which no job changes; null gives it back to jobs."""

    model_config = example(
        attributes={"profession": "nurse", "communication_style": "concise"},
        sections={"top_of_mind": None},
        instructions="Always answer in Chinese.",
    )

    attributes: UserAttributes = UserAttributes()
    sections: ProfileSections = ProfileSections()
    slots: Annotated[dict[SlotWord, dict[SlotWord, Text | None]], Field(max_length=50)] = Field(
        default={}, description="Of the home agent's `config.profile_slots`: topic to sub-topics."
    )
    instructions: Instructions | None = Field(
        default=None, description="The user's own wishes. No job ever touches them."
    )


class Decision(Schema):
    decision: Text
    reason: Text | None = None
    time: Timestamp | None = None


class ProjectAttributes(Schema):
    project_goal: Text | None = None
    tech_stack: Entries | None = None
    constraints: Sentences | None = None
    team_conventions: Sentences | None = None
    current_phase: Text | None = None


class ProjectProfilePatch(Schema):
    """What is named is kept as it is written; null gives it back to jobs."""

    model_config = example(attributes={"current_phase": "beta", "tech_stack": ["PostgreSQL"]})

    attributes: ProjectAttributes = ProjectAttributes()
    key_decisions: Annotated[list[Decision], Field(max_length=MOST_DECISIONS)] | None = None


class ValueRead(ReadSchema):
    """One value, and where it is from."""

    value: Any
    origin: Origin = Field(description="`user`: written by a caller, and never changed by a job.")
    memory_ids: list[str] = Field(description="The memories it was derived from.")
    deriver: str | None = Field(description="What derived it, such as rules/2.")
    update_time: Timestamp


class ProfileRead(ReadSchema):
    attributes: dict[str, ValueRead] = {}
    version: int = Field(description="0 as long as there is nothing in it.")
    derived_until: Timestamp | None = Field(
        default=None, description="Up to which change of a memory a job has read."
    )
    create_time: Timestamp | None = None
    update_time: Timestamp | None = None


class UserProfileRead(ProfileRead):
    user_id: str
    sections: dict[str, ValueRead] = {}
    slots: dict[str, dict[str, ValueRead]] = {}
    instructions: str | None = None


class ProjectProfileRead(ProfileRead):
    project_id: str
    key_decisions: ValueRead | None = None


class ProfileChangeRead(ReadSchema):
    """One change of one value."""

    history_id: str
    slot: str = Field(examples=["attributes.profession"])
    event: Literal["SET", "REMOVE"]
    before: Any | None
    after: Any | None
    origin: Origin = Field(description="Who changed it: `user` or `derived`.")
    memory_ids: list[str]
    reason: str | None
    actor: str | None = Field(description="Id of the key that did it.")
    job_id: str | None
    version: int = Field(description="Of the profile, after the change.")
    create_time: Timestamp


class ProfileJob(ReadSchema):
    """A derivation that was put into the queue."""

    job_id: str
    status: Literal["pending", "running"] = Field(
        description="running: the present run is followed by another."
    )
    due_at: Timestamp


class ProfileContextQuery(Schema):
    user_id: OwnId
    project_id: OwnId | None = None


class ProfileContextRead(ReadSchema):
    """Profiles as an agent would see them in a context."""

    text: str = Field(description="Escaped, one line per value; empty when nothing is known.")
    user: UserProfileRead
    project: ProjectProfileRead | None = None


class UnknownSlotError(UnprocessableError):
    """A slot that no agent of the user has named."""

    code = "unknown_profile_slot"
    title = "No such slot"

    def __init__(self, names: Sequence[str], known: Sequence[str]) -> None:
        super().__init__(
            "The user's home agent names no such slot in `config.profile_slots`.",
            errors=[
                {"location": ["body", *name.split(".")], "detail": "no slot of the home agent"}
                for name in names
            ],
            available=list(known),
        )


class SlotTooLongError(UnprocessableError):
    """More than the agent allows in one of its slots."""

    code = "profile_slot_too_long"
    title = "Longer than its slot"

    def __init__(self, name: str, most: int) -> None:
        super().__init__(
            f"`{name}` holds at most {most} characters.",
            errors=[
                {"location": ["body", *name.split(".")], "detail": f"at most {most} characters"}
            ],
        )
