"""SQL for the ledger: what models were used for, by day."""

from collections.abc import Sequence
from datetime import date

from sqlalchemy import Date, cast, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.usage.models import Usage
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
