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

from app.builders.factory import Factory
from app.builders.services import Services
from app.conversation.messages.extraction_schedule import INDEX
from app.conversation.messages.jobs import MessageJobs
from app.conversation.sessions.jobs import COMPACT, EXTRACT, RESCUE
from app.governance.forgetting.jobs import ForgettingJobs
from app.governance.forgetting.service import KIND as FORGET
from app.governance.operations import housekeeping
from app.governance.webhooks import delivery
from app.memory.extraction.inference_request import INFER
from app.memory.extraction.inference_service import InferenceService
from app.memory.extraction.jobs import SessionJobs
from app.memory.graph.jobs import GraphJobs
from app.memory.memories import deletion_service as deletion
from app.memory.memories.refreshes import GRAPH_REFRESH, PROFILE
from app.memory.profiles.jobs import ProfileJobs
from app.platform.database.engine import Database
from app.platform.jobs.dispatch import Listener
from app.platform.jobs.orders import Handler
from app.platform.jobs.recurring import Recurring, Ticker
from app.platform.jobs.worker import Worker, WorkerLimits
from app.prompting.compaction.jobs import CompactionJobs
from app.prompting.documents.extract_service import EXTRACT_FILE, FileExtractService
from app.prompting.documents.file_service import INGEST
from app.prompting.documents.jobs import FileJobs
from app.runtime import Runtime

HOUSEKEEPING_INTERVAL = timedelta(hours=1)
HOUSEKEEPING_LOOK = timedelta(minutes=1)
DELIVERY_LOOK = timedelta(seconds=1)


def handlers_of(services: Services) -> dict[str, Handler]:
    """Handlers by kind; jobs of a kind that is not here are left to workers that have it."""
    return {
        EXTRACT: services.get(SessionJobs).extract,
        RESCUE: services.get(SessionJobs).extract,
        COMPACT: services.get(CompactionJobs).compact,
        INFER: services.get(InferenceService).work_off,
        INGEST: services.get(FileJobs).ingest,
        EXTRACT_FILE: services.get(FileExtractService).work_off,
        INDEX: services.get(MessageJobs).index,
        PROFILE: services.get(ProfileJobs).derive,
        GRAPH_REFRESH: services.get(GraphJobs).refresh,
        FORGET: services.get(ForgettingJobs).forget,
        delivery.KIND: services.get(delivery.Deliverer).handle,
        deletion.KIND: services.get(deletion.BulkDeletion),
        housekeeping.KIND: services.get(housekeeping.Housekeeping),
    }


def tickers_of(services: Services, database: Database) -> Sequence[Ticker]:
    """What every worker does from time to time."""
    schedule = services.get(delivery.DeliverySchedule)
    maintenance = Recurring(database, housekeeping.KIND, HOUSEKEEPING_INTERVAL)
    forgetting = Recurring(database, FORGET, HOUSEKEEPING_INTERVAL)
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
    services = Factory(runtime)
    handlers = handlers_of(services)
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
        tickers=tickers_of(services, runtime.database) if tickers is None else tickers,
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
