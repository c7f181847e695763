"""The pages of what a search has found, as a model reads them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from app.language.text.offload import read_text
from app.prompting.tools.caller import ToolCaller
from app.prompting.tools.tool_results import (
    FOUND_MEMORIES,
    FOUND_MESSAGES,
    FOUND_PASSAGES,
    NO_DEEPER,
    NO_MEMORIES,
    NO_MESSAGES,
    NO_MORE,
    NO_PASSAGES,
    SearchPosition,
    ToolResult,
    mark,
)

DEEPEST = 100
"""Hits of a search that can be paged through, as many as a search returns."""


class ResultLine(NamedTuple):
    """An item of a result."""

    item_id: str
    text: str
    data: dict[str, Any]


class ResultHeading(NamedTuple):
    """The heading of a list, and the text for an empty list."""

    head: str
    nothing: str


MEMORIES: Final = ResultHeading(FOUND_MEMORIES, NO_MEMORIES)
MESSAGES: Final = ResultHeading(FOUND_MESSAGES, NO_MESSAGES)
PASSAGES: Final = ResultHeading(FOUND_PASSAGES, NO_PASSAGES)


def depth(start: SearchPosition | None, k: int) -> int:
    """How many hits to ask for: those seen, those wanted, and one to know whether more follow."""
    return min((start.count if start else 0) + k + 1, DEEPEST)


async def paged(
    caller: ToolCaller,
    lines: Sequence[ResultLine],
    start: SearchPosition | None,
    at: datetime,
    search: int,
    k: int,
    heading: ResultHeading,
) -> ToolResult:
    """The page of a ranking that follows `start`, as much of it as the budget holds."""
    begin = 0 if start is None else start.start_in([line.item_id for line in lines])
    page = lines[begin : begin + k]
    if not page:
        return ToolResult(heading.nothing if start is None else NO_MORE, {"items": []})
    seen = start.count if start else 0

    def cursor(count: int) -> str | None:
        if begin + count >= len(lines) or seen + count >= DEEPEST:
            return None
        return SearchPosition(seen + count, mark(page[count - 1].item_id), at).encoded(search)

    def compose(shown: Sequence[str]) -> str:
        numbered = [f"{seen + number}. {text}" for number, text in enumerate(shown, 1)]
        return "\n".join(
            [heading.head, *numbered, *_foot(cursor(len(shown)), deepest=seen + len(shown))]
        )

    text, count = await read_text(
        sum(len(line.text) for line in page),
        caller.budget.fill,
        [line.text for line in page],
        compose,
    )
    return ToolResult(text, {"items": [line.data for line in page[:count]]}, cursor(count))


def _foot(cursor: str | None, *, deepest: int) -> list[str]:
    if cursor is not None:
        return [f"There is more: repeat the call, all arguments unchanged, with cursor {cursor}"]
    return [NO_DEEPER] if deepest >= DEEPEST else []
