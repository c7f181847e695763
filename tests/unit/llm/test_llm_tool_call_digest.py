"""The line about calls of tools: what it says, in how many words, and how several become one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.llm.extractive_summariser import extract
from app.language.llm.summariser import SummaryLine, SummaryRequest
from app.language.llm.tool_call import ToolCallDigest, digest_of, joined, read_digest
from app.language.text.pieces import word_count

REQUEST = SummaryLine("user", "Please compare the prices of all hotels in Lisbon.", number=1)
CHINESE = SummaryLine("user", "请比较里斯本所有酒店的价格，并按区域写下来。", number=1)


def steps(count: int, *, first: int = 2) -> list[SummaryLine]:
    """Two of three calls read a page."""
    lines = []
    for step in range(count):
        number = first + 2 * step
        name = "search" if step % 3 == 2 else "read_page"
        text = f"Page {number}: a room in the Alfama costs {number} euros."
        lines.append(SummaryLine("assistant", "", calls=(f"{name}(page={number})",), number=number))
        lines.append(SummaryLine("tool", text, name=name, number=number + 1))
    return lines


def test_digest_says_how_often_what_was_called_where_and_the_newest_with_arguments() -> None:
    text = extract(SummaryRequest(100, [REQUEST, *steps(30)]))

    line, asked, *outcome = text.splitlines()
    assert line == (
        "Tool calls (messages 2–60): read_page ×20, search ×10; newest: read_page(page=52), "
        "search(page=54), read_page(page=56), read_page(page=58), search(page=60)."
    )
    assert asked == "User: Please compare the prices of all hotels in Lisbon."
    assert all(one.startswith("Tool (") for one in outcome)
    assert outcome
    assert word_count(text) <= 100


def test_digest_is_chinese_among_chinese() -> None:
    results = [
        SummaryLine("tool", f"第{number}页：阿尔法玛区的酒店。", name="read_page", number=number)
        for number in (3, 5)
    ]
    calls = [line for line in steps(2) if line.calls]

    text = extract(SummaryRequest(100, [CHINESE, *calls, *results]))

    assert text.splitlines()[0] == (
        "工具调用（消息 2–4）：read_page ×2；最近：read_page(page=2)，read_page(page=4)。"
    )


def test_summaries_become_one_with_one_line_about_calls() -> None:
    """A thousand steps leave a count, not a thousand lines."""
    parts = [
        extract(SummaryRequest(60, [REQUEST, *steps(30)])),
        "User: I live in Rome.",
        extract(SummaryRequest(60, steps(30, first=62))),
    ]

    text = extract(SummaryRequest(60, (), parts))

    assert text.splitlines()[0] == "Tool calls (messages 2–120): read_page ×40, search ×20."
    assert text.count("Tool calls") == 1
    assert "User: I live in Rome." in text


def test_a_merged_one_is_merged_again() -> None:
    parts = [extract(SummaryRequest(60, steps(3, first=first))) for first in (2, 8, 14, 20)]
    merged = [
        extract(SummaryRequest(60, (), parts[:2])),
        extract(SummaryRequest(60, (), parts[2:])),
    ]

    assert extract(SummaryRequest(60, (), merged)).startswith(
        "Tool calls (messages 2–24): read_page ×8, search ×4."
    )


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (1, "… ×10"),
        (7, "… ×10"),
        (8, "read ×7, … ×3"),
        (9, "read ×7, … ×3"),
        (10, "read ×7, write ×2, … ×1"),
        (11, "read ×7, write ×2, send ×1"),
        (14, "read ×7, write ×2, send ×1"),
        (15, "read ×7, write ×2, send ×1; newest: read(b=2)"),
        (17, "read ×7, write ×2, send ×1; newest: read(b=2)"),
        (18, "read ×7, write ×2, send ×1; newest: read(a=1), read(b=2)"),
    ],
)  # fmt: skip
def test_digest_is_as_long_as_there_is_room(words: int, written: str) -> None:
    digest = ToolCallDigest(
        2, 9, {"send": 1, "read": 7, "write": 2}, ("send", "read(a=1)", "read(b=2)")
    )

    assert digest.written(words, chinese=False) == f"Tool calls (messages 2–9): {written}."


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.integers(1, 999), min_size=1
    ),
    st.none() | st.integers(1, 10**6),
    st.lists(st.from_regex(r"[a-z]{1,9}\([^\n]{0,30}\)", fullmatch=True), max_size=5),
    st.booleans(),
    st.integers(1, 60),
)  # fmt: skip
def test_what_is_written_is_read_again(
    counts: dict[str, int], first: int | None, newest: list[str], chinese: bool, words: int
) -> None:
    last = None if first is None else first + 10
    line = ToolCallDigest(first, last, counts, newest).written(words, chinese=chinese)

    found = read_digest(line)

    assert found is not None
    assert (found.first, found.last) == (first, last)
    assert sum(found.counts.values()) == sum(counts.values())
    assert all(counts[name] == count for name, count in found.counts.items() if name != "…")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "User: Tool calls: read ×2.",
        "Tool calls: none.",
        "Tool calls were made.",
        "工具调用：没有。",
    ],
)
def test_other_lines_are_none(line: str) -> None:
    assert read_digest(line) is None


def test_without_calls_there_is_none() -> None:
    assert digest_of([REQUEST]) is None
    assert joined([]) is None
