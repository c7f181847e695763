"""SQL for checkpoints, live and archived, and the statement that makes an automatic one and deletes
those beyond the limit.

Sequence numbers are never used again, so a checkpoint needs no copy of the messages: it has those
up to its number, except the ones that were set aside before it was made. Restoring it sets aside
what came after it, and takes back in what it still had.

That statement is one constant text for the driver (`docs/decisions/0022`): every sixth message of a
session makes a checkpoint, and building the three statements took as long as all else of the
append.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pydantic_core import to_json
from sqlalchemy import (
    ColumnElement,
    ScalarResult,
    String,
    Text,
    and_,
    cast,
    delete,
    exists,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, Range, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import defer
from sqlalchemy.orm.interfaces import ORMOption

from app.conversation.sessions.models import Session, SessionState
from app.conversation.sessions.schemas import StateReason
from app.identity.tenants.access import Access
from app.platform.database.base import after, new_id
from app.platform.database.engine import driver_of
from app.prompting.checkpoints.errors import CheckpointNotFoundError, CheckpointParentNotFoundError
from app.prompting.checkpoints.models import Checkpoint, CheckpointArchive
from app.prompting.compaction.repository import SessionSummary

LISTED: Final = 100
"""Most waiting calls that a checkpoint lists, as many as a request may give."""

AUTOMATIC_CHECKPOINTS: Final = 50
"""Most automatic checkpoints of a session; those that a caller asked for are not limited."""

PERIODIC_CHECKPOINTS: Final = 10
"""Of these, most that were made as messages came. A crash goes back to the newest; more of them
would leave no room for those that stand before a compaction or a restore."""

# The parts of one statement do not see what the others write: of those that are there already, one
# fewer stays than may.
ADD_AUTOMATIC: Final = f"""
WITH waiting AS (
    SELECT a.call, a.sequence_no, a.approval_id
    FROM approvals AS a JOIN sessions AS s ON s.tenant_id = $1 AND s.session_id = a.session_id
    WHERE a.tenant_id = $1 AND a.session_id = $2 AND a.status = 'pending' AND a.expires_at > $7
        AND NOT a.sequence_no <@ s.set_aside
        AND NOT EXISTS (
            SELECT 1 FROM messages AS m
            WHERE m.tenant_id = $1 AND m.session_id = $2 AND m.tool_call_id = a.tool_call_id
                AND m.sequence_no > a.sequence_no AND NOT m.sequence_no <@ s.set_aside
        )
    ORDER BY a.sequence_no DESC, a.approval_id DESC LIMIT {LISTED}
), made AS (
    INSERT INTO checkpoints (tenant_id, checkpoint_id, session_id, reason, creator, message_seq,
        set_aside, in_context_from, summary_ids, contents, state, state_version, size_bytes)
    SELECT CAST($1 AS text), CAST($3 AS text), s.session_id, CAST($4 AS text), CAST($5 AS text),
        s.last_sequence_no, s.set_aside, s.in_context_from, s.summary_ids, kept.contents,
        kept.state, kept.version,
        octet_length(CAST(kept.contents AS text)) + octet_length(CAST(kept.state AS text))
    FROM sessions AS s
    LEFT JOIN session_states AS w ON w.tenant_id = $1 AND w.session_id = s.session_id
    CROSS JOIN LATERAL (
        SELECT coalesce(w.state, '{{}}') AS state, coalesce(w.version, 0) AS version,
            CAST($6 AS jsonb) || jsonb_build_object('pending_tool_calls', (
                SELECT coalesce(jsonb_agg(call ORDER BY sequence_no, approval_id), '[]')
                FROM waiting
            )) AS contents
    ) AS kept
    WHERE s.tenant_id = $1 AND s.session_id = $2
        AND (s.last_sequence_no > 0 OR kept.state <> '{{}}' OR $4 = 'before_restore')
    RETURNING checkpoint_id
), old AS (
    SELECT c.checkpoint_id FROM checkpoints AS c
    WHERE c.tenant_id = $1 AND c.session_id = $2 AND c.reason <> 'manual'
        AND (c.reason = 'periodic') = ($4 = 'periodic') AND c.checkpoint_id <> $8
    ORDER BY c.create_time DESC, c.checkpoint_id DESC
    OFFSET CASE $4 WHEN 'periodic' THEN {PERIODIC_CHECKPOINTS} ELSE {AUTOMATIC_CHECKPOINTS} END - 1
), pruned AS (
    DELETE FROM checkpoints AS c
    WHERE c.tenant_id = $1 AND c.session_id = $2 AND EXISTS (SELECT 1 FROM made)
        AND c.checkpoint_id IN (SELECT checkpoint_id FROM old)
        AND NOT EXISTS (
            SELECT 1 FROM checkpoints AS child
            WHERE child.tenant_id = $1 AND child.session_id = $2
                AND child.parent_id = c.checkpoint_id
        )
)
SELECT checkpoint_id FROM made
"""
"""`$1` and `$2` name the session, `$3` the checkpoint, `$4` is its reason, `$5` who made it, `$6`
are its other contents, `$7` is the time, `$8` a checkpoint that stays. Answers with nothing for a
session in which nothing has happened."""


def set_aside_after(
    before: Iterable[Range[int]], message_seq: int, last_sequence_no: int
) -> list[Range[int]]:
    """Ranges of messages that are set aside when a session returns to a checkpoint.

    Args:
        before: what was set aside when the checkpoint was made; all of it up to `message_seq`.
        message_seq: the newest number then.
        last_sequence_no: the newest number now.

    """
    since = [Range(message_seq + 1, last_sequence_no + 1)] if last_sequence_no > message_seq else []
    return [*before, *since]


Kept = Checkpoint | CheckpointArchive


@dataclass(frozen=True, slots=True)
class CheckpointDraft:
    """A checkpoint that is to be made; all else is read from the session itself."""

    reason: StateReason
    creator: str | None
    contents: Mapping[str, Any]
    namespace: str = ""
    parent_id: str | None = None
    step: int | None = None
    source: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


class CheckpointRepository:
    """Checkpoints of one session. Never begins or ends a transaction.

    `SessionRepository` must have found the session for the caller; and a caller that
    writes has locked the session's row.
    """

    def __init__(self, db: AsyncSession, access: Access, session_id: str) -> None:
        self._db = db
        self._tenant_id = access.tenant_id
        self._session_id = session_id

    def _of(self, table: type[Kept]) -> ColumnElement[bool]:
        return and_(table.tenant_id == self._tenant_id, table.session_id == self._session_id)

    async def add(self, draft: CheckpointDraft) -> Checkpoint:
        """Add the checkpoint that a caller asked for, of the session as this transaction sees it.

        Raises:
            CheckpointParentNotFoundError: the session and namespace have no such checkpoint.

        """
        if draft.parent_id is not None:
            await self._check_parent(draft.parent_id, draft.namespace)
        values = _image(self._tenant_id, draft)
        chosen = (
            select(*values.values())
            .outerjoin(
                SessionState,
                and_(
                    SessionState.tenant_id == self._tenant_id,
                    SessionState.session_id == Session.session_id,
                ),
            )
            .where(Session.tenant_id == self._tenant_id, Session.session_id == self._session_id)
        )
        made = await self._db.scalars(
            insert(Checkpoint).from_select(list(values), chosen).returning(Checkpoint)
        )
        return made.one()

    async def _check_parent(self, parent_id: str, namespace: str) -> None:
        """Raises CheckpointParentNotFoundError."""
        for table in (Checkpoint, CheckpointArchive):
            found = exists().where(
                self._of(table), table.checkpoint_id == parent_id, table.namespace == namespace
            )
            if await self._db.scalar(select(found)):
                return
        raise CheckpointParentNotFoundError(parent_id)

    async def add_automatic(
        self,
        reason: StateReason,
        creator: str | None,
        contents: Mapping[str, Any],
        *,
        now: datetime,
        keep: str | None,
    ) -> str | None:
        """Add a checkpoint of the session with the calls that wait, and delete automatic ones
        beyond the limit, but for those with successors.

        Args:
            contents: without the calls that wait.
            now: PostgreSQL's clock.
            keep: id of a checkpoint that stays in any case.

        Returns:
            The id of the checkpoint; None for a session in which nothing has happened.

        """
        made: str | None = await (await driver_of(self._db)).fetchval(
            ADD_AUTOMATIC,
            self._tenant_id,
            self._session_id,
            new_id("chk"),
            reason,
            creator,
            to_json(contents).decode(),
            now,
            keep or "",
        )
        return made

    async def get(self, checkpoint_id: str) -> Kept:
        """A checkpoint, live or archived. Raises CheckpointNotFoundError."""
        # In this order: while it is archived, one of the two tables has it at any time.
        for table in (Checkpoint, CheckpointArchive):
            found: Kept | None = await self._db.scalar(
                select(table).where(self._of(table), table.checkpoint_id == checkpoint_id)
            )
            if found is not None:
                return found
        raise CheckpointNotFoundError(checkpoint_id)

    async def list_checkpoints(
        self,
        *,
        equal: Mapping[str, Any],
        before: str | None,
        archived: bool,
        start: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[Kept]:
        """Without contents, newest first; one more than `limit` when a further page follows.

        Args:
            equal: column to the value it must have.
            before: id of a checkpoint; only those made before it.
            archived: whether archived ones are listed among the others.
            start: creation time and id of the last checkpoint of the previous page.
            limit: size of a page.

        Raises:
            CheckpointNotFoundError: there is none of the id in `before`.

        """
        if before is not None:
            newest = await self.get(before)
            position = (newest.create_time, newest.checkpoint_id)
            start = position if start is None else min(start, position)
        rows: list[Kept] = []
        tables: tuple[type[Kept], ...] = (Checkpoint, CheckpointArchive)
        for table in tables if archived else tables[:1]:
            statement = select(table).where(self._of(table)).filter_by(**equal)
            found: ScalarResult[Kept] = await self._db.scalars(
                after(
                    statement.options(*_light(table)),
                    (table.create_time, table.checkpoint_id),
                    start=start,
                    descending=True,
                    limit=limit,
                )
            )
            rows.extend(found)
        rows.sort(key=lambda row: (row.create_time, row.checkpoint_id), reverse=True)
        return rows[: limit + 1]

    async def delete(self, checkpoint_id: str) -> None:
        """Delete a checkpoint permanently; its successors then follow its parent.

        Raises:
            CheckpointNotFoundError: there is none.

        """
        gone = await self.get(checkpoint_id)
        for table in (Checkpoint, CheckpointArchive):
            await self._db.execute(
                update(table)
                .where(self._of(table), table.parent_id == checkpoint_id)
                .values(parent_id=gone.parent_id)
                .execution_options(synchronize_session=False)
            )
            await self._db.execute(
                delete(table)
                .where(self._of(table), table.checkpoint_id == checkpoint_id)
                .execution_options(synchronize_session=False)
            )

    async def put_back(self, session: Session, checkpoint: Kept) -> None:
        """Give a locked session the window of a checkpoint; nothing is deleted.

        Its counters are then to be counted anew.
        """
        rows = await self._db.execute(
            select(SessionSummary.summary_id, SessionSummary.tokens).where(
                SessionSummary.tenant_id == self._tenant_id,
                SessionSummary.summary_id == func.any(cast(checkpoint.summary_ids, ARRAY(Text))),
            )
        )
        tokens = {row.summary_id: row.tokens for row in rows}
        session.summary_ids = [
            summary_id for summary_id in checkpoint.summary_ids if summary_id in tokens
        ]
        session.summary_tokens = sum(tokens.values())
        session.in_context_from = checkpoint.in_context_from
        session.set_aside = set_aside_after(
            checkpoint.set_aside, checkpoint.message_seq, session.last_sequence_no
        )
        await self._db.flush()


def _image(tenant_id: str, draft: CheckpointDraft) -> dict[str, Any]:
    """What a checkpoint keeps of a session and its state, as columns of theirs."""
    state = func.coalesce(SessionState.state, literal({}, JSONB))
    contents = literal(dict(draft.contents), JSONB)
    return {
        "tenant_id": literal(tenant_id, String),
        "checkpoint_id": literal(new_id("chk"), String),
        "session_id": Session.session_id,
        "namespace": literal(draft.namespace, String),
        "parent_id": cast(literal(draft.parent_id, String), String),
        "step": cast(literal(draft.step), Checkpoint.step.type),
        "source": cast(literal(draft.source, String), String),
        "reason": literal(draft.reason, String),
        "metadata": literal(dict(draft.metadata), JSONB),
        "message_seq": Session.last_sequence_no,
        "set_aside": Session.set_aside,
        "in_context_from": Session.in_context_from,
        "summary_ids": Session.summary_ids,
        "contents": contents,
        "state": state,
        "state_version": func.coalesce(SessionState.version, 0),
        "size_bytes": func.octet_length(cast(contents, Text))
        + func.octet_length(cast(state, Text)),
        "creator": cast(literal(draft.creator, String), String),
    }


def _light(table: type[Kept]) -> list[ORMOption]:
    """What leaves the large columns in the database."""
    if table is CheckpointArchive:
        return [defer(CheckpointArchive.compressed)]
    return [defer(Checkpoint.contents), defer(Checkpoint.state)]
