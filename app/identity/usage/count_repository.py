"""SQL for daily counts: small sums by day, agent and label, from which statistics are shown."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final, NamedTuple

from sqlalchemy import TextClause, delete, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.usage.models import DailyCount

DailyKey = tuple[date, str, str, str]
"""Day, name, agent (empty without one) and label."""


class DailySum(NamedTuple):
    """How many of `name` there were; agent and label are empty where they do not apply."""

    day: date
    name: str
    agent_id: str
    label: str
    number: int


_GIVEN: Final = """unnest(CAST(:days AS date[]), CAST(:names AS text[]), CAST(:agents AS text[]),
            CAST(:labels AS text[]), CAST(:counts AS int8[]))
            AS given(day, name, agent_id, label, count)"""

_OF_AGENTS: Final = f"""(
            SELECT day, name, label, COALESCE(agent.agent_id, '') AS agent_id,
                CAST(sum(count) AS int8) AS count
            FROM {_GIVEN} LEFT JOIN (
                SELECT agent_id FROM agents
                WHERE tenant_id = :tenant_id AND agent_id = ANY(CAST(:agents AS text[]))
                ORDER BY agent_id FOR KEY SHARE
            ) AS agent USING (agent_id)
            GROUP BY day, name, label, agent.agent_id
        ) AS given"""
"""What is given, with that of agents which do not exist as of none. The lock makes an erasure of an
agent wait, which deletes its counts then, or this statement, which finds no agent then."""


_LOCK: Final = text(
    """
    SELECT agent_id FROM agents
    WHERE tenant_id = :tenant_id AND agent_id = ANY(CAST(:agents AS text[]))
    ORDER BY agent_id FOR KEY SHARE
    """
)
"""Agents before counts, as an erasure takes them."""


def _upsert(source: str, count: str) -> TextClause:
    # One order of locks everywhere, so that two processes cannot wait for each other.
    return text(
        f"""
        INSERT INTO daily_counts AS known (tenant_id, day, name, agent_id, label, count)
        SELECT :tenant_id, given.day, given.name, given.agent_id, given.label, given.count
        FROM {source}
        ORDER BY given.day, given.name, given.agent_id, given.label
        ON CONFLICT (tenant_id, day, name, agent_id, label) DO UPDATE SET count = {count}
        """
    )


_ADD: Final = _upsert(_OF_AGENTS, "known.count + excluded.count")
_SET: Final = _upsert(_OF_AGENTS, "excluded.count")


class DailyCountRepository:
    """Daily counts of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def add(self, counts: Mapping[DailyKey, int]) -> None:
        """Add to the counts, with those of agents that do not exist under none; one statement. Not
        safe to repeat.
        """
        await self._send(_ADD, [DailySum(*key, count) for key, count in counts.items()])

    async def replace(
        self,
        day: date,
        names: Sequence[str],
        counts: Iterable[DailySum],
        *,
        until: date | None = None,
    ) -> None:
        """Let the counts of these names on `day`, or on the days from it to `until`, both included,
        be these and no others; those of agents that do not exist are of none. Safe to repeat.
        """
        given = list(counts)
        agents = sorted({each.agent_id for each in given})
        await self._db.execute(_LOCK, {"tenant_id": self._tenant_id, "agents": agents})
        await self._db.execute(
            delete(DailyCount).where(
                DailyCount.tenant_id == self._tenant_id,
                DailyCount.day.between(day, until or day),
                DailyCount.name.in_(names),
            )
        )
        await self._send(_SET, given)

    async def _send(self, statement: TextClause, counts: Sequence[DailySum]) -> None:
        if not counts:
            return
        await self._db.execute(
            statement,
            {
                "tenant_id": self._tenant_id,
                "days": [each.day for each in counts],
                "names": [each.name for each in counts],
                "agents": [each.agent_id for each in counts],
                "labels": [each.label for each in counts],
                "counts": [each.number for each in counts],
            },
        )

    async def list_counts(
        self, names: Sequence[str], since: date, until: date, agent_id: str | None = None
    ) -> list[DailySum]:
        """Counts of the days from `since` to `until`, both included, in no order."""
        statement = select(
            DailyCount.day, DailyCount.name, DailyCount.agent_id, DailyCount.label, DailyCount.count
        ).where(
            DailyCount.tenant_id == self._tenant_id,
            DailyCount.day >= since,
            DailyCount.day <= until,
            DailyCount.name.in_(names),
        )
        if agent_id is not None:
            statement = statement.where(DailyCount.agent_id == agent_id)
        return [DailySum(*row) for row in await self._db.execute(statement)]

    async def last_day(self, name: str) -> date | None:
        """The last day that has a count of `name`."""
        return await self._db.scalar(
            select(DailyCount.day)
            .where(DailyCount.tenant_id == self._tenant_id, DailyCount.name == name)
            .order_by(DailyCount.day.desc())
            .limit(1)
        )
