"""Statements of one run that are about the same thing, and what becomes of the earlier ones. Pure.

Somebody may say "I live in Munich" and, ten minutes later in the same run, "I moved to Berlin".
So a draft has earlier ones among its neighbours, under an id that is theirs while they are not
stored: undecided where all are asked about at once, and as what they have become where one is
decided about after the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from app.language.llm.reconciler import Neighbour, ReconcileDecision
from app.memory.extraction.drafts import PENDING, STORED, Draft

_REWORDS = {"UPDATE", "MERGE"}
_CHANGES = {"SUPERSEDE", "MERGE", "DELETE", "UPDATE"}


class RelatedDrafts:
    """Which drafts of a run are about the same thing, and how near they are to each other."""

    def __init__(self, drafts: Sequence[Draft], floor: float) -> None:
        """Compare open drafts, in order; takes time and space with the square of their number.

        Args:
            floor: the similarity from which two are about the same thing.

        """
        self._drafts = drafts
        self._rows = {draft.index: row for row, draft in enumerate(drafts)}
        self._floor = floor
        vectors = np.stack([draft.own.vector for draft in drafts]) if drafts else np.zeros((0, 1))
        self._similarity = vectors @ vectors.T

    def before(self, draft: Draft) -> list[Draft]:
        """Earlier drafts about the same thing, in order."""
        row = self._rows[draft.index]
        near = set(np.flatnonzero(self._similarity[row, :row] >= self._floor).tolist())
        attribute = draft.proposed.attribute
        return [
            other
            for number, other in enumerate(self._drafts[:row])
            if other.owner == draft.owner
            and (
                number in near or (attribute is not None and attribute == other.proposed.attribute)
            )
        ]

    def undecided(self, draft: Draft, stored: Sequence[Neighbour]) -> tuple[Neighbour, ...]:
        """What a draft is compared with where nothing of the run is decided: earlier ones with its
        attribute, the latest first, what is stored in the order given, and other earlier ones.
        """
        fresh = [self._as_neighbour(earlier, draft) for earlier in reversed(self.before(draft))]
        attribute = draft.proposed.attribute
        same = [near for near in fresh if attribute is not None and near.attribute == attribute]
        return (*same, *stored, *(near for near in fresh if near not in same))

    def decided(
        self, draft: Draft, stored: Sequence[Neighbour], earlier: Mapping[int, Draft]
    ) -> tuple[Neighbour, ...]:
        """What a draft is compared with, nearest first, after earlier ones were decided about.

        What they end is gone, and what they rewrite or add is there under their pending id.
        """
        related = [earlier[other.index] for other in self.before(draft)]
        return self._after(draft, stored, related)

    def all_decided(
        self, draft: Draft, stored: Sequence[Neighbour], earlier: Mapping[int, Draft]
    ) -> tuple[Neighbour, ...]:
        """The same with every earlier draft of its bucket, whatever it is about."""
        return self._after(
            draft, stored, [other for other in earlier.values() if other.owner == draft.owner]
        )

    def _after(
        self, draft: Draft, stored: Sequence[Neighbour], related: Sequence[Draft]
    ) -> tuple[Neighbour, ...]:
        gone = {
            memory_id
            for earlier in related
            if earlier.event in _CHANGES
            for memory_id in earlier.target_ids
        }
        fresh = [
            self._as_neighbour(earlier, draft)
            for earlier in related
            if earlier.event in STORED and earlier.pending_id not in gone
        ]
        return _nearest_first(fresh, [near for near in stored if near.memory_id not in gone])

    def _as_neighbour(self, earlier: Draft, draft: Draft) -> Neighbour:
        proposed = earlier.proposed
        attribute = proposed.attribute
        # The latest value is the one that a newer value replaces.
        latest = attribute is not None and attribute == draft.proposed.attribute
        row, column = self._rows[earlier.index], self._rows[draft.index]
        similarity = min(max(float(self._similarity[row, column]), 0.0), 1.0)
        return Neighbour(
            memory_id=earlier.pending_id,
            content=earlier.content.text,
            memory_type=proposed.memory_type,
            confidence=proposed.confidence,
            similarity=1.0 if latest else similarity,
            protected=proposed.memory_type == "correction",
            attribute=attribute,
            valid_from=proposed.valid_from,
            valid_to=proposed.valid_to,
            said_at=proposed.said_at,
            speaker=earlier.quotes,
            expected_valid_days=proposed.expected_valid_days,
        )


def _nearest_first(
    fresh: Sequence[Neighbour], stored: Sequence[Neighbour]
) -> tuple[Neighbour, ...]:
    # Said later than what is stored: it comes first where both are as near.
    return tuple(sorted([*reversed(fresh), *stored], key=lambda near: -near.similarity))


def as_it_is_now(decision: ReconcileDecision, earlier: Mapping[int, Draft]) -> ReconcileDecision:
    """A decision that was made before the earlier ones were carried out, about what is there now.

    What an earlier statement has reworded is meant by its former id, too; what repeats a memory
    stands for that. New words for a text that is another one now are not used, and what says the
    same as something that is gone is new. What else a memory says and still holds goes with it:
    memories that became one may bring several remainders under its id.

    Args:
        earlier: drafts before this one, decided, in order.

    """
    ids = tuple(_now(memory_id, earlier) for memory_id in decision.memory_ids)
    if ids == decision.memory_ids:
        return decision
    left = tuple(dict.fromkeys(each for each in ids if each is not None))
    rewords = decision.event in _REWORDS
    if rewords or (not left and decision.event != "DELETE"):
        reason = "An earlier statement changed what this was compared with."
        return ReconcileDecision("ADD", reason=reason)
    now = {rest.memory_id: _now(rest.memory_id, earlier) for rest in decision.remainders}
    remainders = tuple(
        replace(rest, memory_id=there)
        for rest in decision.remainders
        if (there := now[rest.memory_id]) is not None
    )
    return replace(decision, memory_ids=left, remainders=remainders)


def _now(memory_id: str, earlier: Mapping[int, Draft]) -> str | None:
    """Under which id there is now what was meant by one; None where it has ended."""
    for draft in earlier.values():
        if memory_id == draft.pending_id and draft.event == "NONE":
            # With what it repeats; nothing is there where a retraction found nothing.
            memory_id = draft.target_ids[0] if draft.target_ids else ""
        elif memory_id in draft.target_ids and draft.event in _CHANGES:
            if draft.event not in _REWORDS:
                return None
            memory_id = draft.pending_id
    return memory_id or None


def with_stored_ids(draft: Draft, stored: Mapping[str, str | None]) -> Draft:
    """The draft with stored ids in the place of pending ones, once those are stored.

    What named a draft that came to nothing takes nobody's place any more.
    """

    def known(ids: Sequence[str]) -> tuple[str, ...]:
        found = [stored.get(each) if each.startswith(PENDING) else each for each in ids]
        return tuple(dict.fromkeys(each for each in found if each is not None))

    targets = known(draft.target_ids)
    memory_id = draft.memory_id
    if memory_id is not None and memory_id.startswith(PENDING):
        memory_id = stored.get(memory_id)
    event = draft.event
    if event in {"SUPERSEDE", "UPDATE", "MERGE"} and not targets:
        event = "ADD"
    elif event == "DELETE" and not targets:
        event = "NONE"
    return replace(
        draft,
        target_ids=targets,
        conflicts=known(draft.conflicts),
        remainders=tuple(
            replace(rest, memory_id=there)
            for rest in draft.remainders
            for there in known([rest.memory_id])
        ),
        memory_id=memory_id,
        event=event,
    )
