"""What lives as long as the process: opened here in order, closed in reverse."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from app.agents.embedding import Embedders
from app.database.engine import Database, open_database
from app.database.migrate import check_schema
from app.errors import ConfigurationError
from app.extraction.inferring import InferenceRules, InferringService
from app.extraction.jobs import SessionJobs
from app.extraction.ledger import RunLog
from app.extraction.pipeline import Pipeline, PipelineRules
from app.extraction.reading import Limits
from app.extraction.service import ExtractionService
from app.llm.catalogue import EmbedderCatalogue, OpenAIParameters
from app.llm.model_catalogue import ExtractionModel, ModelCatalogue, installed_extractors
from app.llm.openai_embedder import OpenAILimits
from app.llm.reranker_catalogue import connect_reranker
from app.llm.reranking import Reranker
from app.memories.editing import EditingService
from app.memories.gate import Gate
from app.memories.ranking import RankWeights, ScopeWeights
from app.memories.saving import SavingRules, SavingService
from app.memories.search import SearchRanks, SearchService
from app.memories.usage import MemoryUse
from app.messages.filling import MessageFilling
from app.messages.indexing import Indexer
from app.messages.scheduling import CaptureRules
from app.messages.search import MessageSearchService
from app.ranking.boosts import Boosts, parsed_weights
from app.ranking.errors import InvalidWeightsError
from app.rules.extractor import RulesExtractor
from app.rules.reconciler import RulesReconciler
from app.sessions.reading_order import Debounce
from app.settings import Settings, metrics_folder
from app.tenants.repository import KeyDirectory
from app.tenants.service import Identification, KeyUse
from app.text.stop_words import StopWords, stop_words
from app.usage.ledger import EmbeddingLedger
from app.usage.quota import Quota
from app.web.switches import Switches

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Runtime:
    """One per process. Services without a state of their own are built per request."""

    settings: Settings
    database: Database
    catalogue: EmbedderCatalogue
    models: ModelCatalogue
    embedders: Embedders
    switches: Switches
    identification: Identification
    key_use: KeyUse
    memory_use: MemoryUse
    embedding_ledger: EmbeddingLedger
    saving: SavingService
    editing: EditingService
    search: SearchService
    capture: CaptureRules
    indexer: Indexer
    filling: MessageFilling
    message_search: MessageSearchService
    quota: Quota
    inferring: InferringService
    extraction: ExtractionService
    session_jobs: SessionJobs
    now: Callable[[], datetime]
    metrics_folder: Path | None
    """Shared with the other processes of the service, when there are any."""


@dataclass(frozen=True, slots=True)
class Providers:
    """Whoever answers outside of the database."""

    catalogue: EmbedderCatalogue
    models: ModelCatalogue
    reranker: Reranker | None


def utc_now() -> datetime:
    return datetime.now(UTC)


def _endpoint(settings: Settings) -> OpenAIParameters | None:
    if not (settings.openai_api_key or settings.openai_base_url):
        return None
    key = settings.openai_api_key
    return OpenAIParameters(
        api_key=key.get_secret_value() if key else None,
        base_url=settings.openai_base_url,
        timeout=timedelta(seconds=settings.model_timeout_seconds),
        max_retries=settings.model_retries,
        limits=OpenAILimits(
            texts_per_call=settings.embedding_batch_size,
            concurrent_calls=settings.embedding_concurrency,
        ),
    )


@asynccontextmanager
async def open_catalogue(settings: Settings) -> AsyncIterator[EmbedderCatalogue]:
    """The embedders of the deployment. Raises ConfigurationError."""
    catalogue = await EmbedderCatalogue.open(
        settings.embedding_model, openai=_endpoint(settings), dimension=settings.embedding_dim
    )
    try:
        yield catalogue
    finally:
        await catalogue.aclose()


@asynccontextmanager
async def open_models(settings: Settings) -> AsyncIterator[ModelCatalogue]:
    """What extracts and reconciles in the deployment. Raises ConfigurationError."""
    models = ModelCatalogue(
        settings.extraction_model,
        rules=ExtractionModel(RulesExtractor(), RulesReconciler()),
        openai=_endpoint(settings),
        plugins=installed_extractors(),
    )
    try:
        yield models
    finally:
        await models.aclose()


@asynccontextmanager
async def open_reranker(settings: Settings) -> AsyncIterator[Reranker | None]:
    """The deployment's reranker, if it has one. Raises ConfigurationError."""
    if settings.rerank_model is None:
        yield None
        return
    key = settings.rerank_api_key
    reranker = connect_reranker(
        settings.rerank_model,
        api_key=key.get_secret_value() if key else None,
        timeout=timedelta(seconds=settings.rerank_seconds),
    )
    try:
        yield reranker
    finally:
        await reranker.aclose()


