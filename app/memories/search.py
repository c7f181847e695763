"""Searching: which buckets, which vectors, one statement, and who is told of it afterwards."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import asyncpg

from app.database.engine import Database
from app.memories.embedding import Embedders
from app.memories.errors import SelectorRequiredError
from app.memories.place import meant
from app.memories.ranking import RankWeights, ScopeWeights, score_parts
from app.memories.rendering import render
from app.memories.search_schemas import SearchRequest
from app.memories.search_sql import (
    Bucket,
    SearchPlan,
    search_statement,
    waiting_statement,
)
from app.memories.timeline_sql import known_statement, known_waiting_statement
from app.memories.usage import MemoryUse
from app.projects.errors import ProjectNotFoundError
from app.tenants.access import Principal
from app.web.metrics import SEARCHES

_MAY_READ_PROJECT = """
SELECT 1 FROM projects
WHERE projects.tenant_id = tenant.id AND projects.project_id = CAST($2 AS text)
    AND (CAST($3 AS text) IS NULL OR EXISTS (
        SELECT 1 FROM project_members AS member
        WHERE member.tenant_id = tenant.id AND member.project_id = projects.project_id
            AND member.user_id = CAST($3 AS text)))
    AND (CAST($4 AS text) IS NULL OR EXISTS (
        SELECT 1 FROM project_members AS member JOIN users
            ON users.tenant_id = tenant.id AND users.user_id = member.user_id
        WHERE member.tenant_id = tenant.id AND member.project_id = projects.project_id
            AND users.agent_id = CAST($4 AS text)
            AND (CAST($5 AS text) IS NULL OR users.user_id = CAST($5 AS text))))
"""

_SELECTORS = ("user_id", "agent_id", "session_id", "project_id")


class SearchService:
    def __init__(
        self,
        database: Database,
        embedders: Embedders,
        uses: MemoryUse,
        weights: RankWeights,
        scopes: ScopeWeights,
        now: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._embedders = embedders
        self._uses = uses
        self._weights = weights
        self._scopes = scopes.by_scope
        self._now = now

    async def search(self, principal: Principal, body: SearchRequest) -> dict[str, Any]:
        """What is remembered about a query, best first: the content of a `SearchAnswer`.

        The scopes named are merged: the session's memories, the project's when the user is
        a member, the user's, the agent's. Order: 0.5 similarity + 0.3 confidence + 0.2
        scope (Z-53), or similarity alone with `rerank` false. A user or session nobody has
        heard of has no memories, which is no error: it is every first turn.

        With `as_of` what was true then is searched, with `known_at` what the records said
        then, each by the words it had; a hit of the past does not count as a use.

        Raises:
            SelectorRequiredError: no scope is named.
            ProjectNotFoundError: missing, or the user is no member.
            UserNotFoundError, AgentNotFoundError: the key is another one's.
            InvalidFilterError: the filter is none.
            EmbeddingUnavailableError: no embedder answers; safe to retry.

        """
        plan = await self._plan(principal, body)
        text, values = (search_statement if plan.known_at is None else known_statement)(plan)
        rows = await self._database.fetch(principal.tenant_id, text, *values)
        if plan.as_of is None and plan.known_at is None:
            self._uses.note(principal.tenant_id, (row["memory_id"] for row in rows), self._now())
        waiting = await self._waiting(principal, plan)
        SEARCHES.labels("found" if rows else "empty").inc()
        return {
            "results": [self._hit(row, explain=body.explain) for row in rows],
            "embedding_models": list(plan.vectors),
            "waiting": waiting,
            "degraded": plan.degraded,
            "prompt": render(rows) if body.format == "text" else None,
        }

    async def _plan(self, principal: Principal, body: SearchRequest) -> SearchPlan:
        access = principal.access
        user_id, agent_id = meant(access, body.user_id, body.agent_id)
        if body.project_id is not None:
            await self._check_project(principal, body.project_id, user_id)
        ids = {
            "session": body.session_id,
            "project": body.project_id,
            "user": user_id,
            "agent": agent_id,
        }
        named = set(body.scopes or ids)
        buckets = [
            Bucket(scope, scope_id, self._scopes[scope])
            for scope, scope_id in ids.items()
            if scope_id is not None and scope in named
        ]
        if not buckets:
            raise SelectorRequiredError("body", _SELECTORS)
        vectors, degraded = await self._embedders.for_query(principal, body.query)
        return SearchPlan(
            access=access,
            buckets=buckets,
            vectors=vectors,
            degraded=degraded,
            user_id=user_id,
            agent_id=agent_id,
            weights=(self._weights.similarity, self._weights.confidence, self._weights.scope),
            limit=body.limit,
            threshold=body.threshold,
            rerank=body.rerank,
            memory_type=body.memory_type,
            tier=body.tier,
            filters=body.filters,
            as_of=body.as_of,
            known_at=body.known_at,
        )

    async def _check_project(
        self, principal: Principal, project_id: str, user_id: str | None
    ) -> None:
        rows = await self._database.fetch(
            principal.tenant_id,
            _MAY_READ_PROJECT,
            project_id,
            user_id,
            principal.access.agent_id,
            principal.access.user_id,
        )
        if not rows:
            raise ProjectNotFoundError(project_id)

    async def _waiting(self, principal: Principal, plan: SearchPlan) -> int:
        """Memories that could not be compared; asked only when there may be some.

        Words of the past may have vectors of a model that nothing else has any more.
        """
        if plan.known_at is not None:
            text, values = known_waiting_statement(plan)
        elif set(principal.embedding_models) <= plan.vectors.keys():
            return 0
        else:
            text, values = waiting_statement(plan)
        rows = await self._database.fetch(principal.tenant_id, text, *values)
        return int(rows[0]["waiting"])

    def _hit(self, row: asyncpg.Record, *, explain: bool) -> dict[str, Any]:
        hit: dict[str, Any] = dict(row)
        scope_weight = hit.pop("scope_weight")
        hit["score"] = min(hit["score"], 1.0)
        if explain:
            parts = score_parts(hit["similarity"], hit["confidence"], scope_weight, self._weights)
            hit["explain"] = {
                "similarity": parts.similarity,
                "confidence": parts.confidence,
                "scope": parts.scope,
            }
        else:
            hit["explain"] = None
        return hit
