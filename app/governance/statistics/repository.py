"""SQL that counts what rows of other packages say: of some days, and as they are now."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.usage.activity import LONGER, MILLISECONDS, WAITS
from app.identity.usage.repository import DailySum
from app.memory.memories.models import ContextInjection, Memory
from app.memory.memories.validity_sql import in_conflict

OF_DAYS: Final = (
    "verdict", "refusal", "run", "run_messages", "run_proposals", "run_time", "run_lag", "injected",
    "used", "used_estimated",
)  # fmt: skip
"""Names of what is counted of a day that is over, and of none before that."""

CLOSED: Final = "closed"
"""Name of the count that says that a day is counted."""


def _day(column: str) -> str:
    return f"CAST(timezone('UTC', {column}) AS date)"


def _within(column: str, table: str) -> str:
    return f"{table}.tenant_id = :tenant_id AND {column} >= :since AND {column} < :until"


def _bucket(value: str, ends: Sequence[int]) -> str:
    listed = f"ARRAY[{', '.join(map(str, ends))}]"
    place = f"width_bucket(({value})::float8, CAST({listed} AS float8[])) + 1"
    return f"coalesce(({listed})[{place}]::text, '{LONGER}')"


# What is said of a memory that was looked at again is no verdict on something new. One index holds
# all that is read here (`gate_decisions_idx_create_time`); each day is a part of it.
_DECISIONS: Final = """
WITH decided AS MATERIALIZED (
    SELECT CAST(timezone('UTC', days.start) AS date) AS day,
        coalesce(counted.agent_id, '') AS agent_id, counted.verdict, counted.codes, counted.number
    FROM (
        SELECT CAST(:until AS timestamptz) - interval '24 hours' * before AS start
        FROM generate_series(1, CAST(:days AS int4)) AS before
    ) AS days
    CROSS JOIN LATERAL (
        SELECT agent_id, verdict, codes, count(*) AS number
        FROM gate_decisions
        WHERE tenant_id = :tenant_id AND create_time >= days.start
            AND create_time < days.start + interval '24 hours'
            AND coalesce(event, '') NOT IN ('KEEP', 'EXTEND', 'REMOVE')
        GROUP BY agent_id, verdict, codes
    ) AS counted
)
SELECT day, 'verdict', agent_id, verdict, sum(number) FROM decided GROUP BY 1, 3, 4
UNION ALL
SELECT day, 'refusal', agent_id, code, sum(number) FROM decided, unnest(codes) AS code
WHERE verdict = 'rejected' GROUP BY 1, 3, 4
"""

_MILLISECONDS: Final = "1000 * extract(epoch FROM {})"
_RUNS: Final = f"""
WITH runs AS (
    SELECT {_day("runs.create_time")} AS day, coalesce(runs.agent_id, '') AS agent_id, runs.status,
        runs.messages, runs.proposals,
        runs.latency_ms + {_MILLISECONDS.format("runs.finish_time - runs.create_time")} AS time,
        {_MILLISECONDS.format("runs.finish_time - message.create_time")} AS lag
    FROM extraction_runs AS runs
    LEFT JOIN messages AS message ON message.tenant_id = :tenant_id
        AND message.session_id = runs.session_id AND message.sequence_no = runs.first_sequence_no
    WHERE {_within("runs.create_time", "runs")}
)
SELECT day, 'run', agent_id, status, count(*) FROM runs GROUP BY 1, 3, 4
UNION ALL
SELECT day, 'run_messages', agent_id, '', sum(messages) FROM runs GROUP BY 1, 3
UNION ALL
SELECT day, 'run_proposals', agent_id, '', sum(proposals) FROM runs GROUP BY 1, 3
UNION ALL
SELECT day, 'run_time', agent_id, {_bucket("time", MILLISECONDS)}, count(*)
FROM runs WHERE time IS NOT NULL GROUP BY 1, 3, 4
UNION ALL
SELECT day, 'run_lag', agent_id, {_bucket("lag", WAITS)}, count(*)
FROM runs WHERE lag IS NOT NULL GROUP BY 1, 3, 4
"""


def _shown(name: str, column: str) -> str:
    return f"""
    SELECT {_day(f"shown.{column}")}, '{name}', coalesce(sessions.agent_id, ''), '', count(*)
    FROM context_injections AS shown
    JOIN sessions ON sessions.tenant_id = :tenant_id AND sessions.session_id = shown.session_id
    WHERE {_within(f"shown.{column}", "shown")} GROUP BY 1, 3
    """


_ITEMS: Final = " UNION ALL ".join(
    _shown(name, column)
    for name, column in (
        ("injected", "first_at"), ("used", "used_at"), ("used_estimated", "used_estimated_at"),
    )
)  # fmt: skip

_FIRST: Final = "SELECT least({})".format(
    ", ".join(
        f"(SELECT min({column}) FROM {table} WHERE tenant_id = :tenant_id)"
        for table, column in (
            ("gate_decisions", "create_time"),
            ("extraction_runs", "create_time"),
            ("context_injections", "first_at"),
        )
    )
)

# Both sides are bounded: a memory compared with all of an owner's 40,000 takes 0.2 s.
_NEAREST: Final = """
WITH newest AS MATERIALIZED (
    SELECT memory_id, content, embedding_model, embedding, scope, scope_id, user_id, agent_id,
        create_time
    FROM memories
    WHERE tenant_id = :tenant_id AND status = 'active' AND embedding IS NOT NULL
    ORDER BY create_time DESC, memory_id DESC LIMIT :among
)
SELECT sampled.memory_id, sampled.content, sampled.embedding_model, near.content,
    coalesce(near.similarity, 0)