@asynccontextmanager
async def open_runtime(
    settings: Settings, dsn: str, *, now: Callable[[], datetime] = utc_now
) -> AsyncIterator[Runtime]:
    """Build the runtime against the database at `dsn`; on exit write what is still counted.

    Raises:
        ConfigurationError: the schema, the role or a model is not usable; says what to do.

    """
    await check_schema(dsn)
    async with (
        open_catalogue(settings) as catalogue,
        open_models(settings) as models,
        open_reranker(settings) as reranker,
        open_database(
            dsn,
            pool_size=settings.database_pool_size,
            statement_timeout_seconds=settings.statement_timeout_seconds,
        ) as database,
    ):
        runtime = _build(settings, database, Providers(catalogue, models, reranker), now)
        await _notice_other_models(runtime)
        closing = asyncio.Event()
        flushing = asyncio.create_task(_flush_until(closing, runtime))
        try:
            yield runtime
        finally:
            # Not cancelled: a write that is cut off may have been written, and counts twice.
            closing.set()
            await asyncio.wait([flushing])
            await _attempt("memory_use", lambda: runtime.memory_use.flush(everything=True))
            await _attempt("embeddings", lambda: runtime.embedding_ledger.flush(everything=True))
            await _attempt("key_use", runtime.key_use.flush)


def _build(
    settings: Settings,
    database: Database,
    providers: Providers,
    now: Callable[[], datetime],
) -> Runtime:
    catalogue, models, reranker = providers.catalogue, providers.models, providers.reranker
    directory = KeyDirectory(database)
    embedding_ledger = EmbeddingLedger(database)
    embedders = Embedders(database, catalogue, embedding_ledger)
    switches = Switches(enabled=settings.enabled)
    key_use, memory_use = KeyUse(directory), MemoryUse(database)
    rules = _saving_rules(settings)
    capture = _capture(settings)
    quota = Quota(settings.daily_calls, settings.daily_tokens)
    limits = Limits(settings.max_extractions, quota)
    saving = SavingService(database, embedders, switches, rules)
    indexer = Indexer(embedders, capture.tags)
    pipeline = Pipeline(
        database,
        embedders,
        RunLog(database),
        PipelineRules(rules, settings.max_facts, RulesReconciler()),
    )
    return Runtime(
        settings=settings,
        database=database,
        catalogue=catalogue,
        models=models,
        embedders=embedders,
        switches=switches,
        identification=Identification(directory, key_use, now),
        key_use=key_use,
        memory_use=memory_use,
        embedding_ledger=embedding_ledger,
        saving=saving,
        editing=EditingService(database, embedders, switches, rules.gate),
        search=SearchService(
            database, embedders, memory_use, _ranks(settings), reranker, embedding_ledger, now
        ),
        capture=capture,
        indexer=indexer,
        filling=MessageFilling(database, indexer, embedders),
        message_search=MessageSearchService(database, embedders, _boosts(settings), now),
        quota=quota,
        inferring=InferringService(
            database,
            saving,
            pipeline,
            models,
            switches,
            InferenceRules(settings.auto_create, capture.tags, capture.window, limits),
            now,
        ),
        extraction=ExtractionService(database, models, switches, limits, now),
        session_jobs=SessionJobs(database, pipeline, models, switches, limits, capture.tags, now),
        now=now,
        metrics_folder=metrics_folder(),
    )


def _saving_rules(settings: Settings) -> SavingRules:
    gate = Gate(
        min_confidence=settings.min_confidence,
        min_length=settings.min_length,
        max_length=settings.max_length,
        secrets=settings.secrets_action,
        identifiers=settings.identifiers_action,
        stop_words=_stop_words(settings),
    )
    return SavingRules(gate, settings.auto_create, settings.duplicate_threshold)


def _stop_words(settings: Settings) -> StopWords:
    return stop_words(settings.stop_words.split(","))


def stripped_tags(settings: Settings) -> list[str]:
    """Blocks that somebody else puts into messages."""
    return [tag.strip() for tag in settings.stripped_tags.split(",") if tag.strip()]


def _capture(settings: Settings) -> CaptureRules:
    debounce = Debounce(timedelta(seconds=settings.debounce_seconds))
    return CaptureRules(
        debounce, stripped_tags(settings), settings.signal_window, _stop_words(settings)
    )


def _ranks(settings: Settings) -> SearchRanks:
    return SearchRanks(
        RankWeights(settings.rank_w_similarity, settings.rank_w_confidence, settings.rank_w_scope),
        ScopeWeights(
            session=settings.scope_w_session,
            project=settings.scope_w_project,
            user=settings.scope_w_user,
            agent=settings.scope_w_agent,
        ),
        _boosts(settings),
    )


def _boosts(settings: Settings) -> Boosts:
    try:
        return Boosts().with_changes(parsed_weights(settings.search_boosts))
    except InvalidWeightsError as error:
        raise ConfigurationError(f"MEMORY_SEARCH_BOOSTS: {error}") from None


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


async def _flush_until(closing: asyncio.Event, runtime: Runtime) -> None:
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(closing.wait(), runtime.settings.usage_flush_seconds)
            return
        await _attempt("key_use", runtime.key_use.flush)
        await _attempt("memory_use", runtime.memory_use.flush)
        await _attempt("embeddings", runtime.embedding_ledger.flush)


async def _attempt(what: str, flush: Callable[[], Awaitable[None]]) -> None:
    try:
        await flush()
    except Exception as error:  # noqa: BLE001 (counts are kept and written the next time)
        log.warning("usage_not_written", what=what, error=type(error).__name__)
