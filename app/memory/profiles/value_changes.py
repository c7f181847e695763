"""What a derivation changes in a profile: checked evidence, lengths, what stays and what goes.
Pure.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from app.language.llm.profiler import DerivedValue, Slot
from app.memory.profiles.drafts import ValueChange
from app.memory.profiles.models import ProfileValue
from app.memory.profiles.slots import conformed

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
