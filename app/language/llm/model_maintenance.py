"""What a model is shown besides new statements, and what it says of that, made strict.

Old memories go by names of their own, so that what it decides of them and of what is near to
a statement cannot be mixed up. An inconsistent entry changes nothing; limits
and protection are applied by the caller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError

from app.language.llm.model_entries import confidence_of, remark
from app.language.llm.prompt_lines import cut, day, line
from app.language.llm.reconciler import Agenda, Join, Review, ReviewVerdict

_LONGEST_REASON: Final = 300

# Enough to tell whether it still holds. What is to become one is shown whole.
_LONGEST_SHOWN: Final = 500

_TOKENS_PER_REVIEW: Final = 60
_TOKENS_FOR_MERGES: Final = 1_000

# More than could be granted; a model that lists more is repeating itself.
_MOST_ENTRIES: Final = 50


@dataclass(frozen=True, slots=True)
class MaintenanceSheet:
    """The lines for an agenda, and which memory each short name means."""

    lines: Sequence[str]
    due: Mapping[str, str]
    parts: Mapping[str, str]

    @classmethod
    def of(cls, agenda: Agenda) -> "MaintenanceSheet":
        """The lines for an agenda; none for an empty one."""
        due = {f"d{number}": memory for number, memory in enumerate(agenda.due, start=1)}
        parts = {f"p{number}": memory for number, memory in enumerate(agenda.parts, start=1)}
        lines = []
        if due and agenda.today is not None:
            lines.append(line(kind="today", date=agenda.today.isoformat()))
        lines += [
            line(
                kind="due",
                id=name,
                text=cut(memory.content, _LONGEST_SHOWN),
                type=memory.memory_type,
                since=day(memory.since),
                days=memory.days,
                expected=memory.expected_valid_days,
            )
            for name, memory in due.items()
        ]
        lines += [
            line(
                kind="part",
                id=name,
                text=memory.content,
                type=memory.memory_type,
                since=day(memory.since),
                confidence=round(memory.confidence, 2),
            )
            for name, memory in parts.items()
        ]
        return cls(
            lines,
            {name: memory.memory_id for name, memory in due.items()},
            {name: memory.memory_id for name, memory in parts.items()},
        )

    @property
    def tokens(self) -> int:
        """How long an answer to it may be."""
        return _TOKENS_PER_REVIEW * len(self.due) + (_TOKENS_FOR_MERGES if self.parts else 0)

    def reviews(self, answer: Mapping[str, Any]) -> tuple[Review, ...]:
        """The first verdict on each memory that was shown; what names no such memory is none."""
        found: dict[str, Review] = {}
        for entry in _entries(_Review, answer.get("reviews")):
            memory_id = self.due.get(entry.memory.lower())
            if memory_id is not None:
                reason = (entry.reason or "")[:_LONGEST_REASON]
                found.setdefault(memory_id, Review(memory_id, entry.verdict, reason))
        return tuple(found.values())

    def joins(self, answer: Mapping[str, Any]) -> tuple[Join, ...]:
        """What is to become one, in order; without its parts when one was not shown."""
        if not self.parts:
            return ()
        found = []
        for entry in _entries(_Merge, answer.get("merges")):
            named = dict.fromkeys(self.parts.get(name.lower(), "") for name in entry.memories)
            found.append(
                Join(
                    () if "" in named else tuple(named),
                    entry.content,
                    entry.confidence,
                    (entry.reason or "")[:_LONGEST_REASON],
                )
            )
        return tuple(found)


def _word(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _verdict(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _text(value: Any) -> str:
    """A text that is to be stored.

    Raises:
        ValueError: there is none.

    """
    text = remark(value)
    if text is None:
        raise ValueError("no text")
    return text


def _sure(value: Any) -> float | None:
    return None if value is None else confidence_of(value)


class _Review(BaseModel):
    memory: Annotated[str, BeforeValidator(_word)]
    verdict: Annotated[ReviewVerdict, BeforeValidator(_verdict)]
    reason: Annotated[str | None, BeforeValidator(remark)] = None


class _Merge(BaseModel):
    memories: tuple[Annotated[str, BeforeValidator(_word)], ...]
    content: Annotated[str, BeforeValidator(_text)]
    confidence: Annotated[float | None, BeforeValidator(_sure)] = None
    reason: Annotated[str | None, BeforeValidator(remark)] = None


_E = TypeVar("_E", bound=BaseModel)


def _entries(form: type[_E], values: Any) -> list[_E]:
    """The consistent entries of a list; none when there is no list."""
    found = []
    for value in values[:_MOST_ENTRIES] if isinstance(values, list) else []:
        try:
            found.append(form.model_validate(value))
        except ValidationError:
            continue
    return found
