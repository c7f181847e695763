"""Cursors: whatever was encoded comes back, and everything else is refused."""

import string
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.platform.values.pagination import (
    InvalidCursorError,
    Page,
    decode_number,
    decode_time,
    encode,
    page,
)

# Away from the ends of the calendar, which the driver takes for infinity.
moments = st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001 (Hypothesis wants the zone apart)
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.just(UTC),
)
numbers = st.integers(min_value=0, max_value=2**63 - 1)
ids = st.text(string.ascii_letters + string.digits + "._:@|+=~-", min_size=1, max_size=64)


@given(moment=moments, row_id=ids)
def test_decoding_undoes_encoding_of_a_moment(moment: datetime, row_id: str) -> None:
    assert decode_time(encode("list", moment, row_id), "list") == (moment, row_id)


@given(number=numbers, row_id=ids)
def test_decoding_undoes_encoding_of_a_number(number: int, row_id: str) -> None:
    assert decode_number(encode("list", number, row_id), "list") == number


@given(moment=moments, row_id=ids)
def test_a_cursor_is_safe_in_a_url_and_short_enough_to_be_accepted(
    moment: datetime, row_id: str
) -> None:
    cursor = encode("list", moment, row_id)

    assert set(cursor) <= set(string.ascii_letters + string.digits + "-_")
    assert len(cursor) <= 512


@given(moment=moments, number=numbers, row_id=ids)
def test_a_cursor_of_one_kind_is_refused_by_the_other(
    moment: datetime, number: int, row_id: str
) -> None:
    with pytest.raises(InvalidCursorError):
        decode_number(encode("list", moment, row_id), "list")
    with pytest.raises(InvalidCursorError):
        decode_time(encode("list", number, row_id), "list")


@given(st.one_of(st.text(), st.from_regex(r"[A-Za-z0-9_-]{0,200}", fullmatch=True)))
def test_a_made_up_cursor_is_refused_and_never_crashes(cursor: str) -> None:
    for decode in (decode_time, decode_number):
        with suppress(InvalidCursorError):
            decode(cursor, "list")


def test_the_refusal_names_the_field() -> None:
    with pytest.raises(InvalidCursorError) as raised:
        decode_time("x", "list")

    assert raised.value.members["errors"] == [
        {"location": ["query", "cursor"], "detail": "not a cursor of this list"}
    ]


@given(st.datetimes(timezones=st.timezones()), st.text(max_size=80))
def test_a_well_formed_cursor_is_a_moment_in_utc_or_refused(moment: datetime, row_id: str) -> None:
    try:
        decoded = decode_time(encode("list", moment, row_id), "list")
    except InvalidCursorError:
        return
    assert decoded is not None
    assert decoded[0] == moment.astimezone(UTC)
    assert decoded[0].utcoffset() == timedelta(0)
    assert decoded[1].isprintable()


def test_no_cursor_is_the_first_page() -> None:
    assert decode_time(None, "list") is None
    assert decode_number(None, "list") is None


def paged(rows: list[int], limit: int) -> Page[int]:
    return page("list", rows, limit, show=lambda row: row, place=lambda row: (row, str(row)))


@given(st.lists(st.integers(0, 1000), max_size=30, unique=True).map(sorted), st.integers(1, 10))
def test_pages_together_are_the_list(rows: list[int], limit: int) -> None:
    """As a repository reads it: what lies behind the cursor, one row more than asked for."""
    seen: list[int] = []
    start: int | None = None
    for _ in range(len(rows) + 1):
        here = paged([row for row in rows if start is None or row > start][: limit + 1], limit)
        seen += here.items
        assert len(here.items) <= limit
        start = decode_number(here.next_cursor, "list")
        if start is None:
            break

    assert seen == rows


@pytest.mark.parametrize(
    ("rows", "limit", "more"), [(0, 2, False), (1, 2, False), (2, 2, False), (3, 2, True)]
)
def test_there_is_a_next_page_only_when_something_is_on_it(
    rows: int, limit: int, more: bool
) -> None:
    assert (paged(list(range(rows)), limit).next_cursor is not None) == more
