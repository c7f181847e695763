"""SQL for the ledger (what models were used for, by day), for answers of models that are kept
until they are used, and for daily counts: small sums by day, agent and label, from which
statistics are shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import Date, TextClause, cast, delete, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.usage.models import DailyCount, PaidAnswer, Usage
from app.identity.usage.quota import UNLIMITED, Totals

# The database's clock and its day in UTC: workers whose clocks differ share one day.
_TODAY = cast(func.timezone("UTC", func.now()), Date)


class UsageRepository:
    """The ledger of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def note(
        self,
        operation: str,
        model: str,
        *,
        calls: int,
        input_tokens: int,
        output_tokens: int,
        failures: int = 0,
    ) -> None:
        """Add to today's row of this operation and model, made on first use.

        The row is locked until the transaction ends: note in one that ends soon, apart from
        what the call was for, so that a rollback there forgets no tokens.

        Args:
            operation: what the model was asked for, such as `extract` or `embed`; at most 40
                characters.
            model: its name; at most 255 characters.
            calls: requests that reached the model, failed ones among them.
            input_tokens: tokens read, as the provider counted them.
            output_tokens: tokens written, as the provider counted them.
            failures: how many of the calls failed.

        """
        added = {
            "calls": calls,
            "failures": failures,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
        }
        await self._db.execute(
            insert(Usage)
            .values(
                tenant_id=self._tenant_id, day=_TODAY, operation=operation, model=model, **added
            )
            .on_conflict_do_update(
                index_elements=["tenant_id", "day", "operation", "model"],
                set_={name: getattr(Usage, name) + value for name, value in added.items()},
            )
        )

    async def today(self) -> Totals:
        """What was used today (UTC) of what quotas limit, all models together."""
        row = (
            await self._db.execute(
                select(
                    _TODAY,
                    *(
                        func.coalesce(func.sum(column), 0)
                        for column in (
                            Usage.calls,
                            Usage.failures,
                            Usage.input_tokens,
                            Usage.output_tokens,
                        )
                    ),
                ).where(
                    Usage.tenant_id == self._tenant_id,
                    Usage.day == _TODAY,
                    Usage.operation.not_in(UNLIMITED),
                )
            )
        ).one()
        day, *figures = row
        return Totals(day, *(int(figure) for figure in figures))

    async def list_usage(
        self, since: date, until: date, *, operation: str | None = None, model: str | None = None
    ) -> Sequence[Usage]:
        """Rows of the days from `since` to `until`, both included, newest first.

        Within a day by operation and model. Both can be narrowed to one.
        """
        statement = select(Usage).where(
            Usage.tenant_id == self._tenant_id, Usage.day >= since, Usage.day <= until
        )
        if operation is not None:
            statement = statement.where(Usage.operation == operation)
        if model is not None:
            statement = statement.where(Usage.model == model)
        rows = await self._db.scalars(
            statement.order_by(Usage.day.desc(), Usage.operation, Usage.model)
        )
        return rows.all()


KEPT: Final = timedelta(days=1)
"""How long an answer is kept at most: a quota makes work wait until midnight, no longer."""


# An erasure locks in this order, too.
_THERE_SINCE = {
    f"{owner}_id": text(
        f"SELECT 1 FROM {owner}s WHERE tenant_id = :tenant_id AND {owner}_id = :one "
        "AND create_time <= :asked_at FOR KEY SHARE"
    )
    for owner in ("session", "user", "agent", "project")
}


class AnswerRepository:
    """Kept answers of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def find(self, answer_key: bytes) -> bytes | None:
        """The answer to the question with this hash, if it is not older than KEPT."""
        answer: bytes | None = await self._db.scalar(
            select(PaidAnswer.answer).where(
                PaidAnswer.tenant_id == self._tenant_id,
                PaidAnswer.answer_key == answer_key,
                PaidAnswer.create_time > func.now() - KEPT,
            )
        )
        return answer

    async def put(self, row: Mapping[str, Any], *, asked_at: datetime) -> bool:
        """Keep an answer; it takes the place of an earlier one to the same question.

        Returns:
            False, and nothing is kept, where somebody whose words it may hold was erased since it
            was asked for; somebody else of the same id may be there by now.

        """
        for column, there in _THERE_SINCE.items():
            value = row.get(column)
            given = {"tenant_id": self._tenant_id, "one": value, "asked_at": asked_at}
            if value is not None and await self._db.scalar(there, given) is None:
                return False
        statement = insert(PaidAnswer).values(tenant_id=self._tenant_id, **row)
        new = statement.excluded
        await self._db.execute(
            statement.on_conflict_do_update(
                index_elements=["tenant_id", "answer_key"],
                set_={name: new[name] for name in (*row, "create_time") if name != "answer_key"},
            )
        )
        return True

    async def has(self, purpose: str, operation: str) -> bool:
        """Whether an answer is kept for this."""
        found = await self._db.scalar(
            select(PaidAnswer.operation)
            .where(
                PaidAnswer.tenant_id == self._tenant_id,
                PaidAnswer.purpose == purpose,
                PaidAnswer.operation == operation,
                PaidAnswer.create_time > func.now() - KEPT,
            )
            .limit(1)
        )
        return found is not None

    async def delete(self, purpose: str) -> None:
        """Delete all answers that were bought for this, in the transaction that stores it."""
        await self._db.execute(
            delete(PaidAnswer)
            .where(PaidAnswer.tenant_id == self._tenant_id, PaidAnswer.purpose == purpose)
            .execution_options(synchronize_session=False)
        )


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
