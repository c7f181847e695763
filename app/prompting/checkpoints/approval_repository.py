"""SQL for calls that wait for a human."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    not_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.models import Message
from app.conversation.sessions.checkpoint_store import AwaitedCall
from app.conversation.sessions.models import Session
from app.identity.tenants.access import Access
from app.platform.database.base import after, new_id
from app.platform.database.engine import clock_of
from app.platform.values.json_objects import same_json
from app.prompting.checkpoints.errors import (
    ApprovalDecidedError,
    ApprovalNotFoundError,
    CallAnsweredError,
)
from app.prompting.checkpoints.models import Approval
from app.prompting.checkpoints.repository import LISTED

ROWS = 1000

# By the database's clock, which also set the time of expiry.
_STATUS = case(
    (and_(Approval.status == "pending", Approval.expires_at <= func.now()), "timeout"),
    else_=Approval.status,
)


class ApprovalState(NamedTuple):
    """An approval with its state now; the row of an expired one may still say `pending`."""

    approval: Approval
    status: str
    answered: bool


class ApprovalRepository:
    """Approvals of one session. Never begins or ends a transaction.

    `SessionRepository` must have found the session for the caller, and have locked its row before a
    write. Calls on a branch that was left are not found.
    """

    def __init__(self, db: AsyncSession, access: Access, session_id: str) -> None:
        self._db = db
        self._tenant_id = access.tenant_id
        self._session_id = session_id

    @property
    def _answered(self) -> ColumnElement[bool]:
        """By a message on the branch that the session is on."""
        return exists().where(
            Message.tenant_id == self._tenant_id,
            Message.session_id == Approval.session_id,
            Message.sequence_no > Approval.sequence_no,
            Message.tool_call_id == Approval.tool_call_id,
            not_(Session.set_aside.contains(Message.sequence_no)),
        )

    def _here(self) -> Select[Any]:
        return (
            select(Approval, _STATUS, self._answered)
            .join(
                Session,
                and_(
                    Session.tenant_id == self._tenant_id,
                    Session.session_id == Approval.session_id,
                ),
            )
            .where(
                Approval.tenant_id == self._tenant_id,
                Approval.session_id == self._session_id,
                not_(Session.set_aside.contains(Approval.sequence_no)),
            )
        )

    async def ask(self, calls: Sequence[AwaitedCall], *, expires_in: timedelta) -> None:
        """Let `calls` wait for a human; calls that already wait stay as they are."""
        rows: list[dict[str, Any]] = [
            {
                "tenant_id": self._tenant_id,
                "approval_id": new_id("apr"),
                "session_id": self._session_id,
                "tool_call_id": call.tool_call_id,
                "message_id": call.message_id,
                "sequence_no": call.sequence_no,
                "call": dict(call.call),
                "expires_at": func.now() + expires_in,
            }
            for call in calls
        ]
        # A statement may have 32,767 parameters, and a batch of messages 5,000 calls.
        for start in range(0, len(rows), ROWS):
            statement = insert(Approval).values(rows[start : start + ROWS])
            await self._db.execute(statement.on_conflict_do_nothing())

    async def known(self, tool_call_ids: Sequence[str]) -> set[str]:
        """The given ids that have an approval in any state."""
        rows = await self._db.execute(
            self._here().where(
                Approval.tool_call_id == func.any(cast(list(tool_call_ids), ARRAY(Text)))
            )
        )
        return {row[0].tool_call_id for row in rows}

    async def get(self, tool_call_id: str, *, lock: bool = False) -> ApprovalState:
        """The newest approval of a call's id.

        Args:
            lock: lock its row.

        Raises:
            ApprovalNotFoundError: there is none on this branch.

        """
        statement = (
            self._here()
            .where(Approval.tool_call_id == tool_call_id)
            .order_by(Approval.sequence_no.desc())
            .limit(1)
        )
        if lock:
            # The session's lock keeps callers apart, and this lock the housekeeping.
            statement = statement.with_for_update(of=Approval)
        row = (await self._db.execute(statement)).first()
        if row is None:
            raise ApprovalNotFoundError(tool_call_id)
        return ApprovalState(*row)

    async def list_approvals(
        self, *, status: str | None, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[ApprovalState]:
        """Approvals, newest first; one more than `limit` when a further page follows.

        Args:
            status: only approvals with this state; `pending` leaves out answered calls.
            start: creation time and id of the last approval of the previous page.
            limit: size of a page.

        """
        statement = self._here()
        if status is not None:
            statement = statement.where(_STATUS.in_([status]))
        if status == "pending":
            statement = statement.where(not_(self._answered))
        rows = await self._db.execute(
            after(
                statement,
                (Approval.create_time, Approval.approval_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return [ApprovalState(*row) for row in rows]

    async def decide(
        self, tool_call_id: str, decision: Mapping[str, Any], *, actor: str
    ) -> ApprovalState:
        """Store a decision; repeating the same decision changes nothing.

        Args:
            tool_call_id: id of the call; its newest approval counts.
            decision: `status`, `arguments` and `comment`.
            actor: id of the key that decided.

        Raises:
            ApprovalNotFoundError: there is none on this branch.
            ApprovalDecidedError: the decision was different, or the approval had expired.
            CallAnsweredError: its result came without a decision.

        """
        found = await self.get(tool_call_id, lock=True)
        row = found.approval
        if found.status != "pending":
            if not _is_same_decision(found, decision):
                raise ApprovalDecidedError(tool_call_id, found.status)
            return found
        if found.answered:
            raise CallAnsweredError(tool_call_id)
        for name, value in decision.items():
            setattr(row, name, value)
        row.actor = actor
        row.decided_at = await clock_of(self._db)
        await self._db.flush()
        await self._db.refresh(row)
        return ApprovalState(row, row.status, answered=False)

    async def forget(self, message_ids: Sequence[str]) -> None:
        """Delete the approvals of the calls of these messages."""
        await self._db.execute(
            delete(Approval)
            .where(
                Approval.tenant_id == self._tenant_id,
                Approval.session_id == self._session_id,
                Approval.message_id == func.any(cast(list(message_ids), ARRAY(Text))),
            )
            .execution_options(synchronize_session=False)
        )

    async def waiting(self) -> Sequence[dict[str, Any]]:
        """The calls that wait now, oldest first; when there are more than `LISTED`, the newest."""
        rows = await self._db.execute(
            self._here()
            .where(_STATUS.in_(["pending"]), not_(self._answered))
            .order_by(Approval.sequence_no.desc(), Approval.approval_id.desc())
            .limit(LISTED)
        )
        return [row[0].call for row in reversed(rows.all())]


def _is_same_decision(found: ApprovalState, decision: Mapping[str, Any]) -> bool:
    """Whether the stored decision is the same; an expired approval agrees with `timeout`."""
    row = found.approval
    if found.status == "timeout":
        return bool(decision["status"] == "timeout")
    return (
        row.status == decision["status"]
        and row.comment == decision["comment"]
        and same_json(row.arguments, decision["arguments"])
    )


class ApprovalExpiry:
    """Expired approvals of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    def _expired(self, now: Any) -> ColumnElement[bool]:
        return and_(
            Approval.tenant_id == self._tenant_id,
            Approval.status == "pending",
            Approval.expires_at <= now,
        )

    async def count(self) -> int:
        """How many expired approvals are still stored as `pending`."""
        statement = select(func.count()).select_from(Approval).where(self._expired(func.now()))
        return int(await self._db.scalar(statement) or 0)

    async def expire(self, *, limit: int) -> int:
        """Mark at most `limit` of them as `timeout`, without locked rows; how many were marked."""
        chosen = (
            select(Approval.approval_id)
            .where(self._expired(await clock_of(self._db)))
            .limit(limit)
            .with_for_update(skip_locked=True)
            .cte("chosen")
        )
        rows = await self._db.scalars(
            update(Approval)
            .where(
                Approval.tenant_id == self._tenant_id,
                Approval.approval_id.in_(select(chosen.c.approval_id)),
            )
            .values(status="timeout", decided_at=Approval.expires_at)
            .returning(Approval.approval_id)
            .execution_options(synchronize_session=False)
        )
        return len(rows.all())
