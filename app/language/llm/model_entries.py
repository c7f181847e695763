"""One entry of a model's answer, made strict: what a value may be, and what is made of it.

Values that only describe a statement are mended (no confidence is 0.5, no date is none); without
words or a scope there is no statement. A relation that cannot be kept is left out and named, and
neither its entry nor the other relations suffer. Pure.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self, TypeVar
from unicodedata import combining, normalize

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from app.language.llm.embedder import encodable
from app.language.llm.extractor import (
    LONGEST_VALID_DAYS,
    MEMORY_TYPES,
    MOST_RELATIONS,
    Proposed,
    ProposedRelation,
    Scope,
)

LONGEST_NAME: Final = 255
_LONGEST_TYPE: Final = 50
_LONGEST_RELATION: Final = 100
_ANYTHING: Final = "thing"

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN: Final = re.compile(r"[\s_./-]+")
_SNAKE: Final = re.compile(r"[a-z][a-z0-9_]*")


class MalformedRelationError(ValueError):
    """The message names members, never their values."""


def read_relations(value: Any) -> tuple[tuple[ProposedRelation, ...], list[str]]:
    """The relations of an entry, each once, and what was wrong with the others.

    An entry without the member has none: an endpoint that knows no schema may leave it out.
    """
    if value is None:
        return (), []
    if not isinstance(value, list):
        return (), ["relations: no list"]
    found: dict[ProposedRelation, None] = {}
    faults: list[str] = []
    for number, relation in enumerate(value[:MOST_RELATIONS], 1):
        try:
            found[_relation(relation)] = None
        except MalformedRelationError as error:
            faults.append(f"relation {number} unusable: {error}")
    surplus = len(value) - MOST_RELATIONS
    if surplus > 0:
        faults.append(f"{surplus} relations beyond the {MOST_RELATIONS} that are read")
    return tuple(found), faults


def snake(text: str) -> str | None:
    """Words as lower snake_case in ASCII, or None where they are no Latin text."""
    plain = "".join(char for char in normalize("NFKD", text) if not combining(char))
    name = _BETWEEN.sub("_", _HUMP.sub("_", plain.strip())).strip("_").lower()
    return name if _SNAKE.fullmatch(name) else None


def _relation(value: Any) -> ProposedRelation:
    """One relation of an entry.

    Raises:
        MalformedRelationError: it cannot be kept; says which members are missing.

    """
    if not isinstance(value, dict):
        raise MalformedRelationError("not an object")
    wanting = [name for name in ("source", "destination") if _name(value.get(name)) is None]
    said = value.get("relation")
    relation = snake(said) if isinstance(said, str) else None
    if relation is None or len(relation) > _LONGEST_RELATION:
        wanting.append("relation")
    source, destination = _name(value.get("source")), _name(value.get("destination"))
    if wanting or relation is None or source is None or destination is None:
        raise MalformedRelationError(", ".join(wanting))
    if source == destination:
        raise MalformedRelationError("it joins a name with itself")
    return ProposedRelation(
        source,
        relation,
        destination,
        _entity_type(value.get("source_type")),
        _entity_type(value.get("destination_type")),
    )


def _name(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = " ".join(encodable(value.replace("\x00", "")).split())
    return text if 0 < len(text) <= LONGEST_NAME else None


def _entity_type(value: Any) -> str:
    """One word; the names count, so an unusable type is any thing."""
    name = snake(value) if isinstance(value, str) else None
    return name if name is not None and len(name) <= _LONGEST_TYPE else _ANYTHING


# As if the model had hesitated: it fails the gate.
_NO_CONFIDENCE: Final = 0.5

_ATTRIBUTE: Final = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+")
_LONGEST_ATTRIBUTE: Final = 100
_SPACES: Final = re.compile(r"[\s-]+")
_YEAR_OR_MONTH: Final = re.compile(r"\d{4}(?:-\d{2})?")

# What an id may look like (values/fields.py); what does not could be a sentence, and would be
# kept as an unknown id beside the verdict.
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@|+=~-]{0,63}")
_NO_ID: Final = "unknown"
_MOST_EVIDENCE: Final = 50

_ALIASES: Final = {"behavior": "habit", "behaviour": "habit"}


def storable(text: str) -> str:
    """`text` as a database can keep it, without what surrounds it."""
    return encodable(text.replace("\x00", "")).strip()


def _words(value: Any) -> str:
    """The text of a member.

    Raises:
        ValueError: there is none, or it is blank.

    """
    if not isinstance(value, str):
        raise ValueError("no text")  # noqa: TRY004 (pydantic collects this one)
    text = storable(value)
    if not text:
        raise ValueError("blank")
    return text


def remark(value: Any) -> str | None:
    """A text that may be stored; None for what is none, or blank."""
    return (storable(value) or None) if isinstance(value, str) else None


def confidence_of(value: Any) -> float:
    """0 to 1; a value out of bounds is the bound, and what is no number counts as unsure."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return _NO_CONFIDENCE
    # JSON's true is no number, though Python's is.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _NO_CONFIDENCE
    # Compared first, because an integer may be too large for a float.
    if value >= 1 and value != math.inf:
        return 1.0
    return max(float(value), 0.0) if math.isfinite(value) else _NO_CONFIDENCE


