"""The handler of jobs `extract` and `rescue`: reads a session behind its watermark until nothing
is left, or nothing of what left the window.

One job, one chunk, one transaction. What is left after it is read by the same job's next
generation, and the experience of an ended session comes last. So a worker killed anywhere
leaves either all of a chunk or nothing of it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeGuard

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.capture import time_said
from app.conversation.sessions.jobs import EXTRACT, RESCUE, TO_SEQ, read_now, rescue_now
from app.conversation.sessions.repository import SessionRepository
from app.identity.usage.repository import AnswerRepository
from app.language.llm.errors import EmbeddingUnavailableError, ModelUnavailableError
from app.language.llm.model_catalogue import ModelCatalogue
from app.memory.extraction.pipeline import Pipeline
from app.memory.extraction.repository import ExtractionRepository
from app.memory.extraction.run_policy import DISABLED, SWITCHED_OFF, RunLimits, model_for
from app.memory.extraction.run_state import RunResult, Trigger, session_purpose
from app.memory.extraction.schemas import FAILURE
from app.memory.extraction.session_reader import MESSAGES, SessionReader, UnreadMessages
from app.memory.memories.record_repository import RecordRepository, rewrite
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository
from app.platform.work.unit import Work

ENDED = "the session has ended"

log = structlog.get_logger()


class WatermarkMovedError(Exception):
    """Another run has read these messages meanwhile: nothing of this one is stored."""


class SessionJobs:
    """Works off what appends, requests and ends of sessions have ordered."""

    def __init__(
        self,
        work: Work,
        pipeline: Pipeline,
        models: ModelCatalogue,
        limits: RunLimits,
        tags: Sequence[str],
        now: Callable[[], datetime],
    ) -> None:
        self._work = work
        self._pipeline = pipeline
        self._models = models
        self._limits = limits
        self._tags = tags
        self._now = now

    async def extract(self, job: ClaimedJob) -> None:
        """Read one chunk, remember what it says, and finish the job.

        Raises:
            SessionNotFoundError: it was deleted meanwhile.
            DeferJobError: a limit is reached, or memory is paused or switched off; nothing was
                read, and the job stays.
            ModelUnavailableError, EmbeddingUnavailableError: nothing was stored; try again.
            LeaseLostError, WatermarkMovedError: another worker has done it.

        """
        if not self._work.enabled:
            raise DeferJobError(self._now() + SWITCHED_OFF, "memory_disabled")
        async with self._work.write(job, while_disabled=True) as unit:
            unread = await SessionReader(unit.db, job, self._tags).read(most=_most(job))
            summary = _told_all(job, unread)
            if summary and unread.session.taught is False:
                await self._pass_over(unit.db, job, unread, "taught_nothing")
                return
            if summary:
                unread = await SessionReader(unit.db, job, self._tags).read(whole=True)
            if not unread.paused and not unread.news:
                await self._pass_over(unit.db, job, unread, "nothing_to_extract")
                return
            if unread.paused:
                await self._expire(unit.db, unread, job)
        if unread.paused:
            # What was said before the pause stays to be read.
            raise DeferJobError(self._now() + DISABLED, "memory_paused")
        model = model_for(self._models, unread.config, unread.principal.config)
        trigger: Trigger = "end" if summary else _trigger(job)
        if model.extractor.model is not None:
            async with self._work.read(job) as db:
                await self._limits.check(
                    db, unread.principal, unread.session.session_id, trigger, self._now
                )
        finish = self._finish_end if summary else self._finish
        try:
            await self._pipeline.run(
                unread.request(job, trigger, summary=summary), model, partial(finish, job, unread)
            )
        except (ModelUnavailableError, EmbeddingUnavailableError) as error:
            if not await self._is_passed_over(job, unread, error, summary=summary):
                raise

    async def _is_passed_over(
        self,
        job: ClaimedJob,
        unread: UnreadMessages,
        error: ModelUnavailableError | EmbeddingUnavailableError,
        *,
        summary: bool,
    ) -> bool:
        """Keep why a run failed, for whoever waits for it, and how much the next one reads.

        Returns:
            Whether the job was finished instead: one message must not bar the rest of its
            session. The failed run stays in the log.

        """
        noted: dict[str, Any] = {FAILURE: {"code": error.code, **error.members}}
        async with self._work.write(job, while_disabled=True) as unit:
            if _is_about_chunk(error):
                # The endpoint answered and will answer so again. What is kept answers another
                # question, and would keep the next one as long.
                answers = AnswerRepository(unit.db, job.tenant_id)
                await answers.delete(session_purpose(unread.session.session_id))
                if error.fault is not None and (summary or unread.messages == 1):
                    await self._pass_over(unit.db, job, unread, "unreadable")
                    return True
                noted["most"] = max(unread.messages // 2, 1)
            await JobRepository(unit.db, job.tenant_id).add_to_payload(job, noted)
        return False

    async def _pass_over(
        self, db: AsyncSession, job: ClaimedJob, unread: UnreadMessages, skipped: str
    ) -> None:
        """Finish without a run."""
        moved = unread.last > unread.session.last_extracted_seq
        since = await self._move(db, job, unread, taught=False if not unread.news else None)
        if unread.more or (moved and job.payload.get("end")):
            await self._go_on(db, job, unread, since)
        if not unread.more:
            await self._expire(db, unread, job)
        await JobRepository(db, job.tenant_id).finish(job, {"skipped": skipped})

    async def _finish(
        self, job: ClaimedJob, unread: UnreadMessages, db: AsyncSession, result: RunResult
    ) -> None:
        """What belongs into the transaction of a chunk's results."""
        since = await self._move(db, job, unread, taught=result.taught)
        if unread.more or (job.payload.get("end") and not result.experienced):
            await self._go_on(db, job, unread, since)
        summary = result.summary()
        if not unread.more:
            # Before the experience is told, which a model may refuse to do.
            summary["expired"] = await self._expire(db, unread, job)
        await JobRepository(db, job.tenant_id).finish(job, summary)

    async def _finish_end(
        self, job: ClaimedJob, unread: UnreadMessages, db: AsyncSession, result: RunResult
    ) -> None:
        """What belongs into the transaction of a session's experience."""
        expired = await self._expire(db, unread, job)
        await JobRepository(db, job.tenant_id).finish(job, result.summary() | {"expired": expired})

    async def _move(
        self, db: AsyncSession, job: ClaimedJob, unread: UnreadMessages, *, taught: bool | None
    ) -> datetime | None:
        """Move the watermark, and with it the place of whatever else reads the session.

        Returns:
            When the first message was said that is left; None when none is known to be.

        Raises:
            WatermarkMovedError: another run has moved it meanwhile.

        """
        span, repository = unread.span, ExtractionRepository(db, unread.principal.access)
        moved = await repository.move_watermark(
            span.session_id, read=span.read, last=span.last, taught=taught
        )
        if not moved:
            raise WatermarkMovedError
        if unread.drawn_on:
            await repository.note_drawn_on(span.session_id, unread.drawn_on)
        if not unread.more and job.kind != RESCUE:
            return None
        left = await repository.after(span.session_id, span.last, limit=1)
        if not left:
            return None
        since = time_said(left[0].metadata_, left[0].create_time)
        other = EXTRACT if job.kind == RESCUE else RESCUE
        await JobRepository(db, job.tenant_id).set_lane_order(other, job.key, since)
        return since

    async def _expire(self, db: AsyncSession, unread: UnreadMessages, job: ClaimedJob) -> int:
        """What ends with the session, which a rescue does not read to its end."""
        if job.kind == RESCUE:
            return 0
        return await _expire_short_term(db, unread, job, self._now())

    async def _go_on(
        self, db: AsyncSession, job: ClaimedJob, unread: UnreadMessages, since: datetime | None
    ) -> None:
        """Order the rest, in its place among what the user's other sessions have unread."""
        payload: dict[str, Any] = dict(job.payload) | {"continued": True, "most": _most(job)}
        if job.kind == RESCUE:
            to_seq = max(unread.last, payload.get(TO_SEQ, 0))
            order = rescue_now(
                unread.session, to_seq=to_seq, since=since, creator=job.creator, payload=payload
            )
        else:
            order = read_now(unread.session, since=since, creator=job.creator, payload=payload)
        await JobRepository(db, job.tenant_id).schedule(order)


