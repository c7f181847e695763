"""The arguments of tools, and how they are read. Pure.

Models send arguments as an object or as its JSON text, set values to null, and invent names. No
argument selects a user or an agent: the key and the session decide that.
"""

import json
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from app.conversation.messages.search_schemas import FoundRole, Offset
from app.identity.agents.schemas import LONGEST_VALUE, Value
from app.language.ranking.boosts import Query
from app.memory.memories.schemas import Content, MemoryType
from app.platform.values.fields import Id, Schema, Storable, Timestamp
from app.prompting.blocks.schemas import SomeText
from app.prompting.documents.schemas import LONGEST_TEXT, Tags
from app.prompting.tools.error_texts import CallRefusedError

Arguments = TypeVar("Arguments", bound=Schema)

HEARTBEAT: Final = "request_heartbeat"

NOT_OF_THE_MODEL: Final = frozenset(
    {"tenant_id", "user_id", "agent_id", "session_id", "project_id", "run_id", "thread_id"}
)

MOST_FAULTS: Final = 5
"""Most faults that a refusal lists; a model does not correct more at a time."""

LONGEST_NAME: Final = 50

MOST_NUMBER: Final = 2**31 - 1
"""Of a message in its session, which the table can hold."""

HITS: Final = 10
MEMORIES: Final = 5
MOST_HITS: Final = 50


