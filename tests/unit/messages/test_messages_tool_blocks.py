"""Calls and results that come as Anthropic's blocks become calls and results."""

from typing import Any

import pytest

from app.conversation.messages.message_forms import Spoken
from app.conversation.messages.schemas import MessageAppend
from app.prompting.context.dialects import for_anthropic, for_openai

TEXT = {"type": "text", "text": "I look."}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}}


def use(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"t{number}", "name": "look", "input": {"at": number}}


def result(number: int, content: Any = "Sea.") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"t{number}", "content": content}


def taken(*messages: dict[str, Any]) -> list[Spoken]:
    body = MessageAppend.model_validate({"messages": list(messages)})
    return [
        Spoken(
            one.role, one.content, one.content_parts, one.tool_calls, one.tool_call_id,
            message_id=one.message_id,
        )
        for one in body.messages
    ]  # fmt: skip


@pytest.mark.parametrize("key", ["content", "content_parts"])
def test_they_are_the_same_after_a_detour(key: str) -> None:
    talk = [
        {"role": "user", key: [{"type": "text", "text": "Look."}]},
        {"role": "assistant", key: [TEXT, use(1), use(2)]},
        {"role": "user", key: [result(1, [IMAGE]), result(2, [TEXT]), TEXT]},
        {"role": "assistant", key: [use(3)]},
        {"role": "user", key: [result(3, [TEXT])]},
    ]

    _, turns = for_anthropic("", taken(*talk))

    assert turns == [{"role": one["role"], "content": one[key]} for one in talk]


def test_openai_gets_calls_and_results() -> None:
    shown = for_openai("", taken(
        {"role": "assistant", "content": [use(1)]},
        {"role": "user", "content": [result(1), TEXT]},
    ))  # fmt: skip

    assert shown[0]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": 1}'}
    assert shown[1] == {"role": "tool", "tool_call_id": "t1", "content": "Sea."}
    assert shown[2]["content"] == [TEXT]


@pytest.mark.parametrize(
    ("blocks", "ids"),
    [
        ([result(1)], ["m"]),
        ([result(1), result(2)], ["m-1", "m"]),
        ([result(1), result(2), TEXT], ["m-1", "m-2", "m"]),
        ([TEXT], ["m"]),
    ],
)
def test_ids_are_the_same_for_the_same_message(blocks: list[Any], ids: list[str]) -> None:
    said = taken({"message_id": "m", "role": "user", "content": blocks})

    assert [one.message_id for one in said] == ids


def test_what_is_no_such_block_stays_as_it_came() -> None:
    call = {"id": "t1", "function": {"name": "look", "arguments": "{}"}}
    both = {"role": "assistant", "content": [TEXT, use(1)], "tool_calls": [call]}
    odd = {"role": "user", "content": [TEXT, {"type": "tool_result"}]}

    first, second = taken(both, odd)

    assert (first.tool_calls, first.content_parts) == ([call], both["content"])
    assert (second.role, second.content_parts) == ("user", odd["content"])
