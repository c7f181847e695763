"""What models cost in money, as the deployment says. Pure.

The one place for prices: the ledger, imports and evaluations all tell money by it. The currency is
that of whoever wrote the prices.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.errors import ConfigurationError

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
