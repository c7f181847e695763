"""Use cases of extraction on demand: read a session now, tell whoever waits for it, and look at the
log of runs.

The request brought the job forward, so whatever the job waits for came later.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.jobs import read_now
from app.conversation.sessions.models import Session
from app.conversation.sessions.repository import SessionRepository, refuse_disabled
from app.errors import DomainError
from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Principal
from app.identity.users.repository import UserRepository
from app.language.llm.errors import FailureReason, ModelUnavailableError
from app.language.llm.model_catalogue import ExtractionModel, ModelCatalogue
from app.memory.extraction.repository import ExtractionRepository
from app.memory.extraction.run_policy import RunLimits, model_for
from app.memory.extraction.schemas import (
    ExtractAnswer,
    ExtractionLimitError,
    ExtractRequest,
    RunQuery,
    RunRead,
    kept_failure,
)
from app.platform.jobs.models import LANE_BUSY, Job
from app.platform.jobs.repository import JobRepository
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import MemoryPausedError, Work

LONGEST_WAIT_SECONDS = 60.0
FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 0.02, 0.5

OVER = {"succeeded", "dead", "cancelled"}

SOON = timedelta(seconds=2)
TOLD_SECONDS = 5.0
"""A failure after which the job is tried again soon is not told within the first seconds."""

PATIENCE = timedelta(seconds=3)
"""How long an endpoint is waited for before it is asked whether it answers at all; after an answer
twice as long."""

LONGEST_SILENCE = timedelta(seconds=3)
"""How long it may take to say so."""

SILENCES = 2
"""In a row, after which it counts as silent; all that takes less than ten seconds."""


class ExtractionService:
    """Reads sessions on demand, and shows the log of runs."""

    def __init__(
        self,
        work: Work,
        models: ModelCatalogue,
        limits: RunLimits,
        now: Callable[[], datetime],
        patience: timedelta = PATIENCE,
    ) -> None:
        self._work = work
        self._patience = patience.total_seconds()
        self._models = models
        self._limits = limits
        self._now = now

    async def extract(
        self,
        principal: Principal,
        session_id: str,
        body: ExtractRequest,
        *,
        key: IdempotencyKey | None = None,
    ) -> tuple[ExtractAnswer, int]:
        """Have what is unread in a session read now.

        It joins the job that is waiting for the session to fall silent, if there is one, so
        that nothing is read twice.

        Returns:
            How far it came, and 200 when everything is read, else 202.

        Raises:
            SessionNotFoundError: the caller has no such session.
            ExtractionLimitError: a model has read it as often as it may in a day.
            MemoryDisabledError, MemoryPausedError, DisabledError: memory is switched off.
            ModelUnavailableError, EmbeddingUnavailableError: with `wait`, the run failed, or the
                endpoint answers nothing at all; the job is still ordered and tries again, and
                nothing is lost. `Retry-After` says when, where that is known.

        """
        self._work.refuse_disabled()
        model = model_for(self._models, await self._config(principal, session_id), principal.config)
        async with self._work.write(principal, key) as unit:
            sessions = SessionRepository(unit.db, principal.access)
            session = await sessions.get(session_id, lock=True)
            target = session.last_sequence_no
            if session.last_extracted_seq >= target:
                answer = _answer(session, None, target)
                return unit.answer(answer, 200, user_id=session.user_id), 200
            if model.extractor.model is not None:
                await self._check_limit(unit.db, principal, session_id)
            payload: dict[str, Any] = {"explicit": True}
            if body.prompt is not None:
                payload["prompt"] = body.prompt
            jobs = JobRepository(unit.db, principal.tenant_id)
            since = await sessions.unread_since(session)
            scheduled = await jobs.schedule(
                read_now(session, since=since, creator=principal.key_id, payload=payload)
            )
            assert scheduled is not None  # noqa: S101 (the order is no postponement)
            answer = _answer(session, await jobs.get(scheduled.job_id), target)
            if not body.wait:
                return unit.answer(answer, 202, user_id=session.user_id), 202
            # What is waited for is not known yet: a repetition waits for the same job.
            unit.answer_unkept(answer)
        return await self._wait(principal, session_id, scheduled.job_id, target, model)

    async def _config(self, principal: Principal, session_id: str) -> Mapping[str, Any]:
        """Settings of the session's agent.

        Raises:
            SessionNotFoundError: the caller has no such session.
            MemoryPausedError, DisabledError: memory is switched off.

        """
        async with self._work.read(principal) as db:
            session = await SessionRepository(db, principal.access).get(session_id)
            agent = await AgentRepository(db, principal.access).get(session.agent_id)
            user = await UserRepository(db, principal.access).find(session.user_id)
            refuse_disabled(agent, user)
            if not agent.memory_enabled:
                raise MemoryPausedError("agent", agent.agent_id)
            if not session.memory_enabled:
                raise MemoryPausedError("session", session_id)
        return agent.config

    async def _check_limit(self, db: AsyncSession, principal: Principal, session_id: str) -> None:
        """Raises ExtractionLimitError."""
        until = await self._limits.reached_until(
            db, principal.access, session_id, "explicit", self._now
        )
        if until is not None:
            raise ExtractionLimitError(self._limits.session_runs, until - self._now())

    async def _wait(
        self,
        principal: Principal,
        session_id: str,
        job_id: str,
        target: int,
        model: ExtractionModel,
    ) -> tuple[ExtractAnswer, int]:
        """Look until everything up to `target` is read, the job is over or deferred for longer
        than is waited for, or a minute is over.

        Raises:
            ModelUnavailableError, EmbeddingUnavailableError: a run has failed meanwhile, or the
                model's endpoint is silent.

        """
        pause = FIRST_LOOK_SECONDS
        silences: list[FailureReason] = []
        loop = asyncio.get_running_loop()
        begun = loop.time()
        end = begun + LONGEST_WAIT_SECONDS
        patient_until = begun + self._patience
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LAST_LOOK_SECONDS)
            async with self._work.write(principal, while_disabled=True) as unit:
                sessions = SessionRepository(unit.db, principal.access)
                session = await sessions.get(session_id)
                # Read after the session: what has moved its watermark has also ended a run.
                job = await JobRepository(unit.db, principal.tenant_id).get(job_id)
                if job.status in OVER:
                    await unit.db.refresh(session)
            answer = _answer(session, job, target)
            if answer.done:
                return answer, 200
            patient, now = loop.time() < begun + TOLD_SECONDS, self._now()
            failure = failure_of(job, now, now + SOON if patient else None)
            if failure is not None:
                raise failure
            left = timedelta(seconds=end - loop.time())
            hopeless = job.status in OVER or is_deferred_beyond(job, now + left)
            if hopeless or left <= timedelta(0):
                return answer, 202
            if len(silences) == SILENCES:
                # Only now: the run might have ended while the endpoint was asked.
                raise _silent(silences[-1], job, now)
            if loop.time() >= patient_until:
                silence = await _silence(model)
                if silence is None:
                    silences, patient_until = [], loop.time() + 2 * self._patience
                else:
                    silences, pause = [*silences, silence], FIRST_LOOK_SECONDS

    async def runs(self, principal: Principal, query: RunQuery) -> Page[RunRead]:
        """The log of runs, newest first."""
        start = decode_time(query.cursor, "extraction_runs")
        equal = query.model_dump(exclude={"limit", "cursor"}, exclude_none=True)
        async with self._work.read(principal) as db:
            rows = await ExtractionRepository(db, principal.access).runs(
                equal, start=start, limit=query.limit
            )
        return page(
            "extraction_runs",
            rows,
            query.limit,
            show=RunRead.model_validate,
            place=lambda run: (run.create_time, run.extraction_id),
        )

    async def run(self, principal: Principal, extraction_id: str) -> RunRead:
        """One run. Raises RunNotFoundError."""
        async with self._work.read(principal) as db:
            found = await ExtractionRepository(db, principal.access).get_run(extraction_id)
            return RunRead.model_validate(found)


async def _silence(model: ExtractionModel) -> FailureReason | None:
    """Tell an endpoint that hangs from a model that is slow, which is worth waiting for.

    Returns:
        Why the endpoint answers nothing; None when it does.

    """
    return None if model.chat is None else await model.chat.silence(LONGEST_SILENCE)


def _silent(reason: FailureReason, job: Job, now: datetime) -> ModelUnavailableError:
    error = ModelUnavailableError(reason)
    error.headers = retry_after(job, now) or error.headers
    return error


def _answer(session: Session, job: Job | None, target: int) -> ExtractAnswer:
    return ExtractAnswer(
        session_id=session.session_id,
        scheduled=job is not None,
        done=session.last_extracted_seq >= target,
        job_id=None if job is None else job.job_id,
        status=None if job is None else job.status,
        due_at=None if job is None else job.due_at,
        deferred_reason=None if job is None else job.deferred_reason,
        last_extracted_seq=session.last_extracted_seq,
        result=None if job is None else job.result,
    )


def is_deferred_beyond(job: Job, until: datetime) -> bool:
    """Whether the job waits for longer; one behind others of its user runs when they end."""
    return _is_deferred(job) and job.due_at > until


def failure_of(job: Job, now: datetime, soon: datetime | None) -> DomainError | None:
    """Why the last run of the job failed; None when there was none since the request.

    Its `Retry-After` is the time until the job is tried again.

    Args:
        soon: jobs that are due again by then are waited for.

    """
    deferred = _is_deferred(job)
    if deferred and soon is not None and job.due_at <= soon:
        return None
    failure = kept_failure(job.payload) if deferred or job.status == "dead" else None
    if failure is None or failure.code != job.error_code:
        return None
    if deferred:
        failure.headers = retry_after(job, now)
    return failure


def retry_after(job: Job, now: datetime) -> dict[str, str]:
    """The header that says when the job is tried again, where that is known."""
    if not _is_deferred(job):
        return {}
    return {"Retry-After": str(max(math.ceil((job.due_at - now).total_seconds()), 1))}


def _is_deferred(job: Job) -> bool:
    return job.status == "pending" and job.deferred_reason not in {None, LANE_BUSY}
