"""Finding memories by vectors alone, or by words, vectors and context, and reranking them.

A search takes at most two statements. The first reads what ranking needs of every row in the
buckets; the second fetches the few that were chosen and checks them again, so that a memory closed
or deleted between the two is not found. Where codes replace vectors, the second statement reads the
exact cosines of more rows than are asked for, and these are ranked again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Final

import asyncpg
import structlog

from app.identity.agents.embedders import Spending
from app.language.llm.embedder import EmbeddingUse
from app.language.llm.reranker import RERANK_CANDIDATES, Reranker, RerankUnavailableError
from app.language.ranking.boosts import Boosts
from app.language.ranking.query import ParsedQuery
from app.language.ranking.records import Records, read_records
from app.language.text.offload import in_turn
from app.memory.memories.bucket_index import ChosenCandidates
from app.memory.memories.candidates_sql import (
    Candidates,
    candidates_statement,
    chosen_in,
    is_complete,
    is_current,
    nearest_statement,
)
from app.memory.memories.graph_sql import links_of
from app.memory.memories.hybrid import (
    RankedMemory,
    Ranking,
    RankingRules,
    RankWeights,
    nominated,
    ranked,
    with_exact_cosines,
)
from app.memory.memories.large_buckets import LargeBuckets, may_choose
from app.memory.memories.search_sql import (
    SearchPlan,
    exact_statement,
    features_statement,
    hits_statement,
    search_statement,
)
from app.memory.memories.timeline_sql import (
    known_features_statement,
    known_hits_statement,
    known_statement,
)
from app.memory.memories.validity_sql import VALIDITY
from app.platform.database.joint_reads import HotReads
from app.platform.observability.metrics import RERANK_SECONDS, RERANKS

FITTING: Final = 0.5
"""From where on a hit counts as fitting in statistics. A convention: what a cosine says depends on
the embedder, and no search is decided by it."""


READ_PER_PRODUCT: Final = 8
"""To choose among rows by so many words takes as long as to rank one row by one vector."""


@dataclass(slots=True)
class Found:
    """One hit: its row, and how it was ranked. Not frozen, as `RankedMemory`."""

    row: asyncpg.Record
    ranked: RankedMemory
    rerank: float | None = None


async def by_vectors(
    database: HotReads, plan: SearchPlan, large: LargeBuckets | None = None
) -> list[Found]:
    """The best memories by similarity, confidence and scope, best first; one statement.

    Args:
        database: sends the statement.
        plan: what is searched for.
        large: the buckets of which candidates are ranked; none where it is left out.

    """
    tenant_id = plan.access.tenant_id
    chosen = await _chosen(plan, large)
    if chosen is not None and large is not None:
        text, values = nearest_statement(plan, chosen)
        rows = await database.fetch(tenant_id, text, *values)
        if rows and _stand_for_all(plan, chosen, rows[0], rows[0]["visible"], large):
            return [_by_vector(row) for row in rows]
    text, values = (search_statement if plan.known_at is None else known_statement)(plan)
    return [_by_vector(row) for row in await database.fetch(tenant_id, text, *values)]


def _by_vector(row: asyncpg.Record) -> Found:
    return Found(
        row,
        RankedMemory(
            memory_id=row["memory_id"],
            score=min(row["score"], 1.0),
            similarity=row["similarity"],
            lexical=None,
            relevance=row["similarity"],
            confidence=row["confidence"],
            scope_weight=row["scope_weight"],
        ),
    )


async def by_all(
    database: HotReads,
    tenant_id: str,
    plan: SearchPlan,
    asked: ParsedQuery,
    boosts: Boosts,
    large: LargeBuckets | None = None,
) -> list[Found]:
    """The best memories by words, vectors and context, best first; two statements.

    Behind them come the corrections that the plan wants and that are not among them.

    Args:
        database: sends the statements.
        tenant_id: whose memories they are.
        plan, asked, boosts: what is searched for, and how it is ranked.
        large: the buckets of which candidates are ranked; none where it is left out.

    """
    how = Ranking(
        asked,
        boosts,
        RankWeights(*plan.weights),
        RankingRules(
            plan.mode, plan.threshold, plan.rerank, plan.limit, plan.corrections, plan.explain
        ),
    )
    chosen = await _chosen(plan, large)
    if chosen is not None and large is not None:
        text, values, columns = candidates_statement(plan, asked, chosen)
        [seen] = await database.fetch(tenant_id, text, *values)
        if _stand_for_all(plan, chosen, seen, len(seen["ids"] or ()), large):
            some = Candidates.of(seen, read_records(seen["records"], columns), chosen)
            how = replace(how, statistics=some.statistics)
            return await _shown(database, tenant_id, plan, ranked(some.ids, some.records, how))
    now = plan.known_at is None
    text, values, columns = (features_statement if now else known_features_statement)(plan, asked)
    [seen] = await database.fetch(tenant_id, text, *values)
    ids: Sequence[str] = seen["ids"] or ()
    records = read_records(seen["records"], columns)
    if plan.names:
        how = replace(how, links=links_of(seen["links"], len(ids)))
    work = asked.products(len(ids))
    if "rough" in (records.dtype.names or ()) and records["rough"].any():
        near = await in_turn(work, nominated, ids, records, how)
        text, values = exact_statement(plan, asked, near)
        rows = await _by_id(database, tenant_id, text, values)
        best = await in_turn(work, _ranked_exactly, ids, records, rows, how)
        return _found(rows, best)
    return await _shown(database, tenant_id, plan, await in_turn(work, ranked, ids, records, how))


async def _chosen(plan: SearchPlan, large: LargeBuckets | None) -> ChosenCandidates | None:
    """The candidates among the rows with codes; None where every row is to be ranked."""
    if large is None or not may_choose(plan):
        return None
    parts = await large.indexes(plan)
    if not parts:
        return None
    terms = 0 if plan.asked is None else len(plan.asked.packed.terms)
    read = sum(len(part.ids) for part in parts) * (2 + terms)
    return await in_turn(read // READ_PER_PRODUCT, chosen_in, parts, plan)


def _stand_for_all(
    plan: SearchPlan, chosen: ChosenCandidates, seen: Any, visible: int, large: LargeBuckets
) -> bool:
    """Whether candidates stand for all rows; `large` hears why they do not."""
    if not is_current(seen, chosen):
        large.outdated(plan, chosen.states)
        return False
    if not is_complete(seen, chosen, visible):
        large.forget(plan)
        return False
    return True


async def _shown(
    database: HotReads, tenant_id: str, plan: SearchPlan, best: Sequence[RankedMemory]
) -> list[Found]:
    """The hits with what is shown of them; those that are gone by now are left out."""
    if not best:
        return []
    now = plan.known_at is None
    chosen = [memory.memory_id for memory in best]
    text, values = (hits_statement if now else known_hits_statement)(plan, chosen)
    return _found(await _by_id(database, tenant_id, text, values), best)


def _found(rows: dict[str, asyncpg.Record], best: Sequence[RankedMemory]) -> list[Found]:
    return [Found(rows[memory.memory_id], memory) for memory in best if memory.memory_id in rows]


def _ranked_exactly(
    ids: Sequence[str], records: Records, rows: dict[str, asyncpg.Record], how: Ranking
) -> list[RankedMemory]:
    return ranked(ids, with_exact_cosines(ids, records, rows), how)


async def _by_id(
    database: HotReads, tenant_id: str, text: str, values: Sequence[object]
) -> dict[str, asyncpg.Record]:
    return {row["memory_id"]: row for row in await database.fetch(tenant_id, text, *values)}


async def by_reranker(
    reranker: Reranker, query: str, found: list[Found]
) -> tuple[list[Found], bool]:
    """`found` in the order of the reranker's scores, and whether it gave any.

    The reranker sees the first `RERANK_CANDIDATES`; the others stay behind them in their order.
    """
    seen, rest = found[:RERANK_CANDIDATES], found[RERANK_CANDIDATES:]
    scores = await reranked(reranker, query, [hit.row["content"] for hit in seen])
    if scores is None:
        return found, False
    judged = [replace(hit, rerank=score) for hit, score in zip(seen, scores, strict=True)]
    # Stable: what it finds equal stays as it was.
    judged.sort(key=_by_rerank)
    return [*judged, *rest], True


def newer_first(found: Sequence[Found]) -> list[Found]:
    """The hits in their order, but each behind those that contradict it and were said later."""
    waiting = {one.ranked.memory_id: one for one in found}
    if not [one for one in waiting.values() if one.row["newer_conflicts"]]:
        # Nearly every search.
        return list(waiting.values())
    placed: list[Found] = []

    def place(memory_id: str) -> None:
        one = waiting.pop(memory_id, None)
        if one is not None:
            for newer in one.row["newer_conflicts"]:
                place(newer)
            placed.append(one)

    for one in found:
        place(one.ranked.memory_id)
    return placed


def ended_last(found: Sequence[Found]) -> list[Found]:
    """The hits in their order, those that have ended behind the others."""
    ended = [one for one in found if one.row.get(VALIDITY) == "ended"]
    if not ended:
        return list(found)
    return [*(one for one in found if one.row.get(VALIDITY) != "ended"), *ended]


def any_fitting(found: Iterable[RankedMemory], threshold: float | None) -> bool:
    """Whether a hit reaches the threshold, by its similarity or by its lexical score.

    Without a threshold a search always finds something: then FITTING is the threshold.
    """
    least = FITTING if threshold is None else threshold
    return any(one.similarity >= least or (one.lexical or 0.0) >= least for one in found)


def _by_rerank(found: Found) -> float:
    return -(found.rerank or 0.0)


def hit(
    found: Found, columns: Sequence[str], weights: RankWeights, *, compared: bool, explain: bool
) -> dict[str, Any]:
    """A hit as `search_schemas.Hit` shows it; without a similarity where none was asked for.

    Args:
        columns: the first of its row; what follows is said for ourselves.

    """
    ranking = found.ranked
    similarity = ranking.similarity if compared else None
    shown: dict[str, Any] = dict(zip(columns, found.row.values(), strict=False))
    shown["score"] = shown_score(ranking.score)
    shown["similarity"] = similarity
    shown["relevance"] = ranking.relevance
    shown["explain"] = explained(found, weights, compared=compared) if explain else None
    return shown


def shown_score(score: float) -> float:
    """A sum of weighted parts as it is shown: 0.91, and not 0.9099999999999999."""
    return round(score, 12)


def explained(found: Found, weights: RankWeights, *, compared: bool) -> dict[str, Any]:
    """How a hit was ranked, as `search_schemas.ScoreExplained` shows it."""
    ranking = found.ranked
    return {
        "relevance": shown_score(weights.similarity * ranking.relevance),
        "confidence": shown_score(weights.confidence * ranking.confidence),
        "scope": shown_score(weights.scope * ranking.scope_weight),
        "cosine": ranking.similarity if compared else None,
        "lexical": ranking.lexical,
        "fused": ranking.relevance,
        "boosts": dict(ranking.boosts),
        "rerank": found.rerank,
        "path": ranking.path,
    }


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
        """One score per document, in their order; see `Reranker`.

        Raises:
            RerankUnavailableError: the reranker failed or took too long.

        """
        # Blank texts get the lowest score without a call.
        asked = bool(query.strip()) and any(text.strip() for text in documents)
        spent = EmbeddingUse(calls=int(asked), failures=int(asked))
        try:
            scores = await self._reranker.rerank(query, documents)
            spent.failures = 0
        finally:
            # Also counts a call that failed or was cancelled.
            if spent.calls:
                self._spending.note(self._tenant_id, "rerank", self.model, spent)
        return scores


async def reranked(reranker: Reranker, query: str, contents: Sequence[str]) -> list[float] | None:
    """One score from 0 to 1 per content, in their order, counted and timed.

    None when the reranker failed or took too long: the order stays, and the answer to the
    search is degraded.

    Args:
        reranker: brings its own time limit.
        query: as it was asked.
        contents: at most RERANK_CANDIDATES of them; without any there is no call.

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
