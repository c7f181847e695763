"""SQL for what sessions keep and nobody needs any more: messages, put-away checkpoints, copies
of the working state, and threads of LangGraph that nobody goes on with.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, delete, exists, false, func, literal, not_, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.conversation.messages.models import Message
from app.conversation.sessions.models import Session, SessionStateSnapshot
from app.governance.forgetting.repository import Due, of_group
from app.governance.forgetting.schemas import Step
from app.identity.agents.retention import Group
from app.platform.database.engine import clock_of
from app.prompting.checkpoints.models import CheckpointArchive, SaverCheckpoint

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
        """Old enough, read for memories or never to be, and in no window any more."""
        days = group.policy.message_retention_days
        if days == 0 or not group.policy.enabled:
            return false()
        return and_(
            Message.tenant_id == self._tenant_id,
            Message.create_time <= func.now() - timedelta(days=days),
            or_(Message.sequence_no <= Session.last_extracted_seq, not_(Message.captured)),
            or_(Session.status == 0, Message.sequence_no <= Session.in_context_from),
            self._sessions(group),
        )

    async def messages_due(self, group: Group, sample: int) -> Due:
        """How many messages are old, with those that a call of a tool still holds back."""
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
        """The next sessions by id that have any."""
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
        """Ids of the first of them in a session, in the order of the conversation."""
        rows = await self._db.scalars(
            select(Message.message_id)
            .join(Session, _ITS_SESSION)
            .where(self._old_messages(group), Message.session_id == session_id)
            .order_by(Message.sequence_no)
            .limit(limit)
        )
        return rows.all()

    def _old_rows(self, step: Step, group: Group, now: Any) -> ColumnElement[bool]:
        """Archived checkpoints long put away, or copies of a state that a newer one follows."""
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
        """Delete some of them, none that somebody else holds; how many it were."""
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
        """The next sessions by id whose newest step is old, and which have more than that."""
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
        """Whether nobody has gone on with a thread for so long; ask it under the lock."""
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
