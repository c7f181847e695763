"""Finding memories by vectors alone, or by words, vectors and context: at most two statements.

The first statement tells of every row of the buckets what ranking needs, the second fetches
the few that were chosen, with what they may be judged by asked again: a memory that was
closed or deleted between the two is not found. Where codes stand for vectors, the second tells
the true cosines of more than are asked for, and these are ranked again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import asyncpg

from app.database.engine import Database
from app.llm.reranking import RERANK_CANDIDATES, Reranker
from app.memories.hybrid import Cut, Ranked, nominated, ranked, settled
from app.memories.ranking import RankWeights
from app.memories.reranking import reranked
from app.memories.search_sql import (
    SearchPlan,
    features_statement,
    hits_statement,
    search_statement,
    settling_statement,
)
from app.memories.timeline_sql import (
    known_features_statement,
    known_hits_statement,
    known_statement,
)
from app.ranking.boosts import Boosts
from app.ranking.query import Asked
from app.ranking.rows import read
from app.ranking.turns import in_turn

INLINE_PRODUCTS: Final = 6_000
"""Rows times the vectors they are compared with: so many take one to two milliseconds to rank, and
more are ranked in a thread."""


@dataclass(frozen=True, slots=True)
class Found:
    """One hit: its row, and how it came to its place."""

    row: asyncpg.Record
    ranked: Ranked
    rerank: float | None = None


async def by_vectors(database: Database, tenant_id: str, plan: SearchPlan) -> list[Found]:
    """The nearest memories by the seed's formula, best first; one statement."""
    text, values = (search_statement if plan.known_at is None else known_statement)(plan)
    rows = await database.fetch(tenant_id, text, *values)
    return [
        Found(
            row,
            Ranked(
                memory_id=row["memory_id"],
                score=min(row["score"], 1.0),
                similarity=row["similarity"],
                lexical=None,
                relevance=row["similarity"],
                confidence=row["confidence"],
                scope_weight=row["scope_weight"],
            ),
        )
        for row in rows
    ]


async def by_all(
    database: Database, tenant_id: str, plan: SearchPlan, asked: Asked, boosts: Boosts
) -> list[Found]:
    """The best memories by words, vectors and context, best first; two statements."""
    now = plan.known_at is None
    text, values, columns = (features_statement if now else known_features_statement)(plan, asked)
    [seen] = await database.fetch(tenant_id, text, *values)
    ids: Sequence[str] = seen["ids"] or ()
    records = read(seen["records"], columns)
    products = len(ids) * (1 + len(asked.packed.vectors))
    ranking = (
        asked,
        boosts,
        RankWeights(*plan.weights),
        Cut(plan.mode, plan.threshold, plan.rerank, plan.limit),
    )
    if "rough" in (records.dtype.names or ()) and records["rough"].any():
        chosen = await _reckoned(products, nominated, ids, records, *ranking)
        text, values = settling_statement(plan, asked, chosen)
        rows = await _by_id(database, tenant_id, text, values)
        records = settled(ids, records, rows)
        best = await _reckoned(products, ranked, ids, records, *ranking)
    else:
        best = await _reckoned(products, ranked, ids, records, *ranking)
        if not best:
            return []
        chosen = [one.memory_id for one in best]
        text, values = (hits_statement if now else known_hits_statement)(plan, chosen)
        rows = await _by_id(database, tenant_id, text, values)
    return [Found(rows[one.memory_id], one) for one in best if one.memory_id in rows]


async def _reckoned(products: int, reckon: Callable[..., Any], *arguments: Any) -> Any:
    """What `reckon` makes of its rows, with the loop free for others meanwhile."""
    if products > INLINE_PRODUCTS:
        return await in_turn(reckon, *arguments)
    return reckon(*arguments)


async def _by_id(
    database: Database, tenant_id: str, text: str, values: Sequence[object]
) -> dict[str, asyncpg.Record]:
    return {row["memory_id"]: row for row in await database.fetch(tenant_id, text, *values)}


async def by_reranker(
    reranker: Reranker, query: str, found: list[Found]
) -> tuple[list[Found], bool]:
    """`found` in the order of the reranker's scores, and whether it gave any.

    It sees the first `RERANK_CANDIDATES`; the others keep their places behind them.
    """
    seen, rest = found[:RERANK_CANDIDATES], found[RERANK_CANDIDATES:]
    scores = await reranked(reranker, query, [one.row["content"] for one in seen])
    if scores is None:
        return found, False
    judged = [replace(one, rerank=score) for one, score in zip(seen, scores, strict=True)]
    # Stable: what it finds equal stays as it was.
    judged.sort(key=_by_rerank)
    return [*judged, *rest], True


def _by_rerank(one: Found) -> float:
    return -(one.rerank or 0.0)


def hit(found: Found, weights: RankWeights, *, compared: bool, explain: bool) -> dict[str, Any]:
    """A hit as `search_schemas.Hit` shows it; without a similarity where none was asked for."""
    ranking = found.ranked
    similarity = ranking.similarity if compared else None
    shown: dict[str, Any] = dict(found.row)
    for name in ("scope_weight", "exact", "exact_essence", "fits"):
        shown.pop(name, None)
    shown |= {
        "score": ranking.score,
        "similarity": similarity,
        "relevance": ranking.relevance,
        "explain": None,
    }
    if explain:
        shown["explain"] = {
            "relevance": weights.similarity * ranking.relevance,
            "confidence": weights.confidence * ranking.confidence,
            "scope": weights.scope * ranking.scope_weight,
            "cosine": similarity,
            "lexical": ranking.lexical,
            "fused": ranking.relevance,
            "boosts": dict(ranking.boosts),
            "rerank": found.rerank,
        }
    return shown
