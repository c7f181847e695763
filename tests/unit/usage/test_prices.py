"""Prices of models, as a setting writes them."""

import pytest

from app.errors import ConfigurationError
from app.identity.usage.quota import Price, parsed_prices


def test_prices_are_read_by_model() -> None:
    prices = parsed_prices(" openai/gpt-4o-mini=0.15/0.60, embed=0.02,, org/model:8b = 0/1 ")

    assert prices == {
        "gpt-4o-mini": Price(0.15, 0.6),
        "embed": Price(0.02, 0.0),
        "org/model:8b": Price(0.0, 1.0),
    }
    assert parsed_prices("") == {}


def test_a_price_is_of_a_million_tokens() -> None:
    price = Price(0.15, 0.6)

    assert price.of(1_000_000, 0) == pytest.approx(0.15)
    assert price.of(0, 1_000_000) == pytest.approx(0.6)
    assert price.of(2_000, 1_000) == pytest.approx(0.0009)


@pytest.mark.parametrize(
    "text",
    ["m", "m=", "=1/2", "m=1/2/3", "m=a/b", "m=-1/2", "m=nan/1", "m=inf", "m=1/2,openai/m=1/2"],
)
def test_what_is_no_price_is_quoted(text: str) -> None:
    with pytest.raises(ConfigurationError, match="MEMORY_MODEL_PRICES"):
        parsed_prices(text)
