"""What lives as long as the process: opened here in order, closed in reverse."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from app.conversation.messages.filling import MessageFilling
from app.conversation.messages.indexing import Indexer
from app.conversation.messages.scheduling import CaptureRules
from app.conversation.messages.search import MessageSearchService
from app.conversation.messages.trimming import StrategyFactory, installed_strategies
from app.conversation.sessions.keeping import Keeper
from app.conversation.sessions.policy import WindowPolicy
from app.deployment import (
    capture_rules,
    forgetting_policy,
    saving_rules,
    search_ranks,
    window_policy,
)
from app.governance.exports.slots import ExportSlots
from app.governance.forgetting.forgetting import Forgetting, ForgettingRules
from app.identity.agents.embedding import Embedders
from app.identity.agents.processing import Processing
from app.identity.tenants.repository import KeyDirectory
from app.identity.tenants.service import Identification, KeyUse
from app.identity.usage.ledger import EmbeddingLedger, ModelLedger
from app.identity.usage.quota import Quota
from app.language.keyless.reconciler import RulesReconciler
from app.language.llm.catalogue import EmbedderCatalogue
from app.language.llm.model_catalogue import ModelCatalogue
from app.language.llm.profiler_catalogue import ProfilerCatalogue
from app.language.llm.summariser_catalogue import SummariserCatalogue
from app.language.llm.tokens import TokenCounter, open_counter
from app.memory.extraction.inferring import InferenceRules, InferringService
from app.memory.extraction.jobs import SessionJobs
from app.memory.extraction.ledger import RunLog
from app.memory.extraction.pipeline import Pipeline, PipelineRules
from app.memory.extraction.reading import Limits
from app.memory.extraction.service import ExtractionService
from app.memory.memories.editing import EditingService
from app.memory.memories.recalling import RecallService
from app.memory.memories.saving import SavingService
from app.memory.memories.search import SearchService
from app.memory.memories.usage import MemoryUse
from app.platform.database.engine import Database, open_database
from app.platform.database.migrate import check_schema
from app.platform.plugins.catalogue import allowed_processors
from app.platform.plugins.running import processors_of
from app.platform.work.errors import Switches
from app.prompting.checkpoints.keeper import CheckpointKeeper
from app.prompting.compaction.compacting import Compactor
from app.prompting.context.usage import Injections
from app.prompting.documents.extracting import FileExtracting
from app.prompting.documents.search import PassageSearchService
from app.providers import Providers, open_providers
from app.settings import Settings, metrics_folder, tiktoken_folder

log = structlog.get_logger()

USAGE_FLUSH: Final = timedelta(seconds=1)
"""How often use counts, last uses and the cost of embeddings are written. That much is lost when
the process is killed; oftener would be a write per key and memory for every request."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """One per process. Services without a state of their own are built per request."""

    settings: Settings
    database: Database
    catalogue: EmbedderCatalogue
    models: ModelCatalogue
    summarisers: SummariserCatalogue
    profilers: ProfilerCatalogue
    embedders: Embedders
    processing: Processing
    switches: Switches
    counter: TokenCounter
    window_policy: WindowPolicy
    window_strategies: Mapping[str, StrategyFactory]
    identification: Identification
    key_use: KeyUse
    memory_use: MemoryUse
    embedding_ledger: EmbeddingLedger
    saving: SavingService
    editing: EditingService
    search: SearchService
    recall: RecallService
    injections: Injections
    capture: CaptureRules
    indexer: Indexer
    filling: MessageFilling
    message_search: MessageSearchService
    passages: PassageSearchService
    file_extracting: FileExtracting
    quota: Quota
    inferring: InferringService
    extraction: ExtractionService
    session_jobs: SessionJobs
    forgetting: Forgetting
    export_slots: ExportSlots
    compactor: Compactor
    keeper: Keeper
    now: Callable[[], datetime]
    metrics_folder: Path | None
    """Shared with the other processes of the service, when there are any."""


def utc_now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def open_runtime(
    settings: Settings,
    dsn: str,
    *,
    now: Callable[[], datetime] = utc_now,
    usage_flush: timedelta = USAGE_FLUSH,
) -> AsyncIterator[Runtime]:
    """Build the runtime against the database at `dsn`; on exit write what is still counted.

    Raises:
        ConfigurationError: the schema, the role or a model is not usable; says what to do.

    """
    await check_schema(dsn)
    async with (
        open_providers(settings) as providers,
        open_database(
            dsn,
            pool_size=settings.database_pool_size,
        ) as database,
    ):
        runtime = _build(settings, database, providers, now)
        await _notice_other_models(runtime)
        closing = asyncio.Event()
        flushing = asyncio.create_task(_flush_until(closing, runtime, usage_flush))
        try:
            yield runtime
        finally:
            # Not cancelled: a write that is cut off may have been written, and counts twice.
            closing.set()
            await asyncio.wait([flushing])
            await _attempt("memory_use", lambda: runtime.memory_use.flush(everything=True))
            await _attempt("injections", lambda: runtime.injections.flush(everything=True))
            await _attempt("embeddings", lambda: runtime.embedding_ledger.flush(everything=True))
            await _attempt("key_use", runtime.key_use.flush)


def _forgetting(settings: Settings, database: Database, policy: WindowPolicy) -> Forgetting:
    purge = timedelta(days=settings.purge_days)
    return Forgetting(database, ForgettingRules(forgetting_policy(settings), purge, policy))


def _summaries(database: Database, quota: Quota) -> ModelLedger:
    return ModelLedger(database, quota, "summarise", failure="summary_failed")


def _build(
    settings: Settings, database: Database, providers: Providers, now: Callable[[], datetime]
) -> Runtime:
    models, reranker = providers.models, providers.reranker
    directory, embedding_ledger = KeyDirectory(database), EmbeddingLedger(database)
    embedders = Embedders(database, providers.catalogue, embedding_ledger)
    processing = Processing(database, processors_of(allowed_processors(settings.processors)))
    switches = Switches(enabled=settings.enabled)
    key_use, memory_use = KeyUse(directory), MemoryUse(database)
    rules = saving_rules(settings)
    capture = capture_rules(settings)
    counter, keeper = open_counter(tiktoken_folder()), CheckpointKeeper()
    policy, ranks = window_policy(settings), search_ranks(settings)
    quota = Quota(settings.daily_calls, settings.daily_tokens)
    limits = Limits(settings.max_extractions, quota)
    saving = SavingService(database, embedders, switches, rules, processing)
    indexer = Indexer(embedders, capture.tags)
    pipeline_rules = PipelineRules(rules, forgetting_policy(settings), RulesReconciler())
    pipeline = Pipeline(database, embedders, RunLog(database), pipeline_rules, processing)
    asking = (ranks, reranker, embedding_ledger, now, processing)
    reading = InferenceRules(settings.auto_create, capture.tags, capture.window, limits)
    return Runtime(
        settings=settings,
        database=database,
        catalogue=providers.catalogue,
        models=models,
        summarisers=providers.summarisers,
        profilers=providers.profilers,
        embedders=embedders,
        processing=processing,
        switches=switches,
        counter=counter,
        window_policy=policy,
        window_strategies=installed_strategies(),
        identification=Identification(directory, key_use, now),
        key_use=key_use,
        memory_use=memory_use,
        embedding_ledger=embedding_ledger,
        saving=saving,
        editing=EditingService(database, embedders, switches, rules.gate, processing),
        search=SearchService(database, embedders, memory_use, *asking),
        recall=RecallService(database, embedders, *asking),
        injections=Injections(database),
        capture=capture,
        indexer=indexer,
        filling=MessageFilling(database, indexer, embedders),
        message_search=MessageSearchService(database, embedders, ranks.boosts, now),
        passages=PassageSearchService(database, embedders, ranks.boosts, now),
        file_extracting=FileExtracting(database, pipeline, models, switches, limits, now),
        quota=quota,
        inferring=InferringService(database, saving, pipeline, models, switches, reading, now),
        extraction=ExtractionService(database, models, switches, limits, now),
        session_jobs=SessionJobs(database, pipeline, models, switches, limits, capture.tags, now),
        forgetting=_forgetting(settings, database, policy),
        export_slots=ExportSlots(settings.database_pool_size),
        compactor=Compactor(counter, _summaries(database, quota), keeper, policy, now),
        keeper=keeper,
        now=now,
        metrics_folder=metrics_folder(),
    )


async def _notice_other_models(runtime: Runtime) -> None:
    """Say at start when there are vectors that the deployment's embedder did not make."""
    default = runtime.catalogue.default.name
    others = await KeyDirectory(runtime.database).tenants_with_other_models(default)
    if others:
        # No warning: an agent may name an embedder of its own, which cannot be seen from here.
        log.info(
            "other_embedding_models_found",
            default=default,
            tenants=others,
            remedy="none when their agents name an embedder; after a change of "
            "MEMORY_EMBEDDING_MODEL kemem reembed brings stored memories over",
        )


async def _flush_until(closing: asyncio.Event, runtime: Runtime, pause: timedelta) -> None:
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(closing.wait(), pause.total_seconds())
            return
        await _attempt("key_use", runtime.key_use.flush)
        await _attempt("memory_use", runtime.memory_use.flush)
        await _attempt("injections", runtime.injections.flush)
        await _attempt("embeddings", runtime.embedding_ledger.flush)


async def _attempt(what: str, flush: Callable[[], Awaitable[None]]) -> None:
    try:
        await flush()
    except Exception as error:  # noqa: BLE001 (counts are kept and written the next time)
        log.warning("usage_not_written", what=what, error=type(error).__name__)
