"""SQL for lists beside that of current memories: memories as they were known at a time, those of
a project without their content, and the gate's recorded decisions.

Which memories exist and who may see them is read from the current table; what each of them said is
read from its history. So a deleted memory never comes back, and a caller
reads nothing of the past that it may not read now. `timeline_sql.py` searches the same state.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Text,
    TextClause,
    and_,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.identity.users.repository import visible_user_ids
from app.language.ranking.packing import INDEX_COLUMNS
from app.memory.memories.errors import DecisionNotFoundError, NotStorableError
from app.memory.memories.gate import STORED
from app.memory.memories.models import GateDecision, Memory, MemoryHistory
from app.memory.memories.repository import compiled, existing, valid_at
from app.memory.memories.visibility_sql import removable
from app.platform.database.base import after

# Owner and scope never change, and find the rows by an index.
_OF_NOW = {"user_id", "agent_id", "session_id", "run_id", "project_id", "scope"}

_NOT_SHOWN = {"tenant_id", "content_hash", "embedding", "deleted_at", *INDEX_COLUMNS}

# How often a memory was found is not in the history; the present value is shown.
_NOT_OF_THEN = {"use_count", "last_used_at"}


class TimelineRepository:
    """What a caller may see, as it was. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    async def list_memories_then(
        self,
        known_at: datetime,
        *,
        equal: Mapping[str, Any],
        filters: Mapping[str, Any] | None,
        start: tuple[datetime, str] | None,
        descending: bool,
        limit: int,
        as_of: datetime | None = None,
    ) -> Sequence[Any]:
        """What `MemoryRepository.list` would have shown at `known_at`, as rows of columns.

        A change counts from the time it was written, which is a little before others saw it.

        Args:
            equal: column to the value it had; `status` active means what counted then.
            filters: the grammar of `filters.py`, over the columns of then.
            as_of: the time at which it counts, `known_at` when left out.

        """
        present = self._present(equal, known_at)
        state = self._state(present, known_at)
        conditions: list[ColumnElement[bool] | TextClause] = [
            valid_at(as_of or known_at, state.c)
            if (name, value) == ("status", "active")
            else state.c[name] == value
            for name, value in equal.items()
            if name not in _OF_NOW
        ]
        if self._access.user_id is not None:
            # Shared with others now, and private when it said that.
            conditions.append(
                or_(
                    present.c.scope != "project",
                    state.c.visibility.is_distinct_from("owner_only"),
                    present.c.user_id == self._access.user_id,
                )
            )
        if filters:
            conditions.append(compiled(filters))
        columns = [
            (present if column.name in _NOT_OF_THEN else state).c[column.name]
            for column in Memory.__table__.columns
            if column.name not in _NOT_SHOWN
        ]
        place: Any = (present.c.create_time, present.c.memory_id)
        statement = select(*columns).select_from(present.join(state, true())).where(*conditions)
        rows = await self._db.execute(
            after(statement, place, start=start, descending=descending, limit=limit)
        )
        return rows.mappings().all()

    def _present(self, equal: Mapping[str, Any], known_at: datetime) -> Any:
        """What was there by then and still is, as the table has it now."""
        return (
            select(Memory)
            .where(
                existing(self._access),
                Memory.create_time <= known_at,
                *(getattr(Memory, name) == equal[name] for name in sorted(_OF_NOW & equal.keys())),
            )
            .subquery("present")
        )

    def _state(self, present: Any, known_at: datetime) -> Any:
        """The last entry before the time, as a row with the name of the table, which is what
        filters call it; null where there is none.
        """
        known = (
            select(MemoryHistory.after)
            .where(
                MemoryHistory.tenant_id == self._access.tenant_id,
                MemoryHistory.memory_id == present.c.memory_id,
                MemoryHistory.create_time <= known_at,
            )
            .order_by(MemoryHistory.create_time.desc(), MemoryHistory.history_id.desc())
            .limit(1)
            .scalar_subquery()
        )
        return func.jsonb_populate_record(
            literal_column("CAST(NULL AS memories)"), known
        ).table_valued(
            *(column(source.name, source.type) for source in Memory.__table__.columns),
            name="memories",
        )


