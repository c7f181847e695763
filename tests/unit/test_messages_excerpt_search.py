"""Of how many messages a search of excerpts compares the pieces."""

import pytest

from app.conversation.messages.excerpt_search import CANDIDATES, FEWER_CANDIDATES, candidates


@pytest.mark.parametrize(
    ("tokens", "compared"),
    [
        (1, FEWER_CANDIDATES),
        (2_019, FEWER_CANDIDATES),
        (2_020, FEWER_CANDIDATES + 1),
        (2_999, CANDIDATES - 1),
        (3_000, CANDIDATES),
        (1_000_000, CANDIDATES),
    ],
)
def test_larger_budgets_are_filled_from_more_messages(tokens: int, compared: int) -> None:
    assert candidates(tokens) == compared
