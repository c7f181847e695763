"""The steps of the job `forget`, in small transactions that may be repeated.

Memories are archived first and deleted in a later run; each change is recorded in the history with
a code for its reason. Two runs at once do not disturb each other: each skips the rows that the
other has locked.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.repository import MessageRepository
from app.conversation.messages.window import ToolMessage, closure
from app.conversation.messages.window_repository import WindowRepository
from app.conversation.sessions.policy import WindowPolicy
from app.conversation.sessions.policy import resolve as resolve_window
from app.conversation.sessions.repository import SessionRepository
from app.conversation.sessions.schemas import SessionNotFoundError
from app.governance.forgetting.repository import (
    REASONS,
    Due,
    ForgettingRepository,
    RetentionRepository,
    of_group,
    still_active,
)
from app.governance.forgetting.schemas import Candidate, Shadow, Step, StepRead
from app.identity.agents.config import Eviction, ForgettingPolicy, Group, Policies
from app.identity.agents.repository import AgentRepository, PolicyRepository
from app.identity.tenants.access import Access
from app.memory.memories.eviction_repository import Compared, Crowded, EvictionRepository
from app.memory.memories.maintenance_repository import MaintenanceRepository
from app.memory.memories.models import Memory
from app.memory.memories.record_repository import MemoryChange, RecordRepository
from app.memory.memories.repository import MemoryRepository
from app.platform.database.engine import Database
from app.platform.observability.metrics import MEMORY_EVENTS
from app.prompting.checkpoints.checkpoint_store import SessionCheckpointStore
from app.prompting.checkpoints.saver_thread_repository import SaverThreadRepository, kept

BATCH: Final = 500
SAMPLE: Final = 20
MOST_SHOWN: Final = 200
"""Ids of a comparison that are shown."""

MOST_COMPARED: Final = 50_000
"""Memories that a comparison ranks."""

Allowed = Callable[[AsyncSession], Awaitable[None]]
"""Called at the beginning of each transaction; raises when the work is to stop."""


@dataclass(frozen=True, slots=True)
class ForgettingRules:
    """Rules of the deployment.

    Args:
        policy: for agents without a policy of their own.
        purge_age: how long archived memories are kept.
        windows: how windows are counted again after messages were deleted.

    """

    policy: ForgettingPolicy
    purge_age: timedelta
    windows: WindowPolicy


async def _always_allowed(_db: AsyncSession) -> None:
    """The work is never stopped."""


class Forgetting:
    """Forgets one tenant's rows at a time, while the service goes on answering."""

    def __init__(
        self,
        database: Database,
        rules: ForgettingRules,
        *,
        batch: int = BATCH,
        most_compared: int = MOST_COMPARED,
    ) -> None:
        """Forget in `database`, at most `batch` rows in one transaction; evictions are compared
        for buckets that hold at most `most_compared` memories together.
        """
        self._database = database
        self._rules = rules
        self._batch = batch
        self._most_compared = most_compared

    async def policies(self, tenant_id: str) -> Policies:
        """The policies in force for a tenant and its agents."""
        async with self._database.begin(tenant_id) as db:
            return await PolicyRepository(db, tenant_id).get(self._rules.policy)

    # --- only look

    async def due(
        self, tenant_id: str, steps: Iterable[Step], agent_id: str | None = None
    ) -> list[StepRead]:
        """What `run` would do, step by step, with the first ids; changes nothing."""
        groups = (await self.policies(tenant_id)).groups(agent_id)
        found = []
        for step in steps:
            count, ids = 0, list[str]()
            for group in groups:
                due = await self._due(tenant_id, step, group)
                count += due.rows
                ids += due.ids[: SAMPLE - len(ids)]
            reason = REASONS.get(step, "retention")
            sample = [Candidate(id=row_id, reason=reason) for row_id in ids]
            found.append(StepRead(step=step, due=count, sample=sample))
        return found

    async def _due(self, tenant_id: str, step: Step, group: Group) -> Due:
        if step == "saver_checkpoints":
            return await self._steps_due(tenant_id, group)
        if step == "over_capacity" and not _bounded(group.policy):
            return Due(0, [])
        async with self._database.begin(tenant_id) as db:
            if step == "over_capacity":
                policy, among = group.policy, of_group(Memory.agent_id, group)
                return Due(
                    *await EvictionRepository(db, Access(tenant_id)).over(
                        policy.max_facts, policy.eviction, among, sample=SAMPLE
                    )
                )
            if step in REASONS:
                memories = ForgettingRepository(db, tenant_id, self._rules.purge_age)
                return await memories.due(step, group, SAMPLE)
            retention = RetentionRepository(db, tenant_id)
            if step == "messages":
                return await retention.messages_due(group, SAMPLE)
            return await retention.rows_due(step, group, SAMPLE)

    async def compare(
        self, tenant_id: str, eviction: Eviction, agent_id: str | None = None
    ) -> Shadow:
        """What another eviction would archive beyond the caps; changes nothing.

        One statement per policy. Of many crowded buckets only the first are compared; then the
        result is `truncated`.
        """
        groups = (await self.policies(tenant_id)).groups(agent_id)
        done = list[Compared]()
        rows = self._most_compared
        async with self._database.begin(tenant_id) as db:
            memories = EvictionRepository(db, Access(tenant_id))
            for group in groups:
                policy = group.policy
                if not _bounded(policy):
                    continue
                found = await memories.compare(
                    policy.max_facts,
                    (policy.eviction, eviction),
                    of_group(Memory.agent_id, group),
                    rows=rows,
                    shown=MOST_SHOWN,
                )
                rows -= found.read
                done.append(found)
        acted = [memory_id for found in done for memory_id in found.first]
        shadow = [memory_id for found in done for memory_id in found.second]
        return Shadow(
            eviction=eviction,
            buckets=sum(found.buckets for found in done),
            both=sum(found.both for found in done),
            only_policy=acted[:MOST_SHOWN],
            only_shadow=shadow[:MOST_SHOWN],
            truncated=any(found.left_out for found in done)
            or max(len(acted), len(shadow)) > MOST_SHOWN,
        )

    async def _crowded(self, tenant_id: str, group: Group) -> Sequence[Crowded]:
        policy = group.policy
        if not _bounded(policy):
            return []
        async with self._database.begin(tenant_id) as db:
            return await EvictionRepository(db, Access(tenant_id)).crowded(
                policy.max_facts, of_group(Memory.agent_id, group)
            )

    async def _steps_due(self, tenant_id: str, group: Group) -> Due:
        count, ids = 0, list[str]()
        async for session_id in self._quiet(tenant_id, group):
            async with self._database.begin(tenant_id) as db:
                steps = await SaverThreadRepository(db, tenant_id, session_id).steps()
            count += len({(step.namespace, step.checkpoint_id) for step in steps} - kept(steps))
            ids.append(session_id)
        return Due(count, ids[:SAMPLE])

    async def _quiet(self, tenant_id: str, group: Group) -> AsyncIterator[str]:
        after = ""
        while True:
            async with self._database.begin(tenant_id) as db:
                found = await RetentionRepository(db, tenant_id).quiet_threads(
                    group, after=after, limit=self._batch
                )
            for session_id in found:
                yield session_id
            if len(found) < self._batch:
                return
            after = found[-1]

    # --- act

    async def run(
        self,
        tenant_id: str,
        steps: Iterable[Step],
        agent_id: str | None = None,
        *,
        job_id: str | None = None,
        allowed: Allowed = _always_allowed,
    ) -> dict[str, int]:
        """Forget what is due; how many rows, by step.

        Safe to repeat and to run twice at once: each row is forgotten once.

        Args:
            tenant_id: whose.
            steps: which, in order.
            agent_id: only rows of this agent.
            job_id: the job that does it, for the history.
            allowed: called in every transaction; raises to stop.

        """
        groups = (await self.policies(tenant_id)).groups(agent_id)
        work = _Work(tenant_id, job_id, allowed)
        counts: dict[str, int] = {}
        for step in steps:
            counts[step] = sum([await self._take(work, step, group) for group in groups])
        return counts

    async def _take(self, work: "_Work", step: Step, group: Group) -> int:
        match step:
            case "over_capacity":
                return await self._trim(work, group)
            case "purged":
                return await _all(partial(self._purge, work, group))
            case "messages":
                return await self._delete_old_messages(work, group)
            case "archived_checkpoints" | "snapshots":
                return await _all(partial(self._delete_rows, work, step, group))
            case "saver_checkpoints":
                return await self._prune_threads(work, group)
        return await _all(partial(self._archive, work, step, group))

    async def _archive(self, work: "_Work", step: Step, group: Group) -> int:
        async with self._database.begin(work.tenant_id) as db:
            await work.allowed(db)
            memories = ForgettingRepository(db, work.tenant_id, self._rules.purge_age)
            changes = await MaintenanceRepository(db, work.tenant_id).archive(
                memories.chosen(step, group), Memory.memory_id, self._batch
            )
            await work.note(db, changes, REASONS[step])
        MEMORY_EVENTS.labels("ARCHIVE").inc(len(changes))
        return len(changes)

    async def _trim(self, work: "_Work", group: Group) -> int:
        total = 0
        for bucket in await self._crowded(work.tenant_id, group):
            total += await _all(partial(self._trim_bucket, work, group.policy, bucket))
        return total

    async def _trim_bucket(self, work: "_Work", policy: ForgettingPolicy, bucket: Crowded) -> int:
        async with self._database.begin(work.tenant_id) as db:
            await work.allowed(db)
            # Saves to this bucket wait, so that no memory is counted twice.
            await MemoryRepository(db, Access(work.tenant_id)).lock_bucket(
                bucket.scope, bucket.scope_id
            )
            ids = await EvictionRepository(db, Access(work.tenant_id)).weakest(
                bucket._asdict(),
                keep=policy.max_facts,
                eviction=policy.eviction,
                limit=self._batch,
            )
            changes = await MaintenanceRepository(db, work.tenant_id).archive(
                still_active(ids), Memory.memory_id, self._batch
            )
            await work.note(db, changes, REASONS["over_capacity"])
        MEMORY_EVENTS.labels("ARCHIVE").inc(len(changes))
        return len(changes)

    async def _purge(self, work: "_Work", group: Group) -> int:
        access = Access(work.tenant_id)
        async with self._database.begin(work.tenant_id) as db:
            await work.allowed(db)
            memories = ForgettingRepository(db, work.tenant_id, self._rules.purge_age)
            ids = await memories.lock("purged", group, self._batch)
            if ids:
                await RecordRepository(db, access).note_deletion(
                    ids, hard=True, actor=None, reason=REASONS["purged"], job_id=work.job_id
                )
                await MemoryRepository(db, access).purge(ids)
        return len(ids)

    async def _delete_rows(self, work: "_Work", step: Step, group: Group) -> int:
        async with self._database.begin(work.tenant_id) as db:
            await work.allowed(db)
            return await RetentionRepository(db, work.tenant_id).delete_rows(
                step, group, self._batch
            )

    async def _delete_old_messages(self, work: "_Work", group: Group) -> int:
        total, after = 0, ""
        while True:
            async with self._database.begin(work.tenant_id) as db:
                found = await RetentionRepository(db, work.tenant_id).sessions_with_old_messages(
                    group, after=after, limit=self._batch
                )
            for session_id in found:
                total += await _all(partial(self._delete_messages_of, work, group, session_id))
            if len(found) < self._batch:
                return total
            after = found[-1]

    async def _delete_messages_of(self, work: "_Work", group: Group, session_id: str) -> int:
        """Delete old messages of one session, and count its window again."""
        access = Access(work.tenant_id)
        async with self._database.begin(work.tenant_id) as db:
            await work.allowed(db)
            try:
                session = await SessionRepository(db, access).get(session_id, lock=True)
            except SessionNotFoundError:
                return 0
            messages = MessageRepository(db, access, session_id)
            old = await RetentionRepository(db, work.tenant_id).old_messages(
                group, session_id, self._batch
            )
            chosen = sorted(whole(old, await messages.tool_traffic()))
            if not chosen:
                return 0
            gone = await messages.delete(chosen, user_id=session.user_id)
            await SessionCheckpointStore().forget(db, access, session_id, gone)
            agent = await AgentRepository(db, access).get(session.agent_id)
            policy = resolve_window(self._rules.windows, agent.window_policy, session.window_policy)
            await WindowRepository(db, access, session).recount(policy)
        return len(gone)

    async def _prune_threads(self, work: "_Work", group: Group) -> int:
        total = 0
        async for session_id in self._quiet(work.tenant_id, group):
            async with self._database.begin(work.tenant_id) as db:
                await work.allowed(db)
                try:
                    await SessionRepository(db, Access(work.tenant_id)).get(session_id, lock=True)
                except SessionNotFoundError:
                    continue
                days = group.policy.checkpoint_retention_days
                if not await RetentionRepository(db, work.tenant_id).is_quiet(session_id, days):
                    continue
                thread = SaverThreadRepository(db, work.tenant_id, session_id)
                steps = await thread.steps()
                here = {(step.namespace, step.checkpoint_id) for step in steps}
                total += await thread.remove(here - kept(steps))
        return total


@dataclass(frozen=True, slots=True)
class _Work:
    """A run: its tenant and its job."""

    tenant_id: str
    job_id: str | None
    allowed: Allowed

    async def note(self, db: AsyncSession, changes: Sequence[MemoryChange], reason: str) -> None:
        """Write the history of what was archived."""
        await RecordRepository(db, Access(self.tenant_id)).note(
            changes, actor=None, reason=reason, job_id=self.job_id
        )


def _bounded(policy: ForgettingPolicy) -> bool:
    """Whether buckets have a cap."""
    return policy.enabled and policy.max_facts > 0


def whole(old: Collection[str], traffic: Sequence[ToolMessage]) -> set[str]:
    """Those of the old messages that may be deleted: never a tool call without its results."""
    here = {str(message.message_id) for message in traffic}
    return set(old) - closure(here - set(old), traffic)


async def _all(batch: Callable[[], Awaitable[int]]) -> int:
    total = 0
    while count := await batch():
        total += count
    return total
