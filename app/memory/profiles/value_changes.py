"""Changes of a profile's values, and what a derivation changes. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from app.language.llm.profiler import DerivedValue, KnownMemory, Slot
from app.memory.profiles.models import ProfileValue
from app.memory.profiles.slots import MOST_DECISIONS, conformed


@dataclass(frozen=True, slots=True)
class ValueChange:
    """What is to stand in a slot: a value, or None for nothing."""

    slot: str
    value: Any
    memory_ids: Sequence[str] = ()
    deriver: str | None = None


@dataclass(frozen=True, slots=True)
class ValueAuthor:
    """Who changes a profile, and by which job; a job leaves a user's values alone."""

    origin: str
    actor: str | None
    job_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A memory as a profiler sees it, its version, and when it last changed."""

    known: KnownMemory
    version: int
    update_time: datetime


MOST_EVIDENCE: Final = 50
"""Memories that are kept with one value."""


def changes_of(
    derived: Iterable[DerivedValue], slots: Sequence[Slot], deriver: str
) -> list[ValueChange]:
    """What may be stored of what was derived, once for each slot."""
    by_name = {slot.name: slot for slot in slots}
    changes: dict[str, ValueChange] = {}
    for one in derived:
        slot = by_name.get(one.slot)
        value: Any = None if slot is None else conformed(slot, one.value)
        if value is not None and one.memory_ids and one.slot not in changes:
            ids = list(dict.fromkeys(one.memory_ids))[:MOST_EVIDENCE]
            changes[one.slot] = ValueChange(one.slot, value, ids, deriver)
    return list(changes.values())


def standing(
    changes: Iterable[ValueChange], seen: Mapping[str, int], now: Mapping[str, int]
) -> tuple[list[ValueChange], bool]:
    """The changes whose memories are as they were read, and whether that is all of them."""
    told = list(changes)
    kept = [
        one
        for one in told
        if all(seen.get(memory_id, -1) == now.get(memory_id) for memory_id in one.memory_ids)
    ]
    return kept, len(kept) == len(told)


def removals(
    present: Iterable[ProfileValue],
    filled: Collection[str],
    now: Mapping[str, int],
    *,
    complete: bool,
) -> list[ValueChange]:
    """Derived values that go.

    Args:
        filled: slots that were derived anew.
        now: memories that count, by id.
        complete: whether a slot that was not derived has nothing to tell; a model may just
            have passed it over, so that its value stays as long as its memories do.

    """
    return [
        ValueChange(row.slot, None)
        for row in present
        if row.origin == "derived"
        and row.slot not in filled
        and (complete or not all(memory_id in now for memory_id in row.memory_ids))
    ]


_BECAUSE: Final = re.compile(
    r"[,，;；]?\s*(?:\b(?:because|since|as it|as they|so that)\b|因为|由于|以便|为了)"
    r"\s*(?P<why>.+)",
    re.IGNORECASE | re.DOTALL,
)


def decisions_of(known: Sequence[KnownMemory]) -> tuple[list[dict[str, Any]], list[str]]:
    """Decisions, oldest first, and the memories they are: the newest of them when they are many.

    The reason is what the memory itself gives as one.
    """
    decided = sorted(
        (one for one in known if one.memory_type == "decision"),
        key=lambda one: (one.since, one.memory_id),
    )[-MOST_DECISIONS:]
    return [_decision(one) for one in decided], [one.memory_id for one in decided]


def _decision(one: KnownMemory) -> dict[str, Any]:
    found = _BECAUSE.search(one.content)
    # What stands first would leave no decision.
    if found is None or not one.content[: found.start()].strip():
        return {"decision": one.content, "reason": None, "time": one.since.isoformat()}
    return {
        "decision": one.content[: found.start()].strip(),
        "reason": found["why"].strip().rstrip(".。"),
        "time": one.since.isoformat(),
    }
