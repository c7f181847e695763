"""What becomes of a statement that is known already: by its text, or by its meaning (B-01).

The same text is nothing new, whatever was asked for. Nearness nominates, a guard decides,
and the request says what follows: refuse it, return what is there, replace it, or allow it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.database.ids import new_id
from app.memories.candidates import Candidate, among_themselves, nearest_duplicate
from app.memories.models import Memory
from app.memories.repository import MemoryRepository
from app.memories.schemas import OnDuplicate

NEIGHBOURS = 5
"""How many near memories the guard looks at before a statement counts as new."""

Bucket = Mapping[str, Any]
"""The columns of a place: other users' and other agents' memories are never met."""


class DuplicateCheck:
    """The check of one request. Never begins or ends a transaction."""

    def __init__(
        self,
        memories: MemoryRepository,
        on_duplicate: OnDuplicate,
        model: str,
        threshold: Callable[[str], float],
    ) -> None:
        """Prepare for vectors of `model`; `threshold` is the similarity that nominates."""
        self._memories = memories
        self._on_duplicate = on_duplicate
        self._model = model
        self._threshold = threshold

    async def decide(self, bucket: Bucket, batch: Sequence[Candidate]) -> dict[str, Memory]:
        """Give every open candidate its event; new ones get the id they will have.

        Call it under the bucket's lock. A memory that no longer counts but bars its text is
        archived on the way.

        Returns:
            The stored memories that stand for a candidate, by id.

        """
        return await self._decide(bucket, batch, make_room=True)

    async def look(self, bucket: Bucket, batch: Sequence[Candidate]) -> dict[str, Memory]:
        """The same, and nothing is changed."""
        return await self._decide(bucket, batch, make_room=False)

    async def _decide(
        self, bucket: Bucket, batch: Sequence[Candidate], *, make_room: bool
    ) -> dict[str, Memory]:
        undecided = [one for one in batch if one.event is None]
        if not undecided:
            return {}
        known = await self._same_text(bucket, undecided, make_room=make_room)
        fresh = [one for one in undecided if one.event is None]
        for one in fresh:
            one.memory_id = new_id("mem")
        if self._on_duplicate != "allow":
            known |= await self._same_meaning(bucket, fresh)
            self._repeated_in_request([one for one in fresh if one.event is None])
        for one in fresh:
            one.event = one.event or "ADD"
        _point_at_first(batch)
        return known

    async def _same_text(
        self, bucket: Bucket, undecided: Sequence[Candidate], *, make_room: bool
    ) -> dict[str, Memory]:
        known = {}
        same = await self._memories.same_hash(bucket, [one.content_hash for one in undecided])
        for one in undecided:
            row = same.get(one.content_hash)
            if row is None or (make_room and await self._memories.archive_if_past(row)):
                continue
            one.is_known(row.memory_id, 1.0)
            known[row.memory_id] = row
        return known

    async def _same_meaning(self, bucket: Bucket, fresh: Sequence[Candidate]) -> dict[str, Memory]:
        near = await self._memories.neighbours(
            bucket, [one.vector for one in fresh], self._model, limit=NEIGHBOURS
        )
        met: dict[str, Memory] = {}
        replaced: set[str] = set()
        for one, neighbours in zip(fresh, near, strict=True):
            same = nearest_duplicate(one, neighbours, self._threshold)
            if same is None:
                continue
            memory_id, _, similarity = same
            if self._on_duplicate == "return":
                one.is_known(memory_id, similarity)
                met[memory_id] = await self._memories.get(memory_id)
            elif self._on_duplicate == "reject":
                one.reject_as_duplicate(memory_id, similarity)
            elif memory_id not in replaced:
                # A memory has one successor; a second one of the request stands beside it.
                one.replaces(memory_id, similarity)
                replaced.add(memory_id)
        return met

    def _repeated_in_request(self, fresh: Sequence[Candidate]) -> None:
        """An earlier statement of the request counts like a stored one."""
        if self._on_duplicate == "supersede":
            return
        found = among_themselves(fresh, self._threshold)
        for one in fresh:
            if one.index not in found:
                continue
            memory_id, _, similarity = found[one.index]
            if self._on_duplicate == "return":
                one.is_known(memory_id, similarity)
            else:
                one.reject_as_duplicate(memory_id, similarity)


def _point_at_first(batch: Sequence[Candidate]) -> None:
    """The same text twice in a request shares the fate of the first."""
    first: dict[bytes, Candidate] = {}
    for one in batch:
        if not one.content_hash:
            continue
        before = first.setdefault(one.content_hash, one)
        if before is not one:
            one.shares_fate_of(before)
