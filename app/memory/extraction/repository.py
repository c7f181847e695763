"""SQL for extraction: what is unread, how far it was read, and the log of runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Text,
    and_,
    cast,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import undefer

from app.conversation.messages.models import Message
from app.conversation.sessions.models import Session
from app.conversation.sessions.repository import SessionRepository
from app.identity.agents.config import Eviction
from app.identity.projects.repository import Project
from app.identity.tenants.access import Access
from app.identity.usage.models import PaidAnswer
from app.identity.usage.repository import KEPT
from app.identity.users.repository import User, visible_user_ids
from app.identity.users.schemas import UserNotFoundError
from app.language.llm.extractor import ModelUse
from app.memory.extraction.models import ExtractionRun
from app.memory.extraction.schemas import RunNotFoundError
from app.memory.memories.eviction_repository import EvictionRepository
from app.memory.memories.injection_repository import InjectionUseRepository
from app.memory.memories.models import ContextInjection, Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.repository import current
from app.memory.memories.visibility_sql import visible
from app.platform.database.base import after
from app.platform.database.engine import clock_of

DAY = timedelta(hours=24)

DERIVED = and_(Memory.source == "ai", Memory.memory_type != "correction")
"""What a person saved is a person's to end, and so is what mends a mistake."""

_COUNTS = and_(
    Memory.status == "active",
    or_(Memory.expires_at.is_(None), Memory.expires_at > func.now()),
    or_(Memory.valid_to.is_(None), Memory.valid_to > func.now()),
)


class Recalled(NamedTuple):
    """A memory that was put before the model, whether it counts still, since when it was shown, and
    whether an answer is known to have had its words.
    """

    memory_id: str
    content: str
    source_error: str | None
    counts: bool
    since: datetime
    drawn_on: bool


