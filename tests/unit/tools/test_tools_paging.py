"""Pages for a model: what fits, what is cut, and cursors that hold or are refused."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.llm.tokens import EstimatedTokens
from app.prompting.tools.error_texts import CallRefusedError
from app.prompting.tools.tool_results import CUT, Budget, SearchPosition, digest, mark, reached

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
COUNTER = EstimatedTokens()
LINES = [
    f"{number}. She has a cat of {number} years, which is called Minka." for number in range(9)
]


def compose(shown) -> str:
    more = [] if len(shown) == len(LINES) else ["There is more."]
    return "\n".join(["Found:", *shown, *more])


def needed(count: int) -> int:
    return COUNTER.count(compose(LINES[:count]))


@pytest.mark.parametrize("count", [1, 4, 8, 9])
def test_a_budget_is_filled_to_the_token_with_whole_items(count: int) -> None:
    tokens = needed(count)

    assert Budget(COUNTER, tokens).fill(LINES, compose) == (compose(LINES[:count]), count)
    if count < len(LINES):
        assert Budget(COUNTER, tokens + 1).fill(LINES, compose)[1] == count
    below, fitting = Budget(COUNTER, tokens - 1).fill(LINES, compose)
    assert fitting == max(count - 1, 1)
    assert COUNTER.count(below) < tokens


def test_an_item_that_is_alone_too_long_is_cut_and_says_so() -> None:
    text, count = Budget(COUNTER, 100).fill(["word " * 5000, "next"], compose)

    assert count == 1
    assert CUT in text
    assert text.endswith("There is more.")
    assert 80 < COUNTER.count(text) <= 100


def test_a_text_is_cut_at_the_budget_alone() -> None:
    text = "她喜欢喝绿茶。" * 30
    tokens = COUNTER.count(text)

    assert Budget(COUNTER, tokens).cut(text) == text
    assert Budget(COUNTER, tokens - 1).cut(text).endswith(CUT)


@given(
    st.lists(st.text(max_size=300), min_size=1, max_size=12),
    st.integers(min_value=30, max_value=400),
)
def test_whatever_is_found_the_page_fits_and_is_not_empty(items: list[str], tokens: int) -> None:
    text, count = Budget(COUNTER, tokens).fill(items, "\n".join)

    assert 1 <= count <= len(items)
    assert COUNTER.count(text) <= tokens
    if count < len(items):
        assert COUNTER.count("\n".join(items[: count + 1])) > tokens
    if CUT not in text:
        assert text == "\n".join(items[:count])


SEARCH = digest({"query": "tea", "scope": None})
ORDER = ["m1", "m2", "m3", "m4", "m5"]


def test_a_cursor_goes_on_behind_the_last_item_seen() -> None:
    cursor = SearchPosition(2, mark("m2"), NOON).encoded(SEARCH)

    start = reached(cursor, SEARCH)

    assert len(cursor) < 40
    assert (start.count, start.asked) == (2, NOON)
    assert start.start_in(ORDER) == 2
    # Another was found before it meanwhile; it was deleted; everything was.
    assert start.start_in(["new", *ORDER]) == 3
    assert start.start_in(["m1", "m3", "m4"]) == 1
    assert start.start_in([]) == 0


@pytest.mark.parametrize(
    "cursor",
    ["", "2", "a-b-c-d", "2-3", "--", "2-zz-1-1", "0-1-{search:x}-1", "2-1-{other:x}-1",
     "1-ffffffffffffffff-{search:x}-1", "-1-1-{search:x}-1", "二-1-{search:x}-1"],
)  # fmt: skip
def test_a_cursor_of_another_search_is_refused(cursor: str) -> None:
    told = cursor.format(search=SEARCH, other=digest({"query": "coffee"}))

    with pytest.raises(CallRefusedError, match="belongs to another search"):
        reached(told, SEARCH)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading_of_cursors(cursor: str) -> None:
    try:
        start = reached(cursor, SEARCH)
    except CallRefusedError:
        return
    assert start.count >= 1
