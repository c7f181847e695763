"""Items of the Responses API come back from the message that they are stored as."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemem.openai_items import items_of, message_of

PIXEL = "data:image/png;base64,iVBORw0KGgo="
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "我住在慕尼黑。"},
    {"role": "user", "content": ""},
    {"role": "user", "content": "long " * 50_000},
    {"role": "user", "content": "NUL \x00 and half \ud83d"},
    {"role": "developer", "content": "Be terse.", "type": "message"},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": PIXEL, "detail": "low"},
        ],
    },
    {"role": "user", "content": [{"type": "input_text", "text": str(n)} for n in range(51)]},
    {
        "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "A pixel.", "annotations": [], "logprobs": []}],
    },
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a": 1}', "id": "f"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "x" * 70_000},
    {"type": "function_call_output", "call_id": "c1", "output": "done", "status": None},
    {"type": "function_call_output", "call_id": "c1", "output": ""},
    {"type": "function_call_output", "call_id": "c1", "output": "y" * 300_000},
    {
        "type": "function_call_output", "call_id": "c1",
        "output": [{"type": "input_image", "image_url": PIXEL}],
    },
    {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e" * 100_000},
    {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search"}},
    {"type": "compaction", "encrypted_content": "x"},
]  # fmt: skip


def stored(message: dict[str, Any]) -> dict[str, Any]:
    """The message as the service answers it."""
    empty = {"content": "", "content_parts": None, "tool_calls": None, "tool_call_id": None}
    return json.loads(json.dumps(empty | message))


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: str(item.get("type", item.get("role"))))
def test_item_comes_back_as_it_came(item: dict[str, Any]) -> None:
    assert items_of(stored(message_of(item))) == [item]


@given(
    st.dictionaries(
        st.sampled_from(["role", "type", "content", "output", "call_id", "name", "arguments"]),
        st.sampled_from(
            ["user", "message", "function_call", "function_call_output", "", "\x00", 1, None]
        )
        | st.text(),
    )
)
def test_any_dictionary_comes_back(item: dict[str, Any]) -> None:
    assert items_of(stored(message_of(item))) == [item]


def test_what_was_said_and_called_is_stored_as_such() -> None:
    said, called, answered = (message_of(ITEMS[place]) for place in (0, 8, 10))

    assert (said["role"], said["content"]) == ("user", "我住在慕尼黑。")
    assert called["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"a": 1}'}
    assert (answered["role"], answered["tool_call_id"]) == ("tool", "c1")
    assert message_of(ITEMS[14])["metadata"]["hidden"]
    # Text that only JSON can hold stays readable.
    assert message_of(ITEMS[3])["content"] == "NUL  and half ?"


def test_messages_of_others_are_items_too() -> None:
    call = {"id": "c9", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    others = [
        {"role": "user", "content": "Hello.", "metadata": {}},
        {"role": "assistant", "content": "One moment.", "tool_calls": [call], "metadata": {}},
        {"role": "tool", "content": "done", "tool_call_id": "c9", "metadata": {}},
    ]

    assert [item for one in others for item in items_of(stored(one))] == [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "One moment."},
        {"type": "function_call", "call_id": "c9", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c9", "output": "done"},
    ]
