"""The ledger as it crosses HTTP."""

import re
from datetime import date
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from app.identity.usage.quota import QuotaName
from app.platform.values.fields import ReadSchema, Schema, Storable, Timestamp

Operation = Annotated[str, StringConstraints(min_length=1, max_length=40), Storable]
Model = Annotated[str, StringConstraints(min_length=1, max_length=255), Storable]


def _no_number(value: object) -> object:
    """A number would be read as seconds since 1970, and shown as the day they fall on."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9.]+", value.strip()):
        raise ValueError("must be a day such as 2026-11-27, not a number")
    return value


Day = Annotated[date, BeforeValidator(_no_number)]


class DaysQuery(Schema):
    since: Day | None = Field(
        default=None, description="First day (UTC); 29 days before `until` when left out."
    )
    until: Day | None = Field(
        default=None, description="Last day (UTC), included; today when left out."
    )


class UsageQuery(DaysQuery):
    operation: Operation | None = None
    model: Model | None = None


class Figures(ReadSchema):
    calls: int = Field(description="Requests that went to a model, failed ones among them.")
    failures: int
    input_tokens: int
    output_tokens: int

    cost: float | None = Field(
        description="Money by MEMORY_MODEL_PRICES, in its currency; null if a model has no price."
    )


class UsageRead(Figures):
    day: date
    operation: str = Field(
        description="`extract`, `summarise` and `reconcile` are asked of chat models; `embed` "
        "(what is stored), `embed_query` (what is searched for) and `reembed` of a provider's "
        "embedding models, `rerank` of rerankers, whose tokens are not known. Local models cost "
        "nothing and are not listed.",
        examples=["extract"],
    )
    model: str


class LimitRead(ReadSchema):
    """One limit of a day and what is left of it."""

    limit: int | None = Field(description="Null means none.")
    used: int
    remaining: int | None


class TodayRead(ReadSchema):
    """Today (UTC) against its quota, whatever the list is narrowed to.

    Embeddings and reranking are listed and do not count here: no quota holds back a search or
    a save.
    """

    day: date
    calls: LimitRead
    tokens: LimitRead = Field(description="Read and written together.")
    exhausted: QuotaName | None = Field(
        description="The quota that is used up: further work waits until `resets_at`."
    )
    resets_at: Timestamp


class PriceRead(ReadSchema):
    """Of a million tokens."""

    input: float
    output: float


class ModelRead(ReadSchema):
    model: str
    price: PriceRead | None = Field(description="Null if MEMORY_MODEL_PRICES has none.")


class ModelsRead(ReadSchema):
    """Models that are asked for an agent that names no other; null where none is asked."""

    extraction: ModelRead | None = Field(description="Reads conversations.")
    reconciliation: ModelRead | None = Field(description="Compares with what is remembered.")
    profile: ModelRead | None = Field(description="Derives profiles.")
    summary: ModelRead | None = Field(description="Summarises what leaves a window.")


class UsageAnswer(ReadSchema):
    since: date
    until: date
    items: list[UsageRead] = Field(description="Newest day first, by operation and model.")
    totals: Figures = Field(description="Of all items.")
    today: TodayRead
    models: ModelsRead
