"""Rows of messages as a summariser reads them. Pure."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, cast, get_args

from app.conversation.messages.window import EVENT_TYPE
from app.language.llm.content_parts import text_with_placeholders
from app.language.llm.summariser import Speaker, SummaryLine

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
        calls = row["tool_calls"] or []
        names |= {call["id"]: _name(call) for call in calls if isinstance(call.get("id"), str)}
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


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function")
    return function if isinstance(function, Mapping) else call


def _name(call: Mapping[str, Any]) -> str:
    name = _function(call).get("name")
    return name if isinstance(name, str) and name else "tool"


def _arguments(call: Mapping[str, Any]) -> str:
    """The arguments of a call in brackets, long ones cut; nothing where there are none."""
    function = _function(call)
    given = next((function[key] for key in ("arguments", "args", "input") if key in function), None)
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
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(written.split())


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