def _type(value: Any) -> str:
    """A type we have; the statement counts, so an unknown one makes it a plain fact."""
    name = value.strip().lower() if isinstance(value, str) else ""
    name = _ALIASES.get(name, name)
    return name if name in MEMORY_TYPES else "fact"


def _attribute(value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > _LONGEST_ATTRIBUTE:
        return None
    name = _SPACES.sub("_", value.strip().lower())
    return name if _ATTRIBUTE.fullmatch(name) else None


def _moment(value: Any) -> datetime | None:
    """A date, or a year or month from its first day; None for everything else."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _YEAR_OR_MONTH.fullmatch(text):
        text = f"{text}-01-01" if len(text) == 4 else f"{text}-01"
    try:
        time = datetime.fromisoformat(text)
        # Without a zone it is the user's, which nobody knows.
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _days(value: Any) -> int | None:
    """Whole days from 1 on; None for what is no such number, as if nothing was said."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < math.inf:
        return None
    return int(min(value, LONGEST_VALID_DAYS))


def _scope(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _evidence(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    ids = [
        _evidence_id(item) for item in values[:_MOST_EVIDENCE] if item is not None and item != ""
    ]
    return tuple(dict.fromkeys(ids))


def _evidence_id(value: Any) -> str:
    # Small models write 3 for t3.
    if isinstance(value, int) and not isinstance(value, bool):
        return f"t{value}" if abs(value) < 1_000_000 else _NO_ID
    text = value.strip() if isinstance(value, str) else ""
    return text if _ID.fullmatch(text) else _NO_ID


def _truth(value: Any) -> bool:
    """True only when it says so: what is unclear must not take back anything."""
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


class _StatementEntry(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    content: Annotated[str, BeforeValidator(_words)]
    confidence: Annotated[float, BeforeValidator(confidence_of)] = _NO_CONFIDENCE
    evidence: Annotated[tuple[str, ...], BeforeValidator(_evidence)] = ()


class _ExtractionEntry(_StatementEntry):
    type: Annotated[str, BeforeValidator(_type)] = "fact"
    scope: Annotated[Scope, BeforeValidator(_scope)]
    attribute: Annotated[str | None, BeforeValidator(_attribute)] = None
    valid_from: Annotated[datetime | None, BeforeValidator(_moment)] = None
    valid_to: Annotated[datetime | None, BeforeValidator(_moment)] = None
    expected_valid_days: Annotated[int | None, BeforeValidator(_days)] = None
    source_error: Annotated[str | None, BeforeValidator(remark)] = None
    retracts: Annotated[bool, BeforeValidator(_truth)] = False

    @model_validator(mode="after")
    def _run_forwards(self) -> Self:
        """A time that ends before it begins is no time."""
        if self.valid_from and self.valid_to and self.valid_from >= self.valid_to:
            self.valid_to = None
        return self


_S = TypeVar("_S", bound=_StatementEntry)


class MalformedEntryError(ValueError):
    """An entry that is no statement; the message names members, never their values."""


def read_entry(value: Any, message_ids: Mapping[str, str]) -> Proposed:
    """The proposal that one entry of an extraction makes.

    Args:
        value: as it stands in the answer.
        message_ids: by the short id in the prompt; evidence under another id stays as it is,
            for whoever checks it.

    Raises:
        MalformedEntryError: it has no words, or no scope, or one that does not exist.

    """
    entry = _checked(_ExtractionEntry, value)
    return Proposed(
        content=entry.content,
        memory_type=entry.type,
        confidence=entry.confidence,
        evidence=_messages(entry, message_ids),
        scope=entry.scope,
        attribute=entry.attribute,
        valid_from=entry.valid_from,
        valid_to=entry.valid_to,
        source_error=entry.source_error,
        retracts=entry.retracts,
        expected_valid_days=entry.expected_valid_days,
    )


def read_experience(value: Any, message_ids: Mapping[str, str], scope: Scope) -> Proposed:
    """The proposal that an experience summary makes; arguments and errors as for an entry."""
    statement = _checked(_StatementEntry, value)
    return Proposed(
        content=statement.content,
        memory_type="experience",
        confidence=statement.confidence,
        evidence=_messages(statement, message_ids),
        scope=scope,
    )


def _messages(statement: _StatementEntry, message_ids: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(message_ids.get(name, name) for name in statement.evidence))


def _checked(form: type[_S], value: Any) -> _S:
    """The value in a form.

    Raises:
        MalformedEntryError: it does not fit; names the members, never their values.

    """
    try:
        return form.model_validate(value)
    except ValidationError as error:
        # Not chained, and without messages: both quote what the model wrote.
        faults = error.errors(include_input=False, include_context=False, include_url=False)
    names = sorted({str(fault["loc"][0]) for fault in faults if fault["loc"]})
    what = f"unusable: {', '.join(names)}" if names else "not an object"
    raise MalformedEntryError(what)
