"""Whoever answers outside of the database: embedders, models and the reranker of a deployment."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from app.language.keyless.extractor import RulesExtractor
from app.language.keyless.profile import RulesProfiler
from app.language.keyless.reconciler import RulesReconciler
from app.language.llm.embedder_catalogue import EmbedderCatalogue, OpenAIParameters
from app.language.llm.model_catalogue import (
    RULES,
    ExtractionModel,
    ModelCatalogue,
    ProfilerCatalogue,
    SummariserCatalogue,
    installed_extractors,
)
from app.language.llm.reranker import Reranker
from app.language.llm.reranker_catalogue import connect_reranker
from app.settings import Settings

RERANK_TIMEOUT: Final = timedelta(seconds=2)
"""Who searches waits no longer: the order stays as it was."""


@dataclass(frozen=True, slots=True)
class Providers:
    """Whoever answers outside of the database."""

    catalogue: EmbedderCatalogue
    models: ModelCatalogue
    summarisers: SummariserCatalogue
    profilers: ProfilerCatalogue
    reranker: Reranker | None


@asynccontextmanager
async def open_providers(settings: Settings) -> AsyncIterator[Providers]:
    """All of them. Raises ConfigurationError."""
    async with (
        open_catalogue(settings) as catalogue,
        open_models(settings) as models,
        open_summarisers(settings) as summarisers,
        open_profilers(settings) as profilers,
        open_reranker(settings) as reranker,
    ):
        yield Providers(catalogue, models, summarisers, profilers, reranker)


def _endpoint(settings: Settings) -> OpenAIParameters | None:
    if not (settings.openai_api_key or settings.openai_base_url):
        return None
    key = settings.openai_api_key
    return OpenAIParameters(
        api_key=key.get_secret_value() if key else None,
        base_url=settings.openai_base_url,
        timeout=timedelta(seconds=settings.model_timeout_seconds),
        max_retries=settings.model_retries,
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
async def open_summarisers(settings: Settings) -> AsyncIterator[SummariserCatalogue]:
    """What writes summaries in the deployment. Raises ConfigurationError."""
    summarisers = SummariserCatalogue(settings.summary_model, openai=_endpoint(settings))
    try:
        yield summarisers
    finally:
        await summarisers.aclose()


@asynccontextmanager
async def open_profilers(settings: Settings) -> AsyncIterator[ProfilerCatalogue]:
    """What derives profiles in the deployment: the model that reads conversations, if one does."""
    reader = settings.extraction_model
    profilers = ProfilerCatalogue(
        reader if reader.startswith("openai/") else RULES,
        rules=RulesProfiler(),
        openai=_endpoint(settings),
    )
    try:
        yield profilers
    finally:
        await profilers.aclose()


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
