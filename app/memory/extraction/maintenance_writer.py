"""Writing what was decided about old memories, in the transaction that stores a run, and keeping
every bucket within its cap at the end of it.

The caller holds the buckets' locks. What has changed since it was shown is left as it is: it is no
reason to throw away what the run came for.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.config import Policies
from app.memory.extraction.draft_writer import MOST_EVIDENCE, SOURCE, DraftWriter
from app.memory.extraction.drafts import Draft, by_owner
from app.memory.extraction.maintenance import (
    SOURCE_CHANGED,
    VALID_DAYS,
    AgendaSnapshot,
    MaintenancePlan,
    ReviewDecision,
    extended,
)
from app.memory.extraction.repository import ExtractionRepository
from app.memory.extraction.run_state import RunRequest, RunState
from app.memory.memories.eviction_repository import OVER_CAPACITY
from app.memory.memories.gate import GateReason, verdict_row
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.record_repository import MemoryChange, RecordRepository, rewrite, snapshot
from app.memory.memories.repository import MemoryRepository

SAID_AGAIN = "it was said again"


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """The plan as it was carried out, and how many memories became what."""

    plan: MaintenancePlan
    done: Mapping[str, int]

    @property
    def counts(self) -> dict[str, Any]:
        """What the log of runs keeps of it."""
        return self.plan.counted(self.done)


class MaintenanceWriter:
    """Writes what came of one run's agenda. Never begins or ends a transaction."""

    def __init__(
        self, db: AsyncSession, state: RunState, drafts: DraftWriter, now: datetime
    ) -> None:
        self._db = db
        self._request = state.request
        self._extraction_id = state.extraction_id
        self._drafts = drafts
        self._now = now
        access = state.request.principal.access
        self._memories = MemoryRepository(db, access)
        self._locks = ExtractionRepository(db, access)
        self._records = RecordRepository(db, access)

    async def store(self, plan: MaintenancePlan, drafts: Sequence[Draft]) -> MaintenanceResult:
        """Carry the plan out, after the run's own statements.

        Args:
            drafts: the run's; what they repeat need not be reviewed for a while.

        Raises:
            NeighboursMovedError: a memory that is to change was deleted or archived meanwhile.

        """
        if plan.shown is None:
            return MaintenanceResult(plan, {})
        said_again = {str(draft.memory_id) for draft in drafts if draft.event == "NONE"} - {"None"}
        reviews = [review for review in plan.reviews if review.memory_id not in said_again]
        wanted = {memory_id for merge in plan.granted for memory_id in merge.target_ids}
        wanted |= said_again | {review.memory_id for review in reviews}
        rows = await self._locks.lock_derived(wanted) if wanted else {}
        merges = [await self._merge(merge, plan.shown, rows) for merge in plan.merges]
        done = Counter("merged" if merge.event == "MERGE" else "refused" for merge in merges)
        await self._drafts.record_verdicts(merges)
        done += await self._review(reviews, rows)
        for memory_id in sorted(said_again & rows.keys()):
            await self._confirm(rows[memory_id])
        return MaintenanceResult(plan.with_merges(merges), done)

    async def _merge(
        self, merge: Draft, shown: AgendaSnapshot, rows: Mapping[str, Memory]
    ) -> Draft:
        """Make one memory of its sources, if they are still what was shown, all of them."""
        if merge.event != "MERGE":
            return merge
        sources = [rows[memory_id] for memory_id in merge.target_ids if memory_id in rows]
        unchanged = [row for row in sources if row.version == shown.parts[row.memory_id].version]
        if len(unchanged) < len(merge.target_ids):
            return merge.rejected([SOURCE_CHANGED])
        unchanged.sort(key=_said_at)
        told = [message for row in unchanged for message in row.evidence]
        said = [row.said_at for row in unchanged if row.said_at]
        periods = [row.expected_valid_days for row in unchanged]
        whole = replace(
            merge,
            owner=_common_owner(merge.owner, unchanged),
            evidence=tuple(dict.fromkeys(told))[-MOST_EVIDENCE:],
            proposed=replace(
                merge.proposed,
                valid_from=_said_at(unchanged[-1]),
                said_at=max(said, default=None),
                # What lasts in one of them lasts in the whole.
                expected_valid_days=None if None in periods else min(filter(None, periods)),
            ),
            base={"metadata_": _common_metadata(unchanged)},
        )
        [stored] = await self._drafts.store([whole])
        return stored

    async def _review(
        self, reviews: Sequence[ReviewDecision], rows: Mapping[str, Memory]
    ) -> Counter[str]:
        done: Counter[str] = Counter()
        verdicts = []
        for review in reviews:
            row = rows.get(review.memory_id)
            if row is None or (row.version, row.status) != (review.entry.version, "active"):
                done["skipped"] += 1
                continue
            await self._carry_out(review, row)
            verdicts.append(self._verdict(review, row))
            done[review.verdict] += 1
        if verdicts:
            await self._records.decide(verdicts)
        return done

    async def _carry_out(self, review: ReviewDecision, row: Memory) -> None:
        if review.verdict == "REMOVE":
            before = snapshot(row)
            await self._memories.archive(row)
            await self._note(
                MemoryChange("ARCHIVE", before, snapshot(row)), f"stale: {review.reason}"
            )
            return
        values: dict[str, Any] = {"reviewed_at": self._now}
        if review.verdict == "EXTEND":
            values["expected_valid_days"] = extended(row.expected_valid_days)
        reason = f"reviewed ({review.verdict}): {review.reason}"
        await self._note(await rewrite(self._db, row, values, "UPDATE"), reason)

    async def _confirm(self, row: Memory) -> None:
        """Let the time of what was said again begin anew.

        Not each time: what is said every day would be written every day.
        """
        period = timedelta(days=row.expected_valid_days or VALID_DAYS)
        if row.status == "active" and _fresh(row) + period / 3 <= self._now:
            change = await rewrite(self._db, row, {"reviewed_at": self._now}, "UPDATE")
            await self._note(change, SAID_AGAIN)

    def _verdict(self, review: ReviewDecision, row: Memory) -> dict[str, Any]:
        stale, *others = review.reasons
        memory = review.entry.memory
        figures = {
            "days": memory.days,
            "expected_valid_days": memory.expected_valid_days or VALID_DAYS,
        }
        return verdict_row(
            self._request.principal,
            owner=asdict(review.entry.owner),
            content=row.content,
            source=SOURCE,
            accepted=True,
            reasons=[GateReason(stale.code, stale.detail, figures), *others],
            memory_id=row.memory_id,
            event=review.verdict,
            evidence=row.evidence,
            job_id=self._request.job_id,
            extraction_id=self._extraction_id,
        )

    async def _note(self, change: MemoryChange | None, reason: str) -> None:
        if change is not None:
            await self._records.note(
                [change],
                actor=self._request.principal.key_id,
                reason=reason,
                job_id=self._request.job_id,
            )


def _said_at(row: Memory) -> datetime:
    return row.valid_from or row.said_at or row.create_time


def _fresh(row: Memory) -> datetime:
    told = row.said_at if row.expected_valid_days is not None else None
    times = (told or row.update_time, row.valid_from, row.reviewed_at)
    return max(time for time in times if time is not None)


def _common_owner(owner: MemoryOwner, rows: Sequence[Memory]) -> MemoryOwner:
    """The bucket; of a conversation or a project only what all of them hang on."""
    sessions = {row.session_id for row in rows}
    projects = {row.project_id for row in rows}
    return replace(
        owner,
        session_id=sessions.pop() if len(sessions) == 1 else None,
        project_id=projects.pop() if len(projects) == 1 else None,
    )


def _common_metadata(rows: Sequence[Memory]) -> dict[str, Any]:
    """What holds of each of them holds of the whole."""
    first, *others = (row.metadata_ for row in rows)
    return {
        name: value
        for name, value in first.items()
        if all(name in other and other[name] == value for other in others)
    }


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
