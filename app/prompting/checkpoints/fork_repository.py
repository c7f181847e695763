"""SQL for forks: what of a session is copied into a new one, set by set.

Numbers and times of messages are kept, so that summaries, the window's pointer and the calls of
tools need no translation. Ids are new; each is made of the fork's own and the message's number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import INT8MULTIRANGE, Range
from sqlalchemy.ext.asyncio import AsyncSession
from uuid_utils import uuid7

from app.conversation.messages.models import WAITING, Message
from app.conversation.messages.schemas import call_ids
from app.conversation.sessions.models import Session
from app.identity.tenants.access import Access
from app.prompting.compaction.repository import SessionSummary


def _with_aside(statement: str) -> TextClause:
    return text(statement).bindparams(bindparam("aside", type_=INT8MULTIRANGE()))


_HERE: Final = "m.tenant_id = CAST(:tenant_id AS text) AND m.session_id = CAST(:session_id AS text)"
_COPIED: Final = (
    f"{_HERE} AND m.sequence_no <= CAST(:upto AS int8) "
    "AND NOT CAST(:aside AS int8multirange) @> m.sequence_no"
)
_LAST: Final = _with_aside(
    f"SELECT m.message_id, m.sequence_no, m.create_time FROM messages m WHERE {_COPIED} "
    "ORDER BY m.sequence_no DESC LIMIT 1"
)
_NAMED: Final = text(
    f"SELECT m.message_id, m.sequence_no FROM messages m WHERE {_HERE} AND "
    "(m.message_id = CAST(:message_id AS text) OR m.sequence_no = CAST(:number AS int8))"
)
_COUNT: Final = _with_aside(f"SELECT count(*) FROM messages m WHERE {_COPIED}")
_CALLING: Final = _with_aside(
    f"SELECT m.sequence_no, m.tool_calls FROM messages m WHERE {_COPIED} AND m.role <> 'tool' "
    "ORDER BY m.sequence_no DESC LIMIT 1"
)
_ANSWERED: Final = _with_aside(
    f"SELECT m.tool_call_id FROM messages m WHERE {_COPIED} "
    "AND m.sequence_no > CAST(:calling AS int8) AND m.tool_call_id IS NOT NULL"
)
_NEXT: Final = text(
    f"SELECT m.create_time FROM messages m WHERE {_HERE} AND m.sequence_no > CAST(:upto AS int8) "
    "ORDER BY m.sequence_no LIMIT 1"
)

_NEW: Final[dict[str, str]] = {
    "tenant_id": "CAST(:tenant_id AS text)",
    "message_id": "'msg_' || :prefix || lpad(to_hex(m.sequence_no), 12, '0')",
    "session_id": "CAST(:fork_id AS text)",
    "parent_message_id": "'msg_' || :prefix || lpad(to_hex(parent.sequence_no), 12, '0')",
    "copied_from": "coalesce(m.copied_from, m.message_id)",
}
_COLUMNS: Final = [column.name for column in Message.__table__.columns]
# A parent on a branch that was left is not copied.
_COPY: Final = _with_aside(
    f"INSERT INTO messages ({', '.join(_COLUMNS)}) "
    f"SELECT {', '.join(_NEW.get(name, f'm.{name}') for name in _COLUMNS)} FROM messages m "
    # Fenced, or all of the session may be read for each of its messages.
    "LEFT JOIN LATERAL (SELECT p.session_id, p.sequence_no FROM messages p "
    "WHERE p.tenant_id = CAST(:tenant_id AS text) AND p.message_id = m.parent_message_id OFFSET 0) "
    "AS parent ON parent.session_id = m.session_id "
    "AND parent.sequence_no <= CAST(:upto AS int8) "
    "AND NOT CAST(:aside AS int8multirange) @> parent.sequence_no "
    f"WHERE {_COPIED} ORDER BY m.sequence_no"
)
_UNINDEXED: Final = text(
    "SELECT EXISTS (SELECT FROM messages WHERE tenant_id = CAST(:tenant_id AS text) "
    f"AND session_id = CAST(:fork_id AS text) AND ({WAITING}))"
)

# Summaries are never changed or deleted, so those of any time are still there. One of a branch
# that was left ends among the messages that were set aside.
_SUMMARIES: Final = _with_aside(
    "SELECT s.summary_id, s.from_seq, s.to_seq, s.tokens FROM session_summaries s "
    "WHERE s.tenant_id = CAST(:tenant_id AS text) AND s.session_id = CAST(:session_id AS text) "
    "AND s.to_seq < CAST(:upto AS int8) AND s.create_time < CAST(:before AS timestamptz) "
    "AND NOT CAST(:aside AS int8multirange) @> s.to_seq ORDER BY s.create_time DESC, s.level DESC"
)
_SUMMARY_TOKENS: Final = text(
    "SELECT summary_id, tokens FROM session_summaries WHERE tenant_id = CAST(:tenant_id AS text) "
    "AND session_id = CAST(:session_id AS text) AND summary_id = ANY (CAST(:ids AS text[]))"
)
_SUMMARY_COLUMNS: Final = [
    column.name
    for column in SessionSummary.__table__.columns
    if column.name not in {"tenant_id", "summary_id", "session_id", "parent_id"}
]
_COPY_SUMMARIES: Final = text(
    "INSERT INTO session_summaries (tenant_id, summary_id, session_id, "
    f"{', '.join(_SUMMARY_COLUMNS)}) "
    "SELECT CAST(:tenant_id AS text), copied.new_id, CAST(:fork_id AS text), "
    f"{', '.join(f's.{name}' for name in _SUMMARY_COLUMNS)} "
    "FROM unnest(CAST(:ids AS text[]), CAST(:new_ids AS text[])) AS copied(old_id, new_id) "
    "JOIN session_summaries s ON s.tenant_id = CAST(:tenant_id AS text) "
    "AND s.summary_id = copied.old_id"
)

# A block as it was: history has its text after each change; an undone one may be among them.
_COPY_BLOCKS: Final = text(
    """
    WITH copied AS (
        INSERT INTO blocks (tenant_id, block_id, session_id, user_id, label, value, value_limit,
            description, tags, metadata, read_only, hidden, per_user, creator)
        SELECT CAST(:tenant_id AS text),
            'blk_' || :prefix || lpad(to_hex(row_number() OVER (ORDER BY b.block_id)), 12, '0'),
            CAST(:fork_id AS text), b.user_id, b.label, told.value,
            greatest(b.value_limit, char_length(told.value)), b.description, b.tags, b.metadata,
            b.read_only, b.hidden, false, b.creator
        FROM blocks b
        CROSS JOIN LATERAL (SELECT CASE WHEN CAST(:before AS timestamptz) IS NULL THEN b.value
            ELSE coalesce((SELECT h.value FROM block_history h
                WHERE h.tenant_id = CAST(:tenant_id AS text) AND h.block_id = b.block_id
                    AND h.create_time < CAST(:before AS timestamptz)
                ORDER BY h.history_no DESC LIMIT 1), b.value) END AS value) AS told
        WHERE b.tenant_id = CAST(:tenant_id AS text)
            AND b.session_id = CAST(:session_id AS text)
            AND b.create_time < coalesce(CAST(:before AS timestamptz), 'infinity')
        RETURNING block_id, value, description, creator
    )
    INSERT INTO block_history (tenant_id, block_id, history_no, event, value, description, actor,
        session_id)
    SELECT CAST(:tenant_id AS text), copied.block_id, 1, 'copy', copied.value, copied.description,
        copied.creator, CAST(:fork_id AS text)
    FROM copied
    """
)

_STATES: Final = _with_aside(
    """
    SELECT kept.kind, kept.id FROM (
        SELECT 'checkpoint' AS kind, checkpoint_id AS id, create_time, message_seq AS seq
        FROM checkpoints WHERE tenant_id = CAST(:tenant_id AS text)
            AND session_id = CAST(:session_id AS text)
        UNION ALL SELECT 'checkpoint', checkpoint_id, create_time, message_seq
        FROM checkpoint_archive WHERE tenant_id = CAST(:tenant_id AS text)
            AND session_id = CAST(:session_id AS text)
        UNION ALL SELECT 'snapshot', snapshot_id, create_time, seq
        FROM session_state_snapshot WHERE tenant_id = CAST(:tenant_id AS text)
            AND session_id = CAST(:session_id AS text)
    ) AS kept
    WHERE kept.seq <= CAST(:upto AS int8) AND kept.create_time < CAST(:before AS timestamptz)
        AND NOT CAST(:aside AS int8multirange) @> kept.seq
    ORDER BY kept.create_time DESC, kept.id DESC LIMIT 1
    """
)


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """A place in a session.

    Args:
        upto: the number of the newest message there; 0 for a session without one.
        aside: numbers that are outside of the window there.
        before: when the next message came; None at the present end.

    """

    upto: int
    aside: Sequence[Range[int]] = ()
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class ForkWindow:
    """The window at a place: summaries, oldest first, and where the messages behind them begin."""

    in_context_from: int
    summaries: dict[str, int] = field(default_factory=dict)
    """Their tokens, by id."""


class ForkRepository:
    """Copies of one session. Never begins or ends a transaction; the caller has locked it."""

    def __init__(self, db: AsyncSession, access: Access, session: Session) -> None:
        self._db = db
        self._values: dict[str, Any] = {
            "tenant_id": access.tenant_id,
            "session_id": session.session_id,
        }

    def _at(self, point: ForkPoint) -> dict[str, Any]:
        return self._values | {"upto": point.upto, "aside": list(point.aside)}

    async def named(self, message_id: str | None, number: int | None) -> int | None:
        """The number of the message with this id or number; None when it is not here."""
        row = (
            await self._db.execute(
                _NAMED, self._values | {"message_id": message_id, "number": number}
            )
        ).first()
        return None if row is None else int(row.sequence_no)

    async def next_time(self, number: int) -> datetime | None:
        """When the message behind a number came; None when it is the newest."""
        found: datetime | None = await self._db.scalar(_NEXT, self._values | {"upto": number})
        return found

    async def last(self, point: ForkPoint) -> tuple[str, int, datetime] | None:
        """Id, number and time of the newest message there; None without one."""
        row = (await self._db.execute(_LAST, self._at(point))).first()
        return None if row is None else (row.message_id, row.sequence_no, row.create_time)

    async def count(self, point: ForkPoint) -> int:
        """How many messages are there."""
        return int(await self._db.scalar(_COUNT, self._at(point)) or 0)

    async def open_calls(self, point: ForkPoint) -> tuple[int, list[str]] | None:
        """The last message there with calls that have no result yet, and their ids.

        None when somebody has spoken since, as after a call that was given up.
        """
        row = (await self._db.execute(_CALLING, self._at(point))).first()
        if row is None or not row.tool_calls:
            return None
        answered = await self._db.scalars(_ANSWERED, self._at(point) | {"calling": row.sequence_no})
        given = set(answered)
        waiting = [call_id for call_id in call_ids(row.tool_calls) if call_id not in given]
        return (row.sequence_no, waiting) if waiting else None

    async def window(self, point: ForkPoint) -> ForkWindow:
        """The window as it was at an earlier place, from the summaries that were there by then."""
        rows = await self._db.execute(_SUMMARIES, self._at(point) | {"before": point.before})
        pointer, covered, found = 0, point.upto, list[tuple[str, int]]()
        for row in rows:
            # The newest first: what it covers was merged into it, or is of a time that was left.
            if row.to_seq < covered:
                pointer, covered = max(pointer, row.to_seq), row.from_seq
                found.append((row.summary_id, row.tokens))
        return ForkWindow(pointer, dict(reversed(found)))

    async def tokens(self, summary_ids: Sequence[str]) -> dict[str, int]:
        """The tokens of those of the summaries that are there, in the order of the ids."""
        values = self._values | {"ids": list(summary_ids)}
        rows = await self._db.execute(_SUMMARY_TOKENS, values)
        found = {row.summary_id: row.tokens for row in rows}
        return {summary_id: found[summary_id] for summary_id in summary_ids if summary_id in found}

    async def state_source(self, point: ForkPoint) -> tuple[str, str] | None:
        """The last copy of the working state by then: `checkpoint` or `snapshot`, and its id."""
        row = (await self._db.execute(_STATES, self._at(point) | {"before": point.before})).first()
        return None if row is None else (row.kind, row.id)

    async def copy(self, point: ForkPoint, window: ForkWindow, fork: Session) -> bool:
        """Copy what is there into a new session; whether messages wait to be found by searches."""
        ids = {"ids": list(window.summaries), "new_ids": list(fork.summary_ids)}
        fork_id = fork.session_id
        await self._db.execute(_COPY_SUMMARIES, self._values | ids | {"fork_id": fork_id})
        await self._copy_blocks(point, fork_id)
        return await self._copy_messages(point, fork_id)

    async def _copy_messages(self, point: ForkPoint, fork_id: str) -> bool:
        prefix = uuid7().hex[:20]
        await self._db.execute(_COPY, self._at(point) | {"fork_id": fork_id, "prefix": prefix})
        here = {"tenant_id": self._values["tenant_id"], "fork_id": fork_id}
        return bool(await self._db.scalar(_UNINDEXED, here))

    async def _copy_blocks(self, point: ForkPoint, fork_id: str) -> None:
        """Copy the session's own blocks, with the texts that they had there."""
        values = {"before": point.before, "fork_id": fork_id, "prefix": uuid7().hex[:20]}
        await self._db.execute(_COPY_BLOCKS, self._values | values)