async def _expire_short_term(
    db: AsyncSession, unread: UnreadMessages, job: ClaimedJob, at: datetime
) -> int:
    """Let memories of tier short that count in this session alone expire; how many.

    They keep their words for `as_of`, and the purge takes them like others that expired. A
    session that was reopened meanwhile keeps them.
    """
    access, session_id = unread.principal.access, unread.session.session_id
    session = await SessionRepository(db, access).get(session_id, lock=True)
    if session.status != 0:
        return 0
    rows = await ExtractionRepository(db, access).lock_short(session_id)
    changes = [await rewrite(db, row, {"expires_at": at}, "UPDATE") for row in rows]
    await RecordRepository(db, access).note(
        [change for change in changes if change is not None],
        actor=unread.principal.key_id,
        reason=ENDED,
        job_id=job.job_id,
    )
    return len(rows)


def _most(job: ClaimedJob) -> int:
    """How many messages to read; after an answer that cannot be used half as many as before, and
    what follows a smaller chunk is as small.
    """
    most = job.payload.get("most")
    return most if isinstance(most, int) and 0 < most <= MESSAGES else MESSAGES


def _is_about_chunk(
    error: ModelUnavailableError | EmbeddingUnavailableError,
) -> TypeGuard[ModelUnavailableError]:
    """Whether less text may be answered where this was not.

    A model that cannot be reached is asked for the same chunk again, so that answers that were
    kept for it are of use; so is one that has read the chunk, and decided nothing that is of use.
    """
    return isinstance(error, ModelUnavailableError) and error.would_repeat and not error.reconciling


def _told_all(job: ClaimedJob, unread: UnreadMessages) -> bool:
    """Whether an ended session is read to its end, and only its experience is left."""
    news = unread.last > unread.session.last_extracted_seq
    return bool(job.payload.get("end")) and unread.ended and not unread.paused and not news


def _trigger(job: ClaimedJob) -> Trigger:
    """Why the session is read; what goes on after a first chunk is not counted again."""
    if job.kind == RESCUE:
        return "rescue"
    if job.payload.get("continued"):
        return "continued"
    if job.payload.get("end"):
        return "end"
    return "explicit" if job.payload.get("explicit") else "automatic"
