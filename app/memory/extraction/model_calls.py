"""Extract, and the calls of reconcile: models are asked here, and what they cost is kept at once.

The log of runs and the tenant's usage are written as soon as a model has answered, apart from
the results and in transactions of their own: tokens that were spent count, whatever becomes of
what they bought.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.usage.repository import UsageRepository
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import Extraction, Extractor, ModelUse
from app.language.llm.reconciler import (
    NO_AGENDA,
    Agenda,
    ReconcileQuestion,
    Reconciler,
    Reconciliation,
)
from app.memory.extraction.repository import ExtractionRepository
from app.memory.extraction.run_state import RunRequest, RunState
from app.platform.database.base import new_id
from app.platform.database.engine import Database
from app.platform.observability.metrics import EXTRACTION_RUNS, MODEL_TOKENS
from app.platform.outbox.events import Event
from app.platform.outbox.repository import OutboxRepository

log = structlog.get_logger()


class ModelCalls:
    """Asks extractors and reconcilers, and keeps what it cost before anything else happens."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def extract(self, state: RunState) -> RunState:
        """The state with what the extractor found, under the id of its entry in the log.

        Raises:
            ModelUnavailableError: nothing was read; the failure is in the log.

        """
        request, extractor = state.request, state.model.extractor
        found = Extraction(())
        if not state.silenced:
            ask = extractor.summarise if request.summary else extractor.extract
            try:
                found = await ask(request.reading)
            except ModelUnavailableError as error:
                await self._not_extracted(request, extractor, error)
                raise
        extraction_id = await self._extracted(request, extractor, found)
        return replace(state, extraction_id=extraction_id, extraction=found)

    async def reconcile(
        self, state: RunState, questions: Sequence[ReconcileQuestion], agenda: Agenda
    ) -> Reconciliation:
        """One decision per question, and what is to become of the agenda.

        Raises:
            ModelUnavailableError: nothing was decided; try again.

        """
        request, reconciler = state.request, state.model.reconciler
        try:
            answer = await reconciler.reconcile(questions, agenda)
        except ModelUnavailableError as error:
            error.reconciling = True
            await self._not_reconciled(request, reconciler, error)
            if not agenda or error.fault is None:
                raise
            # The endpoint answered and would answer so again: the old memories must not keep
            # the new statements out.
            return await self.reconcile(state, questions, NO_AGENDA)
        if answer.use.calls:
            async with self._database.begin(request.principal.tenant_id) as db:
                await _note(db, request, "reconcile", reconciler.model, answer.use)
        return answer

    async def _extracted(self, request: RunRequest, extractor: Extractor, found: Extraction) -> str:
        extraction_id = new_id("run")
        row = _row(request, extractor, extraction_id, found.use) | {
            "status": "extracted",
            "proposals": len(found.proposals) + len(found.malformed),
        }
        async with self._database.begin(request.principal.tenant_id) as db:
            if not request.preview:
                await ExtractionRepository(db, request.principal.access).add_run(row)
            await _note(db, request, request.operation, extractor.model, found.use)
        return extraction_id

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
            await _note(db, request, "reconcile", reconciler.model, error.use, failures=1)
        EXTRACTION_RUNS.labels(request.trigger, "failed").inc()
        log.warning("reconciliation_failed", reason=error.reason, job_id=request.job_id)


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
    """Add to the tenant's day; what no model did costs nothing."""
    if model is None:
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
