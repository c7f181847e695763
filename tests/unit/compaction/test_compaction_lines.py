"""Messages as a summariser reads them: calls with short arguments, results with a name."""

from typing import Any

import pytest

from app.prompting.compaction.summary_writer import LONGEST_ARGUMENTS, LONGEST_VALUE, lines_of


def row(role: str, content: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "sequence_no": 1, "role": role, "content": content, "content_parts": None, "name": None,
        "tool_calls": None, "tool_call_id": None, "event_type": None,
    } | fields  # fmt: skip


def called(call: dict[str, Any]) -> str:
    [line] = lines_of([row("assistant", tool_calls=[call])])
    [written] = line.calls
    return written


@pytest.mark.parametrize(
    ("call", "written"),
    [
        ({"id": "1", "function": {"name": "f", "arguments": '{"city": "里斯本", "n": 2}'}},
         "f(city=里斯本, n=2)"),
        ({"id": "1", "name": "f", "args": {"path": "a/b.py"}}, "f(path=a/b.py)"),
        ({"id": "1", "name": "f", "input": {"tags": ["a", "b"]}}, 'f(tags=["a", "b"])'),
        ({"id": "1", "function": {"name": "f", "arguments": "{}"}}, "f"),
        ({"id": "1", "function": {"name": "f", "arguments": ""}}, "f"),
        ({"id": "1", "function": {"name": "f"}}, "f"),
        ({"id": "1", "function": {"name": "f", "arguments": "not\n json"}}, "f(not json)"),
        ({"id": "1", "function": {"name": "f", "arguments": "[1]"}}, "f([1])"),
        ({"id": "1"}, "tool"),
        ({"id": "1", "name": 7, "args": None}, "tool"),
    ],
)  # fmt: skip
def test_a_call_has_its_name_and_what_it_was_given(call: dict[str, Any], written: str) -> None:
    assert called(call) == written


@pytest.mark.parametrize("length", [LONGEST_VALUE - 1, LONGEST_VALUE, LONGEST_VALUE + 1])
def test_a_long_argument_is_cut(length: int) -> None:
    written = called({"id": "1", "name": "f", "args": {"q": "x" * length}})

    kept = "x" * length if length <= LONGEST_VALUE else "x" * (LONGEST_VALUE - 1) + "…"
    assert written == f"f(q={kept})"


def test_many_arguments_are_cut() -> None:
    written = called({"id": "1", "name": "f", "args": {f"k{one}": "x" * 30 for one in range(99)}})

    assert len(written) == len("f()") + LONGEST_ARGUMENTS


def test_a_result_has_the_name_of_the_tool_that_was_called_last_by_its_id() -> None:
    """Dialects repeat the id in a result and not the name, and ids are used again."""
    lines = lines_of(
        [
            row("assistant", tool_calls=[{"id": "1", "name": "search"}]),
            row("tool", "3 hotels", tool_call_id="1"),
            row("assistant", tool_calls=[{"id": "1", "name": "book"}]),
            row("tool", "booked", tool_call_id="1"),
            row("tool", "by itself", tool_call_id="1", name="own"),
            row("tool", "from before", tool_call_id="9"),
        ]
    )

    assert [line.name for line in lines] == [None, "search", None, "book", "own", None]
