"""The table of summaries; SQL for them, the messages they replace, and the pointer where the window
begins.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    RowMapping,
    Select,
    SmallInteger,
    String,
    Text,
    case,
    func,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.conversation.messages.models import Message
from app.conversation.messages.window import EVENT_TYPE
from app.conversation.sessions.models import Session
from app.identity.tenants.access import Access
from app.platform.database.base import Base, Id, TenantOwned, after
from app.prompting.compaction.schemas import SummaryNotFoundError

READ: Final = 8_000
"""Code points of a message that a summariser is shown."""


class SessionSummary(TenantOwned, Base):
    """The summary of evicted messages; never changed, and only deleted with its session.

    Level 0 covers one eviction; a higher level merges several of the level below.
    `sessions.summary_ids` lists those that are in the context now.
    """

    __tablename__ = "session_summaries"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("level >= 0", name="level"),
        CheckConstraint("from_seq <= to_seq", name="range"),
        Index("session_summaries_idx_session", "tenant_id", "session_id", "create_time",
              "summary_id"),
    )  # fmt: skip

    summary_id: Mapped[str] = mapped_column(Id, primary_key=True)
    session_id: Mapped[str] = mapped_column(Id)
    level: Mapped[int] = mapped_column(SmallInteger)
    # The summary before it, which was read together with the messages.
    parent_id: Mapped[str | None] = mapped_column(Id)
    from_seq: Mapped[int]
    to_seq: Mapped[int]
    content: Mapped[str] = mapped_column(Text)
    tokens: Mapped[int]
    # What it replaced: messages of the range, and their tokens.
    evicted_messages: Mapped[int]
    evicted_tokens: Mapped[int]
    # Who wrote it: a summariser's name.
    model: Mapped[str] = mapped_column(String(255))
    # It was longer than allowed and was cut at the end of a sentence.
    shortened: Mapped[bool] = mapped_column(server_default=text("false"), default=False)
    reason: Mapped[str] = mapped_column(String(20))
    creator: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))


# A data URL is replaced by a placeholder first, and may be longer than all that is read.
_READ_CONTENT = case(
    (func.strpos(Message.content, "base64,") > 0, Message.content),
    else_=func.left(Message.content, READ),
)


class SummaryRepository:
    """Summaries of one tenant. Never begins or ends a transaction; whether the caller may see
    the session is to be asked of `SessionRepository` first.
    """

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._tenant_id = access.tenant_id

    def _of(self, session_id: str) -> Select[SessionSummary]:
        return select(SessionSummary).where(
            SessionSummary.tenant_id == self._tenant_id, SessionSummary.session_id == session_id
        )

    async def present(self, session: Session) -> list[SessionSummary]:
        """The summaries in the session's context, oldest first; empty when there are none."""
        if not session.summary_ids:
            return []
        rows = await self._db.scalars(
            self._of(session.session_id).where(SessionSummary.summary_id.in_(session.summary_ids))
        )
        found = {row.summary_id: row for row in rows}
        return [found[summary_id] for summary_id in session.summary_ids if summary_id in found]

    async def get(self, session_id: str, summary_id: str) -> SessionSummary:
        """Raises SummaryNotFoundError."""
        row = await self._db.scalar(
            self._of(session_id).where(SessionSummary.summary_id == summary_id)
        )
        if row is None:
            raise SummaryNotFoundError(summary_id)
        return row

    async def list_summaries(
        self,
        session_id: str,
        *,
        level: int | None,
        start: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[SessionSummary]:
        """Summaries, newest first; one more than `limit` when a further page follows.

        Args:
            session_id: the session.
            level: only summaries of this level.
            start: creation time and id of the last summary of the previous page.
            limit: size of a page.

        """
        statement = self._of(session_id)
        if level is not None:
            statement = statement.where(SessionSummary.level == level)
        rows = await self._db.scalars(
            after(
                statement,
                (SessionSummary.create_time, SessionSummary.summary_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def add_all(self, summaries: Sequence[SessionSummary]) -> None:
        """Store summaries; each gets its time."""
        for summary in summaries:
            summary.tenant_id = self._tenant_id
            self._db.add(summary)
            # In turn, so that their times of creation have their order.
            await self._db.flush()
            await self._db.refresh(summary)

    async def evicted(self, session: Session, to_seq: int) -> Sequence[RowMapping]:
        """Messages of the window up to `to_seq`, in order, as far as a summariser reads them."""
        rows = await self._db.execute(
            select(
                Message.message_id,
                Message.sequence_no,
                Message.role,
                _READ_CONTENT.label("content"),
                Message.content_parts,
                Message.tool_calls,
                Message.tool_call_id,
                Message.name,
                Message.metadata_[EVENT_TYPE].astext.label(EVENT_TYPE),
            )
            .where(*self._leaving(session, to_seq))
            .order_by(Message.sequence_no)
        )
        return rows.mappings().all()

    async def leaving(self, session: Session, to_seq: int) -> Sequence[str]:
        """Ids of the same messages."""
        rows = await self._db.scalars(
            select(Message.message_id)
            .where(*self._leaving(session, to_seq))
            .order_by(Message.sequence_no)
        )
        return rows.all()

    def _leaving(self, session: Session, to_seq: int) -> tuple[Any, ...]:
        aside = (
            select(Session.set_aside)
            .where(Session.tenant_id == self._tenant_id, Session.session_id == session.session_id)
            .scalar_subquery()
        )
        return (
            Message.tenant_id == self._tenant_id,
            Message.session_id == session.session_id,
            Message.sequence_no > session.in_context_from,
            Message.sequence_no <= to_seq,
            ~aside.op("@>", is_comparison=True)(Message.sequence_no),
        )

    async def move(
        self, session: Session, to_seq: int, summaries: Sequence[SessionSummary]
    ) -> None:
        """Set the pointer of a locked session, and the summaries of the messages before it."""
        await self._db.execute(
            update(Session)
            .where(Session.tenant_id == self._tenant_id, Session.session_id == session.session_id)
            .values(
                in_context_from=to_seq,
                summary_ids=[summary.summary_id for summary in summaries],
                summary_tokens=sum(summary.tokens for summary in summaries),
            )
            .execution_options(synchronize_session=False)
        )
        await self._db.refresh(session)
