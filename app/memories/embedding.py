"""Which embedder serves whom: the agent's, else the tenant's, else the deployment's (M-26)."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import structlog

from app.database.engine import Database
from app.llm.catalogue import EmbedderCatalogue
from app.llm.embeddings import Embedder
from app.llm.errors import EmbeddingUnavailableError
from app.tenants.access import Principal
from app.web.metrics import EMBEDDED_TEXTS, EMBEDDING_SECONDS

log = structlog.get_logger()

_AGENT_EMBEDDING = """
SELECT config->>'embedding' AS handle FROM agents
WHERE agents.tenant_id = tenant.id AND agents.agent_id = CAST($2 AS text)
"""


async def embed(embedder: Embedder, texts: Sequence[str]) -> Any:
    """Unit vectors of `texts`, in order, counted and timed.

    Raises:
        EmbeddingUnavailableError: nothing was written; safe to retry.

    """
    started = perf_counter()
    vectors = await embedder.embed(texts)
    EMBEDDED_TEXTS.labels(embedder.name).inc(len(texts))
    EMBEDDING_SECONDS.labels(embedder.name).observe(perf_counter() - started)
    return vectors


class Embedders:
    """Chooses embedders for a caller."""

    def __init__(self, database: Database, catalogue: EmbedderCatalogue) -> None:
        self._database = database
        self._catalogue = catalogue

    async def for_writing(self, principal: Principal, agent_id: str | None) -> Embedder:
        """The embedder in force for new memories of this agent, or of none.

        Raises:
            UnknownEmbedderError: the configured one is gone.
            EmbeddingUnavailableError: it could not be asked for its dimension.

        """
        handle = None
        if agent_id is not None:
            rows = await self._database.fetch(principal.tenant_id, _AGENT_EMBEDDING, agent_id)
            handle = rows[0]["handle"] if rows else None
        handle = handle or principal.config.get("embedding")
        return await self._catalogue.resolve(str(handle)) if handle else self._catalogue.default

    async def for_query(self, principal: Principal, query: str) -> tuple[dict[str, Any], bool]:
        """The query as a vector of every model that the tenant's memories have.

        Returns:
            Vectors by model, and whether one of the models did not answer.

        Raises:
            EmbeddingUnavailableError: none of them did.

        """
        vectors: dict[str, Any] = {}
        failure: EmbeddingUnavailableError | None = None
        for name in principal.embedding_models or (self._catalogue.default.name,):
            try:
                embedder = await self._catalogue.by_name(name)
                if embedder is not None:
                    vectors[name] = (await embed(embedder, [query]))[0]
            except EmbeddingUnavailableError as error:
                failure = error
                log.warning("embedding_failed", model=name, code=error.code)
        if failure is not None and not vectors:
            raise failure
        return vectors, failure is not None
