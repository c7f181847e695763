"""What models cost in money, how much of them a tenant may use in a day, and whether it has. Pure.

Embeddings and reranking are in the ledger and not in the quota. A quota makes work of the
background wait, and refuses extraction by a model on request; searches and explicit saves
are never limited. If their embeddings counted, a day of searches would stop extraction, while the
embeddings themselves could not be limited.

What can go wrong with the ledger.

The one place for prices: the ledger, imports and evaluations all tell money by it. The currency is
that of whoever wrote the prices.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Literal, get_args

from app.errors import ConfigurationError, TooManyRequestsError, UnprocessableError
from app.language.llm.embedder import EmbeddingOperation
from app.language.llm.reranker import RerankOperation
from app.platform.values.fields import LARGEST_INTEGER

MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Of a million tokens."""

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """What so many tokens cost."""
        return (self.input * input_tokens + self.output * output_tokens) / MILLION


def parsed_prices(text: str) -> Mapping[str, Price]:
    """Prices by model, from `gpt-4o-mini=0.15/0.60,text-embedding-3-small=0.02`.

    The name of a model may have `openai/` before it, as settings write it.

    Raises:
        ConfigurationError: it is not written so; the message quotes the part.

    """
    prices: dict[str, Price] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, given = part.rpartition("=")
        name = name.strip().removeprefix("openai/")
        try:
            amounts = [float(amount) for amount in given.split("/")]
        except ValueError:
            amounts = []
        valid = all(math.isfinite(amount) and amount >= 0 for amount in amounts)
        if not name or name in prices or not valid or len(amounts) not in {1, 2}:
            raise ConfigurationError(
                f"MEMORY_MODEL_PRICES: {part!r} is no price. Write model=in/out for a million "
                "tokens, such as gpt-4o-mini=0.15/0.60, each model once."
            )
        prices[name] = Price(amounts[0], amounts[1] if len(amounts) == 2 else 0.0)
    return prices


QuotaName = Literal["daily_calls", "daily_tokens"]


UNLIMITED: Final = (*get_args(EmbeddingOperation), *get_args(RerankOperation))
"""Operations that no quota counts."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What counts of the use on `day` (UTC): all operations but the unlimited, all models."""

    day: date
    calls: int = 0
    failures: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def resets_at(self) -> datetime:
        """The midnight (UTC) that ends the day."""
        return datetime.combine(self.day, time(), UTC) + timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Quota:
    """Most calls and tokens of chat models in a day; 0 means no limit."""

    daily_calls: int = 0
    daily_tokens: int = 0

    def overridden(self, config: Mapping[str, Any]) -> "Quota":
        """The quota of a tenant with this config; invalid limits in it are ignored."""
        return Quota(
            daily_calls=_limit(config.get("daily_calls"), self.daily_calls),
            daily_tokens=_limit(config.get("daily_tokens"), self.daily_tokens),
        )


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The quota `reason` is used up until `until`."""

    reason: QuotaName
    until: datetime


def exhausted(totals: Totals, quota: Quota) -> Exhausted | None:
    """What bars a further call today; None when nothing does.

    Tokens are known after a call alone, so the last call of a day may go past its limit.
    """
    if 0 < quota.daily_calls <= totals.calls:
        return Exhausted("daily_calls", totals.resets_at)
    if 0 < quota.daily_tokens <= totals.tokens:
        return Exhausted("daily_tokens", totals.resets_at)
    return None


def _limit(value: object, otherwise: int) -> int:
    # An exact type: true is an int too.
    return value if type(value) is int and 0 <= value <= LARGEST_INTEGER else otherwise


class InvalidDaysError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"`since` must not lie after `until`, and at most {most} days are shown at once.",
            errors=[{"location": ["query", "since"], "detail": f"0 to {most - 1} days before"}],
        )


class QuotaExhaustedError(TooManyRequestsError):
    """The tenant's calls or tokens of the day are used up."""

    code = "quota_exhausted"
    title = "Daily quota used up"

    def __init__(self, wait: timedelta) -> None:
        seconds = max(math.ceil(wait.total_seconds()), 1)
        super().__init__(
            "The tenant's daily quota of model calls or tokens is used up; it frees up at "
            "midnight UTC. With async=true the work waits until then.",
            retry_after=seconds,
        )
