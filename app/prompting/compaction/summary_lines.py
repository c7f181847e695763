"""Rows of messages as a summariser reads them. Pure."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, cast, get_args

from app.conversation.messages.window import EVENT_TYPE
from app.language.llm.content_parts import text_with_placeholders
from app.language.llm.summariser import Speaker, SummaryLine
from app.language.llm.tool_call import ToolCall, arguments_text

READ: Final = 8_000
"""Code points of a message that a summariser is shown."""

LONGEST_VALUE: Final = 40
LONGEST_ARGUMENTS: Final = 120
"""Code points of one argument of a call, and of all of them."""


def lines_of(rows: Iterable[Mapping[str, Any]]) -> list[SummaryLine]:
    """A line for each row, in order; results have the name of the tool that was called."""
    names: dict[str, str] = {}
    lines = []
    for row in rows:
        calls = [ToolCall.of(call) for call in row["tool_calls"] or ()]
        names |= {call.call_id: _name(call) for call in calls if call.call_id}
        lines.append(
            SummaryLine(
                speaker=_speaker(row["role"]),
                text=text_with_placeholders(row["content"], row["content_parts"])[:READ],
                event_type=row[EVENT_TYPE],
                name=row["name"] or names.get(row["tool_call_id"] or ""),
                calls=tuple(f"{_name(call)}{_arguments(call)}" for call in calls),
                number=row["sequence_no"],
            )
        )
    return lines


def _speaker(role: str) -> Speaker:
    assert role in get_args(Speaker)  # noqa: S101 (a constraint of the table)
    return cast("Speaker", role)


def _name(call: ToolCall) -> str:
    return call.name or "tool"


def _arguments(call: ToolCall) -> str:
    """The arguments of a call in brackets, long ones cut; nothing where there are none."""
    given = call.arguments
    if isinstance(given, str):
        # What is no JSON, or was cut off, is shown as it is.
        with suppress(ValueError):
            given = json.loads(given[:READ])
    if isinstance(given, Mapping):
        values = [f"{key}={_cut(_value(value), LONGEST_VALUE)}" for key, value in given.items()]
        written = ", ".join(values)
    else:
        written = _value(given) if given else ""
    return f"({_cut(written, LONGEST_ARGUMENTS)})" if written else ""


def _value(value: Any) -> str:
    return " ".join(arguments_text(value).split())


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
