"""Changes of a profile's values, and what a derivation changes. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from app.language.llm.profiler import DerivedValue, KnownMemory, Slot
from app.memory.profiles.models import ProfileValue
from app.memory.profiles.slots import MOST_DECISIONS, conformed


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A new value of a slot, or None to remove it."""

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


def origins_of(rows: Iterable[ProfileValue]) -> dict[str, str]:
    """Who wrote each value, by its slot."""
    return {row.slot: row.origin for row in rows}


MOST_EVIDENCE: Final = 50
"""Memories that are kept with one value."""


def changes_of(
    derived: Iterable[DerivedValue], slots: Sequence[Slot], deriver: str
) -> list[ValueChange]:
    """The derived values that may be stored, the first for each slot."""
    by_name = {slot.name: slot for slot in slots}
    changes: dict[str, ValueChange] = {}
    for proposal in derived:
        slot = by_name.get(proposal.slot)
        value: Any = None if slot is None else conformed(slot, proposal.value)
        if value is not None and proposal.memory_ids and proposal.slot not in changes:
            ids = list(dict.fromkeys(proposal.memory_ids))[:MOST_EVIDENCE]
            changes[proposal.slot] = ValueChange(proposal.slot, value, ids, deriver)
    return list(changes.values())


def still_supported(
    changes: Iterable[ValueChange], seen: Mapping[str, int], now: Mapping[str, int]
) -> tuple[list[ValueChange], bool]:
    """The changes whose memories are as they were read, and whether those are all changes."""
    wanted = list(changes)
    kept = [
        change
        for change in wanted
        if all(seen.get(memory_id, -1) == now.get(memory_id) for memory_id in change.memory_ids)
    ]
    return kept, len(kept) == len(wanted)


def removals(
    present: Iterable[ProfileValue],
    derived: Collection[str],
    now: Mapping[str, int],
    *,
    complete: bool,
) -> list[ValueChange]:
    """Changes that remove derived values.

    Args:
        derived: slots that were derived anew.
        now: memories that count, by id.
        complete: whether a slot that was not derived has no value. A model may have passed it
            over, so that its value stays as long as its memories do.

    """
    return [
        ValueChange(row.slot, None)
        for row in present
        if row.origin == "derived"
        and row.slot not in derived
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
        (memory for memory in known if memory.memory_type == "decision"),
        key=lambda memory: (memory.since, memory.memory_id),
    )[-MOST_DECISIONS:]
    return [_decision(memory) for memory in decided], [memory.memory_id for memory in decided]


def _decision(memory: KnownMemory) -> dict[str, Any]:
    said, why = memory.content, None
    found = _BECAUSE.search(said)
    # A reason at the beginning would leave no decision.
    if found is not None and said[: found.start()].strip():
        said, why = said[: found.start()].strip(), found["why"].strip().rstrip(".。")
    return {
        "decision": replace(memory, content=said).cited,
        "reason": why,
        "time": memory.since.isoformat(),
    }
