"""The types of values that cross HTTP, each with its bounds (all schemas use them), and the ids
that callers choose for their users, agents, projects and sessions, in any script.

The rule follows the FreeformClass of PRECIS (RFC 8264) in NFC and with case kept, as OpaqueString
of RFC 8265. Stricter than it, an id has no joiners at all, no other spaces, and nothing that a path
cannot carry.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self
from unicodedata import category, normalize

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)

LONGEST: Final = 64
"""Characters of an id, each of up to 4 bytes."""

WANTED: Final = (
    "1 to 64 characters of any script, without `/`, spaces at an end or in a row, control and "
    "invisible characters; not `*`, and not dots alone"
)

PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@|+=~-]*")
"""An id of ASCII alone, as messages and blocks have it."""

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffd"
    "\U000e0100-\U000e01ef]"
)
"""What Python prints and nobody can tell apart: letters and marks that are
Default_Ignorable_Code_Point in DerivedCoreProperties.txt, the empty Braille pattern, and U+FFFD,
which a server reads wherever a path or a query is not UTF-8.
"""

_MOST_DECOMPOSED: Final = 4
"""Characters into which NFC's one may be taken apart."""


def composed(text: str) -> str:
    """`text` in NFC, so that a name typed in two forms is one id.

    What cannot become an id in NFC is returned as it is: putting marks into order takes quadratic
    time.
    """
    return normalize("NFC", text) if len(text) <= LONGEST * _MOST_DECOMPOSED else text


def checked_own_id(text: str) -> str:
    """`text`, an id in NFC.

    Raises:
        ValueError: it cannot be an id that a caller chose.

    """
    if not is_own_id(text):
        raise ValueError(f"must be an id: {WANTED}")
    return text


def is_own_id(text: str) -> bool:
    """Whether a caller may choose this id, as it is."""
    if not 1 <= len(text) <= LONGEST:
        return False
    if PLAIN.fullmatch(text):
        return True
    return (
        # Of separators only the space is printable; unassigned characters, surrogates, private
        # ones, and what turns the direction of writing are not.
        text.isprintable()
        and text.strip(" ") == text
        and "  " not in text
        and "/" not in text
        and text != "*"
        and text.strip(".") != ""
        and not _UNSEEN.search(text)
        # It would join the character before it, in a line of text or behind a prefix.
        and not category(text[0]).startswith("M")
        and normalize("NFC", text) == text
    )


ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:@|+=~-]{0,63}$"
METADATA_BYTES = 16 * 1024
METADATA_DEPTH = 8
METADATA_KEYS = 100
LARGEST_INTEGER = 2**63 - 1


class Schema(BaseModel):
    """Base of requests: unknown fields, NaN and infinity are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, validate_by_name=True)


def example(**fields: JsonValue) -> ConfigDict:
    """An example body for the docs page; tests validate it with the schema."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class ReadSchema(BaseModel):
    """Base of answers, read from a row or a dataclass."""

    model_config = ConfigDict(from_attributes=True, validate_by_name=True, serialize_by_alias=True)

    @classmethod
    def of_valid(cls, values: Mapping[str, Any]) -> Self:
        """One of values that are as validation would leave them, none of them left out.

        `model_construct` takes as long as validating.

        Raises:
            KeyError: a field has no value.

        """
        made: Self = cls.__new__(cls)
        fields = {name: values[name] for name in cls.__pydantic_fields__}
        object.__setattr__(made, "__dict__", fields)
        object.__setattr__(made, "__pydantic_fields_set__", set(fields))
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made


TEXT_OR_PARTS = WithJsonSchema(
    {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
        "description": 'A text, or a list of parts such as `{"type": "text", "text": …}`.',
    },
    mode="validation",
)
"""The published form of a content whose parts are understood."""


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode text, without half a surrogate pair") from None
    return text


Id = Annotated[
    str,
    StringConstraints(pattern=ID_PATTERN, min_length=1, max_length=64),
    Field(description="1 to 64 letters, digits or . _ : @ | + = ~ -", examples=["ana"]),
]


