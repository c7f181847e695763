"""Extract, and the calls of reconcile: models are asked here, and what they cost is kept at once.

The log of runs, the tenant's usage and the answer itself are written as soon as a model has
answered, apart from the results and in transactions of their own: tokens that were spent count,
whatever becomes of what they bought, and a run that is repeated does not ask again.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.usage.paid_answers import AnswerPurpose, ModelQuestion, PaidAnswers, digest
from app.identity.usage.repository import UsageRepository
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import Extraction, Extractor, ModelUse
from app.language.llm.reconciler import (
    NO_AGENDA,
    Agenda,
    Neighbour,
    ReconcileQuestion,
    Reconciler,
    Reconciliation,
)
from app.memory.extraction.repository import ExtractionRepository
from app.memory.extraction.run_state import RunRequest, RunState, job_purpose, session_purpose
from app.platform.database.base import new_id
from app.platform.database.engine import Database
from app.platform.observability.metrics import EXTRACTION_RUNS, MODEL_TOKENS
from app.platform.outbox.models import Event
from app.platform.outbox.repository import OutboxRepository

log = structlog.get_logger()

RECONCILE: Final = "reconcile"
"""What the tenant's usage calls it."""


class ModelCalls:
    """Asks extractors and reconcilers, and keeps what it cost before anything else happens."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._answers = PaidAnswers(database)

    async def extract(self, state: RunState) -> RunState:
        """The state with what the extractor found, under the id of its entry in the log.

        Raises:
            ModelUnavailableError: nothing was read; the failure is in the log.

        """
        request, extractor = state.request, state.model.extractor
        state = replace(state, purpose=_purpose(request), extraction_id=new_id("run"))
        ask = extractor.summarise if request.summary else extractor.extract
        call = _nothing_said if state.silenced else partial(ask, request.reading)
        try:
            found = await self._answers.ask(
                request.principal.tenant_id,
                _reading_question(state),
                call,
                partial(_log_reading, request, extractor, state.extraction_id),
            )
        except ModelUnavailableError as error:
            await self._not_extracted(request, extractor, error)
            raise
        return replace(state, extraction=found)

    async def reconcile(
        self,
        state: RunState,
        questions: Sequence[ReconcileQuestion],
        agenda: Agenda,
        besides: Sequence[Neighbour] = (),
    ) -> Reconciliation:
        """One decision per question, and what is to become of the agenda.

        Raises:
            ModelUnavailableError: nothing was decided; try again.

        """
        request, reconciler = state.request, state.model.reconciler
        if reconciler.model is None:
            return await reconciler.reconcile(questions, agenda)
        try:
            return await self._answers.ask(
                request.principal.tenant_id,
                _decision_question(state, questions, agenda, besides),
                partial(reconciler.reconcile, questions, agenda, besides),
                partial(_count_decisions, state, reconciler.model),
            )
        except ModelUnavailableError as error:
            error.reconciling = True
            await self._not_reconciled(request, reconciler, error)
            if not agenda or not error.would_repeat:
                raise
            # The endpoint answered and would answer so again: the old memories must not keep
            # the new statements out.
            return await self.reconcile(state, questions, NO_AGENDA, besides)

    async def _not_extracted(
        self, request: RunRequest, extractor: Extractor, error: ModelUnavailableError
    ) -> None:
        """Keep that it did not answer, and tell who wants to know."""
        extraction_id = new_id("run")
        row = _row(request, extractor, extraction_id, error.use) | {
            "status": "failed",
            "error_code": error.reason,
        }
        tenant_id = request.principal.tenant_id
        async with self._database.begin(tenant_id) as db:
            await _note(db, request, request.operation, extractor.model, error.use, failures=1)
            if not request.preview:
                await ExtractionRepository(db, request.principal.access).add_run(row)
                event = _event(request, extraction_id, error)
                await OutboxRepository(db, tenant_id).publish([event])
        EXTRACTION_RUNS.labels(request.trigger, "failed").inc()
        log.warning(
            "extraction_failed",
            extraction_id=extraction_id,
            reason=error.reason,
            job_id=request.job_id,
        )

    async def _not_reconciled(
        self, request: RunRequest, reconciler: Reconciler, error: ModelUnavailableError
    ) -> None:
        async with self._database.begin(request.principal.tenant_id) as db:
            await _note(db, request, RECONCILE, reconciler.model, error.use, failures=1)
        EXTRACTION_RUNS.labels(request.trigger, "failed").inc()
        log.warning("reconciliation_failed", reason=error.reason, job_id=request.job_id)


async def _nothing_said() -> Extraction:
    return Extraction(())


def _purpose(request: RunRequest) -> AnswerPurpose | None:
    """What the answers of a run are bought for; None for a preview, which keeps none."""
    if request.preview:
        return None
    scopes = request.context.scopes
    whose = (scopes.agent_id, scopes.user_id, scopes.project_id, scopes.session_id)
    if request.span is not None:
        name = session_purpose(request.span.session_id)
    elif request.job_id is not None:
        name = job_purpose(request.job_id)
    else:
        # Others may send the same words.
        name = f"request:{digest([whose, _read_by(request)]).hex()}"
    return AnswerPurpose(name, *whose)


def _reading_question(state: RunState) -> ModelQuestion[Extraction] | None:
    extractor = state.model.extractor
    if state.purpose is None or state.silenced or extractor.model is None:
        return None
    return ModelQuestion(
        state.request.operation,
        state.purpose,
        extractor.name,
        _read_by(state.request),
        Extraction,
        extractor.prompt_version,
    )


def _read_by(request: RunRequest) -> Any:
    """What an extractor reads and is told to do with it.

    Without the memories that are shown beside it and without the signals of capture, which both
    may be others when a run is repeated: its messages are read already. A request that is sent
    again was sent at another time of the same day.
    """
    reading = request.reading
    whole_day = request.job is None
    turns = [
        [
            turn.message_id,
            turn.role,
            turn.name,
            turn.content,
            turn.said_at.date() if whole_day else turn.said_at,
            turn.context,
        ]
        for turn in reading.turns
    ]
    return [turns, reading.prompt, reading.scopes, reading.user_name]


def _decision_question(
    state: RunState,
    questions: Sequence[ReconcileQuestion],
    agenda: Agenda,
    besides: Sequence[Neighbour],
) -> ModelQuestion[Reconciliation] | None:
    """Without similarities, of which some embedders give others each time, and without what is
    another on another day.
    """
    if state.purpose is None:
        return None
    compared = [[question.proposed, _compared(question.neighbours)] for question in questions]
    due, parts = (
        [replace(memory, days=0) for memory in memories] for memories in (agenda.due, agenda.parts)
    )
    reconciler = state.model.reconciler
    return ModelQuestion(
        RECONCILE,
        state.purpose,
        reconciler.name,
        [compared, _compared(besides), due, parts],
        Reconciliation,
        reconciler.prompt_version,
    )


def _compared(memories: Sequence[Neighbour]) -> Sequence[Neighbour]:
    return [replace(near, similarity=0.0, possible_duplicate=False) for near in memories]


async def _log_reading(
    request: RunRequest,
    extractor: Extractor,
    extraction_id: str,
    db: AsyncSession,
    found: Extraction,
) -> None:
    row = _row(request, extractor, extraction_id, found.use) | {
        "status": "extracted",
        "proposals": len(found.proposals) + len(found.malformed),
    }
    if not request.preview:
        await ExtractionRepository(db, request.principal.access).add_run(row)
    await _note(db, request, request.operation, extractor.model, found.use)


async def _count_decisions(
    state: RunState, model: str, db: AsyncSession, answer: Reconciliation
) -> None:
    """Count it for the day, and for the run that it belongs to."""
    request = state.request
    if answer.use.calls and not request.preview:
        runs = ExtractionRepository(db, request.principal.access)
        await runs.add_cost(state.extraction_id, answer.use)
    await _note(db, request, RECONCILE, model, answer.use)


def _row(
    request: RunRequest, extractor: Extractor, extraction_id: str, use: ModelUse
) -> dict[str, Any]:
    span, scopes = request.span, request.context.scopes
    return {
        "extraction_id": extraction_id,
        "job_id": request.job_id,
        "trigger": request.trigger,
        "agent_id": request.agent_id,
        "user_id": scopes.user_id,
        "session_id": scopes.session_id,
        "first_sequence_no": None if span is None else span.read + 1,
        "last_sequence_no": None if span is None else span.last,
        "messages": sum(not turn.context for turn in request.reading.turns),
        "extractor": extractor.name,
        "model": extractor.model,
        "prompt_version": extractor.prompt_version,
        "reached_model": extractor.model is not None,
        "calls": use.calls,
        "input_tokens": use.input_tokens,
        "output_tokens": use.output_tokens,
        "latency_ms": use.latency_ms,
    }


async def _note(
    db: AsyncSession,
    request: RunRequest,
    operation: str,
    model: str | None,
    use: ModelUse,
    *,
    failures: int = 0,
) -> None:
    """Add to the tenant's day; what no model did, or did before, costs nothing."""
    if model is None or not (use.calls or failures):
        return
    await UsageRepository(db, request.principal.tenant_id).note(
        operation,
        model,
        calls=use.calls,
        input_tokens=use.input_tokens,
        output_tokens=use.output_tokens,
        failures=failures,
    )
    MODEL_TOKENS.labels(operation, "input").inc(use.input_tokens)
    MODEL_TOKENS.labels(operation, "output").inc(use.output_tokens)


def _event(request: RunRequest, extraction_id: str, error: ModelUnavailableError) -> Event:
    job, scopes = request.job, request.context.scopes
    return Event(
        "extraction.failed",
        {
            "extraction_id": extraction_id,
            # Deprecated: its former name.
            "run_id": extraction_id,
            "job_id": request.job_id,
            "session_id": scopes.session_id,
            "user_id": scopes.user_id,
            "error_code": error.reason,
            "attempts": None if job is None else job.attempts,
            "max_attempts": None if job is None else job.max_attempts,
        },
        scopes.user_id,
    )
