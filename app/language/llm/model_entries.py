"""One entry of a model's answer, made strict: what a value may be, and what is made of it.

Values that only describe a statement are mended (no confidence is 0.5, no date is none); without
words, or with a scope that does not exist, there is no statement. What a model cannot know is
computed: for how long a plan holds, from its day and that of the message. Pure.
"""

import math
import re
from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from app.language.llm.embedder import encodable
from app.language.llm.extractor import (
    LONGEST_VALID_DAYS,
    MEMORY_TYPES,
    ConversationTurn,
    Proposed,
    Scope,
)
from app.language.text.names import mended_attribute

# As if the model had hesitated: it fails the gate.
_NO_CONFIDENCE: Final = 0.5

_YEAR_OR_MONTH: Final = re.compile(r"\d{4}(?:-\d{2})?")

# What an id may look like (values/fields.py); what does not could be a sentence, and would be
# kept as an unknown id beside the verdict.
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@|+=~-]{0,63}")
_NO_ID: Final = "unknown"
_MOST_EVIDENCE: Final = 50

_ALIASES: Final = {"behavior": "habit", "behaviour": "habit"}

# What counts from when it is said on and is not over by itself: a goal whose day has come is
# looked at again, and what happened is worth knowing afterwards. A time of validity would hide
# both.
_WITHOUT_END: Final = frozenset({"goal", "constraint", "decision", "event"})


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


def attribute_name(value: Any) -> str | None:
    """`subject.property` in one form; None for what is no such name."""
    return mended_attribute(value) if isinstance(value, str) else None


def _moment(value: Any) -> datetime | None:
    """A date, or a year or month from its first day; None for everything else."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _YEAR_OR_MONTH.fullmatch(text):
        text = f"{text}-01-01" if len(text) == 4 else f"{text}-01"
    try:
        given = datetime.fromisoformat(text)
        # Without a zone it is a day, which has the same date for everybody.
        return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _day(value: Any) -> date | None:
    """The day of a time; of a year or month its last."""
    moment = _moment(value)
    if moment is None:
        return None
    match len(value.strip()):
        case 4:
            return date(moment.year, 12, 31)
        case 7:
            return date(moment.year, moment.month, monthrange(moment.year, moment.month)[1])
    return moment.date()


def _end(value: Any) -> datetime | None:
    """The end of the day, month or year that it names, for "until Friday" takes Friday in.

    A midnight is a day; another time of day is a time.
    """
    moment, day = _moment(value), _day(value)
    if moment is None or day is None:
        return None
    text = value.strip()
    if not _YEAR_OR_MONTH.fullmatch(text):
        given = datetime.fromisoformat(text)
        if given.time() != time.min:
            return moment
        day = given.date()
    return moment if day == date.max else datetime.combine(day + timedelta(1), time.min, UTC)


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
    scope: Annotated[Scope | None, BeforeValidator(_scope)] = None
    attribute: Annotated[str | None, BeforeValidator(attribute_name)] = None
    valid_from: Annotated[datetime | None, BeforeValidator(_moment)] = None
    valid_to: Annotated[datetime | None, BeforeValidator(_end)] = None
    due: Annotated[date | None, BeforeValidator(_day)] = None
    # Asked for instead of `due` once, and of a model that was told so still.
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


def read_entry(value: Any, turns: Mapping[str, ConversationTurn], scope: Scope) -> Proposed:
    """The proposal that one entry of an extraction makes.

    Args:
        value: as it stands in the answer.
        turns: the new ones, in order, by the short id in the prompt; evidence under another id
            stays as it is, for whoever checks it.
        scope: of an entry that names none.

    Raises:
        MalformedEntryError: it has no words, or a scope that does not exist.

    """
    entry = _checked(_ExtractionEntry, value)
    said_by = [turns[name] for name in entry.evidence if name in turns] or [*turns.values()][-1:]
    said_at = max(turn.said_at for turn in said_by)
    begins, ends, days = _validity(entry, said_at)
    return Proposed(
        content=entry.content,
        memory_type=entry.type,
        confidence=entry.confidence,
        evidence=_message_ids(entry.evidence, turns),
        scope=entry.scope or scope,
        attribute=entry.attribute,
        valid_from=begins,
        valid_to=ends,
        source_error=entry.source_error,
        retracts=entry.retracts,
        expected_valid_days=days,
        takes_effect=entry.valid_from if begins is None else None,
    )


def read_experience(value: Any, turns: Mapping[str, ConversationTurn], scope: Scope) -> Proposed:
    """The proposal that an experience summary makes; arguments and errors as for an entry."""
    statement = _checked(_StatementEntry, value)
    return Proposed(
        content=statement.content,
        memory_type="experience",
        confidence=statement.confidence,
        evidence=_message_ids(statement.evidence, turns),
        scope=scope,
    )


def _validity(
    entry: _ExtractionEntry, said_at: datetime
) -> tuple[datetime | None, datetime | None, int | None]:
    """From when and until when it holds, and in how many days it is looked at again."""
    begins, ends, due = entry.valid_from, entry.valid_to, entry.due
    if entry.type in _WITHOUT_END:
        due = due or (ends and (ends - timedelta(microseconds=1)).date())
        ends = None
        if begins and (begins > said_at or begins.date() > said_at.date()):
            # It is known now; its day stands in the words.
            due, begins = due or begins.date(), None
    days = None if due is None else (due - said_at.date()).days
    if days is None:
        return begins, ends, entry.expected_valid_days
    # What was over when it was said is told as past, and lasts.
    return begins, ends, min(max(days, 1), LONGEST_VALID_DAYS) if days >= 0 else None


def _message_ids(names: Sequence[str], turns: Mapping[str, ConversationTurn]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(turns[name].message_id if name in turns else name for name in names))


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
