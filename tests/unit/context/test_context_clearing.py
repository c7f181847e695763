"""Older results of tools give their room to the conversation, for one call."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.conversation.messages.window import Window, WindowMessage
from app.language.llm.tokens import EstimatedTokens, message_tokens
from app.prompting.context.composition import PLACEHOLDER, cleared
from app.prompting.context.dialects import Spoken
from app.prompting.context.scene import SceneConversation
from app.prompting.context.schemas import ClearToolResults

LONG = "Row of a table that nobody will look at again. " * 40

COUNTER = EstimatedTokens()

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def conversation(results: int, *, content: str = LONG) -> SceneConversation:
    """One question, and so many calls of a tool with their results."""
    rows: list[tuple[WindowMessage, Spoken]] = []

    def say(role: str, text: str, **more: Any) -> None:
        number = len(rows) + 1
        spoken = Spoken(role, text, message_id=f"m{number}", sequence_no=number, **more)
        calls = tuple(call["id"] for call in spoken.tool_calls or ())
        tokens = message_tokens(COUNTER, content=text, tool_calls=more.get("tool_calls"))
        message = WindowMessage(f"m{number}", number, role, tokens, NOW, calls, spoken.tool_call_id)
        rows.append((message, spoken))

    say("user", "What does the table say?")
    for number in range(results):
        call = {"id": f"c{number}", "function": {"name": f"tool{number}", "arguments": "{}"}}
        say("assistant", "", tool_calls=[call])
        say("tool", content, tool_call_id=f"c{number}")
    messages = tuple(message for message, _ in rows)
    window = Window(
        messages=messages, pointer=0, total=len(rows), answerable_since=NOW, instructions_tokens=0
    )
    return SceneConversation(window, {one.message_id or "": one for _, one in rows}, 0)


def results_of(shown: SceneConversation) -> list[str]:
    return [one.content for one in shown.spoken.values() if one.role == "tool"]


@pytest.mark.parametrize(
    ("results", "keep", "replaced"), [(3, 3, 0), (4, 3, 1), (5, 3, 2), (2, 0, 2), (0, 0, 0)]
)
def test_the_newest_stay(results: int, keep: int, replaced: int) -> None:
    shown, count = cleared(conversation(results), ClearToolResults(keep=keep), COUNTER)

    assert count == replaced
    assert results_of(shown) == [PLACEHOLDER] * replaced + [LONG] * (results - replaced)


def test_what_was_replaced_takes_the_tokens_of_the_line_in_its_place() -> None:
    before = conversation(2)

    shown, _ = cleared(before, ClearToolResults(keep=1), COUNTER)

    tokens = {one.message_id: one.tokens for one in shown.window.messages}
    assert tokens["m3"] == message_tokens(COUNTER, content=PLACEHOLDER)
    assert {**tokens, "m3": before.window.messages[2].tokens} == {
        one.message_id: one.tokens for one in before.window.messages
    }


def test_exempt_tools_and_short_results_stay() -> None:
    wish = ClearToolResults(keep=0, exempt=["tool1"])

    shown, count = cleared(conversation(3), wish, COUNTER)
    short, none = cleared(conversation(3, content="42"), ClearToolResults(keep=0), COUNTER)

    assert (results_of(shown), count) == ([PLACEHOLDER, LONG, PLACEHOLDER], 2)
    assert (results_of(short), none) == (["42"] * 3, 0)


@pytest.mark.parametrize(("above", "replaced"), [(-1, 1), (0, 0), (1, 0)])
def test_it_waits_until_the_messages_take_more(above: int, replaced: int) -> None:
    talk = conversation(1)
    taken = sum(one.tokens for one in talk.window.messages)

    _, count = cleared(talk, ClearToolResults(keep=0, above_tokens=taken + above), COUNTER)

    assert count == replaced
