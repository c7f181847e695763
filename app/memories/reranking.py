"""What a search asks of a reranker, and how it goes on without one."""

from collections.abc import Sequence
from time import perf_counter

import structlog

from app.llm.reranking import Reranker, RerankUnavailableError
from app.web.metrics import RERANK_SECONDS, RERANKS

log = structlog.get_logger()


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
