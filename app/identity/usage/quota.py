"""How much of its chat models a tenant may use in a day, and whether it has. Pure.

Embeddings and reranking are in the ledger and not in the quota. A quota makes work of the
background wait, and refuses extraction by a model on request; searches and explicit saves
are never limited. If their embeddings counted, a day of searches would stop extraction, while the
embeddings themselves could not be limited.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Literal, get_args

from app.language.llm.embedder import EmbeddingOperation
from app.language.llm.reranker import RerankOperation
from app.platform.values.fields import LARGEST_INTEGER

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
