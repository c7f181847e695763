"""Changes of a profile's values, and what a derivation changes. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple

from app.language.llm.profiler import CurrentValue, DerivedValue, ProfileMemory, Slot, SlotValue
from app.language.text.normal_forms import normalise
from app.language.text.pieces import sentence_ends, sentences
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

    known: ProfileMemory
    version: int
    update_time: datetime


class Evidence(NamedTuple):
    """A memory that values stand on, as it is now."""

    version: int
    valid_to: datetime | None


def lasting(
    evidence: Mapping[str, Evidence], now: datetime, asked_at: datetime | None
) -> frozenset[str]:
    """Ids of memories whose values may stay: what had ended when a model was asked last was
    told as ended.
    """
    return frozenset(
        memory_id
        for memory_id, fact in evidence.items()
        if fact.valid_to is None
        or fact.valid_to > now
        or (asked_at is not None and fact.valid_to <= asked_at)
    )


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


def with_old_evidence(
    changes: Iterable[ValueChange], current: Iterable[CurrentValue], known: Collection[str]
) -> list[ValueChange]:
    """The changes; one that keeps words of the value before keeps what that stands on, too.

    Else those words would stay when their memory is deleted.
    """
    before = {value.slot: value for value in current if not value.fixed}
    return [_with_old_evidence(change, before.get(change.slot), known) for change in changes]


def _with_old_evidence(
    change: ValueChange, before: CurrentValue | None, known: Collection[str]
) -> ValueChange:
    if before is None or not _said(change.value) & _said(before.value):
        return change
    old = [memory_id for memory_id in before.memory_ids if memory_id in known]
    ids = list(dict.fromkeys([*change.memory_ids, *old]))[:MOST_EVIDENCE]
    return replace(change, memory_ids=ids)


def without_repetitions(
    changes: Sequence[ValueChange], slots: Sequence[Slot], current: Sequence[CurrentValue]
) -> list[ValueChange]:
    """The changes without what another value of the profile says in the same words.

    Values that stay come first, then texts, then lists, then sections, each in the order of the
    slots; only lists and sections lose what repeats. A value of which nothing is left is removed.
    """
    kinds = {slot.name: slot.kind for slot in slots}
    named = {change.slot for change in changes}
    said: set[str] = set()
    for present in current:
        if present.slot not in named and kinds.get(present.slot) != "choice":
            said |= _said(present.value)
    order = {slot.name: place for place, slot in enumerate(slots)}
    kept = {}
    for change in sorted(
        changes, key=lambda named: (_LAST.get(kinds[named.slot], 0), order[named.slot])
    ):
        value = change.value
        if kinds[change.slot] in _LAST and value is not None:
            value = _without(value, said)
        if kinds[change.slot] != "choice" and value is not None:
            said |= _said(value)
        kept[change.slot] = (
            replace(change, value=value) if value else ValueChange(change.slot, None)
        )
    return [kept[change.slot] for change in changes]


_LAST: Final = {"list": 1, "section": 2}


def _said(value: Any) -> set[str]:
    """The sentences of a text or the entries of a list, in normal form."""
    if isinstance(value, str):
        return {_form(sentence) for sentence in sentences(value)} - {""}
    return {_form(entry) for entry in value or () if isinstance(entry, str)} - {""}


def _without(value: SlotValue, said: Collection[str]) -> SlotValue:
    """The value without sentences or entries that are said already, or twice in it."""
    seen = set(said)
    kept = []
    places = [0, *sentence_ends(value), len(value)] if isinstance(value, str) else []
    parts = [value[a:b] for a, b in pairwise(places)] if isinstance(value, str) else value
    for part in parts:
        if (form := _form(part)) not in seen:
            kept.append(part)
            seen.add(form)
    return "".join(kept).strip() if isinstance(value, str) else kept


def _form(text: str) -> str:
    return normalise(text).strip(" .,;!?。，；！？")


def still_supported(
    changes: Iterable[ValueChange], seen: Mapping[str, int], now: Mapping[str, Evidence]
) -> tuple[list[ValueChange], bool]:
    """The changes whose memories are as they were read, and whether those are all changes."""
    wanted = list(changes)
    kept = [
        change
        for change in wanted
        if all(
            memory_id in now and seen.get(memory_id) == now[memory_id].version
            for memory_id in change.memory_ids
        )
    ]
    return kept, len(kept) == len(wanted)


def removals(
    present: Iterable[ProfileValue],
    derived: Collection[str],
    now: Collection[str],
    *,
    complete: bool,
) -> list[ValueChange]:
    """Changes that remove derived values.

    Args:
        derived: slots that were derived anew.
        now: ids of memories that values may stay for.
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


def decisions_of(known: Sequence[ProfileMemory]) -> tuple[list[dict[str, Any]], list[str]]:
    """Decisions, oldest first, and the memories they are: the newest of them when they are many.

    The reason is what the memory itself gives as one.
    """
    decided = sorted(
        (memory for memory in known if memory.memory_type == "decision"),
        key=lambda memory: (memory.since, memory.memory_id),
    )[-MOST_DECISIONS:]
    return [_decision(memory) for memory in decided], [memory.memory_id for memory in decided]


def _decision(memory: ProfileMemory) -> dict[str, Any]:
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