def _composed(value: Any) -> Any:
    return composed(value) if isinstance(value, str) else value


Composed = BeforeValidator(_composed)
"""For text that is read in NFC, before its length is checked."""

OwnId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST),
    Composed,
    AfterValidator(checked_own_id),
    Field(description=f"{WANTED}. Read in NFC.", examples=["ana"]),
]
"""An id that the caller chose for a user, an agent, a project or a session."""

Storable = AfterValidator(_storable)
"""For text that PostgreSQL can store. Comes last: constraints after a function are not
published.
"""

Name = Annotated[
    str, StringConstraints(min_length=1, max_length=255, strip_whitespace=True), Storable
]
Kind = Annotated[str, StringConstraints(min_length=1, max_length=50), Storable]
Description = Annotated[str, StringConstraints(max_length=10_000), Storable]


def _size(value: JsonValue, depth: int) -> int:
    """About the bytes that `value` takes; raises ValueError when it cannot be stored."""
    if depth > METADATA_DEPTH:
        raise ValueError(f"must not be nested deeper than {METADATA_DEPTH} levels")
    if isinstance(value, str):
        return len(_storable(value).encode()) + 2
    if value is None or isinstance(value, int | float):
        _check_number(value)
        return 8
    if isinstance(value, dict):
        if len(value) > METADATA_KEYS:
            raise ValueError(f"must not have more than {METADATA_KEYS} keys")
        return 2 + sum(_size(key, depth) + _size(item, depth + 1) for key, item in value.items())
    return 2 + sum(_size(item, depth + 1) for item in value)


def _check_number(value: float | None) -> None:
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise ValueError("numbers must fit into 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("numbers must be finite")


def metadata_size(value: dict[str, JsonValue]) -> int:
    """Bytes that metadata takes; at most METADATA_BYTES are kept."""
    return _size(value, 0)


def _object(limit: int) -> Any:
    def check(value: Any) -> Any:
        if isinstance(value, dict) and _size(value, 0) > limit:
            raise ValueError(f"must not be larger than {limit // 1024} KiB")
        return value

    # Before Pydantic's validation: a value nested a thousand levels deep is refused here.
    return BeforeValidator(check)


Metadata = Annotated[
    dict[str, JsonValue],
    _object(METADATA_BYTES),
    Field(description="Your own data: at most 16 KiB, 100 keys, 8 levels."),
]
Document = Annotated[
    dict[str, JsonValue],
    _object(4 * METADATA_BYTES),
    Field(description="A JSON object: at most 64 KiB, 100 keys, 8 levels."),
]
ContentPart = Annotated[
    dict[str, JsonValue],
    # As large as the request may be: an image comes with its data.
    _object(LARGEST_INTEGER),
    Field(
        description="A JSON object: at most 100 keys, 8 levels.",
        examples=[{"type": "text", "text": "What is this?"}],
    ),
]


def _utc(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def in_utc(time: datetime) -> datetime:
    """The same time in UTC; raises ValueError outside of the years 1 to 9999.

    The driver would convert it later and fail there; it also takes the first and the last
    microsecond of the calendar for infinity.
    """
    try:
        converted = time.astimezone(UTC)
    except OverflowError:
        converted = _LAST
    if not _FIRST < converted < _LAST:
        raise ValueError("must lie in the years 1 to 9999")
    return converted


Timestamp = Annotated[
    AwareDatetime,
    AfterValidator(in_utc),
    PlainSerializer(_utc, return_type=str, when_used="json"),
    Field(description="ISO 8601 with a zone", examples=["2026-11-21T12:00:00Z"]),
]

ZONED = "ISO 8601 with a zone, `Z` or `+02:00`; a time without one is refused."
"""For fields with a description of their own: the format of the time."""


ENABLED = {"disabled": 0, "enabled": 1}
RUNNING = {"ended": 0, "running": 1}


def status_word(words: dict[str, int], value: Any) -> Any:
    """The API's word for a stored status; words are returned unchanged."""
    if isinstance(value, bool):
        return value
    return {str(number): word for word, number in words.items()}.get(str(value), value)
