"""SQL for what is to be forgotten, one condition per step: memories, and what sessions keep
(messages, archived checkpoints, snapshots of the working state, unused threads of LangGraph).
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    cast,
    delete,
    exists,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.conversation.messages.models import Message
from app.conversation.sessions.models import Session, SessionStateSnapshot
from app.governance.forgetting.schemas import Step
from app.identity.agents.config import Group
from app.memory.memories.duplicates import EXPIRED
from app.memory.memories.eviction_repository import CORRECTION, EXTRACTED, OVER_CAPACITY, hybrid
from app.memory.memories.models import Memory, MemoryHistory
from app.memory.memories.repository import current
from app.platform.database.engine import clock_of
from app.prompting.checkpoints.models import CheckpointArchive, SaverCheckpoint

REASONS: Final[dict[Step, str]] = {
    "expired": EXPIRED,
    "source_deleted": "source_deleted",
    "session_deleted": "session_deleted",
    "superseded": "superseded_long_ago",
    "over_capacity": OVER_CAPACITY,
    "decayed": "decayed",
    "purged": "forgotten",
}
"""What the history says; these codes stay as they are."""

_ARCHIVED_FOR = sorted({*REASONS.values()} - {EXPIRED, REASONS["purged"]})


class Due(NamedTuple):
    """How many rows are due, and the ids of the first."""

    rows: int
    ids: Sequence[str]


def of_group(column: Any, group: Group) -> ColumnElement[bool]:
    """Rows for which the policy of a group holds, by the agent they are of."""
    if group.agents is not None:
        return column.in_(group.agents)  # type: ignore[no-any-return] # a column of any table
    if not group.but:
        return true()
    return or_(column.is_(None), column.not_in(group.but))


class ForgettingRepository:
    """Memories of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str, purge_age: timedelta) -> None:
        self._db = db
        self._tenant_id = tenant_id
        self._purge_age = purge_age

    def chosen(self, step: Step, group: Group) -> ColumnElement[bool]:
        """Which memories a step takes among those of a group; none where the policy says so."""
        policy = group.policy
        days = {
            "source_deleted": policy.source_deleted_days,
            "superseded": policy.superseded_days,
        }.get(step, 1)
        # Whoever set `expires_at` asked for that; what was archived goes as everywhere.
        always = step in {"expired", "purged"}
        if not (always or policy.enabled) or days == 0:
            return false()
        asked = {"session_deleted": policy.with_session, "decayed": policy.decay_below > 0}
        if not asked.get(step, True):
            return false()
        return and_(
            Memory.tenant_id == self._tenant_id,
            of_group(Memory.agent_id, group),
            self._condition(step, group),
        )

    def _condition(self, step: Step, group: Group) -> ColumnElement[bool]:
        policy = group.policy
        now = func.now()
        source_gone = now - timedelta(days=policy.source_deleted_days)
        long_ago = now - timedelta(days=policy.superseded_days)
        conditions: dict[Step, ColumnElement[bool]] = {
            "expired": and_(Memory.status == "active", Memory.expires_at <= now),
            "source_deleted": and_(
                Memory.status == "active",
                Memory.source != EXTRACTED,
                Memory.source_deleted_at <= source_gone,
            ),
            # The deletion of a session marks what was extracted from its messages alone.
            "session_deleted": and_(
                Memory.status == "active",
                Memory.source == EXTRACTED,
                Memory.source_deleted_at.is_not(None),
            ),
            "superseded": and_(Memory.status == "superseded", Memory.update_time <= long_ago),
            "decayed": and_(
                current(),
                Memory.source == EXTRACTED,
                Memory.memory_type != CORRECTION,
                hybrid() < policy.decay_below,
            ),
            "purged": self._forgotten(),
        }
        return conditions.get(step, false())

    def _forgotten(self) -> ColumnElement[bool]:
        """Archived by one of these steps long ago, and not changed since."""
        line = exists().where(
            MemoryHistory.tenant_id == self._tenant_id,
            MemoryHistory.memory_id == Memory.memory_id,
            MemoryHistory.version == Memory.version,
            MemoryHistory.event == "ARCHIVE",
            MemoryHistory.reason.in_(_ARCHIVED_FOR),
            MemoryHistory.create_time <= func.now() - self._purge_age,
        )
        return and_(Memory.status == "archived", line)

    async def due(self, step: Step, group: Group, sample: int) -> Due:
        """How many memories a step would change, and the first ids."""
        chosen = self.chosen(step, group)
        count = await self._db.scalar(select(func.count()).select_from(Memory).where(chosen))
        ids = await self._db.scalars(
            select(Memory.memory_id).where(chosen).order_by(Memory.memory_id).limit(sample)
        )
        return Due(int(count or 0), ids.all())

    async def lock(self, step: Step, group: Group, limit: int) -> Sequence[str]:
        """Ids of at most `limit` of these memories, locked, sorted; rows locked elsewhere are
        skipped.
        """
        rows = await self._db.scalars(
            select(Memory.memory_id)
            .where(self.chosen(step, group))
            .order_by(Memory.memory_id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        return rows.all()


def still_active(memory_ids: Sequence[str]) -> ColumnElement[bool]:
    """Condition for those of the memories that are still active."""
    return and_(
        Memory.status == "active",
        Memory.memory_id == func.any(cast(list(memory_ids), ARRAY(Text))),
    )


_TABLES: Final[dict[Step, tuple[Any, Any]]] = {
    "archived_checkpoints": (CheckpointArchive, CheckpointArchive.checkpoint_id),
    "snapshots": (SessionStateSnapshot, SessionStateSnapshot.snapshot_id),
}


class RetentionRepository:
    """What sessions of one tenant keep. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    def _sessions(self, group: Group) -> ColumnElement[bool]:
        return and_(Session.tenant_id == self._tenant_id, of_group(Session.agent_id, group))

    def _old_messages(self, group: Group) -> ColumnElement[bool]:
        """Old enough, read by extraction or excluded from it, and outside the window."""
        days = group.policy.message_retention_days
        if days == 0 or not group.policy.enabled:
            return false()
        return and_(
            Message.tenant_id == self._tenant_id,
            Message.create_time <= func.now() - timedelta(days=days),
            or_(Message.sequence_no <= Session.last_extracted_seq, not_(Message.captured)),
            or_(
                Session.status == 0,
                and_(
                    Message.sequence_no <= Session.in_context_from,
                    # The request of the turn that the window begins in is shown still.
                    Message.sequence_no != Session.opening_seq,
                ),
            ),
            self._sessions(group),
        )

    async def messages_due(self, group: Group, sample: int) -> Due:
        """How many messages are old, and the first ids; includes those kept back by a tool call."""
        chosen = self._old_messages(group)
        counted = select(func.count()).select_from(Message).join(Session, _ITS_SESSION)
        count = await self._db.scalar(counted.where(chosen))
        ids = await self._db.scalars(
            select(Message.message_id)
            .join(Session, _ITS_SESSION)
            .where(chosen)
            .order_by(Message.create_time)
            .limit(sample)
        )
        return Due(int(count or 0), ids.all())

    async def sessions_with_old_messages(
        self, group: Group, *, after: str, limit: int
    ) -> Sequence[str]:
        """Ids of the next sessions that have old messages, sorted."""
        rows = await self._db.scalars(
            select(Message.session_id)
            .join(Session, _ITS_SESSION)
            .where(self._old_messages(group), Message.session_id > after)
            .distinct()
            .order_by(Message.session_id)
            .limit(limit)
        )
        return rows.all()

    async def old_messages(self, group: Group, session_id: str, limit: int) -> Sequence[str]:
        """Ids of the first old messages of a session, in the order of the conversation."""
        rows = await self._db.scalars(
            select(Message.message_id)
            .join(Session, _ITS_SESSION)
            .where(self._old_messages(group), Message.session_id == session_id)
            .order_by(Message.sequence_no)
            .limit(limit)
        )
        return rows.all()

    def _old_rows(self, step: Step, group: Group, now: Any) -> ColumnElement[bool]:
        """Checkpoints archived long ago, or snapshots of a state that have a newer one."""
        table, _ = _TABLES[step]
        days = group.policy.checkpoint_retention_days
        if days == 0 or not group.policy.enabled:
            return false()
        long_ago = now - timedelta(days=days)
        own = select(Session.session_id).where(self._sessions(group))
        theirs = and_(table.tenant_id == self._tenant_id, table.session_id.in_(own))
        if table is CheckpointArchive:
            return and_(theirs, CheckpointArchive.archived_at <= long_ago)
        newer = aliased(SessionStateSnapshot)
        followed = exists().where(
            newer.tenant_id == self._tenant_id,
            newer.session_id == SessionStateSnapshot.session_id,
            newer.create_time > SessionStateSnapshot.create_time,
        )
        return and_(theirs, SessionStateSnapshot.create_time <= long_ago, followed)

    async def rows_due(self, step: Step, group: Group, sample: int) -> Due:
        """How many archived checkpoints or snapshots are old, and the first ids."""
        table, key = _TABLES[step]
        chosen = self._old_rows(step, group, func.now())
        count = await self._db.scalar(select(func.count()).select_from(table).where(chosen))
        ids = await self._db.scalars(select(key).where(chosen).order_by(key).limit(sample))
        return Due(int(count or 0), ids.all())

    async def delete_rows(self, step: Step, group: Group, limit: int) -> int:
        """Delete at most `limit` of these rows, none that is locked elsewhere; how many were
        deleted.
        """
        table, key = _TABLES[step]
        ids = (
            select(key)
            .where(self._old_rows(step, group, await clock_of(self._db)))
            .order_by(key)
            .limit(limit)
            .with_for_update(of=table, skip_locked=True)
            .cte("chosen")
        )
        rows = await self._db.scalars(
            delete(table)
            .where(table.tenant_id == self._tenant_id, key.in_(select(*ids.c)))
            .returning(literal(1))
            .execution_options(synchronize_session=False)
        )
        return len(rows.all())

    async def quiet_threads(self, group: Group, *, after: str, limit: int) -> Sequence[str]:
        """Ids of the next sessions whose newest step is old and not the only one, sorted."""
        days = group.policy.checkpoint_retention_days
        if days == 0 or not group.policy.enabled:
            return []
        rows = await self._db.scalars(
            select(SaverCheckpoint.session_id)
            .where(
                SaverCheckpoint.tenant_id == self._tenant_id,
                SaverCheckpoint.session_id > after,
                SaverCheckpoint.session_id.in_(
                    select(Session.session_id).where(self._sessions(group))
                ),
            )
            .group_by(SaverCheckpoint.session_id)
            .having(
                func.max(SaverCheckpoint.create_time) <= func.now() - timedelta(days=days),
                func.count() > func.count(SaverCheckpoint.namespace.distinct()),
            )
            .order_by(SaverCheckpoint.session_id)
            .limit(limit)
        )
        return rows.all()

    async def is_quiet(self, session_id: str, days: int) -> bool:
        """Whether a thread was not continued for so long; call it while the session is locked."""
        newest = select(func.max(SaverCheckpoint.create_time)).where(
            SaverCheckpoint.tenant_id == self._tenant_id, SaverCheckpoint.session_id == session_id
        )
        found = await self._db.scalar(
            select(newest.scalar_subquery() <= func.now() - timedelta(days=days))
        )
        return bool(found)


_ITS_SESSION = and_(
    Session.tenant_id == Message.tenant_id, Session.session_id == Message.session_id
)
