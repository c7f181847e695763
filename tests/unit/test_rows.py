"""A table of rows runs to its end, and names each row that fails."""

import pytest

from tests.support.rows import every_row, for_each


async def test_every_row_runs_and_each_that_fails_is_named() -> None:
    seen = []

    @for_each("number", [1, 2, 3])
    async def over(number: int) -> None:
        seen.append(number)
        if number == 3:
            pytest.skip("never seen")
        assert number == 2

    with pytest.raises(BaseExceptionGroup, match="2 of 3 rows failed") as raised:
        await over()

    assert seen == [1, 2, 3]
    notes = [error.__notes__ for error in raised.value.exceptions]
    assert notes == [["in the row number=1"], ["in the row number=3"]]


def test_rows_that_hold_raise_nothing() -> None:
    with every_row() as trying, trying(number=1):
        pass
