"""Older results of tools give their room to the conversation, for one call."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.conversation.messages.message_forms import Spoken
from app.conversation.messages.window import Window, WindowMessage
from app.conversation.messages.window_service import last_tokens
from app.language.llm.tokens import EstimatedTokens, message_tokens
from app.prompting.context.scene import SceneConversation
from app.prompting.context.schemas import ClearToolResults
from app.prompting.context.window_part import window_part

LONG = "Row of a table that nobody will look at again. " * 40

COUNTER = EstimatedTokens()
PLENTY = 100_000

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


def shown_results(talk: SceneConversation, **wish: Any) -> list[str]:
    part = window_part(talk, last_tokens, PLENTY, COUNTER, ClearToolResults(**wish))
    assert part.answer()["cleared"] == sum("tokens left out" in one.content for one in part.spoken)
    return [one.content for one in part.spoken if one.role == "tool"]


def line(number: int) -> str:
    """What stands in place of the message with this number."""
    tokens = message_tokens(COUNTER, content=LONG)
    return f'[{tokens} tokens left out: message_read with message_id "m{number}" shows them.]'


@pytest.mark.parametrize(
    ("results", "keep", "replaced"), [(3, 3, 0), (4, 3, 1), (5, 3, 2), (2, 0, 2), (0, 0, 0)]
)
def test_the_newest_stay(results: int, keep: int, replaced: int) -> None:
    shown = shown_results(conversation(results), keep=keep)

    lines = [line(3 + 2 * number) for number in range(replaced)]
    assert shown == lines + [LONG] * (results - replaced)


def test_what_was_replaced_takes_the_tokens_of_the_line_in_its_place() -> None:
    talk = conversation(2)

    part = window_part(talk, last_tokens, PLENTY, COUNTER, ClearToolResults(keep=1))

    tokens = [message_tokens(COUNTER, content=line(3)) if one.message_id == "m3" else one.tokens
              for one in talk.window.messages]  # fmt: skip
    assert [one.tokens for one in part.shown] == tokens
    assert part.answer()["tokens"] == part.piece.section.tokens == sum(tokens)


def test_exempt_tools_and_short_results_stay() -> None:
    shown = shown_results(conversation(3), keep=0, exempt=["tool1"])
    short = shown_results(conversation(3, content="42"), keep=0)

    assert shown == [line(3), LONG, line(7)]
    assert short == ["42"] * 3


@pytest.mark.parametrize(("above", "replaced"), [(-1, 1), (0, 0), (1, 0)])
def test_clearing_waits_until_the_messages_take_more(above: int, replaced: int) -> None:
    talk = conversation(1)
    taken = sum(one.tokens for one in talk.window.messages)

    shown = shown_results(talk, keep=0, above_tokens=taken + above)

    assert shown == [line(3)] * replaced + [LONG] * (1 - replaced)
