"""Stored conversations read again by the present keyless reader, session by session.

What an older keyless reader made of a session is archived in the transaction that stores what
the present one finds, so a session is read again as a whole or not at all. The committed run in
the log says that it was: a command that was stopped goes on behind it.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.language.llm.errors import UnknownModelError
from app.language.llm.model_catalogue import ModelCatalogue
from app.memory.extraction.pipeline import Pipeline
from app.memory.extraction.repository import ExtractionRepository
from app.memory.extraction.reread_repository import (
    KEYLESS,
    REREAD,
    Replaceable,
    RereadRepository,
    WaitingSession,
)
from app.memory.extraction.run_policy import model_for
from app.memory.extraction.run_state import MessageSpan, RunRequest, RunResult
from app.memory.extraction.session_reader import SessionReader, UnreadMessages
from app.memory.memories.record_repository import MemoryChange, RecordRepository, snapshot
from app.memory.memories.repository import MemoryRepository
from app.platform.database.base import new_id
from app.platform.database.engine import Database
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import ClaimedJob


class AlreadyReadError(Exception):
    """Another command has read the session meanwhile; nothing of this one is stored."""


@dataclass(frozen=True, slots=True)
class RereadPlan:
    """Which sessions of a tenant are read again.

    Args:
        only_session: the only session that is read, if it is one.
        sessions: in order of time.

    """

    tenant_id: str
    only_session: str | None
    sessions: tuple[WaitingSession, ...]


@dataclass(frozen=True, slots=True)
class SessionReread:
    """What came of a session, or would.

    Args:
        archived: what the older reader made of it.
        found: what is stored instead, each with the messages that say it.

    """

    session_id: str
    archived: Sequence[Replaceable] = ()
    found: Sequence[tuple[str, Sequence[str]]] = ()


@dataclass(frozen=True, slots=True)
class _PreparedReread:
    request: RunRequest
    old: Sequence[Replaceable]


class RereadService:
    """Reads sessions again. Nothing that a caller wrote or changed is touched."""

    def __init__(
        self,
        database: Database,
        pipeline: Pipeline,
        models: ModelCatalogue,
        tags: Sequence[str],
        now: Callable[[], datetime],
    ) -> None:
        """Read with the keyless one of `models`; blocks of `tags` were said by nobody."""
        self._database = database
        self._pipeline = pipeline
        self._models = models
        self._model = models.keyless
        self._tags = tags
        self._now = now

    @property
    def reader(self) -> str:
        """The name and version of the keyless reader that reads."""
        return self._model.extractor.name

    async def plan(self, tenant_id: str, user_id: str | None, session_id: str | None) -> RereadPlan:
        """What waits.

        Args:
            user_id: only sessions of this user.
            session_id: only this session; what was made of others as well stays.

        """
        async with self._database.begin(tenant_id) as db:
            waiting = await self._repository(db, tenant_id, session_id).waiting(user_id)
        return RereadPlan(tenant_id, session_id, tuple(waiting))

    async def reread(
        self, plan: RereadPlan, session: WaitingSession, *, dry_run: bool
    ) -> SessionReread | None:
        """Read one session again; None where that is not to be done.

        It is not to be done where a model reads, memory is paused or disabled, or another
        command came first.

        Args:
            dry_run: store nothing. What sessions before it would leave is not known then.

        Raises:
            EmbeddingUnavailableError, DatabaseBusyError: nothing was stored; try again.
            SessionNotFoundError: it was deleted meanwhile.

        """
        try:
            prepared = await self._prepare(plan, session)
        except DeferJobError:
            return None
        if prepared is None:
            return None
        request, old = prepared.request, prepared.old
        if dry_run:
            drafts, _ = await self._pipeline.preview(replace(request, preview=True), self._model)
        else:
            try:
                result = await self._pipeline.run(
                    replace(request, hold=self._hold(plan, session, prepared)), self._model, _finish
                )
            except AlreadyReadError:
                return None
            drafts = result.drafts
        stored = [draft for draft in drafts if (draft.event or "ADD") not in {"REJECT", "NONE"}]
        return SessionReread(
            session.session_id, old, [(draft.proposed.content, draft.evidence) for draft in stored]
        )

    def _repository(
        self, db: AsyncSession, tenant_id: str, only_session: str | None
    ) -> RereadRepository:
        return RereadRepository(db, Access(tenant_id), self.reader, only_session)

    async def _prepare(self, plan: RereadPlan, session: WaitingSession) -> _PreparedReread | None:
        """What there is to read, and to replace.

        Raises:
            SessionNotFoundError: it was deleted meanwhile.
            DeferJobError: the tenant, the agent or the user is disabled.

        """
        job = self._job(plan.tenant_id, session)
        async with self._database.begin(plan.tenant_id) as db:
            unread = await SessionReader(db, job, self._tags).read(again=True)
            if unread.paused or self._is_model(unread):
                return None
            repository = self._repository(db, plan.tenant_id, plan.only_session)
            replaced = await repository.replaceable(session.user_id)
            kept = await repository.kept(session.user_id)
            settled = await repository.settled(session)
        turns = [
            replace(turn, context=turn.context or turn.message_id in settled)
            for turn in unread.turns
        ]
        request = replace(unread, turns=turns).request(job, REREAD)
        request = replace(
            request,
            span=MessageSpan(session.session_id, 0, unread.last),
            ignored=frozenset(memory.memory_id for memory in replaced),
            kept=kept,
        )
        return _PreparedReread(
            request, [memory for memory in replaced if memory.session_id == session.session_id]
        )

    def _is_model(self, unread: UnreadMessages) -> bool:
        try:
            model = model_for(self._models, unread.config, unread.principal.config)
        except UnknownModelError:
            return True
        return not model.extractor.name.startswith(KEYLESS)

    def _job(self, tenant_id: str, session: WaitingSession) -> ClaimedJob:
        """Stands for the command in the history; there is no such row."""
        now = self._now()
        return ClaimedJob(
            tenant_id=tenant_id,
            job_id=new_id("job"),
            kind=REREAD,
            key=session.session_id,
            agent_id=session.agent_id,
            user_id=session.user_id,
            session_id=session.session_id,
            creator=None,
            signals=frozenset(),
            payload={},
            attempts=1,
            max_attempts=1,
            generation=0,
            lease_token="",
            due_at=now,
            waiting_since=now,
            create_time=now,
            started_at=now,
        )

    def _hold(
        self, plan: RereadPlan, session: WaitingSession, prepared: _PreparedReread
    ) -> Callable[[AsyncSession], Awaitable[None]]:
        """Archives what is replaced, first in the transaction that stores the rest."""

        async def hold(db: AsyncSession) -> None:
            access = prepared.request.principal.access
            memories = MemoryRepository(db, access)
            for scope, scope_id in sorted(
                {(memory.scope, memory.scope_id) for memory in prepared.old}
            ):
                await memories.lock_bucket(scope, scope_id)
            await ExtractionRepository(db, access).hold(session.session_id, session.user_id)
            repository = self._repository(db, plan.tenant_id, plan.only_session)
            if await repository.is_done(session.session_id):
                raise AlreadyReadError
            ids = {memory.memory_id for memory in prepared.old}
            # Whoever changed one meanwhile keeps it.
            still = {memory.memory_id for memory in await repository.replaceable(session.user_id)}
            changes = []
            for row in await repository.lock(sorted(ids & still)):
                before = snapshot(row)
                await memories.archive(row)
                changes.append(MemoryChange("ARCHIVE", before, snapshot(row)))
            await RecordRepository(db, access).note(
                changes, actor=None, reason=REREAD, job_id=prepared.request.job_id
            )

        return hold


async def _finish(_db: AsyncSession, _result: RunResult) -> None:
    """The run in the log is all that is to be kept."""
