"""SQL for kept evaluations."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import delete, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.governance.evaluations.errors import EvaluationNotFoundError
from app.governance.evaluations.models import EvaluationResult
from app.platform.database.keyset import after


class EvaluationRepository:
    """Kept evaluations of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def add(self, result: EvaluationResult, *, most: int) -> None:
        """Insert `result`, and delete the oldest ones beyond `most`."""
        result.tenant_id = self._tenant_id
        self._db.add(result)
        await self._db.flush()
        await self._db.refresh(result)
        newest = (
            select(EvaluationResult.evaluation_id)
            .where(EvaluationResult.tenant_id == self._tenant_id)
            .order_by(EvaluationResult.create_time.desc(), EvaluationResult.evaluation_id.desc())
            .limit(most)
        )
        await self._db.execute(
            delete(EvaluationResult)
            .where(
                EvaluationResult.tenant_id == self._tenant_id,
                EvaluationResult.evaluation_id.not_in(newest),
            )
            .execution_options(synchronize_session=False)
        )

    async def get(self, evaluation_id: str) -> EvaluationResult:
        """Raises EvaluationNotFoundError."""
        row = await self._db.get(EvaluationResult, (self._tenant_id, evaluation_id))
        if row is None:
            raise EvaluationNotFoundError(evaluation_id)
        return row

    async def list_results(
        self, equal: Mapping[str, str], *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[EvaluationResult]:
        """Newest first, one more than `limit` when another page follows.

        Args:
            equal: column to the value it must have.

        """
        statement = select(EvaluationResult).where(
            EvaluationResult.tenant_id == self._tenant_id,
            *(getattr(EvaluationResult, name) == value for name, value in equal.items()),
        )
        columns = (EvaluationResult.create_time, EvaluationResult.evaluation_id)
        rows = await self._db.scalars(
            after(statement, columns, start=start, descending=True, limit=limit)
        )
        return rows.all()

    async def delete(self, evaluation_id: str) -> None:
        """Raises EvaluationNotFoundError."""
        gone = await self._db.scalar(
            delete(EvaluationResult)
            .where(
                EvaluationResult.tenant_id == self._tenant_id,
                EvaluationResult.evaluation_id == evaluation_id,
            )
            .returning(literal(1))
            .execution_options(synchronize_session=False)
        )
        if gone is None:
            raise EvaluationNotFoundError(evaluation_id)
