"""Nothing is lost, nothing is turned around, and nothing is too long."""

import re

from hypothesis import given
from hypothesis import strategies as st

from app.language.parsing.passages import MOST_TOKENS, text_passages, tokens_of

TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            ["Refunds take five days. ", "退款需要五天。", "# Head\n", "\n\n", "\n", " ", "x" * 900,
             "第三章 总则\n", "字" * 400, "\u3000", "Mr. Smith said so! "]
        ),
        st.text(max_size=60),
    ),
    max_size=40,
).map("".join)  # fmt: skip


def without_space(text: str) -> str:
    return re.sub(r"\s+", "", text)


@given(TEXTS)
def test_nothing_is_lost_and_the_order_stays(text: str) -> None:
    found = text_passages(text)

    assert without_space("".join(one.content for one in found)) == without_space(text)
    ends = 0
    for one in found:
        assert one.start >= ends
        assert text[one.start : one.end] == one.content == one.content.strip()
        assert one.content
        ends = one.end


@given(TEXTS)
def test_none_is_too_long(text: str) -> None:
    assert all(tokens_of(one.content) <= MOST_TOKENS for one in text_passages(text))


@given(TEXTS, st.lists(st.integers(0, 500), max_size=5))
def test_pages_are_those_it_stands_on(text: str, cuts: list[int]) -> None:
    starts = sorted({0, *(cut for cut in cuts if cut < len(text))})
    for one in text_passages(text, starts):
        assert one.page is not None
        assert starts[one.page - 1] <= one.start
        assert one.page == len(starts) or one.end <= starts[one.page]


def test_they_end_where_a_reader_pauses() -> None:
    sentence = "This machine needs oil every second week, and a new belt once a year. "
    text = "\n\n".join(
        ["# One", sentence * 10, "# Two", sentence * 10, "退款需要五个工作日。" * 50]
    )
    found = text_passages(text)

    assert [one.content[:5] for one in found[:2]] == ["# One", "# Two"]
    assert all(one.content.endswith((".", "。")) for one in found)


def test_paragraphs_of_a_page_stay_together() -> None:
    text = "\n\n".join(f"Short paragraph number {number}." for number in range(10))
    assert len(text_passages(text)) == 1


def test_a_sentence_without_end_takes_no_longer_than_others() -> None:
    text = "word " * 400_000
    assert sum(one.end - one.start + 1 for one in text_passages(text)) == len(text)
