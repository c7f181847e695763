"""Which embedder serves whom: the agent's, else the tenant's, else the deployment's.

What a provider's embedder costs is noted for the tenant it works for, here and nowhere else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter
from typing import Any, Protocol

import structlog

from app.identity.tenants.access import Principal
from app.language.llm.embedder import (
    NO_SHARE,
    DenseShare,
    DuplicateThreshold,
    Embedder,
    EmbeddingOperation,
    EmbeddingUse,
    Vectors,
)
from app.language.llm.embedder_catalogue import EmbedderCatalogue
from app.language.llm.errors import EmbeddingUnavailableError, UnknownEmbedderError
from app.language.llm.reranker import RerankOperation
from app.language.ranking.query import ParsedQuery, parsed_query
from app.platform.database.engine import Database
from app.platform.observability.metrics import (
    EMBEDDED_TEXTS,
    EMBEDDING_SECONDS,
    MODEL_TOKENS,
    embedding_model,
)

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
    model = embedding_model(embedder.name)
    EMBEDDED_TEXTS.labels(model).inc(len(texts))
    EMBEDDING_SECONDS.labels(model).observe(perf_counter() - started)
    return vectors


class Spending(Protocol):
    """Where it is noted what embedding and reranking cost: the ledger of `usage`."""

    def note(
        self,
        tenant_id: str,
        operation: EmbeddingOperation | RerankOperation,
        model: str,
        use: EmbeddingUse,
    ) -> None:
        """Gather, without waiting for anything."""
        ...

    async def flush(self) -> None:
        """Write what was gathered."""
        ...


class CountedEmbedder:
    """An embedder at work for one tenant, for one purpose; what it spends is noted."""

    def __init__(
        self,
        embedder: Embedder,
        spending: Spending,
        tenant_id: str,
        operation: EmbeddingOperation,
    ) -> None:
        self._embedder = embedder
        self._spending = spending
        self._tenant_id = tenant_id
        self._operation = operation

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def duplicate_threshold(self) -> DuplicateThreshold:
        return self._embedder.duplicate_threshold

    @property
    def dense_share(self) -> DenseShare:
        return self._embedder.dense_share

    @property
    def neighbour_floor(self) -> float:
        return self._embedder.neighbour_floor

    async def embed(self, texts: Sequence[str], use: EmbeddingUse | None = None) -> Vectors:
        """As the port says."""
        spent = EmbeddingUse()
        try:
            return await self._embedder.embed(texts, spent)
        finally:
            # Also after a call that failed or was cancelled.
            if spent.calls:
                self._spending.note(self._tenant_id, self._operation, self.model, spent)
                MODEL_TOKENS.labels(self._operation, "input").inc(spent.input_tokens)
            if use is not None:
                use.add(spent)


@dataclass(frozen=True, slots=True)
class QueryVectors:
    """The texts of a query as vectors; of no model where none was asked, or none answered.

    Args:
        by_model: one row of each model's vectors per text.
        dense_share: the smallest of those models', so that the weakest is not too loud.
        degraded: whether one of the models did not answer.

    """

    by_model: Mapping[str, Vectors] = field(default_factory=dict)
    dense_share: DenseShare = NO_SHARE
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """A query that was read and embedded once, for all that is searched with it.

    Args:
        parsed: its words, dates and names, and the vectors of what is ranked by.
        vectors: of the query as it stands, first, and of its `ranked_texts`.

    """

    text: str
    parsed: ParsedQuery
    vectors: QueryVectors

    @property
    def by_model(self) -> dict[str, Any]:
        """The query as it stands, as a unit vector of each model."""
        return {model: rows[0] for model, rows in self.vectors.by_model.items()}


@dataclass(frozen=True, slots=True)
class InForce:
    """Which model each memory should have: names by handle, and the handle of those whose
    agent names none.
    """

    models: Mapping[str, str]
    home: str

    def parameters(self) -> dict[str, Any]:
        return {
            "handles": list(self.models),
            "models": list(self.models.values()),
            "home": self.home,
        }


class Embedders:
    """Chooses embedders for a caller."""

    def __init__(
        self, database: Database, catalogue: EmbedderCatalogue, spending: Spending
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._spending = spending

    async def for_writing(self, principal: Principal, agent_id: str | None) -> Embedder:
        """The embedder in force for new memories of this agent, or of none.

        Raises:
            UnknownEmbedderError: the configured embedder is not available any more.
            EmbeddingUnavailableError: it could not be asked for its dimension.

        """
        handle = None
        if agent_id is not None:
            rows = await self._database.fetch(principal.tenant_id, _AGENT_EMBEDDING, agent_id)
            handle = rows[0]["handle"] if rows else None
        handle = handle or principal.config.get("embedding")
        embedder = await self._catalogue.resolve(str(handle)) if handle else self._catalogue.default
        return CountedEmbedder(embedder, self._spending, principal.tenant_id, "embed")

    async def at_hand(self, principal: Principal) -> Embedder | None:
        """The embedder in force where no agent names another, if it works in this process."""
        handle = principal.config.get("embedding")
        try:
            embedder = await self._catalogue.in_process(str(handle) if handle else None)
        except UnknownEmbedderError:
            return None
        if embedder is None:
            return None
        return CountedEmbedder(embedder, self._spending, principal.tenant_id, "embed")

    async def for_query(
        self, principal: Principal, texts: Sequence[str], *, required: bool
    ) -> QueryVectors:
        """The texts of a query as vectors of every model that the tenant's memories have.

        Args:
            texts: one call per model takes them all.
            required: whether nothing can be found without a vector.

        Raises:
            EmbeddingUnavailableError: none of them did, and one is required.

        """
        vectors: dict[str, Vectors] = {}
        # What stands for a query in the ranking is often the query itself.
        distinct = list(dict.fromkeys(texts))
        shares: list[DenseShare] = []
        failure: EmbeddingUnavailableError | None = None
        for name in principal.embedding_models or (self._catalogue.default.name,):
            try:
                embedder = await self._catalogue.by_name(name)
                if embedder is not None:
                    counted = CountedEmbedder(
                        embedder, self._spending, principal.tenant_id, "embed_query"
                    )
                    found = await embed(counted, distinct)
                    places = [distinct.index(text) for text in texts]
                    vectors[name] = found if len(distinct) == len(texts) else found[places]
                    shares.append(counted.dense_share)
            except EmbeddingUnavailableError as error:
                failure = error
                log.warning("embedding_failed", model=name, code=error.code)
        if failure is not None and not vectors and required:
            raise failure
        return QueryVectors(vectors, smallest(shares), failure is not None)

    async def embedded(self, principal: Principal, text: str, reference: datetime) -> EmbeddedQuery:
        """A query that is asked at `reference`; without vectors where no embedder answers."""
        asked = await parsed_query(text, reference)
        vectors = await self.for_query(principal, [text, *asked.ranked_texts], required=False)
        return EmbeddedQuery(text, asked.embedded(vectors.by_model), vectors)


def smallest(shares: Sequence[DenseShare]) -> DenseShare:
    """The smallest share of each script; of none, no share."""
    return DenseShare(
        latin=min((share.latin for share in shares), default=NO_SHARE.latin),
        cjk=min((share.cjk for share in shares), default=NO_SHARE.cjk),
    )
