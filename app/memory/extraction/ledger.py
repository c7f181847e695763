"""The log of runs and the tenant's ledger, written as soon as a model has answered.

Apart from the results, in transactions of their own: tokens that were spent count, whatever
becomes of what they bought.
"""

from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.usage.repository import UsageRepository
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import Extraction, Extractor, ModelUse
from app.language.llm.reconciler import Reconciler
from app.memory.extraction.repository import ExtractionRepository
from app.memory.extraction.work import Ran, Work
from app.platform.database.engine import Database
from app.platform.database.ids import new_id
from app.platform.observability.metrics import EXTRACTION_RUNS, MODEL_TOKENS
from app.platform.outbox.events import Event
from app.platform.outbox.repository import OutboxRepository

log = structlog.get_logger()


class RunLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def extracted(self, work: Work, extractor: Extractor, found: Extraction) -> str:
        """Keep that an extractor answered; the run's id."""
        run_id = new_id("run")
        async with self._database.begin(work.principal.tenant_id) as db:
            row = _row(work, extractor, run_id) | {
                "status": "extracted",
                "proposals": len(found.proposals) + len(found.malformed),
                **_spent(found.use),
            }
            await ExtractionRepository(db, work.principal.access).add_run(row)
            await _note(db, work, _operation(work), extractor.model, found.use)
        return run_id

    async def failed(self, work: Work, extractor: Extractor, error: ModelUnavailableError) -> None:
        """Keep that it did not, and tell who wants to know."""
        run_id = new_id("run")
        async with self._database.begin(work.principal.tenant_id) as db:
            row = _row(work, extractor, run_id) | {
                "status": "failed",
                "error_code": error.reason,
                **_spent(error.use),
            }
            await ExtractionRepository(db, work.principal.access).add_run(row)
            await _note(db, work, _operation(work), extractor.model, error.use, failures=1)
            await OutboxRepository(db, work.principal.tenant_id).publish(
                [_event(work, run_id, error)]
            )
        EXTRACTION_RUNS.labels(work.trigger, "failed").inc()
        log.warning("extraction_failed", run_id=run_id, reason=error.reason, job_id=work.job_id)

    async def reconciled(self, work: Work, reconciler: Reconciler, use: ModelUse) -> None:
        """Keep what deciding cost."""
        if use.calls:
            async with self._database.begin(work.principal.tenant_id) as db:
                await _note(db, work, "reconcile", reconciler.model, use)

    async def not_reconciled(
        self, work: Work, reconciler: Reconciler, error: ModelUnavailableError
    ) -> None:
        """Keep that nothing was decided."""
        async with self._database.begin(work.principal.tenant_id) as db:
            await _note(db, work, "reconcile", reconciler.model, error.use, failures=1)
        EXTRACTION_RUNS.labels(work.trigger, "failed").inc()
        log.warning("reconciling_failed", reason=error.reason, job_id=work.job_id)

    async def committed(self, db: AsyncSession, work: Work, ran: Ran) -> None:
        """Close the run, in the transaction that stores its results."""
        await ExtractionRepository(db, work.principal.access).finish_run(
            ran.run_id, ran.events, ran.upkeep
        )
        EXTRACTION_RUNS.labels(work.trigger, "committed").inc()


def _operation(work: Work) -> str:
    return "summarise" if work.summary else "extract"


def _row(work: Work, extractor: Extractor, run_id: str) -> dict[str, Any]:
    span, grounds = work.span, work.hearing.grounds
    return {
        "run_id": run_id,
        "job_id": work.job_id,
        "trigger": work.trigger,
        "agent_id": work.agent_id,
        "user_id": grounds.user_id,
        "session_id": grounds.session_id,
        "first_sequence_no": None if span is None else span.read + 1,
        "last_sequence_no": None if span is None else span.last,
        "messages": sum(not turn.context for turn in work.request.turns),
        "extractor": extractor.name,
        "model": extractor.model,
        "prompt_version": extractor.prompt_version,
        "reached_model": extractor.model is not None,
    }


def _spent(use: ModelUse) -> dict[str, int]:
    return {
        "calls": use.calls,
        "input_tokens": use.input_tokens,
        "output_tokens": use.output_tokens,
        "latency_ms": use.latency_ms,
    }


async def _note(
    db: AsyncSession,
    work: Work,
    operation: str,
    model: str | None,
    use: ModelUse,
    *,
    failures: int = 0,
) -> None:
    """Add to the tenant's day; what no model did costs nothing."""
    if model is None:
        return
    await UsageRepository(db, work.principal.tenant_id).note(
        operation,
        model,
        calls=use.calls,
        input_tokens=use.input_tokens,
        output_tokens=use.output_tokens,
        failures=failures,
    )
    MODEL_TOKENS.labels(operation, "input").inc(use.input_tokens)
    MODEL_TOKENS.labels(operation, "output").inc(use.output_tokens)


def _event(work: Work, run_id: str, error: ModelUnavailableError) -> Event:
    job = work.job
    return Event(
        "extraction.failed",
        {
            "run_id": run_id,
            "job_id": work.job_id,
            "session_id": work.hearing.grounds.session_id,
            "user_id": work.hearing.grounds.user_id,
            "error_code": error.reason,
            "attempts": None if job is None else job.attempts,
            "max_attempts": None if job is None else job.max_attempts,
        },
        work.hearing.grounds.user_id,
    )
