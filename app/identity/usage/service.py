"""Use cases of the ledger: what was used, and what is left of today's quota."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from app.identity.tenants.access import Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.usage.models import Usage
from app.identity.usage.quota import InvalidDaysError, Price, Quota, Totals, exhausted
from app.identity.usage.repository import UsageRepository
from app.identity.usage.schemas import (
    DaysQuery,
    Figures,
    LimitRead,
    ModelRead,
    ModelsRead,
    PriceRead,
    TodayRead,
    UsageAnswer,
    UsageQuery,
    UsageRead,
)
from app.platform.work.unit import Work

DAYS = 30
"""Days that are shown when the query has no `since`."""

MOST_DAYS = 100

COUNTED = ("calls", "failures", "input_tokens", "output_tokens")


ModelNames = Mapping[str, str | None]
"""The model of each kind of work in `ModelsRead`, by its field; None where none is asked."""


class UsageService:
    def __init__(
        self,
        work: Work,
        quota: Quota,
        prices: Mapping[str, Price],
        models: Callable[[Mapping[str, Any]], ModelNames],
    ) -> None:
        """Show usage.

        Args:
            quota: the deployment's own.
            prices: by model.
            models: the models for a tenant's config.

        """
        self._work = work
        self._quota = quota
        self._prices = prices
        self._models = models

    async def get(self, principal: Principal, query: UsageQuery) -> UsageAnswer:
        """What the tenant used, by day, operation and model, and today against its quota.

        Raises:
            KeyRestrictedError: the ledger belongs to the tenant, and the key is restricted.
            InvalidDaysError: `until` is before `since`, or there are more than MOST_DAYS days.

        """
        if principal.access.restricted:
            raise KeyRestrictedError
        async with self._work.read(principal) as db:
            repository = UsageRepository(db, principal.tenant_id)
            today = await repository.today()
            since, until = shown_days(query, today.day)
            rows = await repository.list_usage(
                since, until, operation=query.operation, model=query.model
            )
        return UsageAnswer(
            since=since,
            until=until,
            items=[self._shown(row) for row in rows],
            totals=self._sum(rows),
            today=_against(today, self._quota.overridden(principal.config)),
            models=ModelsRead(
                **{
                    work: None if model is None else self._model(model)
                    for work, model in self._models(principal.config).items()
                }
            ),
        )

    def _shown(self, row: Usage) -> UsageRead:
        figures = {name: getattr(row, name) for name in COUNTED}
        return UsageRead(
            day=row.day,
            operation=row.operation,
            model=row.model,
            cost=self._cost(row),
            **figures,
        )

    def _sum(self, rows: Sequence[Usage]) -> Figures:
        figures = {name: sum(getattr(row, name) for row in rows) for name in COUNTED}
        costs = [self._cost(row) for row in rows]
        known = [cost for cost in costs if cost is not None]
        return Figures(**figures, cost=sum(known) if len(known) == len(costs) else None)

    def _cost(self, row: Usage) -> float | None:
        price = self._prices.get(row.model)
        return None if price is None else price.of(row.input_tokens, row.output_tokens)

    def _model(self, model: str) -> ModelRead:
        price = self._prices.get(model)
        shown = None if price is None else PriceRead(input=price.input, output=price.output)
        return ModelRead(model=model, price=shown)


def shown_days(query: DaysQuery, today: date) -> tuple[date, date]:
    """The first and the last day that a query is about.

    Raises:
        InvalidDaysError: `until` is before `since`, or there are more than MOST_DAYS days.

    """
    until = query.until or max(today, query.since or today)
    # The calendar begins with the year 1.
    before = min(DAYS - 1, (until - date.min).days)
    since = query.since or until - timedelta(days=before)
    if not 0 <= (until - since).days < MOST_DAYS:
        raise InvalidDaysError(MOST_DAYS)
    return since, until


def _against(today: Totals, quota: Quota) -> TodayRead:
    spent = exhausted(today, quota)
    return TodayRead(
        day=today.day,
        calls=_limit(quota.daily_calls, today.calls),
        tokens=_limit(quota.daily_tokens, today.tokens),
        exhausted=spent.reason if spent else None,
        resets_at=today.resets_at,
    )


def _limit(limit: int, used: int) -> LimitRead:
    return LimitRead(
        limit=limit or None, used=used, remaining=max(0, limit - used) if limit else None
    )
