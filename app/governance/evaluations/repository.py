"""The table of kept evaluations, and its SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary, String, delete, literal, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.governance.evaluations.schemas import EvaluationNotFoundError
from app.platform.database.base import Base, Id, TenantOwned, after


class EvaluationResult(TenantOwned, Base):
    """What one evaluation measured, on what, how, and with which release."""

    __tablename__ = "evaluation_results"
    __table_args__ = (
        Index("evaluation_results_idx_create_time", "tenant_id", "create_time", "evaluation_id"),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    evaluation_id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    dataset: Mapped[str] = mapped_column(String(255))
    release: Mapped[str] = mapped_column(String(40))
    settings: Mapped[dict[str, Any]] = mapped_column(JSONB)
    # Of data set and settings: results with the same one may be compared.
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary)
    metrics: Mapped[dict[str, Any]] = mapped_column(JSONB)
    actor: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))


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
