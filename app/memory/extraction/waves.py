"""Statements of one run beside each other: the later one decides about the earlier one. Pure.

Somebody may say "I live in Munich" and, ten minutes later in the same run, "I moved to
Berlin". So what is about the same thing is decided in waves: a draft waits for the earlier
ones it is near to, and then meets what became of them as its neighbours.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from app.language.llm.reconciler import Neighbour
from app.memory.extraction.drafts import Draft

PREFIX = "draft:"
"""Begins the id of a neighbour that is not stored yet; no stored id does."""

KEEPS = {"ADD", "SUPERSEDE", "MERGE", "UPDATE"}


def name_of(draft: Draft) -> str:
    """Its id as a neighbour of later drafts."""
    return f"{PREFIX}{draft.index}"


class Company:
    """Which drafts of a run are about the same thing, and how near they are to each other."""

    def __init__(self, drafts: Sequence[Draft], floor: float) -> None:
        """Compare open drafts, in order; takes time and space with the square of their number.

        Args:
            floor: the similarity from which two are about the same thing.

        """
        self._drafts = drafts
        self._places = {draft.index: place for place, draft in enumerate(drafts)}
        self._floor = floor
        vectors = np.stack([draft.own.vector for draft in drafts]) if drafts else np.zeros((0, 1))
        self._likeness = vectors @ vectors.T

    def before(self, draft: Draft) -> list[Draft]:
        """Earlier drafts about the same thing, in order."""
        place = self._places[draft.index]
        near = set(np.flatnonzero(self._likeness[place, :place] >= self._floor).tolist())
        attribute = draft.proposed.attribute
        return [
            one
            for number, one in enumerate(self._drafts[:place])
            if one.place == draft.place
            and (number in near or (attribute is not None and attribute == one.proposed.attribute))
        ]

    def likeness(self, one: Draft, other: Draft) -> float:
        """Cosine similarity, 0 to 1."""
        value = self._likeness[self._places[one.index], self._places[other.index]]
        return min(max(float(value), 0.0), 1.0)

    def waves(self) -> list[list[Draft]]:
        """Drafts in the order in which they may be decided about; each wave at once."""
        turn: dict[int, int] = {}
        waves: list[list[Draft]] = []
        for draft in self._drafts:
            number = max((turn[one.index] for one in self.before(draft)), default=-1) + 1
            turn[draft.index] = number
            if number == len(waves):
                waves.append([])
            waves[number].append(draft)
        return waves


def meet(draft: Draft, stored: Sequence[Neighbour], company: Company) -> list[Neighbour]:
    """Whom a draft is compared with, nearest first, after earlier drafts were decided about.

    What they end is gone, and what they rewrite or add is there under `name_of`.
    """
    related = company.before(draft)
    gone = {
        memory_id
        for one in related
        if one.event in {"SUPERSEDE", "MERGE", "DELETE", "UPDATE"}
        for memory_id in one.target_ids
    }
    fresh = [
        _as_neighbour(one, draft, company)
        for one in related
        if one.event in KEEPS and name_of(one) not in gone
    ]
    # Said later than what is stored: it comes first where both are as near.
    beside = [*reversed(fresh), *(one for one in stored if one.memory_id not in gone)]
    return sorted(beside, key=lambda one: -one.similarity)


def _as_neighbour(one: Draft, draft: Draft, company: Company) -> Neighbour:
    proposed = one.proposed
    attribute = proposed.attribute
    # The latest value is the one that a newer value replaces.
    latest = attribute is not None and attribute == draft.proposed.attribute
    return Neighbour(
        memory_id=name_of(one),
        content=one.words.text,
        memory_type=proposed.memory_type,
        confidence=proposed.confidence,
        similarity=1.0 if latest else company.likeness(one, draft),
        protected=proposed.memory_type == "correction",
        attribute=attribute,
        valid_from=proposed.valid_from,
        valid_to=proposed.valid_to,
    )


def resolved(draft: Draft, stored: Mapping[str, str | None]) -> None:
    """Put stored ids in the place of drafts' names, once those are stored.

    What named a draft that came to nothing takes nobody's place any more.
    """
    known = [stored.get(one) if one.startswith(PREFIX) else one for one in draft.target_ids]
    draft.target_ids = tuple(dict.fromkeys(one for one in known if one is not None))
    if draft.memory_id is not None and draft.memory_id.startswith(PREFIX):
        draft.memory_id = stored.get(draft.memory_id)
    if draft.event in {"SUPERSEDE", "UPDATE", "MERGE"} and not draft.target_ids:
        draft.event = "ADD"
    elif draft.event == "DELETE" and not draft.target_ids:
        draft.event = "NONE"
