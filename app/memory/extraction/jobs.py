"""The handler of jobs `extract` and `rescue`: reads a session behind its watermark until nothing
is left, or nothing of what left the window.

One job, one chunk, one transaction. What is left after it is read by the same job's next
generation, and the experience of an ended session comes last. So a worker killed anywhere
leaves either all of a chunk or nothing of it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.jobs import RESCUE, TO_SEQ, read_now, rescue_now
from app.identity.tenants.access import Access
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.model_catalogue import ModelCatalogue
from app.memory.extraction.choosing import chosen
from app.memory.extraction.expiry import expire_short
from app.memory.extraction.pipeline import Pipeline
from app.memory.extraction.reading import DISABLED, MESSAGES, Limits, Reading, SessionReader
from app.memory.extraction.repository import ExtractionRepository
from app.memory.extraction.work import Ran, Trigger
from app.platform.jobs.errors import DeferJobError
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository
from app.platform.work.unit import Work

BUSY = timedelta(seconds=1)
"""How long a job waits while another reads the same session."""

SWITCHED_OFF = timedelta(minutes=5)
"""How long work waits before it looks whether MEMORY_ENABLED is true again."""

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
        limits: Limits,
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
            DeferJobError: a limit is reached, memory is paused or switched off, or another job
                reads the session; nothing was read, and it stays owed.
            ModelUnavailableError, EmbeddingUnavailableError: nothing was stored; try again.
            LeaseLostError, WatermarkMovedError: another worker has done it.

        """
        if not self._work.enabled:
            raise DeferJobError(self._now() + SWITCHED_OFF, "memory_disabled")
        async with self._work.read(job) as db:
            # Before the watermark is read: who ends in between has moved it.
            if await ExtractionRepository(db, Access(job.tenant_id)).is_being_read(job):
                raise DeferJobError(self._now() + BUSY, "session_busy")
            reading = await SessionReader(db, job, self._tags).read(most=_most(job))
            summary = _told_all(job, reading)
            if summary:
                reading = await SessionReader(db, job, self._tags).read(whole=True)
            if not reading.paused and not reading.news:
                await self._pass_over(db, job, reading, "nothing_to_extract")
                return
            if reading.paused:
                await self._expire(db, reading, job)
        if reading.paused:
            # What was said before the pause stays owed.
            raise DeferJobError(self._now() + DISABLED, "memory_paused")
        model = chosen(self._models, reading.config, reading.principal.config)
        trigger: Trigger = "end" if summary else _trigger(job)
        if model.extractor.model is not None:
            async with self._work.read(job) as db:
                await self._limits.check(db, reading, trigger, self._now)
        work = reading.work(job, trigger, summary=summary)
        finish = self._finish_end if summary else self._finish
        try:
            await self._pipeline.run(work, model, partial(finish, job, reading))
        except ModelUnavailableError as error:
            if error.fault is None or not (summary or reading.messages == 1):
                raise
            # The endpoint answered and will answer so again: one message must not bar the
            # rest of its session. The failed run stays in the log.
            async with self._work.write(job, while_disabled=True) as unit:
                await self._pass_over(unit.db, job, reading, "unreadable")

    async def _pass_over(
        self, db: AsyncSession, job: ClaimedJob, reading: Reading, skipped: str
    ) -> None:
        """Finish without a run."""
        moved = reading.last > reading.session.last_extracted_seq
        await self._move(db, reading)
        if reading.more or (moved and job.payload.get("end")):
            await self._go_on(db, job, reading)
        if not reading.more:
            await self._expire(db, reading, job)
        await JobRepository(db, job.tenant_id).finish(job, {"skipped": skipped})

    async def _finish(self, job: ClaimedJob, reading: Reading, db: AsyncSession, ran: Ran) -> None:
        """What belongs into the transaction of a chunk's results."""
        await self._move(db, reading)
        if reading.more or job.payload.get("end"):
            await self._go_on(db, job, reading)
        result = ran.result()
        if not reading.more:
            # Before the experience is told, which a model may refuse to do.
            result["expired"] = await self._expire(db, reading, job)
        await JobRepository(db, job.tenant_id).finish(job, result)

    async def _finish_end(
        self, job: ClaimedJob, reading: Reading, db: AsyncSession, ran: Ran
    ) -> None:
        """What belongs into the transaction of a session's experience."""
        expired = await self._expire(db, reading, job)
        await JobRepository(db, job.tenant_id).finish(job, ran.result() | {"expired": expired})

    async def _move(self, db: AsyncSession, reading: Reading) -> None:
        """Raises WatermarkMovedError."""
        span = reading.span
        moved = await ExtractionRepository(db, reading.principal.access).move_watermark(
            span.session_id, read=span.read, last=span.last
        )
        if not moved:
            raise WatermarkMovedError

    async def _expire(self, db: AsyncSession, reading: Reading, job: ClaimedJob) -> int:
        """What ends with the session, which a rescue does not read to its end."""
        if job.kind == RESCUE:
            return 0
        return await expire_short(db, reading, job, self._now())

    async def _go_on(self, db: AsyncSession, job: ClaimedJob, reading: Reading) -> None:
        payload: dict[str, Any] = dict(job.payload) | {"continued": True, "most": _most(job)}
        if job.kind == RESCUE:
            to_seq = max(reading.last, payload.get(TO_SEQ, 0))
            order = rescue_now(reading.session, to_seq=to_seq, creator=job.creator, payload=payload)
        else:
            order = read_now(reading.session, creator=job.creator, payload=payload)
        await JobRepository(db, job.tenant_id).schedule(order)


def _most(job: ClaimedJob) -> int:
    """How many messages to read: half as many after each failure, as an answer that was cut
    off may fit when less is asked at a time; what follows a smaller chunk is as small.
    """
    most = job.payload.get("most")
    most = most if isinstance(most, int) and 0 < most <= MESSAGES else MESSAGES
    return max(most >> (job.attempts - 1), 1)


def _told_all(job: ClaimedJob, reading: Reading) -> bool:
    """Whether an ended session is read to its end, and only its experience is left."""
    unread = reading.last > reading.session.last_extracted_seq
    return bool(job.payload.get("end")) and reading.ended and not reading.paused and not unread


def _trigger(job: ClaimedJob) -> Trigger:
    """Why the session is read; what goes on after a first chunk is not counted again."""
    if job.kind == RESCUE:
        return "rescue"
    if job.payload.get("continued"):
        return "continued"
    if job.payload.get("end"):
        return "end"
    return "explicit" if job.payload.get("explicit") else "automatic"
