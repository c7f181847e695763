"""What a search asks of a reranker, and how it goes on without one."""

from collections.abc import Sequence
from time import perf_counter

import structlog

from app.identity.agents.embedders import Spending
from app.language.llm.embedder import EmbeddingUse
from app.language.llm.reranker import Reranker, RerankUnavailableError
from app.platform.observability.metrics import RERANK_SECONDS, RERANKS

log = structlog.get_logger()


class CountedReranker:
    """A reranker at work for one tenant; its calls are noted."""

    def __init__(self, reranker: Reranker, spending: Spending, tenant_id: str) -> None:
        self._reranker = reranker
        self._spending = spending
        self._tenant_id = tenant_id

    @property
    def name(self) -> str:
        return self._reranker.name

    @property
    def model(self) -> str:
        return self._reranker.model

    async def rerank(self, query: str, documents: Sequence[str]) -> Sequence[float]:
        """As the port says."""
        # Blanks have the lowest score without anybody being asked.
        asked = bool(query.strip()) and any(text.strip() for text in documents)
        spent = EmbeddingUse(calls=int(asked), failures=int(asked))
        try:
            scores = await self._reranker.rerank(query, documents)
            spent.failures = 0
        finally:
            # Also of a call that failed, or that nobody waits for any more.
            if spent.calls:
                self._spending.note(self._tenant_id, "rerank", self.model, spent)
        return scores


async def reranked(reranker: Reranker, query: str, contents: Sequence[str]) -> list[float] | None:
    """One score from 0 to 1 per content, in their order, counted and timed.

    None when the reranker failed or took too long: the order without it stands, and the
    answer to the search is degraded.

    Args:
        reranker: brings its own time limit.
        query: as it was asked.
        contents: at most RERANK_CANDIDATES of them; for none, nobody is asked.

    """
    if not contents:
        return []
    started = perf_counter()
    outcome = "cancelled"
    try:
        scores = list(await reranker.rerank(query, contents))
        outcome = "ok"
    except RerankUnavailableError as error:
        outcome = error.reason
        log.warning(
            "rerank_failed",
            model=reranker.name,
            reason=error.reason,
            provider_status=error.provider_status,
        )
        return None
    else:
        return scores
    finally:
        RERANKS.labels(reranker.name, outcome).inc()
        RERANK_SECONDS.labels(reranker.name).observe(perf_counter() - started)
