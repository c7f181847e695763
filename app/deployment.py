"""What the settings of a deployment say: the rules of each package, and the providers outside of
the database (embedders, models, the reranker).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from app.conversation.messages.extraction_schedule import CaptureRules
from app.conversation.sessions.jobs import Debounce
from app.conversation.sessions.policy import WindowPolicy
from app.errors import ConfigurationError
from app.identity.agents.config import ForgettingPolicy
from app.language.keyless.extractor import RulesExtractor
from app.language.keyless.profile import RulesProfiler
from app.language.keyless.reconciler import RulesReconciler
from app.language.llm.chat import ChatModel
from app.language.llm.embedder_catalogue import EmbedderCatalogue, OpenAIParameters
from app.language.llm.model_catalogue import (
    RULES,
    ChatCatalogue,
    ExtractionModel,
    ModelCatalogue,
    ProfilerCatalogue,
    SummariserCatalogue,
    installed_extractors,
)
from app.language.llm.openai_client import LONGEST_WAIT
from app.language.llm.reranker import Reranker
from app.language.llm.reranker_catalogue import connect_reranker
from app.language.ranking.boosts import Boosts, InvalidWeightsError, parsed_weights
from app.language.text.sensitive import StopWords, stop_words
from app.memory.memories.gate import Gate
from app.memory.memories.hybrid import SCOPES, RankWeights, ScopeWeights
from app.memory.memories.save_service import SaveRules
from app.memory.memories.search_service import SearchRanks
from app.settings import Settings


def saving_rules(settings: Settings) -> SaveRules:
    gate = Gate(
        min_confidence=settings.min_confidence,
        min_length=settings.min_length,
        max_length=settings.max_length,
        secrets=settings.secrets_action,
        identifiers=settings.identifiers_action,
        stop_words=_stop_words(settings),
    )
    return SaveRules(gate, settings.auto_create, settings.duplicate_threshold)


def _stop_words(settings: Settings) -> StopWords:
    return stop_words(settings.stop_words.split(","))


def stripped_tags(settings: Settings) -> list[str]:
    """Blocks that somebody else puts into messages."""
    return [tag.strip() for tag in settings.stripped_tags.split(",") if tag.strip()]


def capture_rules(settings: Settings) -> CaptureRules:
    debounce = Debounce(timedelta(seconds=settings.debounce_seconds))
    return CaptureRules(
        debounce, stripped_tags(settings), settings.signal_window, _stop_words(settings)
    )


def window_policy(settings: Settings) -> WindowPolicy:
    return WindowPolicy(
        budget_tokens=settings.window_tokens,
        warn=settings.pressure_warn,
        flush=settings.pressure_flush,
        evict_fraction=settings.evict_fraction,
        summary_words=settings.summary_word_limit,
    )


def search_ranks(settings: Settings) -> SearchRanks:
    return SearchRanks(
        RankWeights(settings.rank_w_similarity, settings.rank_w_confidence, settings.rank_w_scope),
        _scopes(settings),
        Boosts(),
    )


def _scopes(settings: Settings) -> ScopeWeights:
    """Raises ConfigurationError."""
    try:
        return ScopeWeights(**parsed_weights(settings.scope_weights, SCOPES))
    except InvalidWeightsError as error:
        raise ConfigurationError(f"MEMORY_SCOPE_WEIGHTS: {error}") from None


def forgetting_policy(settings: Settings) -> ForgettingPolicy:
    """For tenants and agents that say nothing of forgetting themselves."""
    return ForgettingPolicy(
        max_facts=settings.max_facts,
        eviction=settings.eviction,
        message_retention_days=settings.message_retention_days,
    )


RERANK_TIMEOUT: Final = timedelta(seconds=2)
"""Who searches waits no longer: the order stays as it was."""


COMMAND_WAIT: Final = timedelta(minutes=1)
"""For which an endpoint may ask within a call of a command, which has no queue to wait in."""


@dataclass(frozen=True, slots=True)
class Providers:
    """Whoever answers outside of the database."""

    catalogue: EmbedderCatalogue
    models: ModelCatalogue
    summarisers: SummariserCatalogue
    profilers: ProfilerCatalogue
    reranker: Reranker | None


@asynccontextmanager
async def open_providers(
    settings: Settings, *, longest_wait: timedelta = LONGEST_WAIT
) -> AsyncIterator[Providers]:
    """All of them. Raises ConfigurationError."""
    async with (
        open_catalogue(settings, longest_wait=longest_wait) as catalogue,
        open_models(settings, longest_wait=longest_wait) as models,
        open_summarisers(settings, longest_wait=longest_wait) as summarisers,
        open_profilers(settings, longest_wait=longest_wait) as profilers,
        open_reranker(settings) as reranker,
    ):
        yield Providers(catalogue, models, summarisers, profilers, reranker)


def _endpoint(settings: Settings, longest_wait: timedelta) -> OpenAIParameters | None:
    if not (settings.openai_api_key or settings.openai_base_url):
        return None
    key = settings.openai_api_key
    return OpenAIParameters(
        api_key=key.get_secret_value() if key else None,
        base_url=settings.openai_base_url,
        timeout=timedelta(seconds=settings.model_timeout_seconds),
        max_retries=settings.model_retries,
        longest_wait=longest_wait,
    )


@asynccontextmanager
async def open_catalogue(
    settings: Settings, *, longest_wait: timedelta = LONGEST_WAIT
) -> AsyncIterator[EmbedderCatalogue]:
    """The embedders of the deployment. Raises ConfigurationError."""
    catalogue = await EmbedderCatalogue.open(
        settings.embedding_model,
        openai=_endpoint(settings, longest_wait),
        dimension=settings.embedding_dim,
    )
    try:
        yield catalogue
    finally:
        await catalogue.aclose()


@asynccontextmanager
async def open_models(
    settings: Settings, *, longest_wait: timedelta = LONGEST_WAIT
) -> AsyncIterator[ModelCatalogue]:
    """What extracts and reconciles in the deployment. Raises ConfigurationError."""
    models = ModelCatalogue(
        settings.extraction_model,
        rules=ExtractionModel(RulesExtractor(), RulesReconciler()),
        openai=_endpoint(settings, longest_wait),
        plugins=installed_extractors(),
    )
    try:
        yield models
    finally:
        await models.aclose()


@asynccontextmanager
async def open_summarisers(
    settings: Settings, *, longest_wait: timedelta = LONGEST_WAIT
) -> AsyncIterator[SummariserCatalogue]:
    """What writes summaries in the deployment. Raises ConfigurationError."""
    summarisers = SummariserCatalogue(
        settings.summary_model, openai=_endpoint(settings, longest_wait)
    )
    try:
        yield summarisers
    finally:
        await summarisers.aclose()


@asynccontextmanager
async def open_profilers(
    settings: Settings, *, longest_wait: timedelta = LONGEST_WAIT
) -> AsyncIterator[ProfilerCatalogue]:
    """What derives profiles in the deployment: the model that reads conversations, if one does."""
    reader = settings.extraction_model
    profilers = ProfilerCatalogue(
        reader if reader.startswith("openai/") else RULES,
        rules=RulesProfiler(),
        openai=_endpoint(settings, longest_wait),
    )
    try:
        yield profilers
    finally:
        await profilers.aclose()


NO_MODEL: Final = "none"


@asynccontextmanager
async def open_chats(
    settings: Settings, *, longest_wait: timedelta = LONGEST_WAIT
) -> AsyncIterator[ChatCatalogue[ChatModel | None]]:
    """The models of the deployment's endpoint as they are; `none` is None."""
    chats = ChatCatalogue[ChatModel | None](
        NO_MODEL,
        setting="the model",
        keyless_handle=NO_MODEL,
        keyless=None,
        make=lambda chat: chat,
        openai=_endpoint(settings, longest_wait),
    )
    try:
        yield chats
    finally:
        await chats.aclose()


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
        timeout=RERANK_TIMEOUT,
    )
    try:
        yield reranker
    finally:
        await reranker.aclose()
