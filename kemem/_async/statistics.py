"""Methods of `memory.statistics`."""

from datetime import date

from kemem._async.sender import AsyncResource
from kemem.calls import fetch
from kemem.statistics import Effect, ExtractionStatistics, GroupBy, MemoryStatistics, Refusals


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
