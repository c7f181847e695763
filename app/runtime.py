"""What lives as long as the process: opened here in order, closed in reverse."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from app.database.engine import Database, open_database
from app.database.migrate import check_schema
from app.llm.catalogue import EmbedderCatalogue, OpenAIParameters
from app.llm.openai_embedder import OpenAILimits
from app.memories.editing import EditingService
from app.memories.embedding import Embedders
from app.memories.gate import Gate
from app.memories.ranking import RankWeights, ScopeWeights
from app.memories.saving import SavingRules, SavingService
from app.memories.search import SearchService
from app.memories.usage import MemoryUse
from app.settings import Settings, metrics_folder
from app.tenants.repository import KeyDirectory
from app.tenants.service import Identification, KeyUse
from app.web.switches import Switches

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Runtime:
    """One per process. Services without a state of their own are built per request."""

    settings: Settings
    database: Database
    catalogue: EmbedderCatalogue
    embedders: Embedders
    switches: Switches
    identification: Identification
    key_use: KeyUse
    memory_use: MemoryUse
    saving: SavingService
    editing: EditingService
    search: SearchService
    now: Callable[[], datetime]
    metrics_folder: Path | None
    """Shared with the other processes of the service, when there are any."""


def utc_now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def open_catalogue(settings: Settings) -> AsyncIterator[EmbedderCatalogue]:
    """The embedders of the deployment. Raises ConfigurationError."""
    parameters = None
    if settings.openai_api_key or settings.openai_base_url:
        key = settings.openai_api_key
        parameters = OpenAIParameters(
            api_key=key.get_secret_value() if key else None,
            base_url=settings.openai_base_url,
            timeout=timedelta(seconds=settings.model_timeout_seconds),
            max_retries=settings.model_retries,
            limits=OpenAILimits(
                texts_per_call=settings.embedding_batch_size,
                concurrent_calls=settings.embedding_concurrency,
            ),
        )
    catalogue = await EmbedderCatalogue.open(
        settings.embedding_model, openai=parameters, dimension=settings.embedding_dim
    )
    try:
        yield catalogue
    finally:
        await catalogue.aclose()


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
        open_database(
            dsn,
            pool_size=settings.database_pool_size,
            statement_timeout_seconds=settings.statement_timeout_seconds,
        ) as database,
    ):
        runtime = _build(settings, database, catalogue, now)
        await _notice_other_models(runtime)
        flushing = asyncio.create_task(_flush_for_ever(runtime))
        try:
            yield runtime
        finally:
            flushing.cancel()
            with suppress(asyncio.CancelledError):
                await flushing
            await _attempt("memory_use", lambda: runtime.memory_use.flush(everything=True))
            await _attempt("key_use", runtime.key_use.flush)


def _build(
    settings: Settings,
    database: Database,
    catalogue: EmbedderCatalogue,
    now: Callable[[], datetime],
) -> Runtime:
    directory = KeyDirectory(database)
    embedders = Embedders(database, catalogue)
    switches = Switches(enabled=settings.enabled)
    key_use, memory_use = KeyUse(directory), MemoryUse(database)
    gate = Gate(
        min_confidence=settings.min_confidence,
        min_length=settings.min_length,
        max_length=settings.max_length,
        secrets=settings.secrets_action,
        identifiers=settings.identifiers_action,
    )
    rules = SavingRules(gate, settings.auto_create, settings.duplicate_threshold)
    weights = RankWeights(
        settings.rank_w_similarity, settings.rank_w_confidence, settings.rank_w_scope
    )
    scopes = ScopeWeights(
        session=settings.scope_w_session,
        project=settings.scope_w_project,
        user=settings.scope_w_user,
        agent=settings.scope_w_agent,
    )
    return Runtime(
        settings=settings,
        database=database,
        catalogue=catalogue,
        embedders=embedders,
        switches=switches,
        identification=Identification(directory, key_use, now),
        key_use=key_use,
        memory_use=memory_use,
        saving=SavingService(database, embedders, switches, rules, now),
        editing=EditingService(database, embedders, switches, gate, now),
        search=SearchService(database, embedders, memory_use, weights, scopes, now),
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


async def _flush_for_ever(runtime: Runtime) -> None:
    while True:
        await asyncio.sleep(runtime.settings.usage_flush_seconds)
        await _attempt("key_use", runtime.key_use.flush)
        await _attempt("memory_use", runtime.memory_use.flush)


async def _attempt(what: str, flush: Callable[[], Awaitable[None]]) -> None:
    try:
        await flush()
    except Exception as error:  # noqa: BLE001 (counts are kept and written the next time)
        log.warning("usage_not_written", what=what, error=type(error).__name__)
