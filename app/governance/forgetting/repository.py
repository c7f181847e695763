"""SQL for memories that are to be forgotten: which they are, one condition per step."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    cast,
    exists,
    false,
    func,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.governance.forgetting.schemas import Step
from app.identity.agents.retention import Group
from app.memory.memories.duplicates import EXPIRED
from app.memory.memories.eviction_repository import CORRECTION, EXTRACTED, OVER_CAPACITY, hybrid
from app.memory.memories.models import Memory, MemoryHistory
from app.memory.memories.repository import current

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
        """Archived by one of these steps long ago, and nobody has touched it since."""
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
        """How many there are, and the first ids."""
        chosen = self.chosen(step, group)
        count = await self._db.scalar(select(func.count()).select_from(Memory).where(chosen))
        ids = await self._db.scalars(
            select(Memory.memory_id).where(chosen).order_by(Memory.memory_id).limit(sample)
        )
        return Due(int(count or 0), ids.all())

    async def lock(self, step: Step, group: Group, limit: int) -> Sequence[str]:
        """Ids of some of them, locked; those that somebody else holds are left out."""
        rows = await self._db.scalars(
            select(Memory.memory_id)
            .where(self.chosen(step, group))
            .order_by(Memory.memory_id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        return rows.all()


def still_active(memory_ids: Sequence[str]) -> ColumnElement[bool]:
    """Those of the memories that nobody has ended meanwhile."""
    return and_(
        Memory.status == "active",
        Memory.memory_id == func.any(cast(list(memory_ids), ARRAY(Text))),
    )
