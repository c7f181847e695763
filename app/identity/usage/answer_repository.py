"""SQL for answers of models that are kept until they are used."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import delete, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.usage.models import PaidAnswer

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
