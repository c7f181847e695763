"""SQL for windows, in a transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.message_forms import Spoken, TextEnds, ends_of, spoken_of
from app.conversation.messages.models import Message
from app.conversation.messages.pressure import Counted
from app.conversation.messages.window import Window, WindowMessage, window_message
from app.conversation.messages.window_sql import recount, tail_rows, waiting_calls, whole_rows
from app.conversation.sessions.models import Session
from app.conversation.sessions.policy import WindowPolicy
from app.identity.tenants.access import Access

_HERE = {"tenant": "CAST(:tenant_id AS text)", "session": "s"}
_OF_SESSION = (
    "FROM sessions AS s WHERE s.tenant_id = CAST(:tenant_id AS text) "
    "AND s.session_id = CAST(:session_id AS text)"
)
_BUDGET, _INSTRUCTIONS = "CAST(:budget AS int8)", "CAST(:instructions AS int8)"

_WAITING = text(f"SELECT {waiting_calls(**_HERE)} AS waiting {_OF_SESSION}")
_WHOLE = text(
    f"SELECT read.* FROM (SELECT s.* {_OF_SESSION}) AS s CROSS JOIN LATERAL "
    f"({whole_rows(**_HERE)}) AS read ORDER BY read.sequence_no"
)
_TAIL = text(
    f"SELECT read.* FROM (SELECT s.* {_OF_SESSION}) AS s CROSS JOIN LATERAL "
    f"({tail_rows(**_HERE, budget=_BUDGET, instructions=_INSTRUCTIONS)}) AS read "
    "ORDER BY read.sequence_no"
)
_COUNTED = text(
    f"SELECT counted.* FROM (SELECT s.* {_OF_SESSION}) AS s CROSS JOIN LATERAL "
    f"({recount(**_HERE, instructions=_INSTRUCTIONS)}) AS counted"
)
_RECOUNT = text(
    "UPDATE sessions AS kept SET window_tokens = counted.tokens, "
    "window_messages = counted.messages, window_seq = s.last_sequence_no, "
    "last_user_seq = counted.asked, opening_seq = counted.opening "
    f"FROM (SELECT s.* {_OF_SESSION}) AS s CROSS JOIN LATERAL "
    f"({recount(**_HERE, instructions=_INSTRUCTIONS)}) AS counted "
    "WHERE kept.tenant_id = CAST(:tenant_id AS text) AND kept.session_id = s.session_id"
)


_STEP_BACK = text(
    "UPDATE sessions AS kept SET in_context_from = newest.number - 1 "
    "FROM (SELECT max(m.sequence_no) AS number FROM messages AS m "
    "JOIN sessions AS s ON s.tenant_id = CAST(:tenant_id AS text) "
    "AND s.session_id = m.session_id "
    "WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.session_id = CAST(:session_id AS text) "
    "AND m.role NOT IN ('tool', 'system') AND NOT m.sequence_no <@ s.set_aside) AS newest "
    "WHERE kept.tenant_id = CAST(:tenant_id AS text) "
    "AND kept.session_id = CAST(:session_id AS text) AND newest.number <= kept.in_context_from"
)


@dataclass(frozen=True, slots=True)
class WindowCounters:
    """How full a window is, as a row of `sessions` says it."""

    window_tokens: int
    window_messages: int
    last_user_seq: int
    summary_tokens: int
    token_scale: float
    in_context_from: int
    beside_tokens: int | None = None
    memory_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """How a window is to be read.

    Args:
        policy: of the session.
        now: the time; calls without a result for long are not waited for.

    """

    policy: WindowPolicy
    now: datetime

    @property
    def answerable_since(self) -> datetime:
        return self.now - timedelta(hours=self.policy.approval_hours)


class WindowRepository:
    """The window of one session. Never begins or ends a transaction.

    Whether the caller may see the session is `SessionRepository`'s to say, first.
    """

    def __init__(self, db: AsyncSession, access: Access, session: Session) -> None:
        self._db = db
        self._session = session
        self._values: dict[str, Any] = {
            "tenant_id": access.tenant_id,
            "session_id": session.session_id,
        }

    async def whole(self, reading: WindowRequest) -> Window:
        """All of it with its opening, and nothing else from before: what compaction cuts."""
        rows = (await self._db.execute(_WHOLE, self._values)).mappings()
        found = [window_message(dict(row)) for row in rows]
        inside = sum(message.sequence_no > self._session.in_context_from for message in found)
        return await self._window(found, inside, reading)

    async def tail(
        self, reading: WindowRequest, max_tokens: int
    ) -> tuple[Window, Mapping[str, Spoken], Mapping[str, TextEnds]]:
        """As much of its end as `max_tokens` can hold, with what must be shown besides; then the
        messages by id, and the ends of those that are too long to be shown whole.
        """
        bounds = {"budget": max_tokens, "instructions": reading.policy.carried_tokens}
        rows = [
            dict(row) for row in (await self._db.execute(_TAIL, self._values | bounds)).mappings()
        ]
        found = [window_message(row) for row in rows]
        window = await self._window(
            found,
            self._session.window_messages,
            reading,
            rows[0]["unbroken_from"] if rows else None,
        )
        return window, spoken_of(rows), ends_of(rows)

    async def _window(
        self,
        found: Sequence[WindowMessage],
        total: int,
        reading: WindowRequest,
        unbroken_from: int | None = None,
    ) -> Window:
        waiting: list[str] | None = await self._db.scalar(_WAITING, self._values)
        return Window(
            messages=tuple(found),
            pointer=self._session.in_context_from,
            total=total,
            answerable_since=reading.answerable_since,
            instructions_tokens=reading.policy.carried_tokens,
            waiting=frozenset(waiting or ()),
            unbroken_from=unbroken_from,
        )

    async def messages(self, first: int, last: int) -> Sequence[Message]:
        """Messages of the window with numbers from `first` to `last`, in order, whole."""
        rows = await self._db.scalars(
            select(Message)
            .where(
                Message.tenant_id == self._session.tenant_id,
                Message.session_id == self._session.session_id,
                Message.sequence_no.between(first, last),
            )
            .order_by(Message.sequence_no)
        )
        aside = self._session.set_aside
        return [row for row in rows if not any(row.sequence_no in omitted for omitted in aside)]

    async def counted(self, policy: WindowPolicy) -> Counted:
        """The counters of the session; counted now, and not kept, where they are behind."""
        session = self._session
        if session.window_seq == session.last_sequence_no:
            return session
        values = self._values | {"instructions": policy.carried_tokens}
        row = (await self._db.execute(_COUNTED, values)).one()
        return WindowCounters(
            window_tokens=row.tokens,
            window_messages=row.messages,
            last_user_seq=row.asked,
            summary_tokens=session.summary_tokens,
            token_scale=session.token_scale,
            in_context_from=session.in_context_from,
            beside_tokens=session.beside_tokens,
            memory_tokens=session.memory_tokens,
        )

    async def recount(self, policy: WindowPolicy) -> None:
        """Count the window again, after its bounds or its messages have changed.

        The session must be locked; what was changed of it is written first.
        """
        await self._db.flush()
        await self._db.execute(_RECOUNT, self._values | {"instructions": policy.carried_tokens})
        counters = [
            "window_tokens",
            "window_messages",
            "window_seq",
            "last_user_seq",
            "opening_seq",
        ]
        await self._db.refresh(self._session, counters)

    async def recount_deleted(self, policy: WindowPolicy) -> None:
        """As `recount`, after messages were deleted. A window that has lost all of its own begins
        at the newest step that is left, also where a summary has it: the newest is always shown.
        """
        await self.recount(policy)
        if self._session.window_messages:
            return
        await self._db.execute(_STEP_BACK, self._values)
        await self._db.refresh(self._session, ["in_context_from"])
        await self.recount(policy)
