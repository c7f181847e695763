"""The budget of an import, counted by what the tenant has used since the import began."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.identity.usage.quota import UNLIMITED
from kemem import Memory
from kemem.errors import ApiError
from kemem.jobs import Usage, UsageOfDay

KEY_RESTRICTED = "key_restricted"


class StoppedError(Exception):
    """An import ends before its last conversation; the message says why."""


class UnpricedError(Exception):
    """A budget is in money, and a model has no price."""

    def __init__(self, models: Iterable[str]) -> None:
        super().__init__(
            f"--budget-money needs the price of {', '.join(models)}: set MEMORY_MODEL_PRICES of "
            "the service."
        )


@dataclass(frozen=True, slots=True)
class ImportSpending:
    """Calls and tokens of chat models, and the money of all models."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0

    @classmethod
    def of(cls, rows: Iterable[UsageOfDay]) -> "ImportSpending":
        """What so many rows of usage are together."""
        rows = list(rows)
        limited = _limited(rows)
        return cls(
            sum(row.calls for row in limited),
            sum(row.input_tokens + row.output_tokens for row in limited),
            sum(row.cost or 0.0 for row in rows),
        )

    def __sub__(self, before: "ImportSpending") -> "ImportSpending":
        return ImportSpending(
            self.calls - before.calls, self.tokens - before.tokens, self.money - before.money
        )


@dataclass(frozen=True, slots=True)
class ImportBudget:
    """What may be spent; None is no limit."""

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None

    def __bool__(self) -> bool:
        return (self.calls, self.tokens, self.money) != (None, None, None)

    def reached(self, spent: ImportSpending) -> str | None:
        """Which limit is reached, in words; None below all of them."""
        if self.calls is not None and spent.calls >= self.calls:
            return f"{spent.calls:,} calls of {self.calls:,} are used"
        if self.tokens is not None and spent.tokens >= self.tokens:
            return f"{spent.tokens:,} tokens of {self.tokens:,} are used"
        if self.money is not None and spent.money >= self.money:
            return f"{spent.money:.4g} of {self.money:g} in money is spent"
        return None


class BudgetWatch:
    """What the tenant uses from now on, against a budget and the quota of the service."""

    def __init__(self, memory: Memory, budget: ImportBudget) -> None:
        """Look at what is used already.

        Raises:
            UnpricedError: the budget is in money, and a model has no price.
            ApiError: the key may not see the tenant's usage.

        """
        self._memory = memory
        self._budget = budget
        self._since = memory.usage().today.day
        usage = memory.usage(since=self._since)
        if budget.money is not None and (unpriced := _unpriced(usage)):
            raise UnpricedError(unpriced)
        self._before = ImportSpending.of(usage.results)

    @classmethod
    def opened(cls, memory: Memory, budget: ImportBudget) -> "BudgetWatch | None":
        """As the class; None without a budget for a key that may not see the usage."""
        try:
            return cls(memory, budget)
        except ApiError as error:
            if not budget and error.code == KEY_RESTRICTED:
                return None
            raise

    def check(self) -> None:
        """Raises StoppedError: the budget is reached, or the quota of the day is used up."""
        usage = self._memory.usage(since=self._since)
        if self._budget.money is not None and (unpriced := _unpriced(usage)):
            raise StoppedError(str(UnpricedError(unpriced)))
        spent = ImportSpending.of(usage.results) - self._before
        reason = self._budget.reached(spent)
        if reason is not None:
            raise StoppedError(f"the budget is reached: {reason}")
        _refuse_exhausted(usage)

    def refuse_exhausted(self) -> None:
        """Raises StoppedError: the quota of the day is used up."""
        _refuse_exhausted(self._memory.usage(since=self._since))

    def told(self) -> dict[str, Any]:
        """What was used since, for machines."""
        spent = ImportSpending.of(self._memory.usage(since=self._since).results) - self._before
        return {"calls": spent.calls, "tokens": spent.tokens, "money": spent.money or None}


def _refuse_exhausted(usage: Usage) -> None:
    today = usage.today
    if today.exhausted is not None:
        raise StoppedError(
            f"the service's quota of the day ({today.exhausted}) is used up until "
            f"{today.resets_at}; what is imported and not read yet is read then"
        )


def _unpriced(usage: Usage) -> list[str]:
    """Chat models without a price: those to be asked, and those that an agent's config names."""
    models = usage.models
    asked = (models.extraction, models.reconciliation, models.profile, models.summary)
    names = {purpose.model for purpose in asked if purpose is not None and purpose.price is None}
    return sorted(names | {row.model for row in _limited(usage.results) if row.cost is None})


def _limited(rows: Iterable[UsageOfDay]) -> list[UsageOfDay]:
    return [row for row in rows if row.operation not in UNLIMITED]
