"""Which messages a session shows after it was put back, against sets of numbers."""

import hypothesis.strategies as st
from hypothesis import given
from sqlalchemy.dialects.postgresql import Range

from app.prompting.checkpoints.repository import set_aside_after

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("checkpoint"), st.just(0)),
        st.tuples(st.just("restore"), st.integers(0, 9)),
    ),
    max_size=40,
)


def shown(last: int, set_aside: list[Range[int]]) -> set[int]:
    return {number for number in range(1, last + 1) if not any(number in one for one in set_aside)}


@given(steps)
def test_a_restore_shows_exactly_what_was_shown_then(taken: list[tuple[str, int]]) -> None:
    last, set_aside = 0, []
    visible: set[int] = set()
    kept: list[tuple[int, list[Range[int]], set[int]]] = []
    for step, number in taken:
        if step == "append":
            visible |= set(range(last + 1, last + number + 1))
            last += number
        elif step == "checkpoint":
            kept.append((last, set_aside, set(visible)))
        elif kept:
            message_seq, before, then = kept[number % len(kept)]
            set_aside = set_aside_after(before, message_seq, last)
            visible = set(then)

        assert shown(last, set_aside) == visible


def test_nothing_is_set_aside_where_nothing_came_after() -> None:
    assert set_aside_after([], 7, 7) == []
    assert set_aside_after([], 6, 7) == [Range(7, 8)]
