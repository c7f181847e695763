"""What becomes of a statement that is known already: by its text, or by its meaning.

The same text is nothing new, whatever the request says. Of similar texts the vectors nominate, a
guard decides, and the request says what follows: refuse the statement, return the memory that is
there, replace it, or allow both.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from app.language.text.distinctions import Wording
from app.language.text.offload import read_text
from app.memory.memories.candidates import (
    NEIGHBOURS,
    SaveCandidate,
    among_themselves,
    nearest_duplicates,
)
from app.memory.memories.models import Memory
from app.memory.memories.record_repository import MemoryChange, snapshot
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.save_repository import Stored
from app.memory.memories.schemas import OnDuplicate
from app.platform.database.base import new_id

Bucket = Mapping[str, Any]
"""The columns of an owner: memories of other users and agents are never compared."""

EXPIRED = "expired"
"""Why the history says that a memory was archived to make room for its text."""


class DuplicateCheck:
    """The check of one request. Never begins or ends a transaction."""

    def __init__(
        self,
        memories: MemoryRepository,
        on_duplicate: OnDuplicate,
        threshold: Callable[[str], float],
    ) -> None:
        """`threshold` is the similarity that nominates."""
        self._memories = memories
        self._on_duplicate = on_duplicate
        self._threshold = threshold
        self.archived: list[MemoryChange] = []
        """What `decide` archived on the way: for the history, with the reason EXPIRED."""

    @cached_property
    def _read(self) -> Callable[[str], Wording]:
        """Remembers how statements are worded; most requests compare none."""
        return cache(Wording)

    def floors(self, batch: Sequence[SaveCandidate]) -> list[float]:
        """The similarity that nominates for each candidate; none where nothing is compared."""
        if self._on_duplicate == "allow":
            return []
        return [self._threshold(candidate.content) for candidate in batch]

    async def decide(
        self, bucket: Bucket, batch: Sequence[SaveCandidate], stored: Stored
    ) -> dict[str, Memory]:
        """Give every open candidate its event; new ones get the id they will have.

        Call it under the bucket's lock. A memory that no longer counts but keeps its text from
        being saved is archived.

        Args:
            stored: what `SaveRepository.read` found for the open ones, by their `floors`.

        Returns:
            The stored memories that have a candidate's statement already, by id. A candidate
            whose statement a hidden memory has is known without an id.

        """
        return await self._decide(bucket, batch, stored, archiving=True)

    async def preview(
        self, bucket: Bucket, batch: Sequence[SaveCandidate], stored: Stored
    ) -> dict[str, Memory]:
        """As `decide`, but nothing is changed, and hidden memories are not compared."""
        return await self._decide(bucket, batch, stored, archiving=False)

    async def _decide(
        self, bucket: Bucket, batch: Sequence[SaveCandidate], stored: Stored, *, archiving: bool
    ) -> dict[str, Memory]:
        undecided = [candidate for candidate in batch if candidate.event is None]
        if not undecided:
            return {}
        known: dict[str, Memory] = {}
        if stored.text_is_known:
            known = await self._same_text(bucket, undecided, archiving=archiving)
        fresh = [candidate for candidate in undecided if candidate.event is None]
        for candidate in fresh:
            candidate.memory_id = new_id("mem")
        if self._on_duplicate != "allow":
            known |= await self._same_meaning(fresh, stored)
            await self._repeated_in_request(
                [candidate for candidate in fresh if candidate.event is None]
            )
        for candidate in fresh:
            candidate.event = candidate.event or "ADD"
        _point_at_first(batch)
        return known

    async def _same_text(
        self, bucket: Bucket, undecided: Sequence[SaveCandidate], *, archiving: bool
    ) -> dict[str, Memory]:
        known = {}
        same = await self._memories.same_hash(
            bucket, [candidate.content_hash for candidate in undecided]
        )
        for candidate in undecided:
            twin = same.get(candidate.content_hash)
            if twin is None:
                continue
            if twin.past:
                if archiving:
                    self.archived += await archive_expired(self._memories, twin.row)
            elif twin.shown:
                candidate.is_known(twin.row.memory_id, 1.0)
                known[twin.row.memory_id] = twin.row
            elif archiving:
                # It keeps the text from being saved, and the caller may not know its id.
                candidate.is_known(None, 1.0)
        return known

    async def _same_meaning(
        self, fresh: Sequence[SaveCandidate], stored: Stored
    ) -> dict[str, Memory]:
        compared = [candidate for candidate in fresh if candidate.index in stored.near]
        near = [stored.near[candidate.index] for candidate in compared]
        read = sum(len(text) for neighbours in near for _, text, _ in neighbours)
        read += NEIGHBOURS * sum(len(candidate.content) for candidate in compared)
        twins = await read_text(
            read, nearest_duplicates, compared, near, self._threshold, self._read
        )
        replaced: set[str] = set()
        met: set[str] = set()
        for candidate, same in zip(compared, twins, strict=True):
            if same is None:
                continue
            memory_id, _, similarity = same
            if self._on_duplicate == "return":
                candidate.is_known(memory_id, similarity)
                met.add(memory_id)
            elif self._on_duplicate == "reject":
                candidate.reject_as_duplicate(memory_id, similarity)
            elif memory_id not in replaced:
                # A memory has one successor; a second statement of the request is saved beside it.
                candidate.replaces(memory_id, similarity)
                replaced.add(memory_id)
        return await self._memories.get_all(met)

    async def _repeated_in_request(self, fresh: Sequence[SaveCandidate]) -> None:
        """An earlier statement of the request counts like a stored one."""
        if self._on_duplicate == "supersede":
            return
        read = (
            NEIGHBOURS * sum(len(candidate.content) for candidate in fresh) if len(fresh) > 1 else 0
        )
        found = await read_text(read, among_themselves, fresh, self._threshold, self._read)
        for candidate in fresh:
            if candidate.index not in found:
                continue
            memory_id, _, similarity = found[candidate.index]
            if self._on_duplicate == "return":
                candidate.is_known(memory_id, similarity)
            else:
                candidate.reject_as_duplicate(memory_id, similarity)


async def archive_expired(memories: MemoryRepository, row: Memory) -> list[MemoryChange]:
    """Archive an expired memory, so that its text can be saved again; the change to record.

    Empty when another transaction ended the memory meanwhile, which frees the text as well.
    """
    if not await memories.lock_active(row):
        return []
    before = snapshot(row)
    await memories.archive(row)
    return [MemoryChange("ARCHIVE", before, snapshot(row))]


def _point_at_first(batch: Sequence[SaveCandidate]) -> None:
    """The same text twice in a request shares the fate of the first."""
    first: dict[bytes, SaveCandidate] = {}
    for candidate in batch:
        if not candidate.content_hash:
            continue
        before = first.setdefault(candidate.content_hash, candidate)
        if before is not candidate:
            candidate.shares_fate_of(before)
