"""Which handler does which kind of job: all of them, for one worker.

`kemem serve` runs such a worker beside the API, `kemem worker` runs one alone.
"""

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx2

from app.conversation.messages.extraction_schedule import INDEX
from app.conversation.messages.jobs import MessageBackfill, MessageJobs
from app.conversation.sessions.jobs import COMPACT, EXTRACT, RESCUE
from app.factory import Factory
from app.governance.forgetting.jobs import ForgettingJobs
from app.governance.forgetting.service import KIND as FORGET
from app.governance.forgetting.steps import Forgetting
from app.governance.operations import housekeeping
from app.governance.operations.repository import Retention
from app.governance.statistics.rollup import Rollup
from app.governance.webhooks import delivery
from app.governance.webhooks.secret_box import SecretBox
from app.governance.webhooks.targets import Targets
from app.identity.usage.ledger import ModelLedger
from app.language.parsing.parser_pool import ParserPool
from app.memory.extraction.inference_request import INFER
from app.memory.extraction.inference_service import InferenceService
from app.memory.extraction.jobs import SessionJobs
from app.memory.graph.jobs import GraphJobs
from app.memory.graph.memory_reader import MemoryReader
from app.memory.memories import deletion_service as deletion
from app.memory.memories.backfill import MemoryBackfill
from app.memory.memories.quantisation import EXACT_ROWS, QuantisationService
from app.memory.memories.refreshes import GRAPH_REFRESH, PROFILE
from app.memory.profiles.derivation import ProfileDerivation
from app.memory.profiles.jobs import ProfileJobs
from app.platform.jobs.dispatch import Listener
from app.platform.jobs.orders import Handler
from app.platform.jobs.recurring import Recurring, Ticker
from app.platform.jobs.worker import Worker, WorkerLimits
from app.prompting.checkpoints.archive_service import CheckpointArchiving
from app.prompting.compaction.compactor import Compactor
from app.prompting.compaction.jobs import CompactionJobs
from app.prompting.documents.extract_service import EXTRACT_FILE, FileExtractService
from app.prompting.documents.file_service import INGEST
from app.prompting.documents.jobs import FileJobs
from app.runtime import Runtime

HOUSEKEEPING_INTERVAL = timedelta(hours=1)
HOUSEKEEPING_LOOK = timedelta(minutes=1)
DELIVERY_LOOK = timedelta(seconds=1)


def handlers_of(factory: Factory, *, exact_rows: int = EXACT_ROWS) -> dict[str, Handler]:
    """Handlers by kind; jobs of a kind that is not here are left to workers that have it."""
    runtime = factory.runtime
    settings = runtime.settings
    backfill = factory.get(MessageBackfill)
    retention = Retention(deleted=timedelta(days=settings.purge_days))
    deliverer = delivery.Deliverer(
        runtime.database,
        Targets(private=settings.webhook_private_targets),
        SecretBox(settings.secret_keys),
        httpx2.create_ssl_context(),
        runtime.now,
        timeouts=delivery.Timeouts.within(timedelta(seconds=settings.job_timeout_seconds)),
    )
    return {
        EXTRACT: factory.get(SessionJobs).extract,
        RESCUE: factory.get(SessionJobs).extract,
        COMPACT: CompactionJobs(
            runtime.work, factory.get(Compactor), runtime.summarisers, runtime.now
        ).compact,
        INFER: factory.get(InferenceService).work_off,
        INGEST: file_jobs(runtime).ingest,
        EXTRACT_FILE: factory.get(FileExtractService).work_off,
        delivery.KIND: deliverer.handle,
        INDEX: MessageJobs(runtime.database, backfill, runtime.now).index,
        housekeeping.KIND: housekeeping.Housekeeping(
            runtime.database,
            retention,
            memories=MemoryBackfill(runtime.database),
            messages=backfill,
            quantisation=QuantisationService(runtime.database, exact_rows),
            statistics=Rollup(runtime.database, runtime.catalogue).run,
            checkpoints=CheckpointArchiving(
                runtime.database, timedelta(days=settings.checkpoint_ttl_days) or None
            ),
        ),
        PROFILE: profile_jobs(runtime).derive,
        GRAPH_REFRESH: GraphJobs(runtime.work, MemoryReader(), runtime.now).refresh,
        deletion.KIND: deletion.BulkDeletion(runtime.database),
        FORGET: ForgettingJobs(factory.get(Forgetting)).forget,
    }


def file_jobs(runtime: Runtime) -> FileJobs:
    """Who reads files."""
    return FileJobs(runtime.work, runtime.embedders, ParserPool(), runtime.now)


def profile_jobs(runtime: Runtime) -> ProfileJobs:
    ledger = ModelLedger(runtime.database, runtime.quota, "profile", failure="profile_failed")
    deriving = ProfileDerivation(ledger, runtime.saving_rules.gate, runtime.now)
    interval = timedelta(seconds=runtime.settings.profile_interval_seconds)
    return ProfileJobs(runtime.work, deriving, runtime.profilers, runtime.now, interval)


def tickers_of(runtime: Runtime) -> Sequence[Ticker]:
    """What every worker does from time to time."""
    schedule = delivery.DeliverySchedule(runtime.database, runtime.now)
    maintenance = Recurring(runtime.database, housekeeping.KIND, HOUSEKEEPING_INTERVAL)
    forgetting = Recurring(runtime.database, FORGET, HOUSEKEEPING_INTERVAL)

    return (
        Ticker("deliveries", DELIVERY_LOOK, schedule.tick),
        Ticker("housekeeping", HOUSEKEEPING_LOOK, maintenance.tick),
        Ticker("forgetting", HOUSEKEEPING_LOOK, forgetting.tick),
    )


def worker_of(
    runtime: Runtime,
    dsn: str,
    *,
    limits: WorkerLimits | None = None,
    tickers: Sequence[Ticker] | None = None,
    without: Collection[str] = (),
) -> Worker:
    """A worker on the database at `dsn`, which is the runtime's; `run` it.

    Args:
        limits: instead of those of the settings.
        tickers: instead of all of them.
        without: kinds of work that are left to other workers.

    """
    settings = runtime.settings
    handlers = handlers_of(Factory(runtime))
    return Worker(
        runtime.database,
        {kind: handler for kind, handler in handlers.items() if kind not in without},
        name=f"{socket.gethostname()}:{os.getpid()}",
        limits=limits
        or WorkerLimits(
            slots=settings.worker_concurrency,
            lease=timedelta(seconds=settings.lease_seconds),
            job=timedelta(seconds=settings.job_timeout_seconds),
        ),
        spread=random.random,
        tickers=tickers_of(runtime) if tickers is None else tickers,
        listener=Listener(dsn),
    )


@asynccontextmanager
async def working(runtime: Runtime, dsn: str) -> AsyncIterator[Worker | None]:
    """A worker beside whatever the block does, unless MEMORY_WORKER_ENABLED is false.

    At the end of the block it drains within MEMORY_SHUTDOWN_SECONDS, unless it has.
    """
    if not runtime.settings.worker_enabled:
        yield None
        return
    worker = worker_of(runtime, dsn)
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        await worker.drain(timedelta(seconds=runtime.settings.shutdown_seconds))
        await running
