"""Recall for a context: the best memories of a session's scopes, and its corrections.

With a query they are searched in at most two statements; without one the most confident come first.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from app.identity.agents.config import Processing
from app.identity.agents.embedders import EmbeddedQuery, QueryVectors, Spending
from app.identity.tenants.access import Principal
from app.language.llm.reranker import RERANK_CANDIDATES, Reranker
from app.memory.memories.candidate_search import (
    CountedReranker,
    Found,
    by_all,
    by_reranker,
    by_vectors,
    ended_last,
    newer_first,
)
from app.memory.memories.hybrid import RankWeights
from app.memory.memories.large_buckets import LargeBuckets
from app.memory.memories.processors import after_search
from app.memory.memories.search_service import SearchRanks
from app.memory.memories.search_sql import Bucket, SearchPlan
from app.memory.memories.validity_sql import COMPUTED, VALIDITY
from app.platform.database.engine import Database
from app.platform.database.joint_reads import HotReads
from app.platform.plugins.points import About

CORRECTION: Final = "correction"

COLUMNS: Final = (
    "memory_id", "content", "memory_type", "scope", "source_error", "speaker", "said_at",
    "confidence", "valid_from", "valid_to", "version", *COMPUTED,
)  # fmt: skip
"""What a context shows of a memory."""

BY_CONFIDENCE: Final = RankWeights(similarity=0.0, confidence=1.0, scope=0.0)


@dataclass(frozen=True, slots=True)
class Recall:
    """What is to be recalled, of whose memories; the caller has checked that they may be read.

    Args:
        asked: None to order by confidence.
        scopes: the id of each scope that is searched.
        limit: how many at most.
        corrections: so many corrections are among them whatever their rank, if there are.
        threshold: of similarity; corrections need not reach it.
        as_of: what held then, by its time of validity; None is what counts now, what begins
            later and, behind it, what has just ended.
        explain: whether it is told what each part of the context added to the ranking.

    """

    asked: EmbeddedQuery | None
    scopes: Mapping[str, str]
    user_id: str
    agent_id: str
    limit: int
    corrections: int
    memory_types: Sequence[str] = ()
    tier: str | None = None
    threshold: float | None = None
    filters: Mapping[str, Any] | None = None
    rerank: bool = True
    as_of: datetime | None = None
    explain: bool = False


@dataclass(frozen=True, slots=True)
class RecallResult:
    """What was found, and who judged it.

    Args:
        found: best first, corrections that were wanted besides last.
        embedding_models: what embedded the query.
        degraded: whether an embedder or the reranker did not answer, so that others decided.
        reranker: what reordered them, if anything did.
        weights: of the shares of a score.

    """

    weights: RankWeights
    found: Sequence[Found] = ()
    embedding_models: Sequence[str] = ()
    degraded: bool = False
    reranker: str | None = None

    @property
    def asked(self) -> bool:
        """Whether a query decided."""
        return self.weights is not BY_CONFIDENCE


class RecallService:
    """Finds the memories of a context."""

    def __init__(
        self,
        database: Database,
        ranks: SearchRanks,
        reranker: Reranker | None,
        spending: Spending,
        processing: Processing,
        large: LargeBuckets,
    ) -> None:
        self._database = database
        self._ranks = ranks
        self._reranker = reranker
        self._spending = spending
        self._processing = processing
        self._large = large

    async def recall(
        self, principal: Principal, wanted: Recall, reads: HotReads | None = None
    ) -> RecallResult:
        """At most `wanted.limit` memories, best first, then the corrections wanted besides.

        Empty without scopes or matches. Nothing is counted as used. When no embedder answers,
        words and context decide alone.

        Args:
            principal: who asks.
            wanted: what is to be recalled.
            reads: what sends the statements; each is sent by itself when left out.

        Raises:
            InvalidFilterError: the filter is not in our grammar.
            ProcessorFailedError: one of the agent's failed that may not.

        """
        if not wanted.scopes:
            return RecallResult(self._ranks.weights)
        plan = self._plan(principal, wanted)
        if wanted.asked is None:
            recalled = RecallResult(BY_CONFIDENCE, await self._surest(plan, wanted))
        else:
            reads = reads or self._database
            recalled = await self._by_query(principal, plan, wanted.asked, wanted, reads)
        chain = await self._processing.of_agent(principal, wanted.agent_id)
        about = About(
            principal.tenant_id, wanted.user_id, wanted.agent_id, wanted.scopes.get("session")
        )
        query = wanted.asked.text if wanted.asked else ""
        found = ended_last(newer_first(recalled.found))
        shown = await after_search(chain, about, query, found)
        return replace(recalled, found=shown.found)

    async def _by_query(
        self,
        principal: Principal,
        plan: SearchPlan,
        query: EmbeddedQuery,
        wanted: Recall,
        reads: HotReads,
    ) -> RecallResult:
        asked, vectors = query.parsed, query.vectors
        share = vectors.dense_share
        boosts = self._ranks.boosts.with_dense(latin=share.latin, cjk=share.cjk)
        reranker = self._reranker if wanted.rerank else None
        plan = replace(
            plan,
            vectors=query.by_model,
            asked=asked,
            mode="hybrid",
            limit=max(wanted.limit, RERANK_CANDIDATES) if reranker else wanted.limit,
            dense_share=share,
        )
        found = await by_all(reads, principal.tenant_id, plan, asked, boosts, self._large)
        judged = False
        if reranker is not None and found:
            counted = CountedReranker(reranker, self._spending, principal.tenant_id)
            found, judged = await by_reranker(counted, query.text, found)
        failed = reranker is not None and bool(found) and not judged
        return RecallResult(
            self._ranks.weights,
            found,
            list(vectors.by_model),
            vectors.degraded or failed,
            reranker.name if reranker is not None and judged else None,
        )

    async def _surest(self, plan: SearchPlan, wanted: Recall) -> Sequence[Found]:
        """By confidence, the last changed first where that is equal."""
        plans = [plan]
        if wanted.corrections and (not wanted.memory_types or CORRECTION in wanted.memory_types):
            plans.append(replace(plan, memory_types=(CORRECTION,), limit=wanted.corrections))
        lists = await asyncio.gather(*(by_vectors(self._database, each) for each in plans))
        known = {hit.ranked.memory_id: hit for found in lists for hit in found}
        return list(known.values())

    def _plan(self, principal: Principal, wanted: Recall) -> SearchPlan:
        """By confidence alone; a query makes more of it."""
        asks = wanted.asked is not None
        weights = self._ranks.weights if asks else BY_CONFIDENCE
        return SearchPlan(
            access=principal.access,
            buckets=[
                Bucket(scope, scope_id, self._ranks.scopes.by_scope[scope])
                for scope, scope_id in wanted.scopes.items()
            ],
            vectors=QueryVectors().by_model,
            user_id=wanted.user_id,
            agent_id=wanted.agent_id,
            weights=(weights.similarity, weights.confidence, weights.scope),
            limit=wanted.limit,
            threshold=wanted.threshold if asks else None,
            corrections=wanted.corrections,
            memory_types=wanted.memory_types,
            tier=wanted.tier,
            filters=wanted.filters,
            as_of=wanted.as_of,
            around=wanted.as_of is None,
            columns=COLUMNS if wanted.as_of else (*COLUMNS, VALIDITY),
            explain=wanted.explain,
        )