FROM (SELECT * FROM newest ORDER BY create_time DESC, memory_id DESC LIMIT :most) AS sampled
LEFT JOIN LATERAL (
    SELECT other.content, 1 - (other.embedding <=> sampled.embedding) AS similarity
    FROM newest AS other
    WHERE other.scope = sampled.scope AND other.scope_id = sampled.scope_id
        AND other.user_id IS NOT DISTINCT FROM sampled.user_id
        AND other.agent_id IS NOT DISTINCT FROM sampled.agent_id
        AND other.embedding_model = sampled.embedding_model
        AND other.memory_id <> sampled.memory_id
    ORDER BY other.embedding <=> sampled.embedding LIMIT 1
) AS near ON true
"""

SOURCES: Final = {"decisions": _DECISIONS, "runs": _RUNS, "items": _ITEMS}


class NearestMemory(NamedTuple):
    """A memory, and what the nearest other one of its owner says; None where there is no other."""

    memory_id: str
    content: str
    embedding_model: str
    nearest: str | None
    similarity: float


class MemoryCount(NamedTuple):
    """How many memories there are of an agent (empty without one), a status and a type.

    Args:
        never_used: of the active ones those that no search has found and no answer drew on.

    """

    agent_id: str
    status: str
    memory_type: str
    number: int
    never_used: int


class SourceRepository:
    """What the rows of one tenant say. Reads alone; never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def of_days(
        self, sources: Sequence[str], since: datetime, until: datetime
    ) -> list[DailySum]:
        """What happened from `since` on and before `until`, by day, agent and label.

        Args:
            sources: names in `SOURCES`.
            since: at midnight UTC.
            until: at midnight UTC.

        """
        days = (until - since).days
        values = {"tenant_id": self._tenant_id, "since": since, "until": until, "days": days}
        found: list[DailySum] = []
        for name in sources:
            rows: Any = await self._db.execute(text(SOURCES[name]), values)
            found += [
                DailySum(row[0], row[1], row[2], row[3], int(row[4])) for row in rows if row[4]
            ]
        return found

    async def memories(self) -> list[MemoryCount]:
        """Memories as they are now, by agent, status and type; each row is read once."""
        drawn_on = (
            select(ContextInjection.memory_id)
            .where(
                ContextInjection.tenant_id == self._tenant_id,
                ContextInjection.used_at.is_not(None),
            )
            .distinct()
            .subquery()
        )
        never_used = func.count().filter(
            Memory.status == "active", Memory.use_count == 0, drawn_on.c.memory_id.is_(None)
        )
        rows = await self._db.execute(
            select(
                func.coalesce(Memory.agent_id, ""), Memory.status, Memory.memory_type,
                func.count(), never_used,
            )
            .outerjoin(drawn_on, drawn_on.c.memory_id == Memory.memory_id)
            .where(Memory.tenant_id == self._tenant_id)
            .group_by(Memory.agent_id, Memory.status, Memory.memory_type)
        )  # fmt: skip
        return [MemoryCount(*row) for row in rows]

    async def in_conflict(self) -> list[tuple[str, int]]:
        """Memories that contradict another one and both count, by agent."""
        rows = await self._db.execute(
            select(func.coalesce(Memory.agent_id, ""), func.count())
            .where(
                Memory.tenant_id == self._tenant_id,
                Memory.status == "active",
                in_conflict(self._tenant_id, wanted=True),
            )
            .group_by(Memory.agent_id)
        )
        return [(row[0], int(row[1])) for row in rows]

    async def is_small(self, most: int) -> bool:
        """Whether there are no more than `most` memories; looks at no more of them."""
        some = select(Memory.memory_id).where(Memory.tenant_id == self._tenant_id).limit(most + 1)
        count = await self._db.scalar(select(func.count()).select_from(some.subquery()))
        return int(count or 0) <= most

    async def first_time(self) -> datetime | None:
        """When the first verdict, run or context was, of those that there still are."""
        values = {"tenant_id": self._tenant_id}
        first: datetime | None = await self._db.scalar(text(_FIRST), values)
        return first

    async def nearest(self, most: int, *, among: int) -> list[NearestMemory]:
        """The `most` newest active memories, each with the nearest one of its owner that is `among`
        as many newest of the tenant.
        """
        values = {"tenant_id": self._tenant_id, "most": most, "among": among}
        rows: Any = await self._db.execute(text(_NEAREST), values)
        return [NearestMemory(*row) for row in rows]
