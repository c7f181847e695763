"""SQL for what is kept about memories: their history and the gate's verdicts."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Text,
    and_,
    case,
    cast,
    delete,
    func,
    insert,
    literal,
    literal_column,
    null,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncSession

from app.database.ids import new_id
from app.database.keyset import after
from app.memories.models import GateDecision, Memory, MemoryHistory
from app.tenants.access import Access
from app.users.repository import visible_user_ids
from app.web.idempotency import IdempotencyKey

NOT_IN_HISTORY = ("tenant_id", "content_hash", "embedding", "use_count", "last_used_at")

_ANSWER_NAMES_ONE = text(
    "EXISTS (SELECT 1 FROM regexp_matches(convert_from(idempotency_keys.answer, 'UTF8'), "
    "'mem_[0-9a-f]{32}', 'g') AS told(ids) "
    "WHERE told.ids[1] = ANY(CAST(:memory_ids AS text[])))"
)

Change = tuple[str, dict[str, Any] | None, dict[str, Any] | None]
"""An event, the snapshot before it and the one after."""


def snapshot(row: Memory) -> dict[str, Any]:
    """What the history keeps of a memory: all of it but the vector and its use."""
    kept: dict[str, Any] = {}
    for column in Memory.__table__.columns:
        if column.name in NOT_IN_HISTORY:
            continue
        value = getattr(row, "metadata_" if column.name == "metadata" else column.name)
        kept[column.name] = value.isoformat() if isinstance(value, datetime) else value
    return kept


class RecordRepository:
    """History and verdicts of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access
        self._tenant_id = access.tenant_id

    async def note(
        self, changes: Sequence[Change], *, actor: str | None, reason: str | None = None
    ) -> None:
        """Write history, one line per change."""
        rows = []
        for event, before, after_ in changes:
            about = after_ or before or {}
            rows.append(
                {
                    "tenant_id": self._tenant_id,
                    "history_id": new_id("his"),
                    "memory_id": about["memory_id"],
                    "user_id": about["user_id"],
                    "event": event,
                    "reason": reason,
                    "actor": actor,
                    "before": before,
                    "after": after_,
                    "version": about["version"],
                }
            )
        if rows:
            await self._db.execute(insert(MemoryHistory), rows)

    async def note_deletion(
        self, memory_ids: Sequence[str], *, hard: bool, actor: str | None, reason: str | None
    ) -> None:
        """One line DELETE for each of these memories, before they go, in one statement.

        Soft, it keeps what they said. Hard, everything else that holds their words goes.
        """
        ids = list(memory_ids)
        if hard:
            await self._forget_words(ids)
        whole = func.to_jsonb(literal_column("memories"))
        pairs = (
            func.unnest(cast(ids, ARRAY(Text)), cast([new_id("his") for _ in ids], ARRAY(Text)))
            .table_valued("memory_id", "history_id", name="pairs")
            .render_derived()
        )
        lines = (
            select(
                Memory.tenant_id,
                pairs.c.history_id,
                Memory.memory_id,
                Memory.user_id,
                literal("DELETE"),
                cast(reason, Text),
                cast(actor, Text),
                cast(null(), JSONB) if hard else whole.op("-")(cast(NOT_IN_HISTORY, ARRAY(Text))),
                Memory.version,
            )
            .join(pairs, pairs.c.memory_id == Memory.memory_id)
            .where(Memory.tenant_id == self._tenant_id)
        )
        names = [
            "tenant_id", "history_id", "memory_id", "user_id", "event", "reason", "actor",
            "before", "version",
        ]  # fmt: skip
        await self._db.execute(insert(MemoryHistory).from_select(names, lines))

    async def _forget_words(self, ids: list[str]) -> None:
        chosen = func.any(cast(ids, ARRAY(Text)))
        await self._db.execute(
            delete(MemoryHistory)
            .where(MemoryHistory.tenant_id == self._tenant_id, MemoryHistory.memory_id == chosen)
            .execution_options(synchronize_session=False)
        )
        await self._db.execute(
            update(GateDecision)
            .where(GateDecision.tenant_id == self._tenant_id, GateDecision.memory_id == chosen)
            .values(content=None)
            .execution_options(synchronize_session=False)
        )
        # What a retried request would be told again: to these users, or to nobody by name.
        users = select(Memory.user_id).where(
            Memory.tenant_id == self._tenant_id, Memory.memory_id == chosen
        )
        await self._db.execute(
            delete(IdempotencyKey)
            .where(
                IdempotencyKey.tenant_id == self._tenant_id,
                or_(IdempotencyKey.user_id.in_(users), IdempotencyKey.user_id.is_(None)),
                _ANSWER_NAMES_ONE.bindparams(memory_ids=ids),
            )
            .execution_options(synchronize_session=False)
        )

    async def history(
        self, memory_id: str, *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[MemoryHistory]:
        """Oldest first, one more than `limit` when another page follows."""
        statement = select(MemoryHistory).where(
            MemoryHistory.tenant_id == self._tenant_id, MemoryHistory.memory_id == memory_id
        )
        rows = await self._db.scalars(
            after(
                statement,
                (MemoryHistory.create_time, MemoryHistory.history_id),
                start=start,
                descending=False,
                limit=limit,
            )
        )
        return rows.all()

    async def decide(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep the gate's verdicts."""
        await self._db.execute(insert(GateDecision), list(rows))

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

    async def decision_counts(self, equal: Mapping[str, Any]) -> dict[str, int]:
        """Verdicts by code; `accepted` for those without one."""
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