class ExtractionRepository:
    """Readings of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access
        self._tenant_id = access.tenant_id

    async def after(
        self, session_id: str, sequence_no: int, *, limit: int, to: int | None = None
    ) -> Sequence[Message]:
        """Messages behind a place, up to `to` at the most, in order.

        Copies in a fork are not among them: they are read where they were said.
        """
        statement = self._messages(session_id).where(
            Message.sequence_no > sequence_no, Message.copied_from.is_(None)
        )
        if to is not None:
            statement = statement.where(Message.sequence_no <= to)
        rows = await self._db.scalars(statement.order_by(Message.sequence_no).limit(limit))
        return rows.all()

    async def before(self, session_id: str, sequence_no: int, *, limit: int) -> list[Message]:
        """The last messages up to a place, in order."""
        rows = await self._db.scalars(
            self._messages(session_id)
            .where(Message.sequence_no <= sequence_no)
            .order_by(Message.sequence_no.desc())
            .limit(limit)
        )
        return list(reversed(rows.all()))

    async def system_texts(self, session_id: str, *, limit: int) -> Sequence[str]:
        """The newest texts of system messages: what the model was told, by nobody's mouth."""
        rows = await self._db.scalars(
            select(Message.content)
            .where(
                Message.tenant_id == self._tenant_id,
                Message.session_id == session_id,
                Message.role == "system",
            )
            .order_by(Message.sequence_no.desc())
            .limit(limit)
        )
        return rows.all()

    async def recalled(
        self, session_id: str, *, limit: int, from_elsewhere: bool = False
    ) -> Sequence[Recalled]:
        """Memories that stood in the session's context, those of last first; none deleted.

        Args:
            from_elsewhere: none that was made of this session itself.

        """
        elsewhere = Memory.session_id.is_distinct_from(session_id) if from_elsewhere else true()
        rows = await self._db.execute(
            select(
                Memory.memory_id,
                Memory.content,
                Memory.source_error,
                _COUNTS,
                ContextInjection.first_at,
                ContextInjection.used_estimated_at.is_not(None),
            )
            .join(
                ContextInjection,
                (ContextInjection.tenant_id == self._tenant_id)
                & (ContextInjection.memory_id == Memory.memory_id),
            )
            .where(
                Memory.tenant_id == self._tenant_id,
                ContextInjection.session_id == session_id,
                Memory.status != "deleted",
                elsewhere,
            )
            .order_by(ContextInjection.last_at.desc(), Memory.memory_id)
            .limit(limit)
        )
        return [Recalled(*row) for row in rows]

    async def note_drawn_on(self, session_id: str, memory_ids: Sequence[str]) -> None:
        """Note that answers of the session had the words of these memories; the first time counts.

        Safe to repeat.
        """
        uses = InjectionUseRepository(self._db, self._tenant_id)
        await uses.note(session_id, memory_ids, await clock_of(self._db), estimated=True)

    def _messages(self, session_id: str) -> Any:
        return (
            select(Message)
            .where(Message.tenant_id == self._tenant_id, Message.session_id == session_id)
            .options(undefer(Message.copied_from))
        )

    async def hold(self, session_id: str | None, user_id: str | None) -> None:
        """Keep the session and the user from being erased before the transaction ends.

        In the order in which an erasure takes them, and before any memory: so the two wait
        for each other once, and never in a ring.

        Raises:
            SessionNotFoundError, UserNotFoundError: they were erased before.

        """
        if session_id is not None:
            await SessionRepository(self._db, self._access).get(session_id, lock=True)
        if user_id is None:
            return
        held = await self._db.scalar(
            select(User.user_id)
            .where(User.tenant_id == self._tenant_id, User.user_id == user_id)
            .with_for_update(read=True, key_share=True)
        )
        if held is None:
            raise UserNotFoundError(user_id)

    async def hold_project(self, project_id: str) -> None:
        """Let nobody change who may write into a project before the transaction ends; whoever
        does takes the project first.
        """
        await self._db.scalar(
            select(Project.project_id)
            .where(Project.tenant_id == self._tenant_id, Project.project_id == project_id)
            .with_for_update(read=True, key_share=True)
        )

    async def move_watermark(
        self, session_id: str, *, read: int, last: int, taught: bool | None
    ) -> bool:
        """Compare and set: whether the session was read up to `read`, and now is up to `last`.

        Args:
            taught: whether what lies between taught anything; None where that is not known.

        """
        moved = await self._db.scalar(
            update(Session)
            .where(
                Session.tenant_id == self._tenant_id,
                Session.session_id == session_id,
                Session.last_extracted_seq == read,
            )
            .values(
                last_extracted_seq=last,
                # Unknown and not is unknown.
                taught=taught if read == 0 else Session.taught.op("OR")(literal(taught, Boolean)),
            )
            .returning(Session.session_id)
            .execution_options(synchronize_session=False)
        )
        return moved is not None

    async def lock_short(self, session_id: str) -> Sequence[Memory]:
        """Short-term memories that count in this session alone and have not ended, locked."""
        rows = await self._db.scalars(
            select(Memory)
            .where(
                Memory.tenant_id == self._tenant_id,
                Memory.scope == "session",
                Memory.scope_id == session_id,
                Memory.tier == "short",
                Memory.status == "active",
                or_(Memory.expires_at.is_(None), Memory.expires_at > func.now()),
            )
            .order_by(Memory.memory_id)
            .with_for_update()
        )
        return rows.all()

    async def lock_derived(self, memory_ids: Iterable[str]) -> dict[str, Memory]:
        """Those of these memories that count still, locked and up to date."""
        rows = await self._db.scalars(
            select(Memory)
            .where(
                Memory.tenant_id == self._tenant_id,
                Memory.memory_id == func.any(cast(sorted(memory_ids), ARRAY(Text))),
                current(),
                visible(self._access),
                DERIVED,
            )
            .order_by(Memory.memory_id)
            .with_for_update()
            .execution_options(populate_existing=True)
        )
        return {row.memory_id: row for row in rows}

    async def lock_weakest(
        self, owner: MemoryOwner, *, keep: int, eviction: Eviction, limit: int
    ) -> Sequence[Memory]:
        """Extracted memories of a bucket beyond the `keep` strongest, weakest first, locked.

        A memory that a person saved is never among them, nor a correction that `weakest` spares.
        """
        ids = await EvictionRepository(self._db, self._access).weakest(
            asdict(owner), keep=keep, eviction=eviction, limit=limit
        )
        rows = await self._db.scalars(
            select(Memory)
            .where(
                Memory.tenant_id == self._tenant_id,
                Memory.memory_id.in_(ids),
                Memory.status == "active",
            )
            .order_by(Memory.memory_id)
            .with_for_update()
        )
        found = {row.memory_id: row for row in rows}
        return [found[memory_id] for memory_id in ids if memory_id in found]

    async def add_run(self, values: Mapping[str, Any]) -> None:
        """Keep a run in the log; `values` are its columns."""
        await self._db.execute(insert(ExtractionRun).values(tenant_id=self._tenant_id, **values))

    async def add_cost(self, extraction_id: str, use: ModelUse) -> None:
        """Count one more call of a run."""
        await self._db.execute(
            update(ExtractionRun)
            .where(
                ExtractionRun.tenant_id == self._tenant_id,
                ExtractionRun.extraction_id == extraction_id,
            )
            .values(
                calls=ExtractionRun.calls + use.calls,
                input_tokens=ExtractionRun.input_tokens + use.input_tokens,
                output_tokens=ExtractionRun.output_tokens + use.output_tokens,
                latency_ms=ExtractionRun.latency_ms + use.latency_ms,
            )
            .execution_options(synchronize_session=False)
        )

    async def paid_up_to(self, session_id: str, watermark: int) -> int | None:
        """Up to which message a model has read behind the watermark in a run that is not stored,
        while its answer is kept; None where nothing is.
        """
        last: int | None = await self._db.scalar(
            select(ExtractionRun.last_sequence_no)
            .join(
                PaidAnswer,
                (PaidAnswer.tenant_id == self._tenant_id)
                & (PaidAnswer.session_id == ExtractionRun.session_id),
            )
            .where(
                ExtractionRun.tenant_id == self._tenant_id,
                ExtractionRun.session_id == session_id,
                ExtractionRun.first_sequence_no == watermark + 1,
                ExtractionRun.status == "extracted",
                PaidAnswer.operation == "extract",
                PaidAnswer.create_time > func.now() - KEPT,
            )
            .order_by(ExtractionRun.create_time.desc())
            .limit(1)
        )
        return last

    async def finish_run(
        self, extraction_id: str, outcomes: Mapping[str, int], maintenance: Mapping[str, Any]
    ) -> None:
        """Close a run whose results are stored, with what came of it, counted."""
        await self._db.execute(
            update(ExtractionRun)
            .where(
                ExtractionRun.tenant_id == self._tenant_id,
                ExtractionRun.extraction_id == extraction_id,
            )
            .values(
                status="committed",
                outcomes=dict(outcomes),
                upkeep=dict(maintenance),
                finish_time=await clock_of(self._db),
            )
            .execution_options(synchronize_session=False)
        )

    async def model_runs(
        self, session_id: str, triggers: Sequence[str]
    ) -> tuple[int, datetime | None]:
        """Readings of a rolling day by a model, and when the first of them was.

        What failed was not read, and what was read again after a crash counts once: it is not among
        them before it is stored, so that the limit does not keep the last one from that.
        """
        watermark = (
            select(Session.last_extracted_seq)
            .where(Session.tenant_id == self._tenant_id, Session.session_id == session_id)
            .scalar_subquery()
        )
        row = (
            await self._db.execute(
                select(
                    func.count(ExtractionRun.first_sequence_no.distinct()),
                    func.min(ExtractionRun.create_time),
                ).where(
                    ExtractionRun.tenant_id == self._tenant_id,
                    ExtractionRun.session_id == session_id,
                    ExtractionRun.trigger.in_(list(triggers)),
                    ExtractionRun.reached_model,
                    or_(
                        ExtractionRun.status == "committed",
                        and_(
                            ExtractionRun.status == "extracted",
                            ExtractionRun.first_sequence_no <= watermark,
                        ),
                    ),
                    ExtractionRun.create_time > func.now() - DAY,
                )
            )
        ).one()
        return int(row[0]), row[1]

    def _visible(self) -> ColumnElement[bool]:
        mine = ExtractionRun.tenant_id == self._tenant_id
        if not self._access.restricted:
            return mine
        theirs = and_(mine, ExtractionRun.user_id.in_(visible_user_ids(self._access)))
        if self._access.agent_id is None:
            return theirs
        return and_(theirs, ExtractionRun.agent_id == self._access.agent_id)

    async def get_run(self, extraction_id: str) -> ExtractionRun:
        """Raises RunNotFoundError."""
        run = await self._db.scalar(
            select(ExtractionRun).where(
                self._visible(), ExtractionRun.extraction_id == extraction_id
            )
        )
        if run is None:
            raise RunNotFoundError(extraction_id)
        return run

    async def runs(
        self, equal: Mapping[str, Any], *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[ExtractionRun]:
        """Newest first, one more than `limit` when another page follows."""
        rows = await self._db.scalars(
            after(
                select(ExtractionRun).where(self._visible()).filter_by(**equal),
                (ExtractionRun.create_time, ExtractionRun.extraction_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()
