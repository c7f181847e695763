"""Methods of `memory.statistics`."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from kemem._async.sender import AsyncResource
from kemem.answers import listing
from kemem.calls import fetch, fetch_pages, post, remove
from kemem.statistics import (
    Effect,
    EvaluationResult,
    EvaluationResults,
    ExtractionStatistics,
    GroupBy,
    MemoryStatistics,
    Refusals,
)


class AsyncStatistics(AsyncResource):
    """Whether what is remembered is found, and used. Restricted keys get a ForbiddenError.

    Without `since` and `until`, the last 30 days; 100 at most.
    """

    async def effect(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        agent_id: str | None = None,
        group_by: GroupBy | None = None,
    ) -> Effect:
        """Return how often searches found something fitting, and how much of it was used."""
        return await self._send(
            fetch(
                Effect, "stats", "effect",
                since=since, until=until, agent_id=agent_id, group_by=group_by,
            )
        )  # fmt: skip

    async def refusals(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        agent_id: str | None = None,
        group_by: GroupBy | None = None,
    ) -> Refusals:
        """Return what the gate accepted and refused, by the rule."""
        return await self._send(
            fetch(
                Refusals, "stats", "refusals",
                since=since, until=until, agent_id=agent_id, group_by=group_by,
            )
        )  # fmt: skip

    async def extraction(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        agent_id: str | None = None,
        group_by: GroupBy | None = None,
    ) -> ExtractionStatistics:
        """Return how much was read of conversations, and how far it lagged behind."""
        return await self._send(
            fetch(
                ExtractionStatistics, "stats", "extraction",
                since=since, until=until, agent_id=agent_id, group_by=group_by,
            )
        )  # fmt: skip

    async def memories(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        agent_id: str | None = None,
    ) -> MemoryStatistics:
        """Return what is remembered by type and state, now and at the end of each day."""
        return await self._send(
            fetch(
                MemoryStatistics, "stats", "memories", since=since, until=until, agent_id=agent_id
            )
        )

    async def keep_evaluation(
        self,
        name: str,
        dataset: str,
        metrics: Mapping[str, Any],
        *,
        settings: Mapping[str, Any] | None = None,
    ) -> EvaluationResult:
        """Keep what an evaluation measured, to be compared with others."""
        body = {"name": name, "dataset": dataset, "metrics": metrics, "settings": settings}
        return await self._send(post(EvaluationResult, "evaluations", body=body))

    async def evaluations(
        self, *, name: str | None = None, dataset: str | None = None, limit: int | None = 100
    ) -> EvaluationResults:
        """Return up to `limit` kept evaluations, newest first; None means all."""
        call = fetch_pages(EvaluationResult, "evaluations", limit=limit, name=name, dataset=dataset)
        return listing(EvaluationResults, await self._collect(call, limit))

    async def evaluation(self, evaluation_id: str) -> EvaluationResult:
        """Return one kept evaluation.

        Raises:
            NotFoundError: there is no such evaluation.

        """
        return await self._send(fetch(EvaluationResult, "evaluations", evaluation_id))

    async def delete_evaluation(self, evaluation_id: str) -> None:
        """Delete a kept evaluation; it takes an admin key.

        Raises:
            NotFoundError: there is no such evaluation.

        """
        await self._send(remove("evaluations", evaluation_id))
