"""Keeping every bucket within its cap, at the end of the transaction of a run."""

from collections.abc import Collection, Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.config import Policies
from app.memory.extraction.drafts import Draft, by_owner
from app.memory.extraction.repository import ExtractionRepository
from app.memory.extraction.run_state import RunRequest
from app.memory.memories.eviction_repository import OVER_CAPACITY
from app.memory.memories.gate import GateReason
from app.memory.memories.record_repository import MemoryChange, RecordRepository, snapshot
from app.memory.memories.repository import MemoryRepository


class CapacityWriter:
    """Archives for one run. Never begins or ends a transaction; the caller holds the buckets."""

    def __init__(self, db: AsyncSession, request: RunRequest) -> None:
        access = request.principal.access
        self._request = request
        self._memories = MemoryRepository(db, access)
        self._runs = ExtractionRepository(db, access)
        self._records = RecordRepository(db, access)

    async def trim(
        self,
        drafts: Sequence[Draft],
        *,
        policies: Policies,
        left: int,
        spared: Collection[str],
    ) -> list[Draft]:
        """Archive the weakest extracted memories beyond the cap of each bucket.

        Args:
            drafts: the run's, stored.
            policies: what the agents of the buckets say of their cap.
            left: how many memories the run may still end; in each bucket as many as it adds, in
                any case, so that none stands over its cap.
            spared: ids of those that stand for others, which would be lost with them.

        Returns:
            The drafts; one that is among the weakest was not kept, and says so.

        """
        refused: dict[int, Draft] = {}
        for owner, own in by_owner(drafts).items():
            added = sum(draft.event in {"ADD", "SUPERSEDE"} for draft in own)
            if not added:
                continue
            policy = policies.of(owner.agent_id)
            if not policy.enabled or policy.max_facts == 0:
                continue
            over = await self._runs.lock_weakest(
                owner, keep=policy.max_facts, eviction=policy.eviction, limit=max(left, added)
            )
            left = max(left - len(over), 0)
            fresh = {draft.memory_id: draft for draft in own}
            for row in over:
                draft = fresh.get(row.memory_id)
                if row.memory_id in spared or (draft is not None and draft.target_ids):
                    # What it took the place of has ended: both would be lost.
                    continue
                before = snapshot(row)
                await self._memories.archive(row)
                await self._records.note(
                    [MemoryChange("ARCHIVE", before, snapshot(row))],
                    actor=self._request.principal.key_id,
                    reason=OVER_CAPACITY,
                    job_id=self._request.job_id,
                )
                if draft is not None:
                    refused[draft.index] = draft.rejected([_over(policy.max_facts)])
        return [refused.get(draft.index, draft) for draft in drafts]


def _over(cap: int) -> GateReason:
    return GateReason(OVER_CAPACITY, "Stronger memories fill the bucket.", {"cap": cap})
