"""What lives as long as the process: opened here in order, closed in reverse."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from shutil import disk_usage
from typing import Final

import structlog

from app.conversation.messages.extraction_schedule import CaptureRules
from app.conversation.messages.message_index import Indexer
from app.conversation.messages.window_service import StrategyFactory, installed_strategies
from app.conversation.sessions.checkpoint_store import CheckpointStore
from app.conversation.sessions.policy import WindowPolicy
from app.deployment import (
    Providers,
    capture_rules,
    forgetting_policy,
    open_providers,
    saving_rules,
    search_ranks,
    window_policy,
)
from app.errors import ConfigurationError
from app.governance.exports.service import ExportSlots
from app.governance.webhooks.repository import WebhookDirectory
from app.identity.agents.config import ForgettingPolicy, Processing
from app.identity.agents.embedders import Embedders
from app.identity.tenants.repository import KeyDirectory
from app.identity.tenants.service import Identification, KeyUse
from app.identity.usage.activity import Activity
from app.identity.usage.ledger import EmbeddingLedger
from app.identity.usage.quota import Price, Quota, parsed_prices
from app.language.llm.embedder_catalogue import EmbedderCatalogue
from app.language.llm.model_catalogue import ModelCatalogue, ProfilerCatalogue, SummariserCatalogue
from app.language.llm.reranker import Reranker
from app.language.llm.tokens import TokenCounter, open_counter
from app.language.text.offload import load_tables
from app.memory.memories.large_buckets import LargeBuckets
from app.memory.memories.save_service import SaveRules
from app.memory.memories.search_service import SearchRanks
from app.memory.memories.uses import MemoryUse
from app.platform.database.engine import Database, open_database
from app.platform.database.failures import DiskReserve
from app.platform.database.logins import refuse_owner_login
from app.platform.database.migrate import check_schema
from app.platform.embedded.data_folder import default_data_dir
from app.platform.http.rates import RateLimits
from app.platform.plugins.catalogue import allowed_processors
from app.platform.plugins.runner import processors_of
from app.platform.work.unit import Work
from app.prompting.checkpoints.checkpoint_store import SessionCheckpointStore
from app.prompting.context.injections import Injections
from app.settings import Settings, metrics_folder, tiktoken_folder

log = structlog.get_logger()

USAGE_FLUSH: Final = timedelta(seconds=1)
"""How often use counts, last uses and the cost of embeddings are written. That much is lost when
the process is killed; oftener would be a write per key and memory for every request."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """One per process: what is open, and what the settings say in the words of each package.

    `app.builders.factory.Factory` builds the services out of it.
    """

    settings: Settings
    database: Database
    work: Work
    catalogue: EmbedderCatalogue
    models: ModelCatalogue
    summarisers: SummariserCatalogue
    profilers: ProfilerCatalogue
    reranker: Reranker | None
    embedders: Embedders
    processing: Processing
    counter: TokenCounter
    window_policy: WindowPolicy
    window_strategies: Mapping[str, StrategyFactory]
    saving_rules: SaveRules
    forgetting_policy: ForgettingPolicy
    search_ranks: SearchRanks
    large_buckets: LargeBuckets
    capture: CaptureRules
    indexer: Indexer
    checkpoint_store: CheckpointStore
    identification: Identification
    rate_limits: RateLimits
    quota: Quota
    prices: Mapping[str, Price]
    export_slots: ExportSlots
    key_use: KeyUse
    memory_use: MemoryUse
    injections: Injections
    activity: Activity
    embedding_ledger: EmbeddingLedger
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
    free_bytes: Callable[[], int] | None = None,
    providers: Providers | None = None,
) -> AsyncIterator[Runtime]:
    """Build the runtime against the database at `dsn`; on exit write what is still counted.

    Args:
        settings: of the deployment.
        dsn: where the service logs in.
        now: the clock.
        usage_flush: how often counts are written.
        free_bytes: room on the disk of the database; that of the data folder when left out, and
            not watched where the database is another's.
        providers: of `open_usable`, which the caller closes; opened here when left out.

    Raises:
        ConfigurationError: the schema, the role or a model is not usable; says what to do.

    """
    await check_schema(dsn)
    if not settings.allow_owner_login:
        await refuse_owner_login(dsn)
    async with (
        _open_traces() if settings.tracing else nullcontext(),
        nullcontext(providers) if providers else open_providers(settings) as opened,
        open_database(
            dsn,
            pool_size=settings.database_pool_size,
            read_in_transactions=settings.read_in_transactions,
            reserve=_reserve(settings, free_bytes),
            most_waiting=settings.max_waiting,
        ) as database,
    ):
        runtime = _build(settings, database, opened, now)
        await _notice_other_models(runtime)
        await _notice_missing_key(runtime)
        closing = asyncio.Event()
        flushing = asyncio.create_task(_flush_until(closing, runtime, usage_flush))
        try:
            yield runtime
        finally:
            # Not cancelled: a write that is cut off may have been written, and counts twice.
            closing.set()
            await runtime.large_buckets.aclose()
            await asyncio.wait([flushing])
            await _attempt("memory_use", lambda: runtime.memory_use.flush(everything=True))
            await _attempt("injections", lambda: runtime.injections.flush(everything=True))
            await _attempt("activity", lambda: runtime.activity.flush(everything=True))
            await _attempt("embeddings", lambda: runtime.embedding_ledger.flush(everything=True))
            await _attempt("key_use", runtime.key_use.flush)


@asynccontextmanager
async def open_usable(settings: Settings) -> AsyncIterator[Providers]:
    """The providers of a deployment whose settings can be meant, before anything is made for it.

    Raises:
        ConfigurationError: a setting or a model is not usable; says what to do.

    """
    saving_rules(settings)
    search_ranks(settings)
    capture_rules(settings)
    parsed_prices(settings.model_prices)
    allowed_processors(settings.processors)
    async with open_providers(settings) as providers:
        yield providers


def _open_traces() -> AbstractAsyncContextManager[object]:
    """Raises ConfigurationError."""
    try:
        # Imports the SDK, which nothing else of the service needs.
        otel = import_module("app.platform.observability.otel")
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"MEMORY_TRACING is on, and {error.name} is not installed: install the extra with "
            "`pip install .[otel]`, or leave the setting out."
        ) from None
    traces: AbstractAsyncContextManager[object] = otel.open_traces()
    return traces


def _reserve(settings: Settings, free_bytes: Callable[[], int] | None) -> DiskReserve | None:
    folder = settings.data_dir or default_data_dir()
    if free_bytes is None:
        if not (settings.embedded and folder.exists()):
            return None
        free_bytes = partial(_free_bytes, folder)
    return DiskReserve(free_bytes, settings.disk_reserve_bytes)


def _free_bytes(folder: Path) -> int:
    return disk_usage(folder).free


def _build(
    settings: Settings, database: Database, providers: Providers, now: Callable[[], datetime]
) -> Runtime:
    directory, embedding_ledger = KeyDirectory(database), EmbeddingLedger(database)
    embedders = Embedders(database, providers.catalogue, embedding_ledger)
    key_use, capture = KeyUse(directory), capture_rules(settings)
    return Runtime(
        settings=settings,
        database=database,
        work=Work(database, enabled=settings.enabled),
        catalogue=providers.catalogue,
        models=providers.models,
        summarisers=providers.summarisers,
        profilers=providers.profilers,
        reranker=providers.reranker,
        embedders=embedders,
        processing=Processing(database, processors_of(allowed_processors(settings.processors))),
        counter=open_counter(tiktoken_folder()),
        window_policy=window_policy(settings),
        window_strategies=installed_strategies(),
        saving_rules=saving_rules(settings),
        forgetting_policy=forgetting_policy(settings),
        search_ranks=search_ranks(settings),
        large_buckets=LargeBuckets(database),
        capture=capture,
        indexer=Indexer(embedders, capture.tags),
        checkpoint_store=SessionCheckpointStore(),
        identification=Identification(directory, key_use, now, settings.default_user_id),
        rate_limits=RateLimits(
            {
                "read": settings.reads_per_minute,
                "write": settings.writes_per_minute,
                "model": settings.model_requests_per_minute,
            },
            processes=settings.workers,
        ),
        quota=Quota(settings.daily_calls, settings.daily_tokens),
        prices=parsed_prices(settings.model_prices),
        export_slots=ExportSlots(settings.database_pool_size),
        key_use=key_use,
        memory_use=MemoryUse(database),
        injections=Injections(database),
        activity=Activity(database),
        embedding_ledger=embedding_ledger,
        now=now,
        metrics_folder=metrics_folder(),
    )


@asynccontextmanager
async def warmed_up() -> AsyncIterator[None]:
    """Beside whatever the block does, load the tables of the language layer in a thread; to
    be entered when all else that lives as long as the process is there.

    The first request that needs them would wait up to 1.5 s otherwise. And what
    the process keeps is no longer looked through for garbage, which held up everything for 226 ms
    each time.
    """
    gc.freeze()
    compiling = asyncio.create_task(asyncio.to_thread(load_tables))
    compiling.add_done_callback(lambda _: gc.freeze())
    try:
        yield
    finally:
        await compiling


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


async def _notice_missing_key(runtime: Runtime) -> None:
    """Say at start when webhooks are called whose secrets are stored in clear."""
    if not runtime.settings.secret_keys and await WebhookDirectory(runtime.database).exists():
        log.warning(
            "secret_key_missing",
            remedy="set MEMORY_SECRET_KEY to the key that this deployment had or, where there was "
            "none, to what `openssl rand -base64 32` prints, and run `kemem encrypt-secrets`: "
            "until then encrypted secrets sign nothing, others stay in clear, and none is made",
        )


async def _flush_until(closing: asyncio.Event, runtime: Runtime, pause: timedelta) -> None:
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(closing.wait(), pause.total_seconds())
            return
        await _attempt("key_use", runtime.key_use.flush)
        await _attempt("memory_use", runtime.memory_use.flush)
        await _attempt("injections", runtime.injections.flush)
        await _attempt("activity", runtime.activity.flush)
        await _attempt("embeddings", runtime.embedding_ledger.flush)


async def _attempt(what: str, flush: Callable[[], Awaitable[None]]) -> None:
    try:
        await flush()
    except Exception as error:  # noqa: BLE001 (counts are kept and written the next time)
        log.warning("usage_not_written", what=what, error=type(error).__name__)