class ProjectItemRepository:
    """Items that a caller may remove. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    async def list_items(
        self,
        project_id: str,
        *,
        equal: Mapping[str, Any],
        start: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[Any]:
        """Newest first, one more than `limit` when another page follows.

        Args:
            equal: column to the value it must have.

        """
        columns: list[Any] = [
            Memory.memory_id,
            Memory.user_id,
            Memory.visibility,
            Memory.status,
            Memory.create_time,
            Memory.update_time,
        ]
        statement = select(*columns).where(
            Memory.tenant_id == self._access.tenant_id,
            Memory.project_id == project_id,
            Memory.scope == "project",
            Memory.status != "deleted",
            removable(self._access),
            *(getattr(Memory, name) == value for name, value in equal.items()),
        )
        rows = await self._db.execute(
            after(
                statement,
                (Memory.create_time, Memory.memory_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()


class DecisionRepository:
    """Recorded decisions of the gate that a caller may see. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access
        self._tenant_id = access.tenant_id

    def _visible_decisions(self) -> Any:
        condition = GateDecision.tenant_id == self._tenant_id
        if not self._access.restricted:
            return condition
        mine = GateDecision.user_id.in_(visible_user_ids(self._access))
        if self._access.agent_id is None:
            return and_(condition, mine)
        fitting = or_(
            GateDecision.agent_id == self._access.agent_id, GateDecision.agent_id.is_(None)
        )
        return and_(condition, mine, fitting)

    async def decisions(
        self,
        *,
        user_id: str | None,
        verdict: str | None,
        code: str | None,
        since: datetime | None = None,
        until: datetime | None = None,
        memory_id: str | None = None,
        job_id: str | None = None,
        extraction_id: str | None = None,
        start: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[GateDecision]:
        """Newest first, one more than `limit` when another page follows."""
        statement = select(GateDecision).where(self._visible_decisions())
        if user_id is not None:
            statement = statement.where(GateDecision.user_id == user_id)
        if verdict is not None:
            statement = statement.where(GateDecision.verdict == verdict)
        if code is not None:
            statement = statement.where(literal(code) == func.any(GateDecision.codes))
        if since is not None:
            statement = statement.where(GateDecision.create_time >= since)
        if until is not None:
            statement = statement.where(GateDecision.create_time < until)
        if memory_id is not None:
            statement = statement.where(GateDecision.memory_id == memory_id)
        if job_id is not None:
            statement = statement.where(GateDecision.job_id == job_id)
        if extraction_id is not None:
            statement = statement.where(GateDecision.extraction_id == extraction_id)
        rows = await self._db.scalars(
            after(
                statement,
                (GateDecision.create_time, GateDecision.decision_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def get(self, decision_id: str) -> GateDecision:
        """A verdict.

        Raises:
            DecisionNotFoundError: there is none that this caller may see.

        """
        row = await self._db.scalar(
            select(GateDecision).where(
                self._visible_decisions(), GateDecision.decision_id == decision_id
            )
        )
        if row is None:
            raise DecisionNotFoundError(decision_id)
        return row

    async def note_stored(self, decision_id: str, memory_id: str | None) -> None:
        """Note that a refused text is this memory now.

        Raises:
            NotStorableError: it was noted before.
            DecisionNotFoundError: the verdict is gone.

        """
        noted = await self._db.scalar(
            update(GateDecision)
            .where(
                GateDecision.tenant_id == self._tenant_id,
                GateDecision.decision_id == decision_id,
                GateDecision.event.is_distinct_from(STORED),
            )
            .values(event=STORED, memory_id=memory_id)
            .returning(GateDecision.decision_id)
            .execution_options(synchronize_session=False)
        )
        if noted is None:
            await self.get(decision_id)
            raise NotStorableError(decision_id, "stored")

    async def decision_counts(self, equal: Mapping[str, Any]) -> dict[str, int]:
        """Numbers of decisions by code; `accepted` for those without one."""
        code = func.unnest(
            case(
                (func.cardinality(GateDecision.codes) == 0, cast(["accepted"], ARRAY(Text))),
                else_=cast(GateDecision.codes, ARRAY(Text)),
            )
        ).label("code")
        conditions = [getattr(GateDecision, name) == value for name, value in equal.items()]
        codes = select(code).where(self._visible_decisions(), *conditions).subquery()
        rows = await self._db.execute(
            select(codes.c.code, func.count()).group_by(codes.c.code).order_by(codes.c.code)
        )
        return {row[0]: int(row[1]) for row in rows}
