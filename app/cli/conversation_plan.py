"""What `kemem import-conversations --dry-run` says (what is in the files, and what it will cost),
and the budget of an import, counted by what the tenant has used since it began.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from app.cli.conversation_cost import STATEMENTS, Estimate, estimate_of
from app.cli.conversation_formats import FilesRead
from app.cli.options import service_meant
from app.console import print_json, print_record
from app.deployment import stripped_tags
from app.errors import ConfigurationError
from app.identity.usage.quota import UNLIMITED
from app.language.llm.tokens import open_counter
from app.settings import Settings, tiktoken_folder
from kemem import Memory
from kemem.errors import ApiError, KememError
from kemem.jobs import Usage, UsageOfDay, UsedModels


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import would do.

    Args:
        models: those that the service asks; or why they are not known.
        estimate: what is asked of them; None where they are not known.
        max_facts: how many memories of a user are kept; 0 for all.

    """

    reading: FilesRead
    models: UsedModels | str
    estimate: Estimate | None
    max_facts: int


def plan_of(reading: FilesRead, url: str | None, key: str | None, settings: Settings) -> ImportPlan:
    """Count, and estimate the cost where a service says which models it asks."""
    models = _models(url, key, settings)
    if isinstance(models, str):
        return ImportPlan(reading, models, None, settings.max_facts)
    estimate = asyncio.run(
        estimate_of(
            reading.conversations,
            models,
            open_counter(tiktoken_folder()),
            tags=stripped_tags(settings),
            window_tokens=settings.window_tokens * settings.pressure_flush,
            profile_interval=timedelta(seconds=settings.profile_interval_seconds),
        )
    )
    return ImportPlan(reading, models, estimate, settings.max_facts)


def _models(url: str | None, key: str | None, settings: Settings) -> UsedModels | str:
    try:
        service = service_meant(url, key, settings)
        with Memory(service.base_url, service.key) as memory:
            return memory.usage().models
    except (ConfigurationError, KememError) as error:
        return str(error)


def tell_plan(plan: ImportPlan, *, as_json: bool) -> None:
    """Print it."""
    reading = plan.reading
    conversations = reading.conversations
    times = [time for conversation in conversations for time in conversation.times]
    users = sorted({conversation.user_id or "" for conversation in conversations})
    messages = Counter(
        said.role for conversation in conversations for said in conversation.messages
    )
    counted: dict[str, Any] = {
        "conversations": len(conversations),
        "messages": messages.total(),
        "users": [user or None for user in users],
        "first": min(times, default=None),
        "last": max(times, default=None),
        "without_time": messages.total() - len(times),
        "left_out": dict(+reading.left_out),
        "unreadable": reading.unreadable,
    }
    if as_json:
        print_json(counted | {"cost": _cost(plan)})
        return
    more = f" and {len(users) - 10:,} more" if len(users) > 10 else ""
    print_record(
        {
            "conversations": f"{len(conversations):,}",
            "messages": f"{messages.total():,}"
            + "".join(f", {count:,} {role}" for role, count in sorted(messages.items())),
            "users": ", ".join(user or "that of the key" for user in users[:10]) + more,
            "from": counted["first"],
            "to": counted["last"],
            "without a time": f"{counted['without_time']:,}",
            "left out": ", ".join(f"{count:,} {why}" for why, count in (+reading.left_out).items()),
            "unreadable": f"{len(reading.unreadable):,}",
        }
        | _capacity_lines(plan)
        | _cost_lines(plan)
    )


def _capacity_lines(plan: ImportPlan) -> dict[str, str]:
    """How many users probably tell more than is kept of one; nothing where none does."""
    said = Counter(
        conversation.user_id
        for conversation in plan.reading.conversations
        for message in conversation.messages
        if message.role == "user"
    )
    over = sum(STATEMENTS * messages > plan.max_facts > 0 for messages in said.values())
    if not over:
        return {}
    whose = "1 user" if over == 1 else f"{over:,} users"
    return {
        "too many": f"{whose} may tell more than the {plan.max_facts:,} memories that are kept of "
        "each; the others are archived: raise MEMORY_MAX_FACTS of the service first (0: no limit)"
    }


def _cost(plan: ImportPlan) -> dict[str, Any] | None:
    """The estimate, for machines; None where nobody knows which models are asked."""
    if plan.estimate is None or isinstance(plan.models, str):
        return None
    total = plan.estimate.total
    return {
        "calls": total.calls,
        "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens,
        "money": plan.estimate.money(plan.models),
        "by_work": {
            work: {"model": getattr(plan.models, work).model, **asdict(asked)}
            for work, asked in plan.estimate.by_work.items()
        },
    }


def _cost_lines(plan: ImportPlan) -> dict[str, Any]:
    """The estimate, for people."""
    cost = _cost(plan)
    if cost is None:
        return {"cost": f"not known, as no service told its models: {plan.models}"}
    if not cost["by_work"]:
        return {"cost": "none: no model is asked"}
    money = cost["money"]
    works = ", ".join(
        f"{cost_of_work['calls']:,} {work}" for work, cost_of_work in cost["by_work"].items()
    )
    return {
        "models": ", ".join(
            sorted({cost_of_work["model"] for cost_of_work in cost["by_work"].values()})
        ),
        "calls": f"about {cost['calls']:,}: {works}",
        "tokens": f"about {cost['input_tokens']:,} read and {cost['output_tokens']:,} written",
        "money": "not known: MEMORY_MODEL_PRICES of the service lacks a price"
        if money is None
        else f"about {money:.2g}",
    }


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