def _time(value: Any, *, whole_day: bool) -> Any:
    """The start of a day, or of the day after it; a time without a zone is read as UTC."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        if len(text) == len("2026-11-21"):
            day = datetime.combine(date.fromisoformat(text), time.min, UTC)
            return day + timedelta(days=1) if whole_day else day
        at = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ValueError("must be an ISO 8601 day or time, such as 2026-11-21") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _since(value: Any) -> Any:
    return _time(value, whole_day=False)


def _until(value: Any) -> Any:
    return _time(value, whole_day=True)


Since = Annotated[Timestamp, BeforeValidator(_since)]
Until = Annotated[Timestamp, BeforeValidator(_until)]
Count = Annotated[
    int, Field(ge=1, le=MOST_HITS, description="How many at the most; fewer when they are long.")
]
Cursor = Annotated[
    str,
    StringConstraints(min_length=1, max_length=100),
    Field(description="Leave out at first; for the next page the cursor that the answer names."),
]
Asked = Annotated[Query, Storable, Field(description="What you want to know, in words.")]
Label = Annotated[
    str, StringConstraints(min_length=1, max_length=50), Storable,
    Field(description="The label of the block, such as human or persona."),
]  # fmt: skip


class Nothing(Schema):
    """A tool that takes no arguments."""


class SaveArguments(Schema):
    content: Content = Field(
        description="One statement that is understood by itself later, such as: Ana is allergic "
        "to peanuts."
    )
    memory_type: MemoryType = "fact"
    scope: Literal["user", "session", "project"] = Field(
        default="user",
        description="For whom it counts: always for this user, in this conversation alone, or "
        "for everybody in the project.",
    )


class SearchArguments(Schema):
    query: Asked
    k: Count = MEMORIES
    memory_type: MemoryType | None = None
    scope: Literal["user", "session", "project", "agent"] | None = Field(
        default=None, description="Only these; all when left out. agent is what all users share."
    )
    cursor: Cursor | None = None


class UpdateArguments(Schema):
    memory_id: Id = Field(description="As a search shows it, such as mem_0199….")
    content: Content = Field(
        description="The whole statement as it is to be from now on, understood by itself."
    )
    version: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="The version that you change, as the search shows it, 1 if it shows none: "
        "nothing is written if it was changed since. Leave out to change whatever it says now.",
    )


class DeleteArguments(Schema):
    memory_id: Id = Field(description="As a search shows it, such as mem_0199….")


class ConversationArguments(Schema):
    query: Asked
    k: Count = HITS
    role: FoundRole | None = Field(
        default=None, description="Who said it; the user or the assistant when left out."
    )
    since: Since | None = Field(
        default=None, description="Said from then on: an ISO 8601 day or time."
    )
    until: Until | None = Field(
        default=None, description="Said until then: a time, or a day with all of it."
    )
    cursor: Cursor | None = None


class ReadArguments(Schema):
    message_id: Id | None = Field(
        default=None, description="Of the message; leave out where you give its number."
    )
    number: Annotated[int, Field(ge=1, le=MOST_NUMBER)] | None = Field(
        default=None, description="Of the message in this conversation, in place of its id."
    )
    offset: Offset = Field(
        default=0, description="Begin behind so many characters; the answer names the next offset."
    )


class PassageArguments(Schema):
    query: Asked
    k: Count = HITS
    tags: Tags | None = Field(
        default=None, description="Only passages with any of these; upper and lower case differ."
    )
    since: Since | None = Field(
        default=None, description="Only passages from then on: an ISO 8601 day or time."
    )
    until: Until | None = Field(
        default=None, description="Only passages until then: a time, or a day with all of it."
    )
    cursor: Cursor | None = None


class PassageInsertArguments(Schema):
    content: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TEXT), Storable] = (
        Field(description="The text to put aside; a long one becomes several passages.")
    )
    tags: Tags = Field(
        default=[], description="Words to find it by later, such as recipe; 20 at most."
    )
    date: Since | None = Field(
        default=None,
        description="When it is from: an ISO 8601 day or time; now when left out.",
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.content.strip():
            raise ValueError("content must not be blank")
        return self


class AppendArguments(Schema):
    label: Label
    content: SomeText = Field(description="Put on a line of its own behind what stands there.")


class ReplaceArguments(Schema):
    label: Label
    old_content: SomeText = Field(
        description="Must stand in the block exactly once, to the letter; no line numbers."
    )
    new_content: Value = Field(description="Stands there instead; empty to remove it.")


class InsertArguments(Schema):
    label: Label
    content: SomeText = Field(description="Put on a line of its own.")
    line: Annotated[int, Field(ge=0, le=LONGEST_VALUE)] | None = Field(
        default=None, description="Behind this line; 0 at the top, the end when left out."
    )


class RewriteArguments(Schema):
    label: Label
    content: Value = Field(description="Everything the block says from now on.")


def parsed_arguments(given: Mapping[str, Any] | str | None) -> tuple[dict[str, Any], bool | None]:
    """The arguments as an object without nulls, and the value of `request_heartbeat` (or None).

    Raises:
        CallRefusedError: they are no JSON object, or name a user, an agent or the like.

    """
    arguments = _parsed(given) if isinstance(given, str) else dict(given or {})
    foreign = sorted(NOT_OF_THE_MODEL & arguments.keys())
    if foreign:
        raise CallRefusedError(
            f"Leave out {', '.join(foreign)}: whose memory it is follows from the session and "
            "cannot be chosen. Call again without."
        )
    heartbeat = arguments.pop(HEARTBEAT, None)
    if heartbeat is not None and not isinstance(heartbeat, bool):
        raise CallRefusedError(f"{HEARTBEAT} must be true or false.")
    return {name: value for name, value in arguments.items() if value is not None}, heartbeat


def _parsed(text: str) -> dict[str, Any]:
    """Raises CallRefusedError."""
    if not text.strip():
        return {}
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise CallRefusedError(
            f"The arguments are not valid JSON{where}. Send one JSON object, with every quotation "
            "mark and line end inside of a text escaped."
        ) from None
    if parsed is not None and not isinstance(parsed, dict):
        raise CallRefusedError('The arguments must be one JSON object, such as {"query": "tea"}.')
    return parsed or {}


def validated_arguments(kind: type[Arguments], arguments: Mapping[str, Any]) -> Arguments:
    """The validated arguments of a tool. Raises CallRefusedError, which lists what it takes."""
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        schema = kind.model_json_schema()
        offered = schema.get("properties", {})
        listed = "; ".join(
            _fault(fault["type"], fault["loc"], fault["msg"], offered)
            for fault in faults[:MOST_FAULTS]
        )
        required = schema.get("required", ())
        raise CallRefusedError(f"Wrong arguments. {listed}. {_taken(offered, required)}") from None


def _fault(
    kind: str, location: tuple[int | str, ...], message: str, offered: Collection[str]
) -> str:
    name = str(location[0])[:LONGEST_NAME] if location else "arguments"
    if kind == "extra_forbidden" or (location and location[0] not in offered):
        return f"{name}: there is no such argument"
    if kind == "missing":
        return f"{name}: is required"
    return f"{name}: {message.removeprefix('Value error, ')}"


def _taken(offered: Collection[str], required: Collection[str]) -> str:
    names = [f"{name} (required)" if name in required else name for name in offered]
    return f"It takes {', '.join(names)}." if names else "It takes no arguments."
